"""What heads look at: the weights behind the predictions, told apart by what they do."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

import lmlab
from command_line import Lmlab, done
from lmlab.inside.head_descriptions import Ids, _seems, summaries
from lmlab.layers.looking import Looks, Way
from mistakes import mistake

SENTENCE = "the cat sat on the mat and"


@pytest.mark.parametrize("name", ["gpt", "attention", "rnn-attention", "byte"])
def test_rows_sum_to_one_and_agree_with_the_fast_kernel(runs: dict[str, Path], name: str) -> None:
    found = lmlab.explain_attention(runs[name], SENTENCE)
    assert found.difference < 1e-5
    assert "".join(found.tokens) == SENTENCE
    for layer in found.layers:
        sums_HT = torch.from_numpy(layer.weights_HTC).sum(-1)
        assert torch.allclose(sums_HT[:, 1:], torch.ones_like(sums_HT[:, 1:]), atol=1e-5)
        places_TC = layer.first_T[:, None] + range(layer.weights_HTC.shape[2])
        assert not layer.weights_HTC[:, places_TC >= torch.arange(len(SENTENCE))[:, None].numpy()].any(), "the future"


def test_a_window_of_a_long_text_is_looked_at_as_if_it_were_alone(runs: dict[str, Path]) -> None:
    found, alone = lmlab.explain_attention(runs["gpt"], SENTENCE), lmlab.explain_attention(runs["gpt"], SENTENCE[8:16])
    here, there = found.layers[1], alone.layers[1]
    assert here.first_T[12:16].tolist() == [7] * 4  # the begin symbol stands where token 7 was
    assert torch.allclose(
        torch.from_numpy(here.weights_HTC[:, 12:16]), torch.from_numpy(there.weights_HTC[:, 4:8]), atol=1e-6
    )
    assert found.weight(2, 1, 14, None) == pytest.approx(float(here.weights_HTC[0, 14, 0]))
    assert found.weight(2, 1, 14, 9) == pytest.approx(float(here.weights_HTC[0, 14, 2]))
    assert found.weight(2, 1, 14, 3) == 0.0  # in no window that token 14 is predicted in


def test_heads_that_do_one_thing_are_told_apart() -> None:
    tokens_T = torch.tensor([3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9, 7, 9, 3, 2, 3])
    length = len(tokens_T)
    places_TC = torch.arange(-1, length - 1).expand(length, length)
    asks_T1 = torch.arange(length)[:, None] - 1
    token = lambda place: tokens_T[place.clamp(min=0)]  # noqa: E731
    earlier = (places_TC >= 0) & (places_TC < asks_T1)
    wanted = [
        places_TC == asks_T1,
        places_TC == asks_T1 - 1,
        places_TC == -1,
        earlier & (token(places_TC) == token(asks_T1)),
        earlier & (places_TC > 0) & (token(places_TC - 1) == token(asks_T1)),
        places_TC <= asks_T1,
    ]
    visible = (places_TC <= asks_T1).float()
    # What a head wants, else the beginning; a little of everything else.
    fallback = (places_TC == -1).float()
    rows = [torch.where(w.any(1, keepdim=True), w.float(), fallback) * visible + 1e-6 * visible for w in wanted]
    weights_HTC = torch.stack([row / row.sum(1, keepdim=True) for row in rows])
    begins_T = torch.full((length,), -1)
    looks = Looks(name="", weights_HTC=weights_HTC, first_T=begins_T, begins_T=begins_T, difference=0.0)
    heads = summaries(looks, 1, Ids(rows_T=tokens_T, seen_S=tokens_T))
    names = ["just read", "token before", "beginning", "same token", "induction", "everything alike"]
    assert all(name in head.seems for name, head in zip(names, heads, strict=True)), [head.seems for head in heads]
    assert heads[0].shares["current"] == pytest.approx(1.0, abs=1e-4)
    assert heads[0].distance == pytest.approx(0.0, abs=1e-3)
    assert heads[1].distance == pytest.approx(1.0, abs=1e-3)
    assert heads[0].entropy == pytest.approx(0.0, abs=1e-3)
    even = heads[5]
    assert even.shares["same"] == pytest.approx(even.chance["same"], abs=1e-4)
    assert even.shares["induction"] == pytest.approx(even.chance["induction"], abs=1e-4)
    # By hand: of 17 rows in which a token asks, row t has t + 1 things to look at, one of them the beginning.
    assert even.shares["beginning"] == pytest.approx(
        sum(1 / (t + 1) for t in range(1, length)) / (length - 1), abs=1e-4
    )


@pytest.mark.parametrize(
    ("share", "name"), [(0.58, "the token before"), (0.38, "partly the token before"), (0.2, "partly the token before")]
)
def test_a_head_is_named_after_half_of_its_attention_and_partly_after_less(share: float, name: str) -> None:
    shares = {"current": 0.1, "previous": share}
    assert _seems(Way.BACK, shares, {"current": 0.05, "previous": 0.05}, 3.0, 0.5) == name
    assert "mixed" in _seems(Way.BACK, shares, {"current": 0.3, "previous": 0.3}, 3.0, 0.5)  # little more than chance


def test_a_model_without_attention_says_who_has_some(runs: dict[str, Path]) -> None:
    with mistake("run-without-attention", "attention, rnn-attention, gpt"):
        lmlab.explain_attention(runs["lstm"], SENTENCE)


def test_the_command_shows_and_writes_json(runs: dict[str, Path], lmlab: Lmlab) -> None:
    out = done(lmlab("explain", "attention", runs["gpt"], SENTENCE))
    assert "2.2" in out
    assert "fast kernel" in out
    code, out, _ = lmlab("explain", "attention", runs["gpt"], SENTENCE, "--json")
    document = json.loads(out)
    assert [len(layer["weights"]) for layer in document["layers"]] == [2, 2]
    assert document["layers"][0]["heads"][1]["seems"]
    code, _, err = lmlab("explain", "attention", runs["ngram"], SENTENCE)
    assert code == 2
    assert "no attention to show" in err
    assert "explain attention" in lmlab("explain", "attention", "--help")[1]
    assert "attention" in lmlab("explain", "--help")[1]

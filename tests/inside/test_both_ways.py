"""Attention of an encoder and of a translator: held against torch's own modules and the fused kernel, and switched off."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import lmlab
from browser_checks import accessible
from command_line import Lmlab, done
from lmlab.config import Mistake
from lmlab.inside.head_descriptions import Ids, summaries
from lmlab.layers.looking import Looks, Way
from lmlab.tasks.translation.measure import measured as translation_measured
from lmlab.text.sentence_pairs import read_pairs
from mistakes import mistake

SENTENCE = "the cat sat on the mat and"
NUMBER = "half past seven in the morning"


@pytest.fixture
def pairs(tmp_path: Path) -> Path:
    """Three sentences in three languages."""
    path = tmp_path / "pairs.tsv"
    path.write_text("en\tfr\tde\nseven\tsept\tsieben\none hundred\tcent\teinhundert\ntwo\tdeux\tzwei\n")
    return path


def test_an_encoder_looks_around_in_every_window_as_torch_does(encoder: Path) -> None:
    run = lmlab.load(encoder)
    found = lmlab.explain_attention(run, SENTENCE)
    assert found.difference < 1e-5
    assert "".join(found.tokens) == "⊢the cat sa⊣⊢t on the m⊣⊢at and⊣"
    for layer in found.layers:
        assert layer.way is Way.AROUND
        assert np.allclose(layer.weights_HTC.sum(-1), 1.0, atol=1e-5)
    model: Any = run.saved.to("cpu")
    block = model.encoder.blocks[0]
    theirs = nn.MultiheadAttention(16, 2, batch_first=True)
    theirs.in_proj_weight.data, theirs.in_proj_bias.data = block.qkv.weight.data, block.qkv.bias.data
    ids = torch.from_numpy(run.tokenizer.encode("at and").ids.astype("int64"))
    x = model.encoder._embed(
        torch.cat([ids.new_tensor([model.symbols.begin]), ids, ids.new_tensor([model.symbols.end])])[None], None
    )
    expected = theirs(x, x, x, average_attn_weights=False)[1][0].detach().numpy()
    last = found.layers[0].weights_HTC[:, 24:]  # the third window: twelve places before it, and twelve more
    assert np.allclose(last[:, :, :8], expected, atol=1e-5)
    assert not last[:, :, 8:].any()
    assert found.layers[0].first_T[24:].tolist() == [24] * 8


def test_blanks_are_hidden_from_an_encoder(encoder: Path) -> None:
    found, open_ = lmlab.explain_attention(encoder, "the [MASK]at"), lmlab.explain_attention(encoder, "the cat")
    assert found.tokens == ("⊢", *"the ", "[MASK]", *"at", "⊣")
    assert not np.allclose(found.layers[0].weights_HTC, open_.layers[0].weights_HTC)


def test_a_translator_looks_at_its_source_as_torch_does(translator: Path) -> None:
    run = lmlab.load(translator)
    model: Any = run.saved
    model.eval()
    found = lmlab.explain_attention(run, NUMBER, target="sept heures et demie", to="fr")
    assert found.difference < 1e-5
    assert "".join(found.tokens) == "sept heures et demie⊣"
    writing = [f"{part} {number}" for number in (1, 2) for part in ("decoder", "alignment")]
    assert [layer.name for layer in found.layers] == ["encoder 1", "encoder 2", *writing]
    cross = found.layers[3]
    assert "".join(cross.sees) == NUMBER + "⊣"
    assert cross.asks == found.tokens
    assert cross.weights_HTC.shape == (2, len(found.tokens), len(cross.sees))
    model.to("cpu")
    taken: dict[str, Any] = {}
    model.cross[0].register_forward_hook(lambda _, inputs, __: taken.update(x=inputs[0], kv=inputs[1]))
    source, target = (
        torch.from_numpy(run.tokenizer.encode(t).ids.astype("int64")) for t in (NUMBER, "sept heures et demie")
    )
    end = torch.tensor([model.end_id])
    read = model.encode(torch.cat([source, end])[None], torch.ones(1, len(source) + 1, dtype=torch.bool))
    language = run.record.inputs.corpus["languages"].index("fr") - 1
    model.given(read, language).score(torch.cat([target, end])[None])
    theirs = nn.MultiheadAttention(16, 2, bias=False, batch_first=True)
    theirs.in_proj_weight.data[:16] = model.cross[0].query.data
    theirs.in_proj_weight.data[16:] = torch.eye(16).repeat(2, 1)  # the keys are made already
    asked = nn.functional.layer_norm(taken["x"], (16,), model.cross[0].norm)
    keys = taken["kv"][:, :, 0].flatten(2)
    expected = theirs(asked, keys, keys, average_attn_weights=False)[1][0].detach().numpy()
    assert np.allclose(cross.weights_HTC, expected, atol=1e-5)


def test_without_a_target_the_translator_writes_its_own(translator: Path) -> None:
    (written,) = lmlab.translate(translator, NUMBER, "de")
    found = lmlab.explain_attention(translator, NUMBER, to="de")
    assert "".join(found.tokens[:-1]) == written.translation
    assert found.language == "de"
    source = "".join(
        next(layer.sees for layer in lmlab.explain_attention(translator).layers if layer.way is Way.ACROSS)
    )
    assert source.removesuffix("⊣")  # a sentence of the test part


def test_heads_that_look_around_or_across_are_told_apart() -> None:
    ids = torch.tensor([9, 3, 1, 3, 5, 8])  # 9 begins, 8 ends
    places, asks = torch.arange(6).expand(6, 6), torch.arange(6)[:, None]
    wanted = [
        places == asks,
        places == asks - 1,
        places == asks + 1,
        places == 0,
        places == 5,
        (ids == ids[:, None]) & (places != asks),
    ]
    rows = [torch.where(w.any(1, keepdim=True), w.float(), (places == 0).float()) + 1e-6 for w in wanted]
    weights = torch.stack([row / row.sum(1, keepdim=True) for row in rows])
    looks = Looks.of_all("block 1", weights[None], 0.0, Way.AROUND)
    heads = summaries(looks, 1, Ids(rows_T=ids, seen_S=ids, begin=9, end=8))
    names = ["itself", "before", "after", "beginning", "end", "beginning"]  # two of six have a token like theirs
    assert all(name in head.seems for name, head in zip(names, heads, strict=True)), [head.seems for head in heads]
    assert heads[5].shares["same"] == pytest.approx(2 / 6, abs=1e-4)
    assert heads[0].chance["same"] == pytest.approx(2 / 36, abs=1e-4)
    target, source = torch.tensor([1, 2, 3, 8]), torch.tensor([3, 2, 1, 6, 5, 4, 7, 8])
    across = torch.stack([torch.eye(8)[[0, 2, 4, 6]], torch.eye(8)[[2, 1, 0, 7]], torch.eye(8)[[7, 7, 7, 7]]]) + 1e-6
    looks = Looks.of_all("alignment 1", across[None], 0.0, Way.ACROSS)
    heads = summaries(looks, 1, Ids(rows_T=target, seen_S=source, end=8))
    names = ["as far along the source", "the same token in the source", "rests on the end of the source"]
    assert [head.seems for head in heads] == names
    assert heads[0].distance == pytest.approx(0.0, abs=1e-3)


@pytest.mark.parametrize("kind", ["encoder", "translator"])
def test_the_cost_of_a_head_is_that_of_scoring_without_its_output(
    kind: str, request: pytest.FixtureRequest, pairs: Path
) -> None:
    run, text = lmlab.load(request.getfixturevalue(kind)), pairs if kind == "translator" else SENTENCE * 4
    model: Any = run.saved
    found = lmlab.explain_heads(run, text)
    if kind == "encoder":
        outs = [block.out.weight for block in model.encoder.blocks]
    else:
        decoder = [part.out for pair in zip(model.decoder, model.cross, strict=True) for part in pair]
        outs = [*(block.out for block in model.encoder), *decoder]
    assert len(found.heads) == 2 * len(outs)
    one = found.heads[-1]
    kept = outs[-1].data.clone()
    outs[-1].data[:, 8:] = 0.0
    without = lmlab.explain_heads(run, text)
    outs[-1].data = kept
    assert one.cost == pytest.approx(without.bits - found.bits, abs=1e-6)
    assert without.heads[-1].cost == pytest.approx(0.0, abs=1e-9)
    assert lmlab.explain_heads(run, text).bits == found.bits  # every head is back


def test_the_unit_is_that_of_eval(translator: Path, encoder: Path, pairs: Path) -> None:
    found = lmlab.explain_heads(translator, pairs)
    assert found.unit == "bits per byte of the target"
    run = lmlab.load(translator)
    rows = read_pairs(pairs, split=(100, 0, 0), columns=run.record.inputs.corpus["languages"]).parts["train"]
    measured = translation_measured(run, rows, "cpu")
    nats = sum(float(of_language.sum()) for of_language in measured.nats)
    assert found.bits == pytest.approx(nats / (math.log(2) * measured.encoded.target_bytes), rel=1e-6)
    assert lmlab.explain_heads(encoder, SENTENCE).unit == "bits per masked token"


def test_what_does_not_fit_is_said_in_one_line(translator: Path, encoder: Path, runs: dict[str, Path]) -> None:
    with pytest.raises(Mistake, match="does not translate into 'xx'"):
        lmlab.explain_attention(translator, NUMBER, to="xx")
    with pytest.raises(Mistake, match="longer than the"):
        lmlab.explain_attention(translator, "seven " * 200, target="sept")
    with pytest.raises(Mistake, match="the text is empty"):
        lmlab.explain_attention(translator, " ")
    with pytest.raises(Mistake, match="the text is empty"):
        lmlab.explain_attention(encoder, "")
    with pytest.raises(Mistake, match="to is for translators"):
        lmlab.explain_attention(runs["gpt"], SENTENCE, to="de")
    with mistake("run-without-token-probabilities"):
        lmlab.explain(encoder, SENTENCE)
    with pytest.raises(Mistake, match="there is no file nowhere"):
        lmlab.explain_heads(translator, "nowhere.tsv")


def test_the_commands_show_and_write_json(translator: Path, encoder: Path, lmlab: Lmlab) -> None:
    code, out, _ = lmlab("explain", "attention", translator, NUMBER, "--to", "de", "--json")
    document = json.loads(out)
    assert code == 0
    assert [layer["looks"] for layer in document["layers"]] == ["around", "around", "back", "across", "back", "across"]
    out = done(lmlab("explain", "attention", translator, NUMBER))
    assert "alignment 1.2" in out
    assert "off the diagonal" in out
    assert "after it" in lmlab("explain", "attention", encoder, SENTENCE)[1]
    code, out, _ = lmlab("explain", "heads", encoder, "--json")
    assert json.loads(out)["unit"] == "bits per masked token"
    code, _, err = lmlab("explain", "attention", translator, NUMBER, "--to", "xx")
    assert code == 2
    assert err.startswith("lmlab: ")


@pytest.mark.parametrize("kind", ["encoder", "translator"])
def test_the_page_says_where_a_place_looks(tab: Any, kind: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    run, page = request.getfixturevalue(kind), tmp_path / "page.html"
    found = lmlab.explain_attention(run, NUMBER, html=page)
    layer = next(layer for layer in found.layers if layer.way is (Way.AROUND if kind == "encoder" else Way.ACROSS))
    tab.emulate_media(color_scheme="dark")
    tab.set_viewport_size({"width": 390, "height": 900})
    tab.goto(page.as_uri())
    assert tab.evaluate("document.documentElement.scrollWidth") <= 390
    section = tab.locator("section.attention").first
    section.locator(".said").filter(has_text="point at a token").wait_for()
    accessible(tab)  # of a page that is whole
    section.locator("button").nth(1).click()
    section.locator(".strip.rows").focus()
    tab.keyboard.press("ArrowRight")
    tab.keyboard.press("ArrowRight")
    said = section.locator(".said")
    said.filter(has_text=layer.heads[1].name).filter(has_text=" · ").wait_for()
    weights = layer.weights_HTC[1, 2]
    assert f"{100 * float(weights.max()):.0f}%" in said.inner_text()
    assert layer.sees[int(layer.first_T[2]) + int(weights.argmax())].replace(" ", "␣") in said.inner_text()
    assert tab.problems == []

"""Decoding as a whole: what is found, what it costs, where it stops, and that it is the same every time."""

from __future__ import annotations

import itertools
import math
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch

from lmlab.config import Budget, TextFacts
from lmlab.engine import Generated, generate, stream
from lmlab.engine.reader import Reader
from lmlab.engine.search import MOST_STRINGS
from lmlab.interface import ContextPolicy, LanguageModel, State
from lmlab.models.gpt import GPT, GPTConfig
from lmlab.models.ngram import NGram, NGramConfig
from lmlab.models.uniform import Uniform, UniformConfig
from lmlab.text.stream import TokenStream
from lmlab.text.tokenizers import Tokenizer, train_tokenizer

TEXT = (
    "the cat sat on the mat\nthe dog sat on the log\na café and a cat\n" * 10
    + "the zebra sat\nan owl and an emu sat on a gnu\n"
)
KINDS = {"char": "char", "byte": "byte", "bpe": "bpe:280", "words": "words:9"}


class Pair(NamedTuple):
    model: LanguageModel
    tokenizer: Tokenizer


@cache
def ngram(kind: str, smoothing: str = "kneser-ney", order: int = 3) -> Pair:
    tokenizer = train_tokenizer(KINDS[kind], [TEXT])
    ids, spellings = tokenizer.encode(TEXT)
    whole = TokenStream(ids=ids, starts=np.array([0, len(ids)]), bytes=0, chars=0, words=0, spellings=spellings)
    config = NGramConfig(order=order, smoothing=smoothing)  # type: ignore[arg-type]
    return Pair(NGram.fit(config, tokenizer.vocabulary, whole), tokenizer)


@cache
def gpt(kind: str) -> Pair:
    tokenizer = train_tokenizer(KINDS[kind], [TEXT])
    facts = TextFacts(train_tokens=1000, train_bytes=1000, vocab_size=tokenizer.vocab_size)
    config = GPTConfig(layers=2, width=32, heads=2, context=16, stride=5, dropout=0.3)
    torch.manual_seed(0)
    model = GPT(GPT.resolve(config, facts, Budget(steps=1)), tokenizer.vocab_size)
    with torch.no_grad():
        for weight in model.parameters():
            weight.add_(torch.randn_like(weight) * 0.3)
    return Pair(model.eval(), tokenizer)


def nats_by_score(pair: Pair, prompt: str, found: Generated) -> float:
    """What the continuation costs, by scoring prompt and continuation at once."""
    before = pair.tokenizer.encode(prompt).ids.tolist()
    nats = pair.model.score(torch.tensor([[*before, *found.ids]]))[0, len(before) :].double().sum()
    spelling = pair.tokenizer.spelling
    return float(nats) + (float(spelling.nats(found.spellings).sum()) if spelling and found.spellings else 0.0)


METHODS: list[dict[str, Any]] = [
    {"method": "sample", "seed": 5},
    {"method": "sample", "temperature": 0.6, "top_k": 20, "top_p": 0.9, "min_p": 0.01},
    {"method": "sample", "stop": ["at", "\n"]},
    {"method": "greedy"},
    {"method": "beam", "beam_width": 3},
    {"method": "beam", "beam_width": 3, "stop": ["n t", "\n"], "length_penalty": 0.6},
]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("prompt", ["", "the cat", "a café\n"])
@pytest.mark.parametrize("settings", METHODS, ids=str)
def test_text_tokens_and_nats_of_a_result_belong_together(kind: str, prompt: str, settings: dict[str, Any]) -> None:
    pair = ngram(kind)
    (found,) = generate(*pair, prompt, max_tokens=25, **settings)
    before = pair.tokenizer.encode(prompt)
    decoded = pair.tokenizer.decode([*before.ids.tolist(), *found.ids], [*before.spellings, *found.spellings])
    whole = decoded.removeprefix(prompt)
    assert decoded.startswith(prompt)
    stops = settings.get("stop", [])
    if found.finish == "stop":
        assert any(whole.startswith(found.text + stop) for stop in stops)
    else:
        assert found.text == whole
        assert len(found.ids) == 25
    assert not any(stop in found.text for stop in stops)
    assert found.nats == pytest.approx(nats_by_score(pair, prompt, found), rel=1e-5)
    assert found.to_json()["tokens"] == list(found.ids)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("settings", METHODS, ids=str)
def test_a_stream_is_the_result_in_pieces(kind: str, settings: dict[str, Any]) -> None:
    pair = ngram(kind)
    (whole,) = generate(*pair, "the cat", max_tokens=30, **settings)
    pieces = stream(*pair, "the cat", max_tokens=30, **settings)
    texts = list(pieces)
    assert "".join(texts) == whole.text
    assert all(texts)
    assert pieces.result == whole
    assert stream(*pair, "the cat", max_tokens=30, **settings).result == whole


def test_a_stream_yields_before_the_model_is_asked_for_more() -> None:
    calls = []

    class Watched(Uniform):
        policy = ContextPolicy.everything()

        def advance(self, tokens_BT: torch.Tensor, state: State) -> tuple[torch.Tensor, State]:
            calls.append(tokens_BT.shape[1])
            return super().advance(tokens_BT, state)

    tokenizer = train_tokenizer("byte", [TEXT])
    pair = Pair(Watched(UniformConfig(), tokenizer.vocab_size), tokenizer)
    pieces = stream(*pair, "ab", method="greedy", max_tokens=4)
    assert next(pieces) == "\x00"
    assert calls == [2], "the prompt is read at once, and the first token is shown before the second is computed"
    assert list(pieces) == ["\x00"] * 3
    assert calls == [2, 1, 1, 1], "nothing is computed after the last token"


def test_a_beam_streams_what_all_its_texts_begin_with() -> None:
    pair = ngram("char")
    pieces = list(stream(*pair, "th", method="beam", beam_width=3, max_tokens=40))
    assert len(pieces) > 3, "in a text this regular the beams agree on most of what they begin with"


@pytest.mark.parametrize("pair", [ngram("words"), ngram("bpe"), gpt("char")], ids=["ngram", "bpe", "gpt"])
def test_a_sample_depends_on_seed_and_number_alone(pair: Pair) -> None:
    settings: dict[str, Any] = {"max_tokens": 20, "seed": 3, "temperature": 0.9, "stop": ["og"]}
    six = generate(*pair, "the", samples=6, **settings)
    three = generate(*pair, "the", samples=3, **settings)
    (one,) = generate(*pair, "the", **settings)
    assert [s.text for s in six[:3]] == [s.text for s in three]
    assert one.text == six[0].text
    assert len({s.text for s in six}) > 1
    assert generate(*pair, "the", **settings | {"seed": 4})[0].text != one.text
    np.testing.assert_allclose([s.nats for s in six[:3]], [s.nats for s in three], rtol=1e-5)


def test_texts_are_drawn_as_often_as_they_are_likely() -> None:
    """Two words of a word model, spelled unknown words included: frequencies against probabilities of whole texts."""
    pair = ngram("words")
    drawn = generate(*pair, "the", samples=4000, max_tokens=1, seed=1)
    assert {len(d.ids) for d in drawn} == {1}
    logp_V = Reader(*pair, "the").start()[0][0]
    expected = 4000 * logp_V.exp().double().numpy()
    counts = np.bincount([d.ids[0] for d in drawn], minlength=pair.model.vocab_size)
    common = expected > 5
    assert ((counts - expected)[common] ** 2 / expected[common]).sum() < 30
    unknown = [d for d in drawn if d.ids[0] == pair.tokenizer.unknown_id]
    assert len(unknown) > 20
    assert len({d.text for d in unknown}) > 10
    assert all(d.spelling_nats > 0 for d in unknown)


def test_greedy_takes_the_likeliest_token_each_time() -> None:
    pair = gpt("char")
    (found,) = generate(*pair, "the ", method="greedy", max_tokens=12)
    before = pair.tokenizer.encode("the ").ids.tolist()
    for t, id in enumerate(found.ids):
        rows = torch.tensor([[*before, *found.ids[:t], v] for v in range(pair.model.vocab_size)])
        assert int(pair.model.score(rows)[:, -1].argmin()) == id
    assert generate(*pair, "the ", temperature=0, max_tokens=12)[0] == found


def brute_force(pair: Pair, prompt: str, length: int, stop: str | None, penalty: float) -> list[float]:
    """Scores of all continuations, best first, by listing and scoring them; a token that holds `stop` ends one."""
    tokenizer = pair.tokenizer
    spelling = tokenizer.spelling
    assert spelling is not None
    words = list(spelling.words)
    spelled = words[int(spelling.nats(words).argmin())]
    ends = [
        stop is not None and stop in (spelled if v == tokenizer.unknown_id else tokenizer.piece(v))
        for v in range(pair.model.vocab_size)
    ]
    before = tokenizer.encode(prompt).ids.tolist()
    found: list[float] = []
    for size in range(1, length + 1):
        strings = [
            ids
            for ids in itertools.product(range(pair.model.vocab_size), repeat=size)
            if not any(ends[v] for v in ids[:-1]) and (size == length or ends[ids[-1]])
        ]
        if not strings:
            continue
        tokens_NT = torch.tensor([[*before, *ids] for ids in strings])
        nats_N = pair.model.score(tokens_NT)[:, len(before) :].double().sum(1).numpy()
        nats_N += float(spelling.nats([spelled])[0]) * np.array([ids.count(tokenizer.unknown_id) for ids in strings])
        found += (-nats_N / size**penalty).tolist()
    return sorted(found, reverse=True)


@pytest.mark.parametrize("penalty", [0.0, 0.7, 1.0, -0.5])
@pytest.mark.parametrize("stop", [None, "\n"])
def test_a_full_beam_ranks_all_texts_with_stops_and_length_normalisation(stop: str | None, penalty: float) -> None:
    pair = ngram("words", order=2)
    expected = brute_force(pair, "the cat", 3, stop, penalty)
    settings: dict[str, Any] = {"max_tokens": 3, "n_best": 12, "length_penalty": penalty}
    settings |= {} if stop is None else {"stop": stop}
    for method in ({"method": "beam", "beam_width": 2000}, {"method": "exhaustive"}):
        found = generate(*pair, "the cat", **settings, **method)
        np.testing.assert_allclose([f.score for f in found], expected[:12], rtol=1e-4)
        assert [f.score for f in found] == pytest.approx([-f.nats / len(f.ids) ** penalty for f in found])


def test_a_wider_beam_finds_a_likelier_text_than_greedy() -> None:
    pair = ngram("char", order=4)
    widths = [generate(*pair, "a", method="beam", beam_width=w, max_tokens=15)[0].nats for w in (1, 4, 16)]
    greedy = generate(*pair, "a", method="greedy", max_tokens=15)[0].nats
    assert widths[0] == greedy
    assert widths[0] > widths[1] >= widths[2]


def test_ending_a_beam_early_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """A penalty above 0 may prefer a text that is far longer than those that are finished."""
    settings: dict[str, Any] = {"method": "beam", "beam_width": 4, "n_best": 3, "max_tokens": 25, "stop": ["\n", "at"]}
    early = {p: generate(*ngram("char"), "the", length_penalty=p, **settings) for p in (0.0, 0.7, 1.5, -1.0, -3.0)}
    monkeypatch.setattr("lmlab.engine.search._settled", lambda *_: False)
    for penalty, found in early.items():
        assert generate(*ngram("char"), "the", length_penalty=penalty, **settings) == found


def test_n_best_are_different_and_in_order() -> None:
    found = generate(*ngram("char"), "the ", method="beam", beam_width=8, n_best=8, max_tokens=10)
    assert len({f.ids for f in found}) == 8
    assert [f.score for f in found] == sorted((f.score for f in found), reverse=True)


def test_equal_tokens_are_taken_in_order_of_their_ids() -> None:
    tokenizer = train_tokenizer("byte", [TEXT])
    pair = Pair(Uniform(UniformConfig(), tokenizer.vocab_size), tokenizer)
    assert generate(*pair, "", method="greedy", max_tokens=3)[0].ids == (0, 0, 0)
    found = generate(*pair, "", method="beam", beam_width=5, n_best=5, max_tokens=2)
    assert [f.ids for f in found] == [(0, 0), (0, 1), (0, 2), (0, 3), (0, 4)]
    assert found[0].nats == pytest.approx(2 * math.log(256))


@pytest.mark.parametrize("settings", METHODS, ids=str)
def test_impossible_tokens_are_never_chosen(settings: dict[str, Any]) -> None:
    """Maximum likelihood knows one continuation of most histories: all that is written was seen in the text."""
    (found,) = generate(*ngram("char", "ml"), "the d", max_tokens=30, **settings)
    assert math.isfinite(found.nats)
    written = "the d" + found.text
    assert all(written[i : i + 3] in TEXT for i in range(len(written) - 2))


def test_exhaustive_search_leaves_out_the_impossible() -> None:
    found = generate(*ngram("words", "ml"), "the", method="exhaustive", max_tokens=2, n_best=1000)
    assert 1 < len(found) < ngram("words").model.vocab_size ** 2
    assert all(math.isfinite(f.nats) for f in found)


def test_searches_spell_an_unknown_word_with_its_likeliest_spelling_and_pay_for_it() -> None:
    pair = ngram("words")
    spelling = pair.tokenizer.spelling
    assert spelling is not None
    best = min(spelling.words, key=lambda word: float(spelling.nats([word])[0]))
    found = generate(*pair, "the", method="exhaustive", max_tokens=1, n_best=pair.model.vocab_size)
    (unknown,) = [f for f in found if f.ids == (pair.tokenizer.unknown_id,)]
    assert unknown.spellings == (best,)
    assert unknown.text == " " + best
    assert unknown.spelling_nats == pytest.approx(float(spelling.nats([best])[0]))


def test_a_prompt_longer_than_the_context_is_read() -> None:
    pair = gpt("char")
    prompt = TEXT[:90]
    (found,) = generate(*pair, prompt, method="greedy", max_tokens=12)
    assert found.nats == pytest.approx(nats_by_score(pair, prompt, found), rel=1e-4)


def test_a_model_in_training_is_refused() -> None:
    pair = gpt("byte")
    pair.model.train()
    try:
        with pytest.raises(ValueError, match=r"call model\.eval\(\) first"):
            generate(*pair, "a")
    finally:
        pair.model.eval()


def test_mistakes_are_named_in_one_line() -> None:
    pair = ngram("char")
    with pytest.raises(ValueError, match="did you mean 'temperature'"):
        generate(*pair, "a", temprature=0.5)
    with pytest.raises(ValueError, match="a stream is one text"):
        stream(*pair, "a", samples=2)
    with pytest.raises(ValueError, match=f"at most {MOST_STRINGS}"):
        generate(*pair, "a", method="exhaustive", max_tokens=4)

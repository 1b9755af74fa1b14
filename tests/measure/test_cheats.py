from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import cheats
import measure_models as planted
import numpy as np
import pytest
import subtle_cheats
import torch

from lmlab.config import Budget, TextFacts
from lmlab.interface import ContextPolicy, CountModel, LanguageModel, NeuralLanguageModel
from lmlab.measure import certify, evaluate, score_part
from lmlab.measure.route import beginnings, middle
from lmlab.models.registry import ladder, model_class
from lmlab.text.parts import Part
from lmlab.text.stream import tokenize
from lmlab.text.tokenizers import Tokenizer
from thinning import thinned

CHARS = planted.tokenizer_for("char")
REMEMBERING = ("KeepsTheRowForAll", "HonestWhereAsked")  # caught in processes of their own: test_process_cheats.py
CHEATS = {name: make for name, make in (cheats.CHEATS | subtle_cheats.CHEATS).items() if name not in REMEMBERING}
TIMES, CAUGHT = 20, 19


def text_of(folder: Path, seed: int) -> Part:
    """A long document and some short ones, of similar length."""
    shorter = [planted.some_text(60 + seed % 7, seed=100 * seed + i) for i in range(6)]
    return planted.part_of(folder, planted.some_text(4500, seed=seed), *shorter, name=f"test{seed}")


def text_for(name: str, folder: Path, seed: int) -> Part:
    """What this cheat is to be caught on: one that tells documents apart needs several long ones."""
    if name != "LooksSuspiciousElsewhere":
        return text_of(folder, seed)
    return planted.part_of(folder, *(planted.some_text(400, seed=50 * seed + i) for i in range(16)), name=f"long{seed}")


def caught(name: str, folder: Path, seed: int) -> bool:
    model = CHEATS[name](CHARS, seed)
    return bool(evaluate(model, CHARS, text_for(name, folder, seed)).certificate.failures)


@pytest.mark.parametrize("name", CHEATS)
def test_a_cheat_gets_no_certificate(name: str, tmp_path: Path) -> None:
    assert any(caught(name, tmp_path, seed) for seed in (1, 2))  # one in twenty may slip through once


@pytest.mark.slow
@pytest.mark.parametrize("name", CHEATS)
def test_a_cheat_is_caught_19_times_in_20(name: str, tmp_path: Path) -> None:
    assert sum(caught(name, tmp_path, seed) for seed in range(TIMES)) >= CAUGHT


@pytest.mark.parametrize("name", [name for name in CHEATS if name not in ("SumsToThree", "CheaperTheSecondTime")])
def test_a_cheat_is_caught_after_it_has_scored_the_text_too(name: str, tmp_path: Path) -> None:
    model = CHEATS[name](CHARS, 3)
    scored = score_part(model, CHARS, text_for(name, tmp_path, 3))
    assert certify(model, CHARS, scored).failures


def test_an_unknown_symbol_for_nothing_is_seen_though_its_spelling_is_paid(tmp_path: Path) -> None:
    tokenizer = planted.tokenizer_for("words")
    cheats.UnknownForNothing.unknown_id = tokenizer.unknown_id
    model = cheats.UnknownForNothing.random(tokenizer)
    part = planted.part_of(tmp_path, planted.some_text(1500, rare=True))
    assert evaluate(cheats.Chain.random(tokenizer), tokenizer, part).certificate.failures == []
    assert evaluate(model, tokenizer, part).certificate.failures == ["score_is_probability"]


def honest(name: str, tokenizer: Tokenizer, seed: int, folder: Path) -> LanguageModel:
    """A small model of every kind with opinions of its own."""
    cls = model_class(name)
    train = planted.part_of(folder, planted.some_text(1000, seed=seed + 1000), name=f"train{seed}")
    stream = tokenize(train, tokenizer, folder)
    if issubclass(cls, CountModel):
        return cls.fit(cls.Config(), tokenizer.vocabulary, stream)
    assert issubclass(cls, NeuralLanguageModel)
    facts = TextFacts(train_tokens=stream.tokens, train_bytes=stream.bytes, vocab_size=tokenizer.vocab_size)
    torch.manual_seed(seed)
    model = cls(cls.resolve(cls.Config(), facts, Budget(steps=10)), tokenizer.vocab_size)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter += 0.1 * torch.randn_like(parameter)
    return model.eval()


@pytest.mark.parametrize("name", thinned(ladder(), ["ngram", "gpt", "lstm", "rnn-attention"]))
def test_an_honest_model_of_every_kind_passes_on_a_long_text(name: str, tmp_path: Path) -> None:
    result = evaluate(honest(name, CHARS, 0, tmp_path), CHARS, text_of(tmp_path, 0))
    assert result.certificate.failures == []


@pytest.mark.slow
def test_honest_models_pass_200_times_of_200(tmp_path: Path) -> None:
    failed = []
    for seed in range(1, 18):
        tokenizer = planted.tokenizer_for(["char", "byte", "words", "bpe:300"][seed % 4])
        for name in ladder():
            result = evaluate(honest(name, tokenizer, seed, tmp_path), tokenizer, text_of(tmp_path, seed))
            failed += [(name, seed, c) for c in result.certificate.checks if c.passed is False]
    assert failed == []


def test_places_lie_in_every_document_and_at_every_depth(tmp_path: Path) -> None:
    part = planted.part_of(tmp_path, *(planted.some_text(3000, seed=seed) for seed in range(8)))
    stream = tokenize(part, CHARS, tmp_path)
    for policy in (ContextPolicy.last(5), ContextPolicy.windows(64, 32), ContextPolicy.everything()):
        generator = np.random.Generator(np.random.PCG64(1))
        routes = [beginnings(stream, policy, generator), middle(stream, policy, generator)]
        places = np.concatenate([route.places_P for route in routes if route is not None])
        document = np.searchsorted(stream.starts, places, side="right") - 1
        depth = (places - stream.starts[document]) / np.diff(stream.starts)[document]
        assert set(document) == set(range(8))
        assert np.histogram(depth, bins=4, range=(0, 1))[0].min() > 0
        assert len(places) >= 300
        for route in routes:
            assert route is not None
            spans = sorted(zip(route.starts_B, route.starts_B + route.lengths_B, strict=True))
            assert all(a[1] <= b[0] for a, b in pairwise(spans))

"""What training shows is what measuring says: bits per byte of the whole text, unknown words spelled out."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

import lmlab
from lmlab.learn import unit
from lmlab.learn.unit import Unit
from lmlab.measure import score_part

LETTERS = "abcdefghijklmnopqrstuvwxyz"


@pytest.fixture
def rare_words(tmp_path: Path) -> Path:
    """A text in which every fifth word occurs nowhere else."""
    chance = random.Random(3)
    words = [
        "".join(chance.choices(LETTERS, k=7)) if i % 5 == 0 else chance.choice(["the", "cat", "sat", "on", "a", "mat"])
        for i in range(6000)
    ]
    path = tmp_path / "rare.txt"
    path.write_text(" ".join(words))
    return path


@pytest.mark.parametrize("tokenizer", ["words", "char"])
def test_nats_per_token_become_the_bits_per_byte_that_measuring_gives(
    tokenizer: str, rare_words: Path, tmp_path: Path
) -> None:
    run = lmlab.train("bag", rare_words, out=tmp_path / "run", tokenizer=tokenizer)
    scored = score_part(run.model, run.tokenizer, run.corpus.valid)
    here = Unit.of(scored.stream, run.tokenizer)
    assert here.bits_per_byte(scored.model_nats / scored.tokens) == pytest.approx(scored.bits_per_byte, rel=1e-9)
    assert (here.spelling_bits > 0.5) == (tokenizer == "words")


def test_a_sample_of_the_spellings_stands_for_all(
    rare_words: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = lmlab.train("bag", rare_words, out=tmp_path / "run", tokenizer="words")
    stream = score_part(run.model, run.tokenizer, run.corpus.train).stream
    exact = Unit.of(stream, run.tokenizer).spelling_bits
    monkeypatch.setattr(unit, "SPELLED", 100)
    assert Unit.of(stream, run.tokenizer).spelling_bits == pytest.approx(exact, rel=0.1)


def test_the_validation_curve_of_a_words_model_ends_where_measuring_does(rare_words: Path, tmp_path: Path) -> None:
    run = lmlab.train("feedforward", rare_words, out=tmp_path / "run", tokenizer="words", budget="30steps")
    best = min(line["valid_bits_per_byte"] for line in run.metrics)
    assert best == pytest.approx(lmlab.evaluate(run, part="valid").bits_per_byte, rel=0.02)

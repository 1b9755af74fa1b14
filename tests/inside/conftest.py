"""Small trained models that the tests of this room look into."""

from __future__ import annotations

from pathlib import Path

import pytest

import lmlab

TEXT = "the cat sat on the mat and the dog sat on the log\na man and a plan and a canal and a cat\n" * 40
SMALL = {
    "ngram": {"order": 3},
    "gpt": {"layers": 2, "width": 16, "heads": 2, "context": 8},
    "lstm": {"width": 12, "layers": 2},
    "gru": {"width": 10},
    "attention": {"context": 4, "width": 16},
    "rnn-attention": {"memory": 5, "width": 12},
}


@pytest.fixture(scope="session")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Small trained models, with tokens of different kinds."""
    folder = tmp_path_factory.mktemp("runs")
    for name, settings in SMALL.items():
        lmlab.train(name, TEXT, out=folder / name, budget="3steps", settings=settings)
    lmlab.train("ngram", TEXT, out=folder / "words", tokenizer="words")
    lmlab.train("gpt", TEXT, out=folder / "byte", tokenizer="byte", budget="3steps", settings=SMALL["gpt"])
    return {name: folder / name for name in (*SMALL, "words", "byte")}


@pytest.fixture(scope="session")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small encoder, whose windows hold ten tokens."""
    settings = {"layers": 2, "width": 16, "heads": 2, "context": 12}
    folder = tmp_path_factory.mktemp("runs") / "bert"
    return lmlab.train("bert", TEXT, out=folder, tokenizer="char", budget="3steps", settings=settings).folder


@pytest.fixture(scope="session")
def translator(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small translator into two languages."""
    settings = {"layers": 2, "width": 16, "heads": 2}
    folder = tmp_path_factory.mktemp("runs") / "translator"
    train = lmlab.train
    return train("translator", "numbers:200", out=folder, budget="3steps", settings=settings).folder

"""A text of sentences in which a word follows from the others, and an encoder trained on it."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

import lmlab
from lmlab.learn.run import Run

ANIMALS = {"cat": "milk", "dog": "bones", "horse": "hay", "bird": "seeds"}


def sentences(number: int, seed: int = 0) -> str:
    draw = random.Random(seed)
    return "\n".join(f"The {a} likes {ANIMALS[a]}." for a in draw.choices(list(ANIMALS), k=number))


@pytest.fixture(scope="session")
def text(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("text") / "animals.txt"
    path.write_text(sentences(1200))
    return path


@pytest.fixture(scope="session")
def encoder(text: Path, tmp_path_factory: pytest.TempPathFactory) -> Run:
    out = tmp_path_factory.mktemp("runs") / "bert"
    settings = {"layers": 2, "width": 32, "heads": 2, "context": 18, "dropout": 0.0}
    return lmlab.train(
        "bert", text, out=out, tokenizer="words", budget="160steps", device="cpu", settings=settings,
        learning={"rows": 32, "matrix_learning_rate": 0.02},
    )  # fmt: skip

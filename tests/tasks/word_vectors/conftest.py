"""A text in which some words stand near each other and others never do, and vectors learned from it."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

import lmlab
from lmlab.learn.run import Run

TOPICS = [["king", "queen", "crown", "throne"], ["ship", "sea", "wave", "harbour"], ["bread", "oven", "flour", "dough"]]
REST = ["the", "of", "and", "to", "was"]
SMALL = {"width": 8, "window": 4, "held_out": 0.1, "most": 20.0}


def write_text(path: Path, sentences: int = 500, seed: int = 0) -> Path:
    draw = random.Random(seed)
    lines = []
    for _ in range(sentences):
        topic = draw.choice(TOPICS)
        lines.append(" ".join(draw.choice(topic if draw.random() < 0.6 else REST) for _ in range(9)))
    path.write_text(". ".join(lines) + ".\n")
    return path


@pytest.fixture(scope="session")
def text(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_text(tmp_path_factory.mktemp("text") / "topics.txt")


@pytest.fixture(scope="session")
def vectors_run(text: Path, tmp_path_factory: pytest.TempPathFactory) -> Run:
    out = tmp_path_factory.mktemp("runs") / "glove"
    return lmlab.train("glove", text, out=out, budget="60steps", settings=SMALL, learning={"rows": 64}, device="cpu")

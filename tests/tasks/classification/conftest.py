"""A table whose labels follow from some of its words, and a classifier trained on it."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

import lmlab
from lmlab.learn.run import Run

WORDS = {"pos": ["great", "lovely", "superb", "fine"], "neg": ["awful", "boring", "dull", "poor"]}
REST = ["the", "film", "a", "movie", "was", "plot", "actor", "story", "and", "it", "not", "very", "never"]


def write_table(path: Path, examples: int = 300, seed: int = 0) -> Path:
    draw = random.Random(seed)
    lines = []
    for i in range(examples):
        label = ("pos", "neg")[i % 2]
        other = "neg" if label == "pos" else "pos"
        words = [draw.choice(REST) for _ in range(10)] + [draw.choice(WORDS[label]) for _ in range(2)]
        words += [draw.choice(WORDS[other]) for _ in range(draw.choice([0, 1, 3]))]
        draw.shuffle(words)
        lines.append(f"{label}\t{' '.join(words)}\n")
    path.write_text("".join(lines))
    return path


@pytest.fixture(scope="session")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_table(tmp_path_factory.mktemp("table") / "films.tsv")


@pytest.fixture(scope="session")
def classifier(table: Path, tmp_path_factory: pytest.TempPathFactory) -> Run:
    out = tmp_path_factory.mktemp("runs") / "dan"
    return lmlab.train("dan", table, out=out, budget="80steps", learning={"learning_rate": 0.01}, device="cpu")

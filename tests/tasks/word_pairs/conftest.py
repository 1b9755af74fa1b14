"""A text in which some words follow some others, a table of labelled pairs with vectors, and combiners of both."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest

import lmlab
from lmlab.learn.run import Run

FIRST = {"big": ["dog", "cat", "horse", "cow"], "read": ["book", "letter", "page", "poem"]}


def write_text(path: Path, sentences: int = 900, seed: int = 0) -> Path:
    draw, words = random.Random(seed), []
    for _ in range(sentences):
        head = draw.choice(list(FIRST))
        words += [
            "the",
            head,
            f"{draw.choice(FIRST[head])}{draw.randrange(4)}",
            "and",
            f"n{draw.randrange(30)}",
            f"m{draw.randrange(30)}",
        ]
    path.write_text(" ".join(words) + "\n")
    return path


def write_table(folder: Path, rows: int = 240, seed: int = 0) -> tuple[Path, Path]:
    """Alike or not: whether two words point to the same side. The vectors of words w0 to w39 are drawn."""
    random_ = np.random.default_rng(seed)
    vectors_VX = random_.normal(size=(40, 6))
    (folder / "v.txt").write_text("".join(f"w{i} {' '.join(map(str, v))}\n" for i, v in enumerate(vectors_VX)))
    lines = []
    for a, b in random_.integers(0, 40, (rows, 2)):
        label = "zeta" if vectors_VX[a, 0] + vectors_VX[b, 0] > 0 else "alpha"
        lines.append(f"w{a}\tw{b}\t{label}\n")
    (folder / "pairs.tsv").write_text("".join(lines))
    return folder / "pairs.tsv", folder / "v.txt"


@pytest.fixture(scope="session")
def table(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    return write_table(tmp_path_factory.mktemp("pairs"))


@pytest.fixture(scope="session")
def of_table(table: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory) -> Run:
    return lmlab.train(
        "autoencoder", table[0], out=tmp_path_factory.mktemp("runs") / "table", budget="250steps", device="cpu",
        settings={"vectors": str(table[1]), "parent": 8}, learning={"rows": 64, "learning_rate": 0.01},
    )  # fmt: skip


@pytest.fixture(scope="session")
def text(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_text(tmp_path_factory.mktemp("text") / "words.txt")


@pytest.fixture(scope="session")
def of_text(text: Path, tmp_path_factory: pytest.TempPathFactory) -> Run:
    return lmlab.train(
        "autoencoder", text, out=tmp_path_factory.mktemp("runs") / "text", budget="40steps", device="cpu",
        settings={"width": 8}, learning={"rows": 64},
    )  # fmt: skip

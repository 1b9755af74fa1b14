"""Dividing a text into training, validation and test parts."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from lmlab.config import Mistake
from lmlab.text.parts import PARTS, Document

NEAR = 0.2  # whole documents must give each part its share of the bytes, give or take this much of the share


def split_documents(
    name: str, documents: Sequence[Document], split: Sequence[float], seed: int
) -> list[list[Document]]:
    """The documents of each part.

    Many documents go whole into one part each. A single one, or a few that are too large to meet the shares, are laid
    end to end and cut.
    """
    shares = _shares(split)
    parts = _whole(documents, shares, seed) if len(documents) > 1 else None
    if parts is None:
        parts = _cut(documents, shares)
    for share, part in zip(shares, parts, strict=True):
        if share and not sum(document.size for document in part):
            size = sum(document.characters() for document in documents)
            wanted = ",".join(f"{s:g}" for s in split)
            raise Mistake(
                f"{name} has {size} character{'s' if size != 1 else ''}, too few to split {wanted};"
                " give more text or another split"
            )
    return parts


def split_rows(rows: int, missing: Sequence[str], split: Sequence[float], seed: int) -> dict[str, np.ndarray]:
    """Which rows of a table go into its missing parts, and which stay for training, each in order.

    missing: the parts among valid and test that are not given; their shares are of what they and training have together.
    """
    shares = dict(zip(PARTS, split, strict=True))
    whole = sum(shares[name] for name in ("train", *missing))
    order, found = np.random.default_rng(seed).permutation(rows), {}
    for name in missing:
        taken, order = np.split(order, [round(rows * shares[name] / whole)])
        found[name] = np.sort(taken)
    if not len(order):
        raise Mistake("no example is left for training; give it a share above 0 in {split}", split=None)
    return found | {"train": np.sort(order)}


def _shares(split: Sequence[float]) -> list[Fraction]:
    try:
        shares = [Fraction(str(share)) for share in split]
    except ValueError:
        shares = []
    if len(shares) != 3 or any(share < 0 for share in shares) or shares[0] == 0:
        given = ",".join(map(str, split))
        raise Mistake(
            f"split {given!r} is not understood; write the shares of train (above 0), valid and test, such as 80,10,10"
        )
    return [share / sum(shares) for share in shares]


def _cut(documents: Sequence[Document], shares: Sequence[Fraction]) -> list[list[Document]]:
    """Contiguous parts: the first floor(share × characters) characters, and so on."""
    lengths = [document.characters() for document in documents]
    parts: list[list[Document]] = []
    rest, rest_lengths = list(documents), list(lengths)
    before = 0
    for i in range(3):
        end = int(sum(shares[: i + 1]) * sum(lengths))
        part: list[Document] = []
        while rest and before + rest_lengths[0] <= end:
            part.append(rest.pop(0))
            before += rest_lengths.pop(0)
        if rest and end > before:
            head, rest[0] = rest[0].split_at(end - before)
            part.append(head)
            rest_lengths[0] -= end - before
            before = end
        parts.append(part)
    return parts


def _whole(documents: Sequence[Document], shares: Sequence[Fraction], seed: int) -> list[list[Document]] | None:
    """Whole documents at random, as near to the shares (by bytes) as they go; None if that is not near enough."""
    sizes = np.array([document.size for document in documents])
    order = np.random.Generator(np.random.PCG64(seed)).permutation(len(documents))
    part_of = np.zeros(len(documents), dtype=np.int64)
    for part in (2, 1):
        target = float(shares[part]) * sizes.sum()
        filled = 0
        for i in order[part_of[order] == 0]:
            if abs(filled + sizes[i] - target) < abs(filled - target):
                part_of[i] = part
                filled += int(sizes[i])
    totals = np.bincount(part_of, weights=sizes, minlength=3)
    for share, total in zip(shares, totals, strict=True):
        target = float(share) * sizes.sum()
        if abs(total - target) > NEAR * target:
            return None
    return [[documents[int(i)] for i in np.flatnonzero(part_of == part)] for part in range(3)]

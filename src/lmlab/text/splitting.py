"""Dividing a text into training, validation and test parts.

documents  Each document goes whole into one part, drawn by the seed. This is the default where the test part gets enough
           documents to show how documents differ.
blocks     The held-out parts are blocks spread over the whole text, so that they are like the rest of it. This is the
           default for one file and for few documents.
tail       The text is cut into three contiguous parts, of which the last is the test part.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

import numpy as np

from lmlab.config import Mistake
from lmlab.text.blocks import deal_blocks
from lmlab.text.parts import PARTS, Document

SplitBy = str  # one of WAYS
Divided = Literal["documents", "blocks", "tail", "given"]
WAYS: tuple[SplitBy, ...] = ("auto", "documents", "blocks", "tail")

NEAR = 0.2  # whole documents must give each part its share of the bytes, give or take this much of the share
FEWEST_DOCUMENTS = 12  # of equal size, or unequal ones that weigh as much: fewer do not show how documents differ


@dataclass(frozen=True, kw_only=True)
class Division:
    """The documents of the training, validation and test parts, and how they were divided."""

    parts: Sequence[Sequence[Document]]
    by: Divided
    left_out: int = 0  # bytes between blocks and training text that belong to no part


def split_documents(
    name: str, documents: Sequence[Document], split: Sequence[float], seed: int, by: SplitBy = "auto"
) -> Division:
    """Divide documents into three parts.

    Args:
        name: Of the text, for messages.
        documents: In the order of the text.
        split: The shares of training, validation and test.
        seed: Draws the documents of each part. Blocks do not depend on it, so that all runs on one text share them.
        by: `auto` takes whole documents where the test part gets at least FEWEST_DOCUMENTS, else blocks.
    """
    shares = shares_of(split)
    if by not in WAYS:
        raise Mistake(f"{{split_by}} is one of {', '.join(WAYS)}; got {by!r}", code="split-by-unknown", split_by=None)
    division = _divided(documents, shares, seed, by)
    if division is None:
        raise Mistake(
            f"{name} has {_count(len(documents), 'document')}, which cannot go whole into parts of these shares;"
            " say {split_by}",
            code="documents-cannot-go-whole",
            split_by="blocks",
        )
    for share, part in zip(shares, division.parts, strict=True):
        if share and not sum(document.size for document in part):
            size = sum(document.characters() for document in documents)
            raise empty_part(name, size, "character", split)
    return division


def empty_part(name: str, size: int, what: str, split: Sequence[float]) -> Mistake:
    """Return the error that a text is too short for these shares."""
    wanted = ",".join(f"{s:g}" for s in split)
    return Mistake(
        f"{name} has {_count(size, what)}, too few to split {wanted}; give more text or another split",
        code="text-too-short",
    )


def _divided(documents: Sequence[Document], shares: Sequence[Fraction], seed: int, by: SplitBy) -> Division | None:
    if by in ("auto", "documents"):
        whole = _whole(documents, shares, seed) if len(documents) > 1 else None
        if whole and (by == "documents" or not shares[2] or _as_many(whole[2]) >= FEWEST_DOCUMENTS):
            return Division(parts=whole, by="documents")
        if by == "documents":
            return None
    if by == "tail" or not any(shares[1:]):
        return Division(parts=_cut(documents, shares), by="tail")
    parts, left_out = deal_blocks(documents, shares)
    return Division(parts=parts, by="blocks", left_out=left_out)


def _as_many(documents: Sequence[Document]) -> float:
    """The number of documents of equal size that weigh as much."""
    sizes = np.array([document.size for document in documents], dtype=np.float64)
    return float(sizes.sum() ** 2 / (sizes**2).sum()) if sizes.any() else 0.0


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}{'s' if number != 1 else ''}"


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
        raise Mistake(
            "no example is left for training; give it a share above 0 in {split}",
            code="no-example-for-training",
            split=None,
        )
    return found | {"train": np.sort(order)}


def shares_of(split: Sequence[float]) -> list[Fraction]:
    """Return the shares of training, validation and test, which sum to 1. Raises a Mistake if they are no shares."""
    try:
        shares = [Fraction(str(share)) for share in split]
    except ValueError:
        shares = []
    if len(shares) != 3 or any(share < 0 for share in shares) or shares[0] == 0:
        given = ",".join(map(str, split))
        raise Mistake(
            f"split {given!r} is not understood; write the shares of train (above 0), valid and test, such as 80,10,10",
            code="split-spec-not-understood",
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

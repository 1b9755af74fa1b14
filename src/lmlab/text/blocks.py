"""Held-out blocks spread over a whole text, so that the validation and test parts are like the rest of it.

The last tenth of a file is often unlike the rest. Blocks dealt over all of it are a stratified sample of the file, so what is
measured on them speaks of the whole file, with an interval that covers (see `lmlab.measure.interval_units`).
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import accumulate

import numpy as np

from lmlab.text.parts import Document

MOST_BLOCKS = 64  # of a held-out part: more of them would be shorter, and would hardly narrow an interval
BLOCK_BYTES = 512  # at least, where that leaves ENOUGH_BLOCKS: each block is predicted from its own beginning
ENOUGH_BLOCKS = 24
LEAST_BLOCK_BYTES = 256
GAP = Fraction(1, 8)  # of the held-out bytes of a stratum; so much training text is left out on either side of them
SEED = 0
WHITESPACE = b" \t\n\v\f\r"


def deal_blocks(documents: Sequence[Document], shares: Sequence[Fraction]) -> tuple[list[list[Document]], int]:
    """Divide a text, its documents laid end to end, into a training part and blocks of validation and test text.

    The text is cut into strata of equal length. Each stratum holds one block of each held-out part, side by side at a random
    place, with a gap on either side. The places depend on the length of the text alone, so all runs on a text share them.

    Returns:
        The documents of the three parts, and how many bytes lie in gaps and belong to no part.
    """
    bytes_in_all = sum(document.size for document in documents)
    strata = blocks_of(int(min(share for share in shares[1:] if share) * bytes_in_all))
    length = Fraction(bytes_in_all, strata)
    sizes = [int(share * length) for share in shares[1:]]
    gap = int(GAP * min(sum(shares[1:]), shares[0]) * length)
    reach = min((size for size in sizes if size), default=0) // 2
    random = np.random.Generator(np.random.PCG64(SEED))
    parts: list[list[Document]] = [[], [], []]
    trained_to = left_out = 0
    for stratum in range(strata):
        free = int(length) - sum(sizes) - 2 * gap
        place = int(stratum * length) + gap + int(random.integers(max(0, free) + 1))
        order = [1, 2] if random.integers(2) else [2, 1]
        first, second, end = (
            _boundary(documents, max(trained_to, place + offset), reach)
            for offset in (0, sizes[order[0] - 1], sum(sizes))
        )
        before = max(trained_to, _boundary(documents, max(0, first - gap - gap // 2), gap // 2))
        after = _boundary(documents, end + gap, gap // 2)
        parts[0] += _pieces(documents, trained_to, before)
        parts[order[0]] += _pieces(documents, first, second)
        parts[order[1]] += _pieces(documents, second, end)
        left_out += first - before + after - end
        trained_to = after
    parts[0] += _pieces(documents, trained_to, bytes_in_all)
    return parts, left_out


def blocks_of(held_out_bytes: int) -> int:
    """The number of blocks that a held-out part of so many bytes is dealt in."""
    short = min(ENOUGH_BLOCKS, held_out_bytes // LEAST_BLOCK_BYTES)
    return min(MOST_BLOCKS, max(1, short, held_out_bytes // BLOCK_BYTES))


def _boundary(documents: Sequence[Document], place: int, reach: int) -> int:
    """The first line start within `reach` bytes from a place of the text on; else the first word's end, else a character's."""
    starts = list(accumulate((document.size for document in documents), initial=0))
    if place >= starts[-1]:
        return starts[-1]
    index = int(np.searchsorted(starts, place, side="right")) - 1
    document, within = documents[index], place - starts[index]
    if within == 0:
        return place
    with open(document.path, "rb") as file:
        file.seek(document.start + within - 1)
        block = file.read(min(reach + 4, document.size - within + 1))  # from the byte before the place on
    if (line := block.find(b"\n", 0, reach)) >= 0:
        return place + line
    for i in range(1, min(reach, len(block))):
        if block[i] in WHITESPACE and block[i - 1] not in WHITESPACE:
            return place + i - 1
    character = next((i for i in range(1, len(block)) if block[i] & 0xC0 != 0x80), len(block))
    return place + character - 1


def _pieces(documents: Sequence[Document], start: int, stop: int) -> list[Document]:
    """A stretch of the text, as pieces of the documents it lies in."""
    found, offset = [], 0
    for document in documents:
        first, end = max(start - offset, 0), min(stop - offset, document.size)
        if first < end:
            found.append(Document(document.path, document.start + first, document.start + end))
        offset += document.size
    return found

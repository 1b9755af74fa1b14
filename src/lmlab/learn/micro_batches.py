"""Micro-batches: the rows of a batch cut into parts, each with a dropout seed of its own.

How a batch is cut depends on nothing but the batch and the number of parts, so one process and eight learn from the same
micro-batches; process r of n takes those with the numbers r, r + n, r + 2n and so on. Their gradients are added up.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from lmlab.learn.task import Batch

# Torch's generator of the CPU reads the last 32 bits of a seed. Multiples of this number (2^32 over the golden ratio) lie far
# apart there (Knuth, The Art of Computer Programming, volume 3, 6.4), so no step of another micro-batch has the same seed.
BETWEEN_MICRO_BATCHES = 2_654_435_769
BETWEEN_RUNS = 1_000_003


@dataclass(frozen=True, kw_only=True)
class MicroBatch:
    """Rows that go through the model at once.

    Args:
        piece: What the loss takes.
        carry: What the model carries on from the piece before; None at the first.
        seed: Of dropout.
        counts: Whether its loss counts; one that does not is computed by a process for which a batch has too few rows.
    """

    piece: Any
    carry: Any = None
    seed: int = 0
    counts: bool = True


def cut(batch: Batch, parts: int) -> Sequence[Batch]:
    """Cut a batch between rows into so many parts of nearly equal size; into fewer where it has fewer rows."""
    if parts == 1:
        return (batch,)
    bounds = [part * batch.rows // parts for part in range(parts + 1)]
    return [batch.select(slice(first, stop)) for first, stop in pairwise(bounds) if first < stop]


def dropout_seed(seed: int, step: int, part: int) -> int:
    """Return the dropout seed of a micro-batch. seed: of the run; part: the number of the micro-batch in the batch."""
    return seed * BETWEEN_RUNS + step + part * BETWEEN_MICRO_BATCHES

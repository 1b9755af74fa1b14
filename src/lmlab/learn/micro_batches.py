"""Micro-batches: subsets of the rows of a batch, each with its own dropout seed.

The division of a batch depends only on the batch and the number of parts. One process and eight therefore train on the same
micro-batches. Process r of n takes numbers r, r + n, r + 2n and so on. Their gradients are summed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from lmlab.learn.task import Batch
from lmlab.learn.world import World

# Torch's generator of the CPU reads the last 32 bits of a seed. Multiples of this number (2^32 over the golden ratio) lie far
# apart there (Knuth, The Art of Computer Programming, volume 3, 6.4), so no step of another micro-batch has the same seed.
BETWEEN_MICRO_BATCHES = 2_654_435_769
BETWEEN_RUNS = 1_000_003


@dataclass(frozen=True, kw_only=True)
class MicroBatch:
    """The rows of a batch that pass through the model at once.

    Attributes:
        piece: the argument of the loss.
        carry: the state from the previous piece; None for the first piece.
        seed: the dropout seed.
        counts: False in a process that has no rows of a batch. Its loss and gradient are then multiplied by zero.
    """

    piece: Any
    carry: Any = None
    seed: int = 0
    counts: bool = True


def cut(batch: Batch, parts: int) -> Sequence[Batch]:
    """Split a batch by rows into at most `parts` parts of nearly equal size; fewer if it has fewer rows."""
    if parts == 1:
        return (batch,)
    bounds = [part * batch.rows // parts for part in range(parts + 1)]
    return [batch.select(slice(first, stop)) for first, stop in pairwise(bounds) if first < stop]


def one_for_each_process(learning: Mapping[str, Any] | None, world: World) -> Mapping[str, Any]:
    """Return the loop settings with one micro-batch per process, unless they set `micro_batches`.

    The number is recorded, so any number of processes resumes or repeats the run with the same micro-batches.
    """
    asked = learning or {}
    if world.size == 1 or asked.get("micro_batches") is not None:
        return asked
    return {**asked, "micro_batches": world.size}


def dropout_seed(seed: int, step: int, part: int) -> int:
    """Return the dropout seed of a micro-batch.

    Args:
        seed: the seed of the run.
        step: the number of the step.
        part: the number of the micro-batch in its batch.
    """
    return seed * BETWEEN_RUNS + step + part * BETWEEN_MICRO_BATCHES

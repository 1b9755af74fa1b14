"""The interval of Muon's updates: every step, or every k-th step if Muon would dominate the FLOPs of a step.

The cost of Muon depends on the matrices alone; the cost of the rest of a step depends on its tokens. A matrix that waits k
steps accumulates their gradients in its momentum and then moves k times as far. The interval follows from sizes, so it is the
same for budgets of seconds, steps and tokens. docs/notes/muon-turns.md shows the gain.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

MOST_OF_A_STEP = 0.15  # maximum FLOPs of Muon as a share of all other FLOPs of a step
LEAST_FLOPS = 1e8  # of Muon in a step; below it (about 1 ms of a core) every matrix is updated in every step
LEAST_LEFT = 0.3  # minimum share of a gradient left in the momentum when its matrix is updated; bounds the interval


def update_interval(muon_flops: float, other_flops: float | None, momentum: float) -> int:
    """Return the number of steps between two updates of a matrix.

    Args:
        muon_flops: FLOPs of Muon if it updates every matrix in a step.
        other_flops: FLOPs of the rest of the step; None: unknown.
        momentum: the momentum of Muon.
    """
    if not other_flops or muon_flops < LEAST_FLOPS:
        return 1
    longest = math.floor(math.log(LEAST_LEFT) / math.log(momentum)) if 0 < momentum < 1 else 1
    return max(1, min(longest, math.ceil(muon_flops / (MOST_OF_A_STEP * other_flops))))


def assign_update_slots(costs: Mapping[str, float], interval: int) -> dict[str, int]:
    """Assign each matrix the step, from 0 to `interval` - 1, in which it moves, so that all steps cost about the same.

    The most expensive matrix is assigned first, to the slot with the lowest cost so far.

    Args:
        costs: the cost of updating each matrix, by name.
        interval: the number of steps between two updates of a matrix.
    """
    loads, found = [0.0] * interval, dict[str, int]()
    for name in sorted(costs, key=lambda name: -costs[name]):  # stable: equal costs keep their order
        found[name] = loads.index(min(loads))
        loads[found[name]] += costs[name]
    return found

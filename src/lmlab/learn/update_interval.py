"""How often Muon updates a matrix: in every step, or in every k-th where its products would take much of a step.

The cost of Muon depends on the matrices alone, the cost of the rest of a step on how many tokens it learns from. A matrix that
waits k steps gathers their gradients in its momentum and then moves k times as far. The interval follows from sizes, so it is
the same for budgets of seconds, steps and tokens. docs/notes/muon-turns.md says what is gained.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

MOST_OF_A_STEP = 0.15  # Muon's products in a step, beside all other products of the step
LEAST_FLOPS = 1e8  # of Muon in a step: with fewer, about a millisecond of one core, every matrix moves in every step
LEAST_LEFT = 0.3  # of what a gradient adds to the momentum, when its matrix moves at last: bounds the interval


def update_interval(muon_flops: float, other_flops: float | None, momentum: float) -> int:
    """Return the steps from one update of a matrix to its next.

    Args:
        muon_flops: operations of Muon if it updates every matrix in a step.
        other_flops: operations of the rest of the step; None: not known.
        momentum: of Muon.
    """
    if not other_flops or muon_flops < LEAST_FLOPS:
        return 1
    longest = math.floor(math.log(LEAST_LEFT) / math.log(momentum)) if 0 < momentum < 1 else 1
    return max(1, min(longest, math.ceil(muon_flops / (MOST_OF_A_STEP * other_flops))))


def assign_update_slots(costs: Mapping[str, float], interval: int) -> dict[str, int]:
    """Assign each matrix the step, from 0 to `interval` - 1, in which it moves, so that all steps cost about the same.

    Args:
        costs: of moving each matrix, by name. The dearest is assigned first, to the slot with the least cost so far.
        interval: steps from one update of a matrix to its next.
    """
    loads, found = [0.0] * interval, dict[str, int]()
    for name in sorted(costs, key=lambda name: -costs[name]):  # stable: of equal ones in the order they come
        found[name] = loads.index(min(loads))
        loads[found[name]] += costs[name]
    return found

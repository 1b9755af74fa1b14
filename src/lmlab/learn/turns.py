"""How often Muon comes to a matrix: in every step, or, where it would take much of the time of learning, in turns.

What a step of Muon costs depends on the matrices alone, what the rest of the step costs on how many tokens it learns from. With
few of them most of the time would go into directions that hardly differ from those of the step before. So each matrix then
waits some steps, in which its momentum goes on gathering gradients, and moves as far as in all of them when its turn has come.
Only where the budget is one of seconds (`fit.hardware_for`): a step should teach the same everywhere. Turns are dealt out so
that all steps take about as long. docs/notes/muon-turns.md says what is learned so.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

MOST_OF_A_STEP = 0.15  # what Muon's products may be beside all others of a step
LEAST_LEFT = 0.3  # of what a gradient adds to the momentum, when its matrix moves at last: bounds the waiting


def steps_between(flops_of_muon: float, flops_of_the_rest: float | None, momentum: float) -> int:
    """From one move of a matrix to its next, by operations, so that it is the same on every machine; 1: in every step."""
    if not flops_of_the_rest:
        return 1
    longest = math.floor(math.log(LEAST_LEFT) / math.log(momentum)) if 0 < momentum < 1 else 1
    return max(1, min(longest, math.ceil(flops_of_muon / (MOST_OF_A_STEP * flops_of_the_rest))))


def dealt(costs: Mapping[str, float], every: int) -> dict[str, int]:
    """Of each name the turn, from 0 to `every` - 1, at which it moves: the dearest first, each to the turn with least to do."""
    loads, found = [0.0] * every, dict[str, int]()
    for name in sorted(costs, key=lambda name: -costs[name]):  # stable: of equal ones in the order they come
        found[name] = loads.index(min(loads))
        loads[found[name]] += costs[name]
    return found

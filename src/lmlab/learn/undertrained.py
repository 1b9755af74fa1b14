"""Whether a run was still learning fast when its budget ended, and how long it would have liked.

The learning rate falls to zero where the budget ends, so a curve always flattens there; it says little about a longer
budget, whose learning rate would still be high at that point. What says something is how far the second half of the budget
brought it. Measured on six models and texts (gpt, feedforward, lstm and gru on plays and manuals, in characters and BPE), each
trained for 50, 100, … 1600 steps: doubling the budget lowered the loss by 0.65 to 3.3 times the share by which the second half
had lowered it, less in long runs and more in very short ones (all thirty were steep, and gained 2.9 % or more); and from one
doubling to the next the gain shrank to between 0.4 and 0.9 of what it was, about 0.6 in the middle, once it shrank at all. So
the estimate is rough, and it is a least: the shortest runs need more.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lmlab.config import Budget
from lmlab.learn.clock import Spent

STEEP = 0.03  # of the loss, gained in the second half of a budget
SHRINKING = 0.6  # of the gain that a doubling brings, from one doubling to the next
MOST_DOUBLINGS = 4  # beyond that nothing can be said
FEWEST_POINTS = 2
UNTOLD = (
    "first validated in the second half of its budget, so that its curve is too short to tell whether that was enough"
)


@dataclass(frozen=True, kw_only=True)
class Undertrained:
    """gained: what the second half of the budget took from the loss, as a share. wanted: the least budget that would do.

    Of a run that went on both are of what was added last, and `wanted` has a plus, as such a budget is written.
    """

    gained: float
    wanted: str

    def __str__(self) -> str:
        return (
            f"undertrained: the second half of the budget still lowered its loss by {self.gained:.0%};"
            f" it would have liked at least {self.wanted}"
        )


def too_short_to_tell(metrics: Sequence[Mapping[str, Any]], earlier: Spent | None = None) -> bool:
    """Whether a curve has no point in the first half of its budget, so that nobody knows what the second half brought."""
    since = 0 if earlier is None else earlier.steps
    steps = [line["step"] - since for line in metrics if line["step"] > since]
    return bool(steps) and steps[0] > steps[-1] / 2


def undertrained(
    metrics: Sequence[Mapping[str, Any]], unit: str, budget: Budget, earlier: Spent | None = None
) -> Undertrained | None:
    """What the curve of a run that used up its budget says; None: it had flattened, or one point cannot tell."""
    key = unit.replace(" ", "_")
    since = 0 if earlier is None else earlier.steps
    lines = [line for line in metrics if line["step"] > since]
    held_out = all(line[f"valid_{key}"] is not None for line in lines)
    points = [(line["step"] - since, line[f"{'valid' if held_out else 'train'}_{key}"]) for line in lines]
    if len(points) < FEWEST_POINTS:
        return None
    half, last = _at(points, points[-1][0] / 2), points[-1][1]
    gained = (half - last) / half if half > 0 else 0.0  # of nothing: a text of one symbol costs nothing
    if not gained > STEEP:
        return None
    doublings, gain = 0, gained
    while gain > STEEP and doublings < MOST_DOUBLINGS:
        doublings, gain = doublings + 1, gain * SHRINKING
    return Undertrained(gained=gained, wanted=f"{'+' * (since > 0)}{_times(budget, 2**doublings)}")


def _at(points: Sequence[tuple[int, float]], step: float) -> float:
    """The curve at a step: between its points it falls evenly with the logarithm of the steps, as learning does.

    A slow machine leaves a short run two points far apart; a straight line between them would promise too much.
    """
    before = max((p for p in points if p[0] <= step), default=points[0])
    after = min((p for p in points if p[0] >= step), default=points[-1])
    if after[0] == before[0]:
        return before[1]
    return before[1] + (after[1] - before[1]) * math.log(step / before[0]) / math.log(after[0] / before[0])


def _times(budget: Budget, factor: int) -> Budget:
    if budget.seconds is not None:
        return Budget(seconds=_readable(budget.seconds * factor))
    if budget.steps is not None:
        return Budget(steps=budget.steps * factor)
    assert budget.tokens is not None
    return Budget(tokens=budget.tokens * factor)


def _readable(seconds: float) -> float:
    """Two digits: an estimate that claims more is not one."""
    return float(f"{seconds:.2g}")

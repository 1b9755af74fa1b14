"""The test whether a run was undertrained, and the smallest budget expected to suffice.

The learning rate falls to zero where the budget ends, so every curve flattens there. The slope at the end therefore says
little about a longer budget. The share by which the second half of the budget lowered the loss says more.

This was measured on six models and texts: gpt, feedforward, lstm and gru on plays and manuals, in characters and BPE. Each was
trained for 50, 100, … 1600 steps. Doubling the budget lowered the loss by 0.65 to 3.3 times that share: by less in long runs
and by more in very short ones. All thirty runs were steep and gained at least 2.9 %. Once the gain per doubling began to
shrink, each doubling left between 0.4 and 0.9 of it, with a median of about 0.6. The estimate is therefore rough, and a lower
bound: the shortest runs need more.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lmlab.config import Budget
from lmlab.learn.clock import Spent

STEEP = 0.03  # minimum share of the loss gained in the second half of a budget
SHRINKING = 0.6  # factor of the gain from one doubling of the budget to the next
MOST_DOUBLINGS = 4  # extrapolation beyond this is not supported by the measurement
FEWEST_POINTS = 2
UNTOLD = (
    "first validated in the second half of its budget, so that its curve is too short to tell whether that was enough"
)


@dataclass(frozen=True, kw_only=True)
class Undertrained:
    """The finding that a run was undertrained.

    For an extended run, both values refer to the last extension, and `wanted` starts with a plus.

    Attributes:
        gained: share by which the second half of the budget lowered the loss.
        wanted: the smallest budget expected to suffice.
    """

    gained: float
    wanted: str

    def __str__(self) -> str:
        return (
            f"undertrained: the second half of the budget still lowered its loss by {self.gained:.0%};"
            f" it would have liked at least {self.wanted}"
        )


def too_short_to_tell(metrics: Sequence[Mapping[str, Any]], earlier: Spent | None = None) -> bool:
    """Whether a curve has no point in the first half of its budget, so that the gain of the second half is unknown."""
    since = 0 if earlier is None else earlier.steps
    steps = [line["step"] - since for line in metrics if line["step"] > since]
    return bool(steps) and steps[0] > steps[-1] / 2


def undertrained(
    metrics: Sequence[Mapping[str, Any]], unit: str, budget: Budget, earlier: Spent | None = None
) -> Undertrained | None:
    """Return the finding for a run that used up its budget.

    Args:
        metrics: the lines of metrics.jsonl.
        unit: the unit of the loss.
        budget: the budget that ended.
        earlier: the amounts spent under earlier budgets of the run.

    Returns:
        None if the curve had flattened, or has fewer than `FEWEST_POINTS` points.
    """
    key = unit.replace(" ", "_")
    since = 0 if earlier is None else earlier.steps
    lines = [line for line in metrics if line["step"] > since]
    held_out = all(line[f"valid_{key}"] is not None for line in lines)
    points = [(line["step"] - since, line[f"{'valid' if held_out else 'train'}_{key}"]) for line in lines]
    if len(points) < FEWEST_POINTS:
        return None
    half, last = _at(points, points[-1][0] / 2), points[-1][1]
    gained = (half - last) / half if half > 0 else 0.0  # the loss is 0 for a text of one symbol
    if not gained > STEEP:
        return None
    doublings, gain = 0, gained
    while gain > STEEP and doublings < MOST_DOUBLINGS:
        doublings, gain = doublings + 1, gain * SHRINKING
    return Undertrained(gained=gained, wanted=f"{'+' * (since > 0)}{_times(budget, 2**doublings)}")


def _at(points: Sequence[tuple[int, float]], step: float) -> float:
    """Return the loss at a step, interpolated linearly in the logarithm of the steps.

    Loss falls about linearly with that logarithm. If a slow machine leaves two distant points, a line between them would
    overestimate the gain.
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
    """Round seconds to two digits, because the estimate is not more precise."""
    return float(f"{seconds:.2g}")

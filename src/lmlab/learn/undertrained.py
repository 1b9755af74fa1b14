"""The test whether a run was undertrained, and by how much its loss still fell.

The learning rate falls to zero where the budget ends, so every curve flattens there. The slope at the end therefore says
little about a longer budget. The amount by which the second half of the budget lowered the loss says more: it is what the last
doubling of the time, the steps or the tokens brought.

This was measured on six models and texts: gpt, feedforward, lstm and gru on plays and manuals, in characters and BPE. Each was
trained for 50, 100, … 1600 steps. Doubling the budget lowered the loss by 0.65 to 3.3 times that share: by less in long runs
and by more in very short ones. All thirty runs were steep and gained at least 2.9 %. No budget that would suffice is named,
because such an extrapolation was not tested.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lmlab.learn.clock import Spent

STEEP = 0.03  # minimum share of the loss gained in the second half of a budget
FEWEST_POINTS = 2
UNTOLD = (
    "first validated in the second half of its budget, so that its curve is too short to tell whether that was enough"
)


@dataclass(frozen=True, kw_only=True)
class Undertrained:
    """The finding that a run was undertrained.

    For an extended run, all values refer to the last extension.

    Attributes:
        gained: share by which the second half of the budget lowered the loss.
        fell: the same in the unit of the loss; None: a record of an older version.
        unit: the unit of the loss.
    """

    gained: float
    fell: float | None = None
    unit: str = ""

    def __str__(self) -> str:
        fell = f"{self.gained:.0%}" if self.fell is None else f"{self.fell:.2g} {self.unit} ({self.gained:.0%})"
        return (
            f"undertrained: the second half of its budget, a doubling of its training, still lowered its loss by {fell}"
        )


def too_short_to_tell(metrics: Sequence[Mapping[str, Any]], earlier: Spent | None = None) -> bool:
    """Whether a curve has no point in the first half of its budget, so that the gain of the second half is unknown."""
    since = 0 if earlier is None else earlier.steps
    steps = [line["step"] - since for line in metrics if line["step"] > since]
    return bool(steps) and steps[0] > steps[-1] / 2


def undertrained(metrics: Sequence[Mapping[str, Any]], unit: str, earlier: Spent | None = None) -> Undertrained | None:
    """Return the finding for a run that used up its budget.

    Args:
        metrics: the lines of metrics.jsonl.
        unit: the unit of the loss.
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
    return Undertrained(gained=gained, fell=half - last, unit=unit) if gained > STEEP else None


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

"""How one wall-clock budget is shared: count models take what they need, learned ones train equally long.

Measuring takes one model longer than another, so it is taken off before the rest is shared, not off each model's share.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from lmlab.config import Budget, Mistake
from lmlab.models.registry import Way, kind_of, names

DEFAULT_BUDGET = "5m"
FINISHING_S, FINISHING_SHARE = 2.0, 0.05  # kept for ranking and drawing: so long, but not more than this of the budget
AROUND_S, AROUND_SHARE = 0.3, 0.02  # a run, and of its training: what it takes to build, save, load and certify a model
OVERLOOKED = 0.1  # of a turn: so much lost time makes no difference, because equal turns are worth more
TEST_BYTES_PER_SECOND = 400  # of the budget: how much test text is measured
LEAST_TEST_BYTES = 20_000


def seconds_of(budget: str | Budget, setting: str) -> float:
    """A time; a Mistake if it is none."""
    budget = Budget.parse(budget)
    if budget.seconds is None:
        raise Mistake(
            f"a comparison needs a budget of time, such as {{{setting}}}: steps of different models are no fair measure",
            **{setting: DEFAULT_BUDGET},
        )
    return budget.seconds


def in_order(models: Sequence[str]) -> list[str]:
    """Count models first, then those that learn; within each the order of the ladder, then one's own by name."""
    place = {name: index for index, name in enumerate(names())}
    return sorted(models, key=lambda m: (kind_of(m).way is Way.LEARNS, place.get(m, len(place)), m))


def checked_shares(shares: Mapping[str, float], models: Sequence[str]) -> dict[str, float]:
    """How many times as long as the others each of these models is trained; a Mistake where that cannot be."""
    for name, share in shares.items():
        if name not in models:
            raise Mistake(f"{{shares}} names {name}, which is not among the models that are compared", shares=None)
        if kind_of(name).way is not Way.LEARNS:
            raise Mistake(f"{{shares}} names {name}, which is counted and takes what it needs", shares=None)
        if not 0.0 < share < math.inf:
            raise Mistake(f"{{shares}} is a model and a number above 0, such as gpt=3; got {name}={share}", shares=None)
    return {name: float(share) for name, share in shares.items()}


@dataclass(frozen=True, kw_only=True)
class Turn:
    """What one learned model needs: of its `runs`, one a seed, `share` times the seconds of training, and measuring."""

    share: float
    runs: int
    measuring_s: float  # of one run


def equal_seconds(turns: Sequence[Turn], left_s: float, budget_s: float) -> float:
    """Seconds of training for a run of share 1, the same for all, when they have `left_s` seconds in all.

    Models that were trained before count as if they were trained now, so that one that joins them gets what they had.
    At least half the time goes to training, whatever measuring takes; and a run never gets less than a second.
    """
    time_s = left_s - min(FINISHING_S, FINISHING_SHARE * budget_s)
    runs = sum(turn.share * turn.runs for turn in turns)
    other_s = sum((turn.measuring_s + AROUND_S) * turn.runs for turn in turns)
    return max(1.0, max(time_s - other_s, time_s / 2) / runs / (1.0 + AROUND_SHARE))


def seconds_now(mine: Turn, planned_s: float, waiting: Sequence[Turn], left_s: float, budget_s: float) -> float:
    """Seconds of training for each run of the model whose turn it is: as planned, or less where much time was lost.

    waiting: the models that have yet to be trained, itself included.
    """
    fair_s = equal_seconds(waiting, left_s, budget_s)
    return max(1.0, mine.share * (planned_s if fair_s > (1.0 - OVERLOOKED) * planned_s else fair_s))


def test_bytes(budget_s: float) -> int:
    """Bytes of test text to measure in a budget: measuring must not eat the time for learning."""
    return max(LEAST_TEST_BYTES, round(TEST_BYTES_PER_SECOND * budget_s))

"""Divides one wall-clock budget: count models take the time they need, the others train equally long, the rest is for scoring.

The time for scoring is allotted, not predicted: the time left after training decides how much text is scored and how much
of it is compressed as a proof. So the training seconds can be fixed once for all models. Time that a model leaves over, if
it stops early, is used.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from lmlab.config import Budget, Mistake
from lmlab.models.registry import Way, kind_of, names

DEFAULT_BUDGET = "5m"
FIGURES, FINISHING = 6, 0.1  # figures in the report; the largest share of the budget reserved for drawing them
AROUND_S, AROUND_SHARE = 0.7, 0.04  # overhead of a run, to build, save and draw: seconds, and a share of its training
AROUND_ON_GPU_S = 1.5  # on a GPU, where the steps of every timed size are captured first
MEASURING = 0.15  # share of the time left after counting that is reserved for scoring
# Reserve this multiple of the slowest scoring so far per model, up to this share. It was that of a count model. A learned model
# takes about three times as long, since its copies walk through the text; a mix and a close look come on top.
SLOWEST, MOST_MEASURING = 2.5, 0.6
MODEL_S, BYTE_S = 1.0, 4e-4  # at most these seconds per model and per test byte: more would not be used
MIXING = 0.8  # share of the time left after scoring; the rest is for examining models
KEPT = 0.5  # share of the scoring time that is used although the budget is over, so that what was trained has a score
BASELINES = 0.04  # share of the budget for general compressors
BASELINE_BYTE_S = 1.5e-6  # rough seconds per training byte that the compressors read
COUNTING_BYTE_S = 1.5e-6  # rough seconds per training byte to find overlap and to count
LEAST_S = 0.5  # minimum seconds of training
LATE = 0.8  # share of the scoring time that must remain: runs train less if lost time would take more,
NEARLY = 0.9  # but only if their equal share is below this fraction of the plan, since equal times are worth more
AT_LEAST = 0.5  # minimum fraction of the planned time, even over budget: a run with less ranks lower for that alone
TEST_BYTES_PER_SECOND = 400  # usual test bytes to score per second of budget
LEAST_TEST_BYTES = 20_000
BYTES_WITHOUT_CLOCK = 120_000  # test bytes to score if budgets are in steps, so that nothing depends on a clock


def seconds_of(budget: str | float | Budget) -> float:
    """Return the budget of the whole comparison in seconds.

    Raises:
        Mistake: the budget is not in seconds.
    """
    budget = Budget.parse(budget)
    if budget.seconds is None:
        raise Mistake(
            "a comparison has a budget of time for everything, such as {budget}, or one of time, steps or tokens for every"
            " model, such as {each}",
            code="comparison-budget-of-steps",
            budget=DEFAULT_BUDGET,
            each=str(budget),
        )
    return budget.seconds


def shared_out(budget: Budget, share: float) -> Budget:
    """Multiply a budget by a share, in the budget's own unit."""
    if budget.seconds is not None:
        return Budget(seconds=share * budget.seconds)
    if budget.epochs is not None:
        return Budget(epochs=share * budget.epochs)
    if budget.steps is not None:
        return Budget(steps=max(1, round(share * budget.steps)))
    assert budget.tokens is not None
    return Budget(tokens=max(1, round(share * budget.tokens)))


def in_order(models: Sequence[str]) -> list[str]:
    """Sort models: those that do not learn first; within each group the order of `names`, then plugins by name."""
    place = {name: index for index, name in enumerate(names())}
    return sorted(models, key=lambda m: (kind_of(m).way is Way.LEARNS, place.get(m, len(place)), m))


def checked_shares(shares: Mapping[str, float], models: Sequence[str]) -> dict[str, float]:
    """Return the relative training time of each named model.

    Raises:
        Mistake: a model is not compared or does not learn, or its share is not positive and finite.
    """
    for name, share in shares.items():
        if name not in models:
            raise Mistake(
                f"{{shares}} names {name}, which is not among the models that are compared",
                code="shares-of-no-model",
                shares=None,
            )
        if kind_of(name).way is not Way.LEARNS:
            raise Mistake(
                f"{{shares}} names {name}, which is counted and takes what it needs",
                code="shares-of-a-counting-model",
                shares=None,
            )
        if not 0.0 < share < math.inf:
            raise Mistake(
                f"{{shares}} is a model and a number above 0, such as gpt=3; got {name}={share}",
                code="share-not-positive",
                shares=None,
            )
    return {name: float(share) for name, share in shares.items()}


@dataclass(frozen=True, kw_only=True)
class Turn:
    """The training time of one entry: `runs` runs, each `share` times as long as usual."""

    share: float
    runs: int


def overhead_s(prior_s: float, contention: float, observed_s: Sequence[float]) -> float:
    """Return the expected seconds that a run takes beside its training.

    Args:
        prior_s: the seconds on an idle machine.
        contention: wall-clock seconds per second of processor time of single-threaded work just now.
        observed_s: the overheads of the runs so far; their mean is expected again.
    """
    return sum(observed_s) / len(observed_s) if observed_s else prior_s * max(1.0, contention)


def training_s(turns: Sequence[Turn], seconds: float, around_s: float = AROUND_S) -> float:
    """Return the seconds that all turns take.

    Args:
        turns: the turns.
        seconds: training seconds of a run of share 1.
        around_s: seconds of overhead per run.
    """
    return sum(turn.runs * (turn.share * seconds * (1.0 + AROUND_SHARE) + around_s) for turn in turns)


def equal_seconds(turns: Sequence[Turn], time_s: float, around_s: float = AROUND_S) -> float:
    """Return the equal training seconds of a run of share 1 if all turns together have `time_s` seconds; at least `LEAST_S`."""
    no_training_s = training_s(turns, 0.0, around_s)
    return max(LEAST_S, (time_s - no_training_s) / (training_s(turns, 1.0, around_s) - no_training_s))


def seconds_now(planned_s: float, fair_s: float) -> float:
    """Return the training seconds of the next run: as planned, or fewer if lost time reduced the equal share to `fair_s`."""
    return planned_s if fair_s > NEARLY * planned_s else max(fair_s, AT_LEAST * planned_s)


def measuring_s(left_s: float, models: int, test_bytes: int, took_s: float = 0.0) -> float:
    """Return how many of the seconds left are reserved for scoring.

    Args:
        left_s: seconds left.
        models: number of models to score.
        test_bytes: size of the test part.
        took_s: seconds of a recent scoring. On a slow or busy machine, the others take at least as long.
    """
    usual_s = min(MEASURING * left_s, models * (MODEL_S + BYTE_S * test_bytes))
    return max(usual_s, min(SLOWEST * took_s * models, MOST_MEASURING * left_s))


def baselines_s(train_bytes: int, budget_s: float) -> float:
    """Return the seconds reserved for general compressors."""
    return min(BASELINES * budget_s, BASELINE_BYTE_S * train_bytes)


def least_budget_s(turns: Sequence[Turn], train_bytes: int) -> float:
    """Return the smallest budget, in whole seconds, that gives every run some training; 0 if no model learns."""
    if not turns:
        return 0.0
    shortest = min(turn.share for turn in turns)
    training = training_s(turns, LEAST_S / shortest)
    return math.ceil((training / (1.0 - MEASURING) + COUNTING_BYTE_S * train_bytes) / (1.0 - BASELINES))


def test_bytes(budget_s: float) -> int:
    """Return the bytes of test text to score for a budget, if the speed of the models is unknown."""
    return max(LEAST_TEST_BYTES, round(TEST_BYTES_PER_SECOND * budget_s))


def each_budget_s(each: Budget, turns: Sequence[Turn]) -> float:
    """Return the seconds of training alone if every run of share 1 has the budget `each`."""
    return (each.seconds or 0.0) * max(1.0, sum(turn.share * turn.runs for turn in turns))


@dataclass(frozen=True, kw_only=True)
class TimePlan:
    """The division of a comparison's time."""

    train_s: float  # of a run of share 1
    measuring_s: float  # reserved for scoring
    budget_s: float  # of the whole comparison


def plan_time(
    turns: Sequence[Turn],
    missing: Sequence[Turn],
    *,
    budget_s: float,
    each_s: float | None,
    train_s: float | None,
    used_s: float,
    after_s: float,
    around_s: float,
    keep_s: Callable[[float], float],
) -> TimePlan:
    """Divide the rest of a budget between training and scoring.

    Args:
        turns: the turns of all trained models.
        missing: the turns that are not trained yet.
        budget_s: seconds for the whole comparison.
        each_s: requested training seconds per run; None: the budget is for the whole comparison.
        train_s: training seconds of a run of share 1, if an earlier call fixed them.
        used_s: seconds used so far.
        after_s: seconds for the baselines and the report.
        around_s: seconds of overhead per run.
        keep_s: returns how many of the given seconds are reserved for scoring.
    """
    if each_s is not None:
        training = training_s(missing, each_s, around_s)
        measuring = keep_s(training / (1 - MEASURING))
        return TimePlan(train_s=each_s, measuring_s=measuring, budget_s=used_s + training + measuring + after_s)
    left_s = budget_s - used_s - after_s
    measuring = keep_s(left_s)
    if train_s is None:
        train_s = equal_seconds(turns, left_s - measuring, around_s)
    return TimePlan(train_s=train_s, measuring_s=measuring, budget_s=budget_s)

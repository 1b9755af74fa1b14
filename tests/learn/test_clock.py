"""Budgets and the schedule."""

from __future__ import annotations

import math

import pytest

from lmlab.config import Budget
from lmlab.learn.clock import Clock
from lmlab.learn.schedule import WARMUP, Schedule, learning_rate_factor


@pytest.mark.parametrize(
    ("text", "budget"),
    [
        ("90s", Budget(seconds=90)),
        ("3m", Budget(seconds=180)),
        ("1.5h", Budget(seconds=5400)),
        ("500steps", Budget(steps=500)),
        ("2Mtokens", Budget(tokens=2_000_000)),
        ("10ksteps", Budget(steps=10_000)),
    ],
)
def test_a_budget_reads_as_it_is_written(text: str, budget: Budget) -> None:
    assert Budget.parse(text) == budget
    assert Budget.parse(str(budget)) == budget


@pytest.mark.parametrize("text", ["", "3", "m", "-3m", "0s", "3 parsecs", "0steps", "1kh", "9" * 400 + "steps"])
def test_a_budget_that_makes_no_sense_says_what_would(text: str) -> None:
    with pytest.raises(ValueError, match="3m"):
        Budget.parse(text)


def test_the_learning_rate_rises_then_falls_to_zero_at_the_end() -> None:
    assert learning_rate_factor(WARMUP) == pytest.approx(1.0)
    assert learning_rate_factor(1.0) == 0.0
    rising = [learning_rate_factor(WARMUP * i / 10) for i in range(1, 11)]
    falling = [learning_rate_factor(WARMUP + (1 - WARMUP) * i / 10) for i in range(11)]
    assert rising == sorted(rising)
    assert falling == sorted(falling, reverse=True)


def test_steps_and_tokens_count_against_their_own_budgets() -> None:
    for budget, fraction in ((Budget(steps=10), 0.2), (Budget(tokens=1000), 0.1)):
        clock = Clock(budget)
        clock.tick(50)
        clock.tick(50)
        assert clock.fraction == pytest.approx(fraction)


def test_a_resumed_clock_counts_the_seconds_before() -> None:
    assert Clock(Budget(seconds=100), steps=5, seconds=50.0).fraction >= 0.5


@pytest.mark.parametrize(
    ("shape", "at"),
    [
        (Schedule(warmup=0.1), {0.05: 0.5, 0.1: 1.0, 0.55: 0.5, 1.0: 0.0}),
        (
            Schedule(warmup=0.1, decay="cosine"),
            {0.1: 1.0, 0.55: 0.5, 0.325: 0.5 + 0.5 * math.cos(math.pi / 4), 1.0: 0.0},
        ),
        (Schedule(warmup=0.0, decay="stable"), {0.0: 1.0, 0.8: 1.0, 0.9: 0.5, 1.0: 0.0}),
        (Schedule(warmup=0.0, decay="constant"), {0.0: 1.0, 0.5: 1.0, 1.0: 1.0}),
        (Schedule(warmup=0.0, decay_to=0.1), {0.0: 1.0, 0.5: 0.55, 1.0: 0.1}),
        (Schedule(warmup=0.0, decay="cosine", decay_to=0.2), {0.5: 0.6, 1.0: 0.2}),
    ],
)
def test_the_learning_rate_follows_the_shape_that_is_asked_for(shape: Schedule, at: dict[float, float]) -> None:
    for fraction, factor in at.items():
        assert shape.factor(fraction) == pytest.approx(factor), fraction

"""Sizes are chosen by the clock that will run: what was timed decides, and timing stays within its share of the budget."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest
import torch

import lmlab
from lmlab.config import Budget, TextFacts
from lmlab.formulas import Part
from lmlab.hardware.choice import Hardware
from lmlab.learn import pace as pacing
from lmlab.learn import recipe
from lmlab.learn.choose_size import _UninitializedWeights
from lmlab.learn.pace import Pace, Step, Timings, size_by_the_clock
from lmlab.models import bigram
from lmlab.models.registry import KINDS, Way, ladder, model_class
from lmlab.models.sizing import Appetite

BATCH = 1000
WIDTHS = [10, 20, 40, 80, 160, 320]
HARDWARE = Hardware(device=torch.device("cpu"), dtype=torch.float32, flops=1e9)
APPETITE = Appetite(batch_tokens=BATCH, tokens_per_weight=1.0, weights_per_token=1e9)
FACTS = TextFacts(train_tokens=10**6, train_bytes=10**6, vocab_size=10)


@dataclass(frozen=True)
class Config:
    width: int


class Simulated:
    """A machine on which time passes only by steps; the seconds of a step grow with the width, and are more at first."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, flops: float, least_s: float = 0.0) -> None:
        self.flops, self.least_s, self.now, self.built = flops, least_s, 0.0, []
        monkeypatch.setattr(pacing.time, "perf_counter", lambda: self.now)

    def step_s(self, config: Config) -> float:
        return self.least_s + BATCH * work(config) / self.flops

    def begin(self, config: Config, rows: float) -> Step:
        self.built.append(config.width)
        first = True

        def step() -> int:
            nonlocal first
            working_s = rows * (self.step_s(config) - self.least_s)
            self.now += (self.least_s + working_s) * (2 if first else 1)
            first = False
            return round(rows * BATCH)

        return step


def work(config: Config) -> float:
    return 6.0 * config.width**2


def resolve(facts: TextFacts, budget: Budget) -> Config:
    width = APPETITE.size(WIDTHS, Config, lambda c, _: [Part("layer", multiplied=c.width**2)], facts, budget)
    return Config(width)


def chosen(machine: Simulated, budget: Budget, timings: Timings | None = None):  # type: ignore[no-untyped-def]
    pace = Pace("fake", work, machine.begin, HARDWARE, timings)
    return size_by_the_clock(resolve, FACTS, budget, pace)


def ideal(machine: Simulated, budget: Budget) -> int:
    """The width that knowing the true speeds would choose."""
    assert budget.seconds is not None
    reads = {w: budget.seconds * BATCH / machine.step_s(Config(w)) for w in WIDTHS}
    return max(w for w in WIDTHS if reads[w] >= w * w or w == WIDTHS[0])


@pytest.mark.parametrize("flops", [1e8, 1e9, 1e10])
@pytest.mark.parametrize("least_s", [0.0, 0.01])
def test_the_size_is_the_one_that_true_speeds_would_choose(
    monkeypatch: pytest.MonkeyPatch, flops: float, least_s: float
) -> None:
    machine, budget = Simulated(monkeypatch, flops, least_s), Budget(seconds=300)
    config, plan = chosen(machine, budget)
    assert config.width == ideal(machine, budget)
    assert plan.tokens == pytest.approx(300 * BATCH / machine.step_s(config), rel=0.25)


def test_timing_takes_at_most_its_share(monkeypatch: pytest.MonkeyPatch) -> None:
    for seconds in (20, 60, 180):
        machine = Simulated(monkeypatch, 1e8)
        _, plan = chosen(machine, Budget(seconds=seconds))
        assert (
            plan.timed_s <= machine.now <= 1.0 + 1.5 * pacing.SHARE * seconds
        )  # the first second warms the process up
        assert plan.sizes >= 1


def test_what_warmed_up_is_timed_and_not_begun_again(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Simulated(monkeypatch, 1e9)
    _, plan = chosen(machine, Budget(seconds=60))
    assert len(machine.built) == plan.sizes
    assert len(set(machine.built)) == len(machine.built)


def test_a_machine_far_slower_than_its_figures_loses_little_time_to_finding_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    slow = Simulated(monkeypatch, HARDWARE.flops * pacing.GUESSED_EFFICIENCY / 10)
    config, plan = chosen(slow, Budget(seconds=600))
    assert config.width == ideal(slow, Budget(seconds=600))
    assert plan.timed_s <= 2 * pacing.SHARE * 600


class Pausing(Simulated):
    """The same machine, whose host takes it away for a while at every so many-th step."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, flops: float, every: int, first: int, pause_s: float) -> None:
        super().__init__(monkeypatch, flops)
        self.every, self.steps, self.pause_s = every, -first, pause_s

    def begin(self, config: Config, rows: float) -> Step:
        going = super().begin(config, rows)

        def step() -> int:
            self.now += self.pause_s if self.steps % self.every == 0 else 0.0
            self.steps += 1
            return going()

        return step


@pytest.mark.parametrize("first", range(0, 14))
def test_a_machine_that_stands_still_now_and_then_is_not_taken_for_a_slow_one(
    monkeypatch: pytest.MonkeyPatch, first: int
) -> None:
    budget = Budget(seconds=25)
    machine = Pausing(monkeypatch, 1e9, every=14, first=first, pause_s=0.9)
    config, plan = chosen(machine, budget)
    assert ideal(machine, budget) / 2 <= config.width <= ideal(machine, budget)
    assert plan.tokens_per_second == pytest.approx(BATCH / machine.step_s(config), rel=0.3)


def test_a_machine_that_stands_still_all_the_time_is_a_slow_one(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Pausing(monkeypatch, 1e9, every=2, first=0, pause_s=0.9)
    config, plan = chosen(machine, Budget(seconds=25))
    assert plan.tokens_per_second < BATCH / (machine.step_s(config) + 0.3)


def test_a_lucky_moment_does_not_make_the_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    """A model of one size is timed for a moment first, and then for long enough."""
    machine = Simulated(monkeypatch, 1e10)
    quick_s = []

    def begin(config: Config, rows: float) -> Step:
        step, started = machine.begin(config, rows), machine.now

        def uneven() -> int:
            before = machine.now
            tokens = step()
            if started < 0.02:  # whatever is begun then runs at twice the usual speed
                machine.now -= (machine.now - before) / 2
                quick_s.append(machine.now)
            return tokens

        return uneven

    pace = Pace("fake", work, begin, HARDWARE)
    config, plan = size_by_the_clock(lambda facts, budget: Config(20), FACTS, Budget(seconds=20), pace)
    assert quick_s
    assert plan.tokens_per_second == pytest.approx(BATCH / machine.step_s(config), rel=0.1)


def test_entries_share_what_was_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    machine, timings = Simulated(monkeypatch, 1e9), Timings()
    first, _ = chosen(machine, Budget(seconds=300), timings)
    timed = len(machine.built)
    again, plan = chosen(machine, Budget(seconds=300), timings)
    assert (again, len(machine.built), plan.sizes) == (first, timed, 0)


def test_budgets_of_steps_and_tokens_time_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Simulated(monkeypatch, 1e9)
    for budget in (Budget(steps=100), Budget(tokens=10**6)):
        _, plan = chosen(machine, budget)
        assert plan is None
    assert machine.built == []


@pytest.mark.parametrize(
    ("seconds", "least_s", "rows"),
    [
        (30, 0.0, 1),  # 1,000 steps of 30 ms
        (10, 0.0, 1 / 2),  # 333
        (2, 0.0, 1 / 8),  # 67
        (
            10,
            0.01,
            1 / 2,
        ),  # a third of a step is the same whatever its rows: three quarters of the speed with half of them
        (2, 0.01, 1 / 2),  # and 0.67 of that with a quarter
        (2, 0.029, 1),
    ],
)
def test_where_steps_would_be_few_they_have_fewer_rows_if_that_costs_little(
    monkeypatch: pytest.MonkeyPatch, seconds: int, least_s: float, rows: float
) -> None:
    step_s, config = 0.03, Config(80)
    machine = Simulated(monkeypatch, BATCH * work(config) / (step_s - least_s), least_s)
    timings = Timings()
    pace = Pace("fake", work, machine.begin, HARDWARE, timings)
    _, plan = size_by_the_clock(lambda *_: config, FACTS, Budget(seconds=seconds), pace, fewer_rows=True)
    assert plan is not None
    assert plan.rows == rows
    assert plan.tokens_per_second == pytest.approx(rows * BATCH / (least_s + rows * (step_s - least_s)), rel=0.02)
    built = len(machine.built)  # and the next seed of the same entry does not ask again
    again = Pace("fake", work, machine.begin, HARDWARE, timings)
    assert size_by_the_clock(lambda *_: config, FACTS, Budget(seconds=seconds), again, fewer_rows=True)[1].rows == rows
    assert len(machine.built) == built


def test_a_neighbour_who_comes_when_fewer_rows_are_timed_says_nothing_against_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Three times as slow from the second timing on, which is of half the rows; by itself that would decide against them."""

    class Joined(Simulated):
        def step_s(self, config: Config) -> float:
            return super().step_s(config) * (3 if len(self.built) > 1 else 1)

    config = Config(80)
    machine = Joined(monkeypatch, BATCH * work(config) / 0.03)
    pace = Pace("fake", work, machine.begin, HARDWARE)
    _, plan = size_by_the_clock(lambda *_: config, FACTS, Budget(seconds=10), pace, fewer_rows=True)
    assert plan is not None
    assert plan.rows < 1


@pytest.mark.slow
def test_rows_that_followed_from_the_seconds_are_kept_by_whoever_goes_on(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(pacing, "ENOUGH_STEPS", 10**9)
    monkeypatch.setattr(pacing, "NEARLY", 0.0)
    text = "the cat sat on the mat\nand the dog sat on the log\n" * 200
    run = lmlab.train("bigram", text, out=tmp_path / "run", budget="0.5s", device="cpu")
    training, usual = run.record.training, bigram.BATCH[0]
    assert training.plan is not None
    assert training.plan.rows == usual * pacing.LEAST_ROWS
    assert dict(training.learning) == {}
    assert recipe.recipe(tmp_path / "run")["learning"] == {"rows": training.plan.rows}
    options = {"models": ["uniform", "bigram"], "out": tmp_path / "both", "budget": "4s", "device": "cpu"}
    assert not any(entry.reused for entry in lmlab.compare(text, **options).entries)
    assert all(entry.reused for entry in lmlab.compare(text, **options).entries)  # of the settings that are asked for


def test_settling_takes_more_steps_while_they_get_faster(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Simulated(monkeypatch, 1e9)
    slow_s = iter([0.2, 0.05, 0.02, 0.01, 0.005] + [0.004] * 50)
    taken = []

    def step() -> int:
        taken.append(next(slow_s))
        machine.now += taken[-1]
        return BATCH

    Pace("fake", work, lambda config, rows: step, HARDWARE).warm_up(Config(10), 10.0)
    assert taken[-pacing.SETTLED_STEPS :] == [0.004] * pacing.SETTLED_STEPS
    assert len(taken) == 6 + pacing.SETTLED_STEPS


def test_what_validations_look_at_is_not_planned_to_be_read(monkeypatch: pytest.MonkeyPatch) -> None:
    budget = Budget(seconds=100)
    plans = []
    for looked_at in (0, 10**4, 10**12):
        machine = Simulated(monkeypatch, 1e9)
        pace = Pace("fake", work, machine.begin, HARDWARE)
        plans.append(size_by_the_clock(resolve, FACTS, budget, pace, looked_at)[1])
    nothing, some, most = (plan.tokens for plan in plans)
    assert some == pytest.approx(nothing - 10**4 / 3)
    assert most == pytest.approx(nothing - pacing.MOST_VALIDATING * 100 * plans[0].tokens_per_second)


def test_planning_is_a_part_of_the_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    for seconds in (1, 100):
        machine = Simulated(monkeypatch, 1e9, least_s=0.05)
        _, speed = chosen(machine, Budget(seconds=seconds))
        assert speed.planning_s == pytest.approx(min(machine.now, pacing.MOST_PLANNING * seconds))
        assert speed.tokens == pytest.approx(speed.tokens_per_second * (seconds - speed.planning_s))


@pytest.mark.parametrize("name", [name for name in ladder() if KINDS[name].way is Way.LEARNS])
def test_a_model_without_values_has_the_shape_of_one_with(name: str) -> None:
    cls = model_class(name)
    config = cls.resolve(cls.Config(), FACTS, Budget(steps=100))
    with _UninitializedWeights():
        undrawn = cls(config, FACTS.vocab_size)
    real = cls(config, FACTS.vocab_size)
    assert undrawn.training_flops_per_token == real.training_flops_per_token
    assert {n: p.shape for n, p in undrawn.named_parameters()} == {n: p.shape for n, p in real.named_parameters()}

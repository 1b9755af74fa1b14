"""Measure how fast a model of some size trains here and now, by real steps, before a run fixes its size.

A size is chosen by how many tokens the budget trains it on. So what is timed is the step of the run: forward, backward and
update, in its precision and with its threads, beside whatever else the machine is doing. Timing every size would take longer
than some budgets. So a small size is timed and the speeds of the others are estimated from it. Then the size that these
estimates favour is timed, until the favoured size is a timed one or the time for timing is used up.
"""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import torch

from lmlab.config import Budget, TextFacts
from lmlab.hardware.choice import Hardware
from lmlab.hardware.openmp import set_threads, threads_as_before
from lmlab.hardware.rates import settle
from lmlab.hardware.threads import neighbours
from lmlab.learn.settings import MOST_VALIDATING

SHARE = 0.03  # of a budget that timing may take
MOST_PLANNING = (
    0.5  # of a budget that planning counts for: a very short one overruns rather than train for no time at all
)
SMALL = 1 / 100  # of the budget: the size that suits it is timed first, because it is cheap whatever this machine is
WARM_S, WARM_SHARE = 0.4, 0.005  # at most before anything is timed: so long, or that share of the budget if it is more
SETTLED_STEPS, FASTER = 4, 0.9  # so many steps running, none of which takes less than this part of the best before it
COLD_STEPS = 2  # find memory and choose kernels, and do not count
TIMED_STEPS = 3  # at least
TIMED_S, TIMED_SHARE = 0.1, 0.006  # and for so long, or for that share of the budget if it is more
# Longer than others by this factor and by so many seconds: the machine stood still. A neighbour that wants a core gets it for
# milliseconds at a time; a virtual machine whose host is busy loses it for a tenth of a second or a whole one, now and then.
STALLED, STALLED_S, SELDOM = 4, 0.05, 1 / 4
GUESSED_EFFICIENCY = 0.3  # of the speed of bare products, before any step was timed
GROWTH = 0.8  # seconds per token grow with this power of the operations: larger products run at higher speed
FORWARD = 1 / 3  # of the work of a training step: what looking at the validation part takes, token by token
# A budget of fewer steps than this teaches more in steps of half the rows, if it still reads nearly as much (measured with gpt,
# cnn, gru and rnn-attention, 25 and 75 s of two slow cores: 0.05 to 0.25 bits per byte; with twice the steps it gains nothing).
ENOUGH_STEPS, NEARLY, LEAST_ROWS = 600, 0.7, 1 / 8

Step = Callable[[], int]  # one training step; returns its tokens
Begin = Callable[[Any, float], Step]  # a fresh model of a config, ready to step with that share of the usual rows


@dataclass
class Timings:
    """The sizes timed so far, by kind of model and hardware; the entries of a comparison or a sweep share them."""

    known: dict[tuple[str, str], dict[float, float]] = field(default_factory=dict)
    warm: set[tuple[str, Any]] = field(default_factory=set)  # kinds and configs that this process has taken steps with
    step_tokens: dict[str, int] = field(default_factory=dict)  # of a step with the usual rows, by kind, as last timed
    rows: dict[tuple[str, Any], tuple[float, float]] = field(
        default_factory=dict
    )  # share of them and speed, once chosen

    def of(self, kind: str, hardware: Hardware) -> dict[float, float]:
        """Seconds per token by operations per token, of one kind on this hardware."""
        return self.known.setdefault((kind, str(hardware)), {})


@dataclass(frozen=True, kw_only=True)
class Speed:
    """The measured speed of the steps of a run, and what follows from it."""

    tokens_per_second: float
    tokens: float  # that the budget trains on at this speed
    threads: int  # with which that was measured
    planning_s: float  # spent on measuring, a part of the budget
    timed_s: float  # of these, spent on timed steps
    sizes: int  # that were timed
    rows: float = 1.0  # of a step, as a share of the usual ones


class Pace:
    """Tokens per second of one kind of model at any size: timed, or estimated from the nearest timed sizes."""

    def __init__(
        self,
        kind: str,
        flops_per_token: Callable[[Any], float],
        begin: Begin,
        hardware: Hardware,
        timings: Timings | None = None,
    ) -> None:
        """flops_per_token: of training, by formula, for a config. begin: makes a fresh model of a config, ready to step."""
        self.hardware, self._begin, self._formula = hardware, begin, flops_per_token
        self._shared = timings or Timings()
        self._timings, self._kind = self._shared.of(kind, hardware), kind
        self._flops: dict[Any, float] = {}
        self._warmed: tuple[Any, Step] | None = None  # that may go on
        self.threads = hardware.now
        self.timed_s, self.stalled_s, self.sizes = 0.0, 0.0, 0

    def tokens_per_second(self, config: Any) -> float:
        """Of training a model of this config."""
        flops = self._flops_per_token(config)
        return 1.0 / (self._timings.get(flops) or self._estimate(flops))

    @property
    def known(self) -> bool:
        """Whether any size was timed."""
        return bool(self._timings)

    def is_timed(self, config: Any) -> bool:
        """Whether its speed is known rather than estimated."""
        return self._flops_per_token(config) in self._timings

    def time(self, config: Any, least_s: float, most_s: float) -> None:
        """Take steps for `least_s` seconds with a model of this config, which is then thrown away; of a very slow one two."""
        started, before = time.perf_counter(), torch.get_num_threads()
        step = self._going_on(config) or self._started(config)
        # Threads as the run will choose them: the number at hand, and those beside it that may be faster for this work.
        counts = [before] if self.hardware.device.type != "cpu" else [self.threads]
        if self.known and self.hardware.device.type == "cpu":
            counts = neighbours(self.hardware.threads, self.threads)
        seconds_per_token = {}
        try:
            for threads in counts:
                set_threads(threads)
                seconds_per_token[threads], tokens = self._seconds_per_token(step, least_s / len(counts))
                self._shared.step_tokens[self._kind] = tokens
                if time.perf_counter() - started > most_s:  # a slow one: what is known must do
                    break
        finally:
            threads_as_before(before)
        fastest = min(seconds_per_token, key=lambda threads: seconds_per_token[threads])
        self.threads = fastest if self.hardware.device.type == "cpu" else self.threads
        self._timings[self._flops_per_token(config)] = seconds_per_token[fastest]
        self.timed_s += time.perf_counter() - started
        self.sizes += 1

    def share_of_rows(self, config: Any, seconds: float, least_s: float) -> tuple[float, float]:
        """Which share of the usual rows a step should have in a budget of so many seconds, and tokens per second with it.

        Fewer where steps would be few, and smaller ones take less time nearly in proportion.
        """
        if (self._kind, config) in self._shared.rows:
            return self._shared.rows[self._kind, config]
        share, speed = 1.0, self.tokens_per_second(config)
        tokens = self._shared.step_tokens.get(self._kind, 0)
        while tokens and speed * seconds < ENOUGH_STEPS * tokens and share > LEAST_ROWS:
            halved, fewer = self._with_rows(config, share / 2, least_s)
            if fewer == tokens:
                break
            if halved < NEARLY * speed:  # others may have taken the machine meanwhile: both again, one after the other
                speed, halved = (self._with_rows(config, rows, least_s)[0] for rows in (share, share / 2))
            if halved < NEARLY * speed:
                break
            share, speed, tokens = share / 2, halved, fewer
        self._shared.rows[self._kind, config] = share, speed
        return share, speed

    def _with_rows(self, config: Any, share: float, least_s: float) -> tuple[float, int]:
        """Tokens per second and per step with that share of the usual rows."""
        started, before = time.perf_counter(), torch.get_num_threads()
        step = self._started(config, share)
        try:
            set_threads(self.threads)
            seconds_per_token, tokens = self._seconds_per_token(step, least_s)
        finally:
            threads_as_before(before)
        self.timed_s += time.perf_counter() - started
        return 1.0 / seconds_per_token, tokens

    def _seconds_per_token(self, step: Step, least_s: float) -> tuple[float, int]:
        """Over some steps, after those that find memory and choose kernels, few of slow ones; and the tokens of a step.

        Their mean, not the middle one: beside other work some steps take several times as long, in the run as here. But a
        pause of the whole machine says nothing of the run, in which such pauses are few among thousands of steps.
        """
        started = time.perf_counter()
        for _ in range(COLD_STEPS):
            step()
            settle(self.hardware.device)
        cold_s = time.perf_counter() - started
        enough = TIMED_STEPS if cold_s < COLD_STEPS * least_s else 1
        steps: list[tuple[float, int]] = []  # seconds and tokens
        spent_s, until_s = 0.0, least_s
        while True:
            before = time.perf_counter()
            tokens = step()
            settle(self.hardware.device)
            steps.append((time.perf_counter() - before, tokens))
            spent_s += steps[-1][0]
            if spent_s < until_s or len(steps) < enough:
                continue
            counted = _without_stalls(steps)
            taken_s = sum(seconds for seconds, _ in counted)
            if taken_s >= least_s:
                break
            until_s = spent_s + least_s - taken_s  # what the pauses took is made up for
        most_cold_s = COLD_STEPS * (STALLED * taken_s / len(counted) + STALLED_S)
        self.stalled_s += spent_s - taken_s + max(0.0, cold_s - most_cold_s)
        return taken_s / sum(tokens for _, tokens in counted), tokens

    def warm_up(self, config: Any, most_s: float = WARM_S) -> None:
        """Steps until they stop getting faster, or for so long: a young process finds memory and loads kernels.

        The run itself would have to take these slow steps otherwise; what is timed among them says nothing of it.
        """
        started, step = time.perf_counter(), self._started(config)
        best_s, settled = math.inf, 0
        while settled < SETTLED_STEPS and time.perf_counter() - started < most_s:
            before = time.perf_counter()
            step()
            settle(self.hardware.device)
            took_s = time.perf_counter() - before
            settled = 0 if took_s < FASTER * best_s else settled + 1
            best_s = min(best_s, took_s)
        self._warmed = config, step

    def is_warm(self, config: Any) -> bool:
        """Whether the run can step at full speed at once: a CPU can, a GPU once it has loaded the kernels of these sizes."""
        return self.hardware.device.type == "cpu" or (self._kind, config) in self._shared.warm

    def _going_on(self, config: Any) -> Step | None:
        """The steps that warmed up, if they were of this config: on a GPU they are recorded, which takes up to seconds."""
        warmed, self._warmed = self._warmed, None
        return None if warmed is None or warmed[0] != config else warmed[1]

    def _started(self, config: Any, rows: float = 1.0) -> Step:
        self._shared.warm.add((self._kind, config))
        return self._begin(config, rows)

    def timing_s(self, config: Any, least_s: float) -> float:
        """Seconds that timing this config will take, roughly: cold steps take about twice as long as others."""
        step_s = self._shared.step_tokens.get(self._kind, 0) / self.tokens_per_second(config)
        counts = 2 if self.hardware.device.type == "cpu" and self.hardware.threads > 1 else 1
        return counts * (2 * COLD_STEPS - 1) * step_s + max(counts * TIMED_STEPS * step_s, least_s)

    def _flops_per_token(self, config: Any) -> float:
        if config not in self._flops:
            self._flops[config] = self._formula(config)
        return self._flops[config]

    def _estimate(self, flops: float) -> float:
        """Seconds per token: between two sizes that were timed by interpolation, beyond them by the growth from the last."""
        if not self._timings:
            return flops / (GUESSED_EFFICIENCY * self.hardware.flops)
        below = max((x for x in self._timings if x <= flops), default=None)
        above = min((x for x in self._timings if x > flops), default=None)
        if below is not None and above is not None:
            growth = math.log(self._timings[above] / self._timings[below]) / math.log(above / below)
            return self._timings[below] * (flops / below) ** growth
        nearest = below if below is not None else above
        assert nearest is not None
        return self._timings[nearest] * (flops / nearest) ** GROWTH


def _without_stalls(steps: list[tuple[float, int]]) -> list[tuple[float, int]]:
    """Steps (seconds, tokens) but for those in which the machine stood still; all of them, where that is no exception."""
    usual_s = statistics.median_low([seconds for seconds, _ in steps])
    going = [step for step in steps if step[0] < max(STALLED * usual_s, usual_s + STALLED_S)]
    return going if len(steps) - len(going) <= max(1.0, SELDOM * len(steps)) else steps


def size_by_the_clock(
    resolve: Callable[[TextFacts, Budget], Any],
    facts: TextFacts,
    budget: Budget,
    pace: Pace,
    validation_tokens: int = 0,
    fewer_rows: bool = False,
) -> tuple[Any, Speed | None]:
    """Resolve a config with the speeds of this machine.

    Budgets of steps or tokens mean the same everywhere, so nothing is timed for them.

    Args:
        resolve: the config for a text and a budget.
        facts: of the text.
        budget: of the run.
        pace: of this kind of model.
        validation_tokens: looked at over the whole run.
        fewer_rows: whether steps may have fewer rows than usual.

    Returns:
        The config, and for a budget of seconds its measured speed.
    """
    if budget.seconds is None:
        return resolve(facts, budget), None
    started, facts = time.perf_counter(), replace(facts, tokens_per_second=pace.tokens_per_second)
    most_s, least_s = SHARE * budget.seconds, max(TIMED_S, TIMED_SHARE * budget.seconds)
    warm_s = max(WARM_S, WARM_SHARE * budget.seconds)
    next_timed = resolve(facts, budget if pace.known else Budget(seconds=SMALL * budget.seconds))
    if not pace.known:
        pace.warm_up(next_timed, warm_s)
    while not pace.is_timed(next_timed):
        # What a cold start timed is too slow by half, and so is what it predicts: the favoured size is given the doubt.
        spent_s = pace.timed_s - pace.stalled_s
        too_long = pace.timing_s(next_timed, least_s) > 2 * (most_s - spent_s)
        if pace.known and (too_long or spent_s > most_s / 2):
            break
        pace.time(next_timed, least_s if pace.known else least_s / 3, most_s - spent_s)
        next_timed = resolve(facts, budget)
    config = resolve(facts, budget)
    left_s = most_s - (pace.timed_s - pace.stalled_s)
    if (
        pace.sizes == 1 and pace.timing_s(config, least_s) < left_s
    ):  # the favoured size is the first: a moment says little
        pace.time(config, least_s, left_s)
        config = resolve(facts, budget)
    if not pace.is_warm(config):
        pace.warm_up(config, warm_s)
    rows, speed = 1.0, pace.tokens_per_second(config)
    if fewer_rows and pace.hardware.device.type == "cpu":  # a GPU takes thousands of steps in any budget
        rows, speed = pace.share_of_rows(config, budget.seconds, least_s / 3)
    validating_s = min(FORWARD * validation_tokens / speed, MOST_VALIDATING * budget.seconds)
    planning_s = min(time.perf_counter() - started, MOST_PLANNING * budget.seconds)
    return config, Speed(
        tokens_per_second=speed,
        tokens=speed * (budget.seconds - planning_s - validating_s),
        threads=pace.threads,
        planning_s=planning_s,
        timed_s=pace.timed_s,
        sizes=pace.sizes,
        rows=rows,
    )

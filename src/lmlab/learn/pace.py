"""The training speed of models of any size, measured on this machine before a run fixes its size.

A size is chosen by the number of tokens that the budget trains it on. The timed step is therefore that of the run: forward,
backward and update, with its precision, its threads and the present load of the machine. Timing every size would exceed short
budgets. So a small size is timed, and the speeds of others are estimated from it. Then the size that these estimates favour is
timed, until the favoured size is a timed one or the time for timing is used up.
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

SHARE = 0.03  # of a budget that timing may use
MOST_PLANNING = (
    0.5  # of a budget that planning may be charged to; a very short budget overruns instead of training for no time
)
# After this many seconds, or this share of a budget, no optional timing begins: a busy machine multiplies what timing takes.
LONGEST_S, LONGEST_SHARE = 1.0, 0.25
SMALL = 1 / 100  # of the budget: the size that suits this share is timed first, because it is cheap on any machine
WARM_S, WARM_SHARE = 0.4, 0.005  # maximum warm-up: seconds, or a share of the budget if that is more
SETTLED_STEPS, FASTER = 4, 0.9  # warm-up ends after this many steps in a row, none faster than this factor of the best
COLD_STEPS = 2  # untimed: they allocate memory and select kernels
TIMED_STEPS = 3  # minimum number
TIMED_S, TIMED_SHARE = 0.1, 0.006  # minimum duration: seconds, or a share of the budget if that is more
# A step is a stall if it exceeds the usual one by this factor and by this many seconds. Other processes take a core for
# milliseconds; a busy host stops a virtual machine for 0.1 to 1 s. More stalls than the share SELDOM are the usual state.
STALLED, STALLED_S, SELDOM = 4, 0.05, 1 / 4
GUESSED_EFFICIENCY = 0.3  # of the speed of matrix products, before any step was timed
GROWTH = 0.8  # seconds per token grow with this power of the FLOPs: larger products run at a higher FLOP rate
FORWARD = 1 / 3  # FLOPs of validation per token, as a share of training
# A budget of fewer steps than this teaches more in steps of half the rows, if it still reads nearly as much (measured with gpt,
# cnn, gru and rnn-attention, 25 and 75 s of two slow cores: 0.05 to 0.25 bits per byte; with twice the steps it gains nothing).
ENOUGH_STEPS, NEARLY, LEAST_ROWS = 600, 0.7, 1 / 8

Step = Callable[[], int]  # one training step; returns its tokens
Begin = Callable[[Any, float], Step]  # (config, share of the default rows) to the step of a new model


@dataclass
class Timings:
    """The timings of sizes so far, by kind of model and hardware. The entries of a comparison or a sweep share them."""

    known: dict[tuple[str, str], dict[float, float]] = field(default_factory=dict)
    warm: set[tuple[str, Any]] = field(default_factory=set)  # (kind, config) pairs that this process has stepped
    step_tokens: dict[str, int] = field(default_factory=dict)  # tokens of the last timed step, by kind
    # by (kind, config): the chosen share of the default rows, and the tokens per second with it
    rows: dict[tuple[str, Any], tuple[float, float]] = field(default_factory=dict)

    def of(self, kind: str, hardware: Hardware) -> dict[float, float]:
        """Return the seconds per token by FLOPs per token, of one kind of model on this hardware."""
        return self.known.setdefault((kind, str(hardware)), {})


@dataclass(frozen=True, kw_only=True)
class Speed:
    """The measured training speed of a run, and the quantities derived from it."""

    tokens_per_second: float
    tokens: float  # tokens that the budget trains on at this speed
    threads: int  # thread count of the measurement
    planning_s: float  # seconds of the budget spent on measuring
    timed_s: float  # seconds of these spent on timed steps
    sizes: int  # number of timed sizes
    rows: float = 1.0  # rows of a step, as a share of the default


class Pace:
    """The tokens per second of one kind of model at any size: timed, or estimated from the nearest timed sizes."""

    def __init__(
        self,
        kind: str,
        flops_per_token: Callable[[Any], float],
        begin: Begin,
        hardware: Hardware,
        timings: Timings | None = None,
    ) -> None:
        """Start without timings, or with shared ones.

        Args:
            kind: the kind of model.
            flops_per_token: returns the training FLOPs per token of a config, by formula.
            begin: constructs a new model of a config and returns a function that takes one step.
            hardware: the hardware to time on.
            timings: timings that are shared with other runs.
        """
        self.hardware, self._begin, self._formula = hardware, begin, flops_per_token
        self._shared = timings or Timings()
        self._timings, self._kind = self._shared.of(kind, hardware), kind
        self._flops: dict[Any, float] = {}
        self._warmed: tuple[Any, Step] | None = None  # config and step that were warmed up last and can be continued
        self.threads = hardware.now
        self.timed_s, self.stalled_s, self.sizes = 0.0, 0.0, 0

    def tokens_per_second(self, config: Any) -> float:
        """Return the training speed of a model of this config in tokens per second, timed or estimated."""
        flops = self._flops_per_token(config)
        return 1.0 / (self._timings.get(flops) or self._estimate(flops))

    @property
    def known(self) -> bool:
        """Whether any size was timed."""
        return bool(self._timings)

    def is_timed(self, config: Any) -> bool:
        """Whether the speed of this config was timed, not estimated."""
        return self._flops_per_token(config) in self._timings

    def time(self, config: Any, least_s: float, most_s: float) -> None:
        """Time training steps of a new model of this config, which is discarded afterwards.

        Args:
            config: the settings of the model.
            least_s: seconds to take timed steps for. A very slow model takes a single timed step per thread count.
            most_s: seconds after which no further thread count is tried.
        """
        started, before = time.perf_counter(), torch.get_num_threads()
        step = self._going_on(config) or self._started(config)
        # Thread counts as the run will choose them: the present one and its neighbours, which may be faster for this model.
        counts = [before] if self.hardware.device.type != "cpu" else [self.threads]
        if self.known and self.hardware.device.type == "cpu":
            counts = neighbours(self.hardware.threads, self.threads)
        seconds_per_token = {}
        try:
            for threads in counts:
                set_threads(threads)
                seconds_per_token[threads], tokens = self._seconds_per_token(step, least_s / len(counts))
                self._shared.step_tokens[self._kind] = tokens
                if time.perf_counter() - started > most_s:  # a slow model: the counts timed so far must suffice
                    break
        finally:
            threads_as_before(before)
        fastest = min(seconds_per_token, key=lambda threads: seconds_per_token[threads])
        self.threads = fastest if self.hardware.device.type == "cpu" else self.threads
        self._timings[self._flops_per_token(config)] = seconds_per_token[fastest]
        self.timed_s += time.perf_counter() - started
        self.sizes += 1

    def share_of_rows(
        self, config: Any, seconds: float, least_s: float, until_s: float = math.inf
    ) -> tuple[float, float]:
        """Choose the share of the default rows per step for a budget, and measure the speed with it.

        Rows are halved while the budget allows fewer than `ENOUGH_STEPS` steps and the speed in tokens per second stays nearly
        the same.

        Args:
            config: the settings of the model.
            seconds: the budget.
            least_s: seconds to time each share for.
            until_s: the time, by time.perf_counter, after which no further share is tried.

        Returns:
            The share, and the tokens per second.
        """
        if (self._kind, config) in self._shared.rows:
            return self._shared.rows[self._kind, config]
        share, speed = 1.0, self.tokens_per_second(config)
        tokens = self._shared.step_tokens.get(self._kind, 0)
        while tokens and speed * seconds < ENOUGH_STEPS * tokens and share > LEAST_ROWS:
            if time.perf_counter() > until_s:
                return share, speed  # not kept: another run may have the time to try the next share
            halved, fewer = self._with_rows(config, share / 2, least_s)
            if fewer == tokens:
                break
            if halved < NEARLY * speed:  # other load may have come meanwhile: time both again in turn
                speed, halved = (self._with_rows(config, rows, least_s)[0] for rows in (share, share / 2))
            if halved < NEARLY * speed:
                break
            share, speed, tokens = share / 2, halved, fewer
        self._shared.rows[self._kind, config] = share, speed
        return share, speed

    def _with_rows(self, config: Any, share: float, least_s: float) -> tuple[float, int]:
        """Return the tokens per second and the tokens per step with this share of the default rows."""
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
        """Return the mean seconds per token over some steps, and the tokens of a step.

        The first `COLD_STEPS` steps are not timed, because they allocate memory and select kernels. The mean is used, not the
        median, because other load slows some steps of the run in the same way. Steps in which the whole machine stalled are
        excluded: they are rare among the thousands of steps of a run.
        """
        started = time.perf_counter()
        for _ in range(COLD_STEPS):
            step()
            settle(self.hardware.device)
        cold_s = time.perf_counter() - started
        enough = TIMED_STEPS if cold_s < COLD_STEPS * least_s else 1
        steps: list[tuple[float, int]] = []  # (seconds, tokens)
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
            until_s = spent_s + least_s - taken_s  # the time lost in stalls is added
        most_cold_s = COLD_STEPS * (STALLED * taken_s / len(counted) + STALLED_S)
        self.stalled_s += spent_s - taken_s + max(0.0, cold_s - most_cold_s)
        return taken_s / sum(tokens for _, tokens in counted), tokens

    def warm_up(self, config: Any, most_s: float = WARM_S) -> None:
        """Take steps until they stop getting faster or `most_s` seconds have passed.

        A new process allocates memory and loads kernels in its first steps. Their times do not represent the run.
        """
        started, threads_before = time.perf_counter(), torch.get_num_threads()
        best_s, settled = math.inf, 0
        try:
            set_threads(self.threads)  # on a busy machine a step with too many threads takes ten times as long
            step = self._started(config)
            while settled < SETTLED_STEPS and time.perf_counter() - started < most_s:
                before = time.perf_counter()
                step()
                settle(self.hardware.device)
                took_s = time.perf_counter() - before
                settled = 0 if took_s < FASTER * best_s else settled + 1
                best_s = min(best_s, took_s)
        finally:
            threads_as_before(threads_before)
        self._warmed = config, step

    def is_warm(self, config: Any) -> bool:
        """Whether a run of this config trains at full speed from its first step: on a GPU only if its kernels are loaded."""
        return self.hardware.device.type == "cpu" or (self._kind, config) in self._shared.warm

    def _going_on(self, config: Any) -> Step | None:
        """Return the step function that warmed up if it belongs to this config, because recording another on a GPU takes up to
        seconds.
        """
        warmed, self._warmed = self._warmed, None
        return None if warmed is None or warmed[0] != config else warmed[1]

    def _started(self, config: Any, rows: float = 1.0) -> Step:
        self._shared.warm.add((self._kind, config))
        return self._begin(config, rows)

    def timing_s(self, config: Any, least_s: float) -> float:
        """Return roughly how many seconds timing this config takes. Cold steps take about twice as long as others."""
        step_s = self._shared.step_tokens.get(self._kind, 0) / self.tokens_per_second(config)
        counts = 2 if self.hardware.device.type == "cpu" and self.hardware.threads > 1 else 1
        return counts * (2 * COLD_STEPS - 1) * step_s + max(counts * TIMED_STEPS * step_s, least_s)

    def _flops_per_token(self, config: Any) -> float:
        if config not in self._flops:
            self._flops[config] = self._formula(config)
        return self._flops[config]

    def _estimate(self, flops: float) -> float:
        """Return the estimated seconds per token for this many FLOPs per token.

        Between two timed sizes the estimate interpolates on a log-log scale. Beyond them it grows from the nearest with the
        power `GROWTH`.
        """
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
    """Return the steps (seconds, tokens) without those in which the machine stalled.

    If stalls are more than a `SELDOM` share, all steps are returned, because they then represent the machine.
    """
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
    """Resolve a config with the training speeds of this machine.

    Budgets of steps or tokens mean the same everywhere, so nothing is timed for them.

    Args:
        resolve: returns the config for a text and a budget.
        facts: the sizes of the text.
        budget: the budget of the run.
        pace: the training speed of this kind of model.
        validation_tokens: validation tokens evaluated over the whole run.
        fewer_rows: whether steps may have fewer rows than the default.

    Returns:
        The config, and for a budget of seconds its measured speed.
    """
    if budget.seconds is None:
        return resolve(facts, budget), None
    started, facts = time.perf_counter(), replace(facts, tokens_per_second=pace.tokens_per_second)
    most_s, least_s = SHARE * budget.seconds, max(TIMED_S, TIMED_SHARE * budget.seconds)
    warm_s = max(WARM_S, WARM_SHARE * budget.seconds)
    until_s = started + max(LONGEST_S, LONGEST_SHARE * budget.seconds)
    next_timed = resolve(facts, budget if pace.known else Budget(seconds=SMALL * budget.seconds))
    if not pace.known:
        pace.warm_up(next_timed, warm_s)
    while not pace.is_timed(next_timed):
        # A cold start is timed too slow by half, and so is its prediction, so the favoured size is timed if in doubt.
        spent_s = pace.timed_s - pace.stalled_s
        too_long = pace.timing_s(next_timed, least_s) > 2 * (most_s - spent_s)
        if pace.known and (too_long or spent_s > most_s / 2 or time.perf_counter() > until_s):
            break
        pace.time(next_timed, least_s if pace.known else least_s / 3, most_s - spent_s)
        next_timed = resolve(facts, budget)
    config = resolve(facts, budget)
    left_s = most_s - (pace.timed_s - pace.stalled_s)
    if (
        pace.sizes == 1 and pace.timing_s(config, least_s) < left_s and time.perf_counter() < until_s
    ):  # the favoured size is the first one, which was timed only briefly
        pace.time(config, least_s, left_s)
        config = resolve(facts, budget)
    if not pace.is_warm(config):
        pace.warm_up(config, warm_s)
    rows, speed = 1.0, pace.tokens_per_second(config)
    if fewer_rows and pace.hardware.device.type == "cpu":  # on a GPU any budget allows thousands of steps
        rows, speed = pace.share_of_rows(config, budget.seconds, least_s / 3, until_s)
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

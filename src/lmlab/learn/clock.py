"""The progress of a training run through its budget, in seconds, steps or tokens."""

from __future__ import annotations

import time
from dataclasses import dataclass

from lmlab.config import Budget
from lmlab.learn.world import SINGLE_PROCESS, World


@dataclass(frozen=True, kw_only=True)
class Spent:
    """The steps, tokens and seconds that a run has spent on training."""

    steps: int = 0
    tokens: int = 0
    seconds: float = 0.0


class Clock:
    """A counter of the steps, tokens and seconds of a run (across resumes), and of the share of the budget they use.

    The learning-rate schedule ends where the budget ends: `fraction` goes from 0 to 1, and the learning rate is zero at 1.
    With a budget in seconds the number of steps depends on the machine; with one in steps or tokens it is the same everywhere.

    The time changes only when `look` is called, which reads the writer's time for all processes. All processes therefore make
    the same decisions about the learning rate, validation, checkpoints and stopping.
    """

    def __init__(
        self,
        budget: Budget,
        steps: int = 0,
        tokens: int = 0,
        seconds: float = 0.0,
        earlier: Spent | None = None,
        thing: str = "token",
        world: World = SINGLE_PROCESS,
    ) -> None:
        """Start the clock at the steps, tokens and seconds that the run has spent so far.

        Args:
            budget: the budget of the run, beyond `earlier`.
            steps: steps taken so far.
            tokens: items trained on so far.
            seconds: seconds of training so far.
            earlier: the amounts spent under earlier budgets of the run, which are used up.
            thing: the item that `tokens` counts, such as "token" or "example".
            world: the processes that share the clock.
        """
        self.budget, self.steps, self.tokens, self.thing, self.world = budget, steps, tokens, thing, world
        self.earlier = earlier or Spent()
        self.seconds = seconds  # of training so far, including those before a resume
        self._before, self._started = seconds, time.perf_counter()
        self.reserve_s = 0.0  # expected duration of the last validation, which a budget in seconds must include

    def look(self) -> float:
        """Read the time and return the seconds of training so far."""
        self.seconds = self.world.broadcast(self._before + time.perf_counter() - self._started)
        return self.seconds

    @property
    def seconds_here(self) -> float:
        """The seconds of training since the run was started or last resumed."""
        return self.seconds - self._before

    @property
    def fraction(self) -> float:
        """The share of the budget that is used: 0 to 1, or slightly above."""
        if self.budget.steps is not None:
            return (self.steps - self.earlier.steps) / self.budget.steps
        if self.budget.tokens is not None:
            return (self.tokens - self.earlier.tokens) / self.budget.tokens
        assert self.budget.seconds is not None
        return (self.seconds - self.earlier.seconds) / max(self.budget.seconds - self.reserve_s, 1e-9)

    @property
    def next_fraction(self) -> float:
        """The share of the budget that will be used after the next step, if it costs the average of the steps so far.

        The loop stops before a step that would exceed the budget.
        """
        taken = self.steps - self.earlier.steps
        return self.fraction * (taken + 1) / taken if taken else self.fraction

    def tick(self, tokens: int) -> None:
        """Count one more step on `tokens` items, and read the time."""
        self.steps += 1
        self.tokens += tokens
        self.look()

    @property
    def remaining_s(self) -> float:
        """The estimated seconds until the budget ends, at the average speed so far; NaN before the first step."""
        used = self.fraction
        return (self.seconds - self.earlier.seconds) * (1 - used) / used if used > 0 else float("nan")

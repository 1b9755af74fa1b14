"""How far a training run has come, in seconds, steps or tokens."""

from __future__ import annotations

import time
from dataclasses import dataclass

from lmlab.config import Budget
from lmlab.learn.world import ALONE, World


@dataclass(frozen=True, kw_only=True)
class Spent:
    """What a run has spent on learning."""

    steps: int = 0
    tokens: int = 0
    seconds: float = 0.0


class Clock:
    """This class counts steps, tokens and seconds of a run (across resumes) and compares them with the budget.

    The schedule ends where the budget ends: `fraction` goes from 0 to 1 and the learning rate is back at zero at 1.
    With a budget in seconds it depends on the machine; with one in steps or tokens it is the same everywhere.

    Seconds stand still between two calls of `look`, which reads the writer's time for all processes. So whatever is decided by
    the clock (the learning rate, when to validate, to save and to stop) is decided alike everywhere.
    """

    def __init__(
        self,
        budget: Budget,
        steps: int = 0,
        tokens: int = 0,
        seconds: float = 0.0,
        earlier: Spent | None = None,
        thing: str = "token",
        world: World = ALONE,
    ) -> None:
        """Start at what a run has spent so far.

        Args:
            budget: What the run may spend, beyond `earlier`.
            steps: Taken so far.
            tokens: Read so far.
            seconds: Of training so far.
            earlier: What the run had spent, under budgets that are used up, before this one began.
            thing: What `tokens` counts, where a task learns from something else.
            world: The processes that share the clock.
        """
        self.budget, self.steps, self.tokens, self.thing, self.world = budget, steps, tokens, thing, world
        self.earlier = earlier or Spent()
        self.seconds = seconds  # of training so far, those before a resume included
        self._before, self._started = seconds, time.perf_counter()
        self.reserve_s = 0.0  # what the last validation will take: a budget in seconds must leave room for it

    def look(self) -> float:
        """Read the time; return the seconds of training so far."""
        self.seconds = self.world.broadcast(self._before + time.perf_counter() - self._started)
        return self.seconds

    @property
    def seconds_here(self) -> float:
        """Seconds of training since the run began or was resumed."""
        return self.seconds - self._before

    @property
    def fraction(self) -> float:
        """Share of the budget that is used, 0 to 1 (or a little beyond)."""
        if self.budget.steps is not None:
            return (self.steps - self.earlier.steps) / self.budget.steps
        if self.budget.tokens is not None:
            return (self.tokens - self.earlier.tokens) / self.budget.tokens
        assert self.budget.seconds is not None
        return (self.seconds - self.earlier.seconds) / max(self.budget.seconds - self.reserve_s, 1e-9)

    @property
    def next_fraction(self) -> float:
        """Where the coming step will end, if it takes as long as those before it: the last step should fit in."""
        taken = self.steps - self.earlier.steps
        return self.fraction * (taken + 1) / taken if taken else self.fraction

    def tick(self, tokens: int) -> None:
        """Count one more step, of so many tokens, and look."""
        self.steps += 1
        self.tokens += tokens
        self.look()

    @property
    def remaining_s(self) -> float:
        """Seconds still to go, estimated from the pace so far."""
        used = self.fraction
        return (self.seconds - self.earlier.seconds) * (1 - used) / used if used > 0 else float("nan")

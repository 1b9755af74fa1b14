"""Validation: the loss on the held-out batches of a task, and the times at which it is measured."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import torch

from lmlab.interface import Learner
from lmlab.learn.clock import Clock
from lmlab.learn.settings import MOST_VALIDATING, TrainConfig
from lmlab.learn.sums import Sums
from lmlab.learn.task import Task
from lmlab.learn.world import World


@dataclass(frozen=True, kw_only=True)
class ValidationResult:
    """The result of a validation.

    Attributes:
        nats: mean loss in nats per item; None if there are no validation batches.
        parts: mean of each component of the loss in nats per item.
    """

    nats: float | None
    parts: Mapping[str, float]


class Validation:
    """The validation of a model during training. Each process evaluates its share of the batches."""

    def __init__(self, model: Learner, task: Task, config: TrainConfig, device: torch.device, world: World) -> None:
        self.model, self.config, self.device, self.world = model, config, device, world
        self.batches = list(task.validation())
        self.seconds = 0.0  # spent on validation so far in this process

    def is_due(self, clock: Clock, before: float) -> bool:
        """Whether to validate now: at every 1/validations of the budget.

        In a budget of seconds a validation is skipped if it would exceed the `MOST_VALIDATING` share of the time so far.

        Args:
            clock: the clock of the run.
            before: the share of the budget that was used before the last step.
        """
        if not _crossed(before, clock.fraction, self.config.validations):
            return False
        if self.config.budget.seconds is None or clock.fraction >= 1:
            return True
        return self.seconds + clock.reserve_s <= MOST_VALIDATING * clock.seconds_here

    def measure_in_time(self, clock: Clock) -> ValidationResult:
        """Validate, and reserve the time this took at the end of a budget of seconds, for the last validation."""
        started = clock.seconds
        found = self.measure()
        took_s = clock.look() - started
        if found.nats is not None and self.config.budget.seconds is not None:
            clock.reserve_s = took_s
            self.seconds += took_s
        return found

    @torch.no_grad()
    def measure(self) -> ValidationResult:
        """Return the mean losses on all validation batches. Sums over batches and processes are divided once."""
        sums, total, world = Sums(self.device), 0.0, self.world
        self.model.eval()
        for batch in self.batches[world.rank :: world.size]:
            loss = self.model.loss(batch.to(self.device))
            total += float(loss.total)
            sums.add(loss)
        names = world.broadcast(tuple(sums.parts))  # if any process has a batch, the writer has one
        parts = [float(sums.parts.get(name, 0.0)) for name in names]
        total, count, *parts = world.sum_numbers(total, sums.count, *parts)
        if not count:
            return ValidationResult(nats=None, parts={})
        return ValidationResult(
            nats=total / count, parts={n: part / count for n, part in zip(names, parts, strict=True)}
        )


def _crossed(before: float, after: float, marks: int) -> bool:
    """Whether a multiple of 1/marks lies between two fractions."""
    return math.floor(after * marks + 1e-9) > math.floor(before * marks + 1e-9)

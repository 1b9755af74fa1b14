"""The learning-rate schedule over the share of the budget that is used."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

WARMUP = 0.02  # share of the budget over which the learning rate rises by default
STABLE = 0.8  # share of the budget at which the shape "stable" begins to fall

Decay = Literal["linear", "cosine", "stable", "constant"]


@dataclass(frozen=True, kw_only=True)
class Schedule:
    """A linear warm-up, then a decay to a share of the maximum at the end of the budget.

    Attributes:
        warmup: the share of the budget over which the learning rate rises.
        decay: linear; along half a cosine; stable: constant until `STABLE` of the budget, then linear; or constant.
        decay_to: the share of the maximum at the end.
    """

    warmup: float = WARMUP
    decay: Decay = "linear"
    decay_to: float = 0.0

    def factor(self, fraction: float) -> float:
        """Return the factor of the learning rate when this share of the budget is used."""
        if fraction < self.warmup:
            return max(fraction, 1e-3) / self.warmup
        begin = max(self.warmup, STABLE) if self.decay == "stable" else self.warmup
        left = min(1.0, max(0.0, (1 - fraction) / (1 - begin)))
        if self.decay == "constant":
            return 1.0
        shape = 0.5 - 0.5 * math.cos(math.pi * left) if self.decay == "cosine" else left
        return self.decay_to + (1 - self.decay_to) * shape


def learning_rate_factor(fraction: float, schedule: Schedule = Schedule()) -> float:  # noqa: B008 (frozen)
    """Return the factor of the learning rate: by default a linear warm-up to 1, then a linear decay to 0.

    Args:
        fraction: the share of the budget that is used.
        schedule: its shape.
    """
    return schedule.factor(fraction)

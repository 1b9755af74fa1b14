"""The learning-rate schedule over the share of the budget that is used."""

from __future__ import annotations

WARMUP = 0.02  # share of the budget over which the learning rate rises


def learning_rate_factor(fraction: float) -> float:
    """Return the factor of the learning rate: a linear warm-up to 1, then a linear decay to 0 at the end of the budget.

    Args:
        fraction: the share of the budget that is used.
    """
    if fraction < WARMUP:
        return max(fraction, 1e-3) / WARMUP
    return max(0.0, (1 - fraction) / (1 - WARMUP))

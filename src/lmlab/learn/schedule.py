"""The learning rate over a budget: how much of the full rate belongs where a run has come."""

from __future__ import annotations

WARMUP = 0.02  # share of the budget over which the learning rate rises


def learning_rate_factor(fraction: float) -> float:
    """Linear up over the warm-up, then linear down to zero at the end of the budget."""
    if fraction < WARMUP:
        return max(fraction, 1e-3) / WARMUP
    return max(0.0, (1 - fraction) / (1 - WARMUP))

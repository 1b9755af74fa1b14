"""What several seeds of one model tell: means, and their intervals by Student's t."""

from __future__ import annotations

import math
from collections.abc import Sequence

LEVEL = 0.95


def mean_and_margin(values: Sequence[float], level: float = LEVEL) -> tuple[float, float]:
    """Mean and half-width of its interval by Student's t; NaN where there are too few values to tell."""
    if not values:
        return math.nan, math.nan
    if not all(map(math.isfinite, values)):
        return math.inf if math.inf in values and -math.inf not in values else math.nan, math.nan
    mean = math.fsum(values) / len(values)
    if len(values) < 2:
        return mean, math.nan
    spread = math.sqrt(math.fsum((v - mean) ** 2 for v in values) / (len(values) - 1) / len(values))
    return mean, student_t(len(values) - 1, level) * spread


def student_t(freedom: int, level: float = LEVEL) -> float:
    """The quantile t with P(|T| < t) = level, by bisection on the distribution function."""
    low, high = 0.0, 1e6
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (middle, high) if _t_within(middle, freedom) < level else (low, middle)
    return (low + high) / 2


def _t_within(t: float, freedom: int) -> float:
    """P(|T| < t) for a whole number of degrees of freedom (the finite trigonometric sums)."""
    theta = math.atan2(t, math.sqrt(freedom))
    term, total = math.cos(theta) if freedom % 2 else 1.0, 0.0
    for k in range(1 if freedom % 2 else 0, freedom - 1, 2):
        total += term
        term *= math.cos(theta) ** 2 * (k + 1) / (k + 2)
    if freedom % 2:
        return 2 / math.pi * (theta + math.sin(theta) * total)
    return math.sin(theta) * total

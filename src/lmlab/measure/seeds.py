"""What several seeds of one model tell: means, and their intervals by Student's t."""

from __future__ import annotations

import math
from collections.abc import Sequence

from lmlab.measure.student import t_quantile

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
    return mean, t_quantile(len(values) - 1, level) * spread

"""Student's t for a whole number of degrees of freedom: its distribution and its quantiles, for arrays."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

MOST_FREEDOM = 256  # beyond this the distribution is taken as it is there: quantiles change by half a percent at most
BISECTIONS = 60  # halve the bracket so often: beyond that float64 has no digits left


def t_within(t: np.ndarray, freedom: int) -> np.ndarray:
    """P(|T| < t) elementwise, by the finite trigonometric sums (Abramowitz & Stegun 26.7.3 and 26.7.4)."""
    freedom = min(freedom, MOST_FREEDOM)
    theta = np.arctan2(np.asarray(t, dtype=np.float64), math.sqrt(freedom))
    odd = freedom % 2
    square = np.cos(theta) ** 2
    term, total = np.cos(theta) if odd else np.ones_like(theta), np.zeros_like(theta)
    for k in range(odd, freedom - 1, 2):
        total += term
        term = term * square * (k + 1) / (k + 2)
    return 2 / math.pi * (theta + np.sin(theta) * total) if odd else np.sin(theta) * total


def mixture_quantile(scales: np.ndarray, weights: np.ndarray, freedom: int, level: float) -> np.ndarray:
    """For each row n of N×S: the h with P(|x| < h) = level, where x is a t of scale `scales[n, s]`, s by chance (`weights`)."""
    high = scales.max(axis=1) * t_quantile(freedom, level)
    low = np.zeros_like(high)
    safe = np.maximum(scales, np.finfo(np.float64).tiny)
    for _ in range(BISECTIONS):
        middle = (low + high) / 2
        below = (weights * t_within(middle[:, None] / safe, freedom)).sum(axis=1) < level
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    return high


def t_quantile(freedom: int, level: float = 0.95) -> float:
    """The quantile t with P(|T| < t) = level, by bisection on the distribution function."""
    return _quantile(min(freedom, MOST_FREEDOM), level)


@lru_cache(maxsize=1024)
def _quantile(freedom: int, level: float) -> float:
    low, high = 0.0, 1.0
    while t_within(np.array(high), freedom) < level and high < 1e9:
        high *= 2
    for _ in range(BISECTIONS):
        middle = (low + high) / 2
        low, high = (middle, high) if t_within(np.array(middle), freedom) < level else (low, middle)
    return (low + high) / 2

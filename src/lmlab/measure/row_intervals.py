"""Intervals of figures that are functions of sums over independent rows: examples, sentences, pairs, words.

Every row brings some numbers, and the figure is computed from their sums: a mean, a quotient, F1, BLEU. The jackknife leaves
out each row in turn; how far the figure moves gives its standard error and its skewness. Student's t gives the width. Hall's
transformation moves the interval to where a skewed mean may lie: the few rows that cost very much are mostly missing from a
small sample, so the interval must reach further on their side. Few rows do not show how skewed they are, so the skewness that
counts is limited.

References: Efron & Stein (1981), "The jackknife estimate of variance"; Hall (1992), "On the removal of skewness by
transformation". `bench/bench_task_coverage.py` measures how often these intervals cover.

Shapes: B rows, S sums, R sets of sums.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from lmlab.measure.student import t_quantile
from lmlab.results import Figure

LEVEL = 0.95
MOST_SKEW = 0.86  # of what the transformation can take back at the edge of the interval; there the width has no limit
NUMBERS_AT_ONCE = 1 << 22  # of all sums without each row

OfSums = Callable[[np.ndarray], np.ndarray]  # R×S sums → R values


def over_rows(
    figure: OfSums, rows_BS: np.ndarray, *, least: float = -math.inf, most: float = math.inf, level: float = LEVEL
) -> Figure:
    """The figure of all rows, with its interval for other rows of this kind.

    least, most: what the figure can be. One row tells nothing of others: then these are the bounds.
    """
    rows = len(rows_BS)
    total_S = rows_BS.sum(axis=0, dtype=np.float64)
    value = float(figure(total_S[None])[0])
    if rows < 2:
        return Figure(value=value, low=least, high=most)
    some = max(1, NUMBERS_AT_ONCE // rows_BS.shape[1])
    moves_B = np.concatenate([figure(total_S - rows_BS[at : at + some]) for at in range(0, rows, some)])
    moves_B = moves_B.mean() - moves_B  # how far each row moves the figure
    error = math.sqrt((rows - 1) / rows * float((moves_B**2).sum()))
    below, above = _reach(moves_B, t_quantile(rows - 1, level))
    low, high = value - error * below, value + error * above
    return Figure(value=value, low=max(least, min(low, value)), high=min(most, max(high, value)))


def of_mean(values_B: np.ndarray, *, least: float = -math.inf) -> Figure:
    """The mean of one value of each row."""
    return of_quotient(values_B, np.ones(len(values_B)), least=least)


def of_quotient(
    above_B: np.ndarray, below_B: np.ndarray, *, least: float = -math.inf, most: float = math.inf
) -> Figure:
    """The quotient of two sums over the rows."""
    return over_rows(quotient, np.stack([above_B, below_B], axis=1).astype(np.float64), least=least, most=most)


def quotient(sums_RS: np.ndarray) -> np.ndarray:
    """The first sum over the second; 0 where that is 0."""
    found: np.ndarray = np.divide(sums_RS[:, 0], sums_RS[:, 1], out=np.zeros(len(sums_RS)), where=sums_RS[:, 1] != 0)
    return found


def _reach(moves_B: np.ndarray, t: float) -> tuple[float, float]:
    """How many standard errors the interval reaches below the figure and above it.

    The inverse of the transformation is 3 / g · (∛(1 + g · (x - g / 6)) - 1), with g = skewness / √B.
    """
    rows, square = len(moves_B), float((moves_B**2).mean())
    if rows < 3 or square == 0.0:
        return t, t
    skew = float((moves_B**3).mean()) / square**1.5 * math.sqrt(rows * (rows - 1)) / (rows - 2)
    g = max(-MOST_SKEW / t, min(MOST_SKEW / t, skew / math.sqrt(rows)))
    if abs(g) < 1e-6:
        return t, t
    low, high = (3.0 / g * (float(np.cbrt(1.0 + g * (x - g / 6.0))) - 1.0) for x in (-t, t))
    return high, -low

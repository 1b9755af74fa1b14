"""What several seeds of one model tell: means, their intervals by Student's t, and which differences are real."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lmlab.comparison.sweep import Cell

LEVEL = 0.95


def differences(cells: Sequence[Cell]) -> list[dict[str, Any]]:
    """For cells that differ in one setting: the mean difference of perplexity, its interval over seeds, and if it is real.

    Seeds are paired: the same seed draws the same batches in both cells. A grid offers many pairs, and of twenty
    differences that are nothing but noise one would pass at 95%. So the intervals are as wide as it takes for all of them
    to hold together (Bonferroni). They are about training on this text; the test text is taken as it is.
    """
    pairs = [(a, b, changed[0]) for a, b in itertools.combinations(cells, 2) if len(changed := _changed(a, b)) == 1]
    level = 1.0 - (1.0 - LEVEL) / max(1, len(pairs))
    found = []
    for a, b, setting in pairs:
        before, after = (dict(zip(cell.seeds, cell.perplexity, strict=True)) for cell in (a, b))
        both = [seed for seed in before if seed in after]
        if not both:
            continue
        mean, margin = mean_and_margin([after[seed] - before[seed] for seed in both], level)
        real = math.isfinite(mean) and math.isfinite(margin) and abs(mean) > margin
        found.append(
            {
                "setting": setting,
                "from": a.settings,
                "to": b.settings,
                "difference": mean,
                "margin": margin,
                "level": level,
                "seeds": both,
                "real": real,
            }
        )
    return found


def _changed(a: Cell, b: Cell) -> list[str]:
    return [key for key in a.settings if a.settings[key] != b.settings[key]]


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

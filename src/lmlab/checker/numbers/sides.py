"""Both sides of a claim at one point: in doubles, and before the referee in long decimals."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import mpmath
import numpy as np
import torch

from lmlab.checker.limits import Deadline, NoExactValue, OutOfTime
from lmlab.checker.numbers.autograd import TorchOps
from lmlab.checker.numbers.decimals import LongOps
from lmlab.checker.numbers.evaluate import COMPARISONS
from lmlab.checker.numbers.points import Point, Raw, make_frame
from lmlab.checker.shapes.setting import Setting
from lmlab.checker.tree import Condition, Node

TOLERANCE = 1e-9  # relative, where nothing is estimated
SAFETY = 20  # an estimate of an error is trusted up to this factor
VAGUE = 0.03  # an expectation known no better than this is not counted as evidence
KINK = 1e-4  # a point this near to a kink of relu, max, a comparison ... is drawn again
DIGITS = 60
ROUNDING = mpmath.mpf(10) ** -30  # relative difference below which long decimals count as equal
TINY = mpmath.mpf(10) ** -DIGITS
SHRINKS = mpmath.mpf(10) ** -6  # from 60 digits to 120: by at least this much, if it was made by rounding
STAYS = 0.01


@dataclass
class Sides:
    """Both sides at a point, broadcast together, as arrays of doubles."""

    left: Raw
    right: Raw
    margin: float  # distance to the nearest kink
    touched: bool  # something lies exactly on one
    error: float  # relative error of a quadrature inside; 0 when there is none
    blur: float = 0.0  # the same, relative to the size of what is averaged
    sampled: bool = False  # an expectation was estimated by random samples

    @property
    def tolerance(self) -> float:
        """The relative difference that numbers as exact as these may show though the sides are equal."""
        return max(TOLERANCE, SAFETY * self.error)

    @property
    def vague(self) -> bool:
        """Whether an expectation is known too coarsely for an agreement to say anything."""
        return SAFETY * self.blur > VAGUE

    @property
    def defined(self) -> bool:
        """Whether every entry of both sides is a finite number."""
        return bool(np.isfinite(self.left).all() and np.isfinite(self.right).all())

    @property
    def undefined_both(self) -> bool:
        """Whether neither side has a value at some entry."""
        return bool((~np.isfinite(self.left) & ~np.isfinite(self.right)).any())

    @property
    def scale(self) -> float:
        """The largest entry in size."""
        return float(max(np.abs(self.left).max(), np.abs(self.right).max()))

    @property
    def gap(self) -> Raw:
        """left - right."""
        return np.asarray(self.left - self.right)

    @property
    def difference(self) -> float:
        """The largest difference relative to the largest entry."""
        gap = float(np.abs(self.gap).max())
        return gap / self.scale if gap else 0.0

    def excess(self, relation: str) -> float:
        """By how much an inequality is broken, relative to the larger side; negative when it holds."""
        gap = self.left - self.right if relation in ("<=", "<") else self.right - self.left
        size = np.maximum(np.abs(self.left), np.abs(self.right))
        return float((gap / np.where(size == 0, 1.0, size)).max())

    def worst(self, relation: str = "==") -> tuple[int, ...]:
        """The entry that differs most (or breaks the inequality most)."""
        gap = self.left - self.right
        gap = np.abs(gap) if relation == "==" else gap if relation in ("<=", "<") else -gap
        gap = np.where(np.isfinite(gap), gap, np.inf)
        return tuple(int(i) for i in np.unravel_index(int(np.argmax(gap)), gap.shape))


def sides_at(setting: Setting, left: Node, right: Node, point: Point, deadline: Deadline) -> Sides:
    """Evaluate both sides in doubles, derivatives by autograd."""
    ops = TorchOps()
    with torch.no_grad():
        frame = make_frame(setting, point, ops, deadline)
        a, b = frame.evaluate(left), frame.evaluate(right)
    x, y = np.broadcast_arrays(a.detach().numpy(), b.detach().numpy())
    known = ops.accuracy
    return Sides(x, y, ops.margin, ops.touched, known.error, known.blur, known.sampled)


def satisfies(setting: Setting, conditions: tuple[Condition, ...], point: Point, deadline: Deadline) -> bool:
    """Whether a point obeys the conditions of a where clause."""
    for condition in conditions:
        sides = sides_at(setting, condition.left, condition.right, point, deadline)
        if not np.all(COMPARISONS[condition.relation](sides.left, sides.right)):
            return False
    return True


@dataclass
class Ruling:
    """The referee's word on a point: equal or not, defined or not, and the signed excess left - right."""

    known: bool  # False: the referee could not compute this in time
    equal: bool = False
    left_defined: bool = True
    right_defined: bool = True
    largest: Any = None  # max of left - right, relative to scale
    smallest: Any = None


def referee(setting: Setting, left: Node, right: Node, point: Point, deadline: Deadline) -> Ruling:
    """Compare in 60 digits; a difference seen there must stay the same in 120, since one made by rounding shrinks.

    What is below 1e-60 even then is taken for zero: saturated functions come out so, and no digits would settle them.
    """
    try:
        gap, scale, ruling = _long_gap(setting, left, right, point, DIGITS, deadline)
        if gap is None:
            return ruling
        coarse = _largest(gap)
        if coarse <= ROUNDING * scale:
            ruling.equal = True
        else:
            gap, scale, ruling = _long_gap(setting, left, right, point, 2 * DIGITS, deadline)
            if gap is None:
                return ruling
            size = _largest(gap)
            ruling.equal = size <= max(ROUNDING * scale, coarse * SHRINKS, TINY)
            ruling.known = ruling.equal or abs(size - coarse) <= STAYS * coarse
        ruling.largest, ruling.smallest = gap.max() / (scale or 1), gap.min() / (scale or 1)
        return ruling
    except (NoExactValue, OutOfTime):
        return Ruling(known=False)


def _largest(gap: Any) -> Any:
    return max(abs(gap.max()), abs(gap.min()))


def _long_gap(
    setting: Setting, left: Node, right: Node, point: Point, digits: int, deadline: Deadline
) -> tuple[Any, Any, Ruling]:
    with mpmath.workdps(digits):
        frame = make_frame(setting, point, LongOps(digits), deadline)
        x, y = np.broadcast_arrays(frame.evaluate(left), frame.evaluate(right))
        return _gap(x, y)


def _gap(x: Raw, y: Raw) -> tuple[Any, Any, Ruling]:
    ruling = Ruling(known=True, left_defined=_finite(x), right_defined=_finite(y))
    if not (ruling.left_defined and ruling.right_defined):
        return None, None, ruling
    scale = max(max(abs(v) for v in x.reshape(-1)), max(abs(v) for v in y.reshape(-1)))
    return np.asarray(x - y, dtype=object), scale, ruling


def _finite(values: Raw) -> bool:
    return all(mpmath.isfinite(v) for v in values.reshape(-1))

"""Both sides of a claim at one point: in doubles, and before the referee in long decimals."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import mpmath
import numpy as np

from lmlab_derive.limits import Deadline, NoExactValue, OutOfTime
from lmlab_derive.numbers.accuracy import Accuracy
from lmlab_derive.numbers.arithmetics import arithmetic_for
from lmlab_derive.numbers.decimals import LongOps
from lmlab_derive.numbers.evaluate import COMPARISONS
from lmlab_derive.numbers.long_sums import LongSums
from lmlab_derive.numbers.points import Point, Raw, make_frame
from lmlab_derive.shapes.setting import Setting
from lmlab_derive.tree import Condition, Node

TOLERANCE = 1e-9  # relative, where nothing is estimated
SAFETY = 4  # the bound of an error is trusted up to this factor
TIGHT = 1e-6  # means known no better than this say nothing of an equation that they agree with
KINK = 1e-4  # a point this near to a kink of relu, max, a comparison ... is drawn again
DIGITS = 60
ROUNDING = mpmath.mpf(10) ** -30  # relative difference below which long decimals count as equal
TINY = mpmath.mpf(10) ** -DIGITS
FEWER_DIGITS = 45  # in which means are looked at beside 60
MANY_DIGITS = 4000  # in which even sigmoid(1000) is not 1; the most that are computed with
SHRINKS = mpmath.mpf(10) ** -6  # from 60 digits to 120: by at least this much, if it was made by rounding
STAYS = 0.01
BEYOND = 10  # times the error of its sums: a difference that counts
NEARER = ("1e-8", "1e-13", "1e-20", "1e-34")  # steps of differences, each below what the one before leaves of an error


@dataclass
class Sides:
    """Both sides at a point, broadcast together, as arrays of doubles."""

    left: Raw
    right: Raw
    margin: float  # distance to the nearest kink
    touched: bool  # something lies exactly on one
    edged: bool = False  # on an edge of where it is defined: sqrt at 0
    slack: float = 0.0  # how far the errors of means inside move the difference of the sides
    size: float = 0.0  # of what is averaged
    sampled: bool = False  # an expectation was estimated by random samples
    diverges: bool = False  # an expectation has no value

    @property
    def tolerance(self) -> float:
        """The relative difference that numbers as exact as these may show though the sides are equal."""
        if not self.slack:
            return TOLERANCE
        return max(TOLERANCE, SAFETY * self.slack / (self.scale or 1.0))

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
        """The largest entry in size; means that cancel are measured by what is averaged."""
        return float(max(np.abs(self.left).max(), np.abs(self.right).max(), 1e-3 * self.size))

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
        size = np.maximum(np.maximum(np.abs(self.left), np.abs(self.right)), 1e-3 * self.size)
        return float((gap / np.where(size == 0, 1.0, size)).max())

    def worst(self, relation: str = "==") -> tuple[int, ...]:
        """The entry that differs most (or breaks the inequality most)."""
        gap = self.left - self.right
        gap = np.abs(gap) if relation == "==" else gap if relation in ("<=", "<") else -gap
        gap = np.where(np.isfinite(gap), gap, np.inf)
        return tuple(int(i) for i in np.unravel_index(int(np.argmax(gap)), gap.shape))


def sides_at(setting: Setting, left: Node, right: Node, point: Point, deadline: Deadline, effort: int = 1) -> Sides:
    """Evaluate both sides in doubles; in long decimals where that cannot be."""
    try:
        return _sides(setting, left, right, point, deadline, lambda: arithmetic_for(setting, left, right), effort)
    except NoExactValue:
        with mpmath.workdps(DIGITS):
            return _sides(setting, left, right, point, deadline, lambda: LongOps(DIGITS), effort)


def _sides(
    setting: Setting, left: Node, right: Node, point: Point, deadline: Deadline, make: Callable[[], Any], effort: int
) -> Sides:
    def both(accuracy: Accuracy) -> tuple[Any, Raw, Raw]:
        ops = make()
        ops.accuracy = accuracy
        frame = make_frame(setting, point, ops, deadline)
        pair = [np.asarray(ops.to_numpy(frame.evaluate(side)), dtype=float) for side in (left, right)]
        x, y = np.broadcast_arrays(*pair)
        return ops, x, y

    with np.errstate(all="ignore"):
        known = Accuracy(effort=effort)
        ops, x, y = both(known)
        slack = 0.0
        if any(np.any(error > 0) for _, error, _ in known.means):
            for moved in (1, -1):
                _, a, b = both(known.again(moved))
                slack = max(slack, float(np.nan_to_num(np.abs((a - b) - (x - y)), nan=np.inf).max()))
    return Sides(x, y, ops.margin, ops.touched, ops.edged, slack, known.size, known.sampled, known.diverges)


def largest_met(setting: Setting, left: Node, right: Node, point: Point, deadline: Deadline) -> float:
    """The largest number on the way to both sides in doubles: rounding leaves a small share of it, however small they are."""
    ops = arithmetic_for(setting, left, right)
    ops.largest = 0.0
    with np.errstate(all="ignore"):
        frame = make_frame(setting, point, ops, deadline)
        sides = [np.abs(np.asarray(ops.to_numpy(frame.evaluate(side)), dtype=float)) for side in (left, right)]
    return float(max(ops.largest, *(side.max(initial=0.0) for side in sides)))


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
    beyond: bool = (
        False  # no number of digits that is quick to compute keeps apart what is large and what is small here
    )
    diverges: bool = False  # an expectation has no value
    largest: Any = None  # max of left - right, relative to scale
    smallest: Any = None

    @property
    def defined(self) -> bool:
        """Whether both sides have a value."""
        return self.left_defined and self.right_defined


def referee(
    setting: Setting, left: Node, right: Node, point: Point, deadline: Deadline, digits: int = DIGITS
) -> Ruling:
    """Compare in 60 digits; a difference seen there must stay the same in more, since one made by rounding shrinks.

    So many more that the largest number met does not hide the smallest: 1 + exp(-1000) is 1 in 400 digits. Where that
    would take too many, 120 have to do, and the ruling says so. Means are looked at in 45 digits and in 60, and a difference
    has to be larger than their errors. Means and slopes have errors of their own, which do not shrink as fast.
    """
    try:
        gap, scale, ruling, ops = _long_gap(setting, left, right, point, digits, deadline)
        coarse = ops.accuracy.means or setting.differentiates(left) or setting.differentiates(right)
        if gap is None:
            return ruling
        first = _largest(gap)
        least = ROUNDING if coarse else mpmath.mpf(10) ** (10 - digits)
        if first <= least * scale:
            ruling.equal = True
        else:
            means = bool(ops.accuracy.means)
            more = max(2 * digits, ops.digits_needed)
            beyond = more > MANY_DIGITS and not means
            more = FEWER_DIGITS if means else 2 * digits if beyond else more
            again, larger, other, _ = _long_gap(setting, left, right, point, more, deadline)
            if again is None:
                return other
            if means:  # whose integrals take too long in more digits: fewer come first
                first, size = _largest(again), first
            else:
                gap, scale, ruling, size = again, larger, other, _largest(again)
            ruling.beyond = beyond
            ruling.equal = size <= max(first * SHRINKS, least * scale, TINY if beyond else 0)
            ruling.known = ruling.equal or not (coarse or beyond) or abs(size - first) <= STAYS * first
            if means and not ruling.equal:
                ruling.known &= bool(size > BEYOND * sum(np.max(error) for _, error, _ in ops.accuracy.means))
        ruling.largest, ruling.smallest = gap.max() / (scale or 1), gap.min() / (scale or 1)
        return ruling
    except (NoExactValue, OutOfTime):
        return Ruling(known=False)


def beyond_errors(
    setting: Setting, left: Node, sign: str, right: Node, point: Point, deadline: Deadline
) -> bool | None:
    """Whether a relation fails by much more than the errors of its long sums; None if it has no such sums."""
    sums = LongSums()

    def gap(moved: int | None) -> Any:
        sums.again(moved)
        ops = LongOps(DIGITS)
        ops.long_sums = sums
        frame = make_frame(setting, point, ops, deadline)
        found = _gap(*np.broadcast_arrays(frame.evaluate(left), frame.evaluate(right)))[0]
        if found is None:
            raise NoExactValue
        return found

    try:
        with mpmath.workdps(DIGITS):
            here = gap(None)
            slack = sum(_largest(np.asarray(gap(moved) - here, dtype=object)) for moved in range(len(sums.known)))
    except (NoExactValue, OutOfTime):
        return False if sums.met else None
    excess = _largest(here) if sign == "==" else here.max() if sign in ("<=", "<") else -here.min()
    return bool(excess > BEYOND * slack) if sums.met else None


def stays(setting: Setting, side: Node, point: Point, deadline: Deadline) -> bool:
    """Whether a side has one and the same value in 60 digits and in 120."""
    found = []
    try:
        for digits in (DIGITS, 2 * DIGITS):
            with mpmath.workdps(digits):
                found.append(make_frame(setting, point, LongOps(digits), deadline).evaluate(side))
    except (NoExactValue, OutOfTime):
        return False
    gap, scale, ruling = _gap(*found)
    return ruling.defined and bool(_largest(gap) <= ROUNDING * scale)


def touches(
    setting: Setting, left: Node, right: Node, point: Point, sign: int, digits: int, trusted: int, deadline: Deadline
) -> bool:
    """Whether sign * (left - right) reaches 0 somewhere, as far as the `trusted` of these digits tell."""
    try:
        gap, scale, _, _ = _long_gap(setting, left, right, point, digits, deadline)
    except (NoExactValue, OutOfTime):
        return False
    return gap is not None and bool(max(sign * gap.max(), sign * gap.min()) >= -scale * mpmath.mpf(10) ** -trusted)


def meets(
    setting: Setting, left: Node, right: Node, point: Point, name: str, sign: int, deadline: Deadline
) -> float | None:
    """Where sign * (left - right) is largest along a scalar, near a point, if it is 0 there; no double need be that place.

    Newton's method for its slope, by differences in 120 digits.
    """
    try:
        with mpmath.workdps(2 * DIGITS):
            frame = make_frame(setting, point, LongOps(2 * DIGITS), deadline)

            def gap(at: Any) -> Any:
                inner = frame.child({name: np.full((), at, dtype=object)})
                found, scale, _ = _gap(inner.evaluate(left), inner.evaluate(right))
                if found is None or found.size > 1:
                    raise NoExactValue
                return found.item(), scale

            x = mpmath.mpf(float(point.raw[name]))
            first = abs(gap(x)[0])  # the sides themselves may be 0 where they meet
            for step in map(mpmath.mpf, NEARER):
                low, here, high = (gap(at)[0] for at in (x - step, x, x + step))
                bend = low - 2 * here + high
                if sign * bend >= 0:
                    return None
                x -= step / 2 * (high - low) / bend
            height, scale = gap(x)
            return float(x) if abs(height) <= TINY * max(scale, first) else None
    except (NoExactValue, OutOfTime):
        return None


def _largest(gap: Any) -> Any:
    return max(abs(gap.max()), abs(gap.min()))


def _long_gap(
    setting: Setting, left: Node, right: Node, point: Point, digits: int, deadline: Deadline
) -> tuple[Any, Any, Ruling, LongOps]:
    with mpmath.workdps(digits):
        ops = LongOps(digits)
        frame = make_frame(setting, point, ops, deadline)
        x, y = np.broadcast_arrays(frame.evaluate(left), frame.evaluate(right))
        gap, scale, ruling = _gap(x, y)
        ruling.diverges = ops.accuracy.diverges
        coarse = any(not np.isfinite(float(error)) or error > 1e-30 * size for _, error, size in ops.accuracy.means)
        if coarse and not ruling.diverges:
            raise NoExactValue  # an integral that did not settle
        return gap, scale, ruling, ops


def _gap(x: Raw, y: Raw) -> tuple[Any, Any, Ruling]:
    ruling = Ruling(known=True, left_defined=_finite(x), right_defined=_finite(y))
    if not ruling.defined:
        return None, None, ruling
    scale = max(max(abs(v) for v in x.reshape(-1)), max(abs(v) for v in y.reshape(-1)))
    return np.asarray(x - y, dtype=object), scale, ruling


def _finite(values: Raw) -> bool:
    return all(mpmath.isfinite(v) for v in values.reshape(-1))

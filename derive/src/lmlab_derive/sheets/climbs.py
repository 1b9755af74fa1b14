"""Ascent from a point towards where an inequality breaks: along the gradient of its excess, by the quasi-Newton method."""

from __future__ import annotations

import numpy as np

from lmlab_derive.numbers.derivatives import slopes_of_excess
from lmlab_derive.numbers.points import Point, Raw
from lmlab_derive.numbers.sides import Sides
from lmlab_derive.sheets.relation import Relation

ATTAINED = 1e-15  # excess at which the sides of a strict bound are looked at in many digits
CLOSE = 1e-12  # excess that rounding rarely leaves
NEAR = 1e-6  # excess at the end of an ascent below which a strict bound may be attained close by
MODERATE = 16  # sizes from which saturated functions are 1 in any number of digits, and ascent takes long
STEPS = 40
FIRST, LONGEST = 0.5, 4.0  # lengths of steps, in logarithms for what is positive
SHORTER = 0.4
SHORTEST = 1e-6
SETTLED = 1e-10  # a gain of the excess that is no gain;
FASTER = 10.0  # nor is one that, so many times larger, would not lead to 0 in as many steps as there are;
PATIENCE = 3  # after so many in a row the top is near, and too low;
FLAT = -0.9  # unless one side is so small beside the other that nearly any way up looks like none
NARROW = 1e-9  # what is positive stays above this, and fractions as far away from 0 and 1
WIDE = 1e9
_FIXED_KINDS = {"integer", "binary", "onehot", "definite", "permutation", "orthogonal"}


def broken(relation: Relation, point: Point, sides: Sides) -> bool:
    """Whether the inequality fails at a point, confirmed; a strict one also where its sides are equal."""
    strict = relation.sign in ("<", ">")
    excess = sides.excess(relation.sign)
    if excess > sides.tolerance:
        return relation.confirmed(point, sides)
    if excess > CLOSE and not (sides.slack or relation.differentiates):  # too little for doubles to count
        return relation.fails_by_little(point)
    reach = max((float(np.abs(raw).max()) for raw in point.raw.values() if raw.size), default=0.0)
    small = max(point.sizes.values(), default=0) < MODERATE
    return strict and abs(excess) <= ATTAINED and reach < 8 and small and relation.attained(point)


def height(relation: Relation, sides: Sides) -> float:
    """How near a bound is to breaking: relative to its sides, unless one of them is 0 and that says nothing."""
    if sides.left.any() and sides.right.any():
        return sides.excess(relation.sign)
    return float((sides.gap if relation.sign in ("<=", "<") else -sides.gap).max())


def continuous(relation: Relation, name: str) -> bool:
    """Whether a given can be moved a little and still be of its kind."""
    return relation.setting.distribution(name) is None and not relation.setting.kinds(name) & _FIXED_KINDS


def climb(relation: Relation, start: Point) -> Point | None:
    """A point on the way up from this one where the inequality fails, confirmed, or None."""
    chart = _Chart(relation, start)
    if not chart.names or relation.averages:
        return None
    point, value = start, height(relation, relation.sides(start))
    slope = chart.slope(point)
    bend: Raw | None = None  # the inverse of the curvature as far as it is known
    gains = [1.0] * PATIENCE
    for _ in range(STEPS):
        least = max(SETTLED, -value / (FASTER * STEPS)) if value > FLAT else SETTLED
        if slope is None or max(gains[-PATIENCE:]) < least:
            break
        found = _step(relation, chart, point, value, slope if bend is None else bend @ slope, bend is None)
        if found is None and bend is None:
            break
        if found is None:
            bend = None  # a kink lies in between: what was known of the curvature is of the other side
            continue
        moved, sides = found
        if broken(relation, moved, sides):
            return moved
        risen = height(relation, sides)
        gains.append(risen - value)
        after = chart.slope(moved)
        bend = None if after is None else _curved(bend, chart.place(moved) - chart.place(point), slope - after)
        point, value, slope = moved, risen, after
    alone = len(chart.names) == 1 and relation.sign in ("<", ">") and not point.raw[chart.names[0]].shape
    return relation.attained_near(point, chart.names[0]) if alone and abs(value) < NEAR else None


def _step(
    relation: Relation, chart: _Chart, point: Point, value: float, towards: Raw, first: bool
) -> tuple[Point, Sides] | None:
    """The first of shorter and shorter steps that leads higher."""
    length = float(np.linalg.norm(towards))
    if not np.isfinite(length) or length == 0:
        return None
    share = (FIRST if first else min(length, LONGEST)) / length
    here = chart.place(point)
    while share * length >= SHORTEST:
        moved = chart.point(here + share * towards)
        relation.tally.points += 1
        if relation.legal(moved):
            sides = relation.sides(moved)
            if sides.defined and height(relation, sides) > value:
                return moved, sides
        share *= SHORTER
    return None


def _curved(bend: Raw | None, step: Raw, turn: Raw) -> Raw | None:
    """What is known of the inverse curvature after a step over which the slope turned (Broyden, Fletcher and others)."""
    agree = float(step @ turn)
    if not np.isfinite(agree) or agree <= 1e-12 * float(np.linalg.norm(step) * np.linalg.norm(turn)):
        return bend
    if bend is None:
        bend = np.eye(len(step)) * agree / float(turn @ turn)
    left = np.eye(len(step)) - np.outer(step, turn) / agree
    return np.asarray(left @ bend @ left.T + np.outer(step, step) / agree)


class _Chart:
    """The raw numbers of all givens that vary continuously as one vector without bounds, around a point.

    What is positive is there as its logarithm, so that the edges of a simplex are far out and a step towards them is
    long; what is between 0 and 1 as the logarithm of its odds.
    """

    def __init__(self, relation: Relation, start: Point) -> None:
        self.relation, self.start = relation, start
        self.names = [name for name in relation.sizes.givens if continuous(relation, name)]

    def place(self, point: Point) -> Raw:
        """The vector of a point."""
        return np.concatenate([np.ravel(self._unbounded(name, point.raw[name])) for name in self.names])

    def point(self, place: Raw) -> Point:
        """The point of a vector; its numbers obey the kinds of their givens."""
        raw, at = dict(self.start.raw), 0
        for name in self.names:
            count = raw[name].size
            raw[name] = self._bounded(name, place[at : at + count].reshape(raw[name].shape))
            at += count
        return Point(self.start.sizes, raw)

    def slope(self, point: Point) -> Raw | None:
        """The slope of the excess along the vector, or None where it has none or is flat."""
        relation = self.relation
        sides = (relation.left, relation.right) if relation.sign in ("<=", "<") else (relation.right, relation.left)
        slopes = slopes_of_excess(relation.setting, *sides, point, self.names, relation.deadline)
        found = [np.ravel(self._along(name, point.raw[name], slopes.get(name))) for name in self.names]
        slope = np.concatenate(found)
        return slope if np.isfinite(slope).all() and slope.any() else None

    def _kinds(self, name: str) -> tuple[bool, bool, bool]:
        kinds = self.relation.setting.kinds(name)
        return "fraction" in kinds, bool(kinds & {"positive", "simplex"}), "symmetric" in kinds

    def _unbounded(self, name: str, raw: Raw) -> Raw:
        fraction, positive, _ = self._kinds(name)
        if fraction:
            raw = np.clip(raw, NARROW, 1 - NARROW)
            return np.asarray(np.log(raw) - np.log1p(-raw))
        return np.asarray(np.log(np.clip(raw, NARROW, WIDE))) if positive else raw

    def _bounded(self, name: str, raw: Raw) -> Raw:
        fraction, positive, symmetric = self._kinds(name)
        if symmetric:
            raw = (raw + raw.T) / 2  # what rounding leaves
        if fraction:
            return np.clip(1 / (1 + np.exp(-raw)), NARROW, 1 - NARROW)
        if positive:
            return np.exp(np.clip(raw, np.log(NARROW), np.log(WIDE)))
        return np.where(raw == 0, NARROW, raw) if "nonzero" in self.relation.setting.kinds(name) else raw

    def _along(self, name: str, raw: Raw, slope: Raw | None) -> Raw:
        fraction, positive, symmetric = self._kinds(name)
        if slope is None:
            return np.zeros_like(raw)
        if symmetric:
            slope = (slope + slope.T) / 2
        return slope * raw * (1 - raw) if fraction else slope * raw if positive else slope

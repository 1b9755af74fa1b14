"""Looking hard for a point that breaks an inequality: wild values, and ascent along the gradient of the gap."""

from __future__ import annotations

import numpy as np

from lmlab.checker.formulas import minus
from lmlab.checker.numbers.autograd import slopes_of_largest
from lmlab.checker.numbers.points import Point, Raw
from lmlab.checker.numbers.sides import Sides
from lmlab.checker.numbers.size_draws import Sizes
from lmlab.checker.sheets.relation import Relation

WILD = 36
SPECIAL = ("zero", "equal")  # where bounds are often attained
GROWN = 4  # entries more along every axis: bounds that forget a size fail only where it is large
STARTS = 3
STEPS = 40
_FIXED_KINDS = {"integer", "binary", "onehot", "symmetric", "permutation", "orthogonal"}


def search_extremes(relation: Relation) -> Point | None:
    """A point where the inequality fails, confirmed, or None. Keeps the tally of points looked at."""
    best: list[tuple[float, Point]] = []
    for style, sizes in _trials(relation):
        drawn = relation.draw(sizes, style)
        if drawn is None or not drawn[1].defined:
            continue
        point, sides = drawn
        excess = sides.excess(relation.sign)
        relation.tally.points += not sides.vague
        if _broken(relation, point, sides):
            return point
        best.append((excess, point))
    best.sort(key=lambda pair: -pair[0])
    for _, start in best[:STARTS]:
        found = _climb(relation, start)
        if found is not None:
            return found
    return None


def _trials(relation: Relation) -> list[tuple[str, Sizes]]:
    """Styles of points and sizes to try them at."""
    small = [relation.sizes.distinct(relation.rng, top) for top in (3, 3, 5)]
    grown = {name: size + GROWN for name, size in small[0].items()}
    large = [grown] if relation.sizes.allowed(grown) else []
    special = [(style, sizes) for sizes in [small[0], small[2], *large] for style in SPECIAL]
    draws = small + relation.sizes.with_ones(relation.rng)[:1]
    if not relation.varies:
        return [("plain", sizes) for sizes in [*draws, *large]]
    styles = ("plain", "readable", "wild", "wild")
    return special + [(styles[i % 4], draws[i % len(draws)]) for i in range(WILD)]


def _broken(relation: Relation, point: Point, sides: Sides) -> bool:
    strict = relation.sign in ("<", ">")
    excess = sides.excess(relation.sign)
    if excess > sides.tolerance:
        return relation.confirmed(point, sides)
    reach = max((float(np.abs(raw).max()) for raw in point.raw.values() if raw.size), default=0.0)
    if strict and excess == 0.0 and reach < 8:
        ruling = relation.ruling(point, 0.5)
        return ruling.known and ruling.largest is not None and (ruling.largest == 0 or ruling.smallest == 0)
    return False


def _climb(relation: Relation, start: Point) -> Point | None:
    """Normalised gradient ascent on the largest entry of the gap, over every given that varies continuously."""
    free = [name for name in relation.sizes.givens if _continuous(relation, name)]
    point, step = start, 0.5
    value = relation.sides(point).excess(relation.sign)
    for _ in range(STEPS):
        moved = _ascend(relation, point, free, step)
        if moved is None:
            break
        sides = relation.sides(moved)
        relation.tally.points += 1
        if sides.defined and relation.legal(moved) and sides.excess(relation.sign) > value:
            point, value, step = moved, sides.excess(relation.sign), min(step * 1.5, 4.0)
            if _broken(relation, point, sides):
                return point
        else:
            step *= 0.4
            if step < 1e-6:
                break
    return None


def _continuous(relation: Relation, name: str) -> bool:
    return relation.setting.distribution(name) is None and not relation.setting.kinds(name) & _FIXED_KINDS


def _ascend(relation: Relation, point: Point, free: list[str], step: float) -> Point | None:
    if not free or relation.averages:
        return None
    low, high = (relation.right, relation.left) if relation.sign in ("<=", "<") else (relation.left, relation.right)
    slopes = slopes_of_largest(relation.setting, minus(high, low), point, free, relation.deadline)
    length = sum(float((slope * slope).sum()) for slope in slopes.values()) ** 0.5
    if not np.isfinite(length) or length == 0:
        return None
    moved = {name: _kept(relation, name, point.raw[name] + step * slope / length) for name, slope in slopes.items()}
    return Point(point.sizes, {**point.raw, **moved})


def _kept(relation: Relation, name: str, raw: Raw) -> Raw:
    """Numbers that still obey the kind of their given."""
    kinds = relation.setting.kinds(name)
    if "fraction" in kinds:
        return np.clip(raw, 1e-9, 1 - 1e-9)
    if kinds & {"positive", "simplex"}:
        return np.maximum(raw, 1e-9)
    return np.where(raw == 0, 1e-9, raw) if "nonzero" in kinds else raw

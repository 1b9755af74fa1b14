"""A small, readable counterexample: small sizes, small whole numbers, both sides shown."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from lmlab_derive.limits import Deadline, OutOfTime
from lmlab_derive.numbers.doubles import FloatOps
from lmlab_derive.numbers.points import Point, Raw, make_frame
from lmlab_derive.numbers.sides import Sides
from lmlab_derive.numbers.size_draws import Sizes
from lmlab_derive.sheets.relation import Relation
from lmlab_derive.sheets.report import Counterexample
from lmlab_derive.tree import Table, shown

TRIES = 24
CLEAR = 1e-3  # relative difference a reader can see
ROUNDING = 1e-12  # what is this small beside the rest is taken for the 0 it stands for


def readable(relation: Relation, refuting: Point) -> Counterexample:
    """A counterexample as small as can be found; the one that refuted the claim if no smaller one fails clearly."""
    try:
        found = _search(relation)
        if found is not None:
            return found
        sides = relation.sides(refuting)
    except OutOfTime:
        relation.deadline = Deadline(math.inf)  # it has been computed before, so it can be again
        sides = relation.sides(refuting)
    return _describe(relation, refuting, sides, digits=17)


def _search(relation: Relation) -> Counterexample | None:
    for sizes in _small_sizes(relation):
        for _ in range(TRIES // 4 if sizes else TRIES):
            drawn = relation.draw(sizes, "readable", strict=True)
            if drawn is None or not drawn[1].defined:
                continue
            point, sides = drawn
            seen = abs(sides.gap[sides.worst(relation.sign)]) > 1e-9  # both sides may be rounding alone
            if seen and relation.amount(sides) > max(CLEAR, sides.tolerance) and sides.scale < 1e4:
                return _describe(relation, point, sides, digits=6)
    return None


def _small_sizes(relation: Relation) -> list[Sizes]:
    names = relation.sizes.names
    if not names:
        return [{}]
    options = [dict.fromkeys(names, 1), dict.fromkeys(names, 2)]
    options += [relation.sizes.distinct(relation.rng, 2), relation.sizes.distinct(relation.rng, 3)]
    return [sizes for sizes in options if relation.sizes.allowed(sizes)]


def _describe(relation: Relation, point: Point, sides: Sides, digits: int) -> Counterexample:
    frame = make_frame(relation.setting, point, FloatOps(), relation.deadline)
    values = {}
    for name in relation.sizes.givens:
        if relation.setting.distribution(name) is None or not relation.averages:
            values[shown(name)] = plain(frame.value(name), digits)
    sizes = {}
    for name in relation.sizes.names:  # a size whose name was given to something else since
        own = shown(name) if name == shown(name) or shown(name) not in values else f"the size {shown(name)}"
        sizes[own] = point.sizes[name]
    where = sides.worst(relation.sign)
    left, right = (
        np.where(np.abs(side) < ROUNDING * sides.scale, 0.0, side) if digits < 17 else side
        for side in (sides.left, sides.right)
    )
    table = next((side for side in (relation.left, relation.right) if isinstance(side, Table)), None)
    places = zip(table.letters, where, strict=False) if table else ()  # a row of entries may have axes of its own
    letters = {letter.name: place + letter.first for (letter, _), place in places}
    left, right = plain(left, digits), plain(right, digits)
    return Counterexample(sizes=sizes, values=values, left=left, right=right, where=where, letters=letters)


def plain(array: Raw, digits: int) -> Any:
    """Nested lists of numbers with this many significant digits; whole numbers as int, what is undefined as None."""
    if array.ndim:
        return [plain(row, digits) for row in array]
    value = float(array)
    if not np.isfinite(value):
        return None
    value = float(f"{value:.{digits}g}")
    return int(value) if value == int(value) and abs(value) < 1e15 else value

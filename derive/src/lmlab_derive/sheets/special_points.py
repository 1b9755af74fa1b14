"""Points where random ones never are: zeros of denominators, whole numbers, halves, equal names, thresholds that jump."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from lmlab_derive.distributions import is_finite
from lmlab_derive.functions import Kink, kink_of
from lmlab_derive.limits import NoExactValue, Refusal
from lmlab_derive.numbers.points import Point, draw_point
from lmlab_derive.numbers.size_draws import Sizes
from lmlab_derive.sheets.relation import Relation
from lmlab_derive.small_formulas import minus
from lmlab_derive.tree import Binary, Call, Compare, Expectation, Node, Number, constant_value, walk

# values of a scalar at which equations of means are looked at: some means do not exist there
MEAN_AT = (2.0, -2.0, 9.0, -9.0)
COUNTED = (3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 20.0, 33.0, 100.0)  # whole numbers at which equations are looked at
HALVES = (0.5, 1.5)  # where rounding has to choose
PLAIN_KINDS = {"positive", "nonzero", "integer"}
MOST_NAMES = 4
MOST_WRITTEN = 4  # numbers of the formula beside 0, 1 and 2
MOST_DENOMINATORS = 4
OUTCOMES = 24  # draws of what a threshold is compared with
BESIDE = 2e-4  # a threshold is tried on its jump and this far to either side


def far_scalars(relation: Relation, sizes: Sizes) -> Iterator[Point]:
    """Points where one scalar is larger than it would be drawn, the rest as it comes."""
    setting = relation.setting
    for name in relation.scalars[:3]:
        for value in MEAN_AT if setting.kinds(name) <= {"positive", "nonzero"} else ():
            if value > 0 or "positive" not in setting.kinds(name):
                yield relation.at_random(sizes, {name: value})


def special_points(relation: Relation, sizes: Sizes) -> Iterator[Point]:
    """Points where a given is 0, 1, -1 or a number of the formula throughout, where two are equal, or something vanishes."""
    setting = relation.setting
    free = _free(relation)
    for name in free:
        shape = tuple(axis.value(sizes) for axis in setting.givens[name].shape)
        for value in _values(relation, name):
            point = relation.at_random(sizes, style="readable")
            yield point.having({name: np.full(shape, value)})
            if shape:
                yield _with_first(point, name, value)
        for other in free:
            if other < name and setting.givens[other].shape == setting.givens[name].shape:
                same = draw_point(setting, [name], sizes, relation.rng, "readable").raw[name]
                if not all(allows(relation, other, value) for value in np.ravel(same)):
                    same = np.abs(same) + 1.0  # whole, and allowed by any of these kinds
                yield relation.at_random(sizes, {name: same, other: same}, "readable")
    yield relation.at_random(sizes, style="zero")
    yield from _zeros(relation, sizes, free)


def _free(relation: Relation) -> list[str]:
    setting = relation.setting
    free = [name for name in relation.sizes.givens if setting.distribution(name) is None]
    return [name for name in free if setting.kinds(name) <= PLAIN_KINDS][:MOST_NAMES]


def _values(relation: Relation, name: str) -> list[float]:
    """What to try for all entries of a given."""
    kinds = relation.setting.kinds(name)
    own = sorted(written(relation, whole=False) - {0.0, 1.0, 2.0})[:MOST_WRITTEN]
    values = [v for w in (0.0, 1.0, 2.0, *own) for v in dict.fromkeys((w, -w))]
    if "integer" in kinds and not relation.setting.givens[name].shape:
        values += COUNTED
    if "integer" not in kinds and any(kink_of(node) is Kink.JUMP for node in relation.everything):
        values += [v for half in HALVES for v in (half, -half)]
    return [v for v in values if allows(relation, name, v)]


def entries_written(relation: Relation, sizes: Sizes) -> Iterator[Point]:
    """Points where all entries of one given, or its first one, are a number of the formula."""
    for name in _free(relation):
        shape = tuple(axis.value(sizes) for axis in relation.setting.givens[name].shape)
        for value in _values(relation, name) if shape else ():
            point = relation.at_random(sizes)
            yield point.having({name: np.full(shape, value)})
            yield _with_first(point, name, value)


def written(relation: Relation, *, whole: bool = True) -> set[float]:
    """The numbers of the formula, without their signs; whole: those without a fraction alone."""
    numbers = [node.value for node in relation.everything if isinstance(node, Number)]
    return {abs(float(value)) for value in numbers if value.denominator == 1 or not whole}


def allows(relation: Relation, name: str, value: float) -> bool:
    """Whether the kinds of a given allow a number."""
    kinds = relation.setting.kinds(name)
    if (value <= 0 and "positive" in kinds) or (value == 0 and "nonzero" in kinds):
        return False
    return "integer" not in kinds or value == int(value)


def _zeros(relation: Relation, sizes: Sizes, free: list[str]) -> Iterator[Point]:
    """Points where a denominator is 0, found by moving the first entry of one given, on which it depends linearly."""
    for below in _denominators(relation):
        for name in free:
            if name not in relation.setting.depends(below):
                continue
            point = relation.at_random(sizes, style="readable")
            root = _root(relation, below, point, name)
            if root is not None and root == round(root, 6) and allows(relation, name, root):
                yield _with_first(point, name, root)


def _denominators(relation: Relation) -> list[Node]:
    """What is divided by, each once."""
    found: list[Node] = []
    for node in relation.everything:
        below = node.right if isinstance(node, Binary) and node.op == "/" else None
        if isinstance(node, Binary) and node.op == "**" and (constant_value(node.right) or 0) < 0:
            below = node.left
        if below is not None and constant_value(below) is None and below not in found:
            found.append(below)
    return found[:MOST_DENOMINATORS]


def divides(relation: Relation) -> bool:
    """Whether something in a relation is divided by, or may be: a power may be negative if no number is written there."""
    powers = [node for node in relation.everything if isinstance(node, Binary) and node.op == "**"]
    return bool(_denominators(relation)) or any(constant_value(node.right) is None for node in powers)


def _with_first(point: Point, name: str, value: float) -> Point:
    raw = np.array(point.raw[name])
    raw.reshape(-1)[:1] = value
    return point.having({name: raw})


def _root(relation: Relation, node: Node, point: Point, name: str) -> float | None:
    """Where the first entry of an expression vanishes along the first entry of a given, if it is a line."""
    at = []
    for value in (1.0, 2.0, 3.0):
        try:
            with np.errstate(all="ignore"):
                at.append(float(relation.value(node, _with_first(point, name, value)).reshape(-1)[0]))
        except (KeyError, NoExactValue, Refusal):  # a letter outside of its sum
            return None
    slope = at[1] - at[0]
    if not np.isfinite(at).all() or slope == 0 or abs(at[2] - at[1] - slope) > 1e-9 * abs(slope):
        return None
    return 1.0 - at[0] / slope


def inverts_nothing(relation: Relation, point: Point) -> bool:
    """Whether a matrix under inv is singular here. Whoever writes an inverse speaks of matrices that have one."""
    for node in relation.everything:
        if not isinstance(node, Call) or node.function != "inv":
            continue
        try:
            with np.errstate(all="ignore"):
                matrix = relation.value(node.args[0], point)
        except (KeyError, NoExactValue, Refusal):  # a letter outside of its sum
            continue
        if np.isfinite(matrix).all() and (np.linalg.matrix_rank(matrix) < matrix.shape[-1]).any():
            return True
    return False


def jumps(relation: Relation, sizes: Sizes) -> Iterator[Point]:
    """Points where a scalar is one of the values at which a comparison of discrete random names inside a mean changes."""
    setting = relation.setting
    averaged = [inner for node in relation.everything if isinstance(node, Expectation) for inner in walk(node)]
    for test in [node for node in averaged if isinstance(node, Compare)][:MOST_DENOMINATORS]:
        gap = minus(test.left, test.right)
        random = setting.random_names(gap)
        discrete = [n for n in random if is_finite(setting.family(n)[1]) or setting.family(n)[0].counts]
        for name in _free(relation) if discrete and len(discrete) == len(random) else ():
            if setting.givens[name].shape or name not in setting.depends(gap):
                continue
            points = [relation.at_random(sizes) for _ in range(OUTCOMES)]
            for end in (0.02, 0.98):  # all of the smallest outcomes, and all of the largest
                points.append(points[0].having({n: np.full_like(points[0].raw[n], end) for n in discrete}))
            roots = {_root(relation, gap, point, name) for point in points}
            for root in sorted({round(root, 9) for root in roots if root is not None}):
                for value in (root, root - BESIDE, root + BESIDE):
                    if allows(relation, name, value):
                        yield points[0].having({name: value})

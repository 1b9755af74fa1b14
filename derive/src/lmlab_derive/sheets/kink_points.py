"""Points on kinks: where the arguments of minimum or maximum are equal, or what abs and relu are taken of is 0."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import numpy as np

from lmlab_derive.functions import Kink, kink_of
from lmlab_derive.limits import NoExactValue, Refusal
from lmlab_derive.numbers.points import Point
from lmlab_derive.numbers.size_draws import Sizes
from lmlab_derive.sheets.relation import Relation
from lmlab_derive.sheets.special_points import allows
from lmlab_derive.small_formulas import minus
from lmlab_derive.tree import Call, Compare, Node

MOST_KINKS = 4
MOST_NAMES = 3
STYLES = ("plain", "plain", "wild", "wild")  # of the other givens
WHOLE = (1.0, 2.0, 4.0, 10.0, 30.0, 100.0, 1000.0)  # values of the whole numbers among them
BESIDE = 1e-3  # relative: a jump is also looked at this far to either side
POSITIVE = 10.0 ** np.linspace(-4, 4, 9)  # between which signs change
SHARES = np.concatenate([10.0 ** np.linspace(-6, -1, 6), [0.5, 0.9, 0.99, 0.999999]])
HALVINGS = 60


def kinks(relation: Relation, sizes: Sizes) -> Iterator[Point]:
    """Points where a scalar is such that something bends or jumps there, for several values of all others.

    Bounds by minimum(1, n * p) are sharpest there, and ascent does not move along a kink.
    """
    if relation.averages or relation.differentiates:
        return
    for gap, jumps in _gaps(relation):
        for name in _scalars(relation, gap):
            for point in _draws(relation, sizes, name):
                for root in _roots(relation, gap, point, name):
                    for value in (root, *((root * (1 - BESIDE), root * (1 + BESIDE)) if jumps else ())):
                        yield from _placed(relation, point, name, value)


def _gaps(relation: Relation) -> list[tuple[Node, bool]]:
    """What is 0 on a kink, and whether something jumps there."""
    found: list[tuple[Node, bool]] = []
    for node in relation.everything:
        if isinstance(node, Compare):
            gap, jumps = minus(node.left, node.right), True
        elif isinstance(node, Call) and kink_of(node) is Kink.BEND and len(node.args) < 3:
            gap, jumps = minus(*node.args) if len(node.args) == 2 else node.args[0], False
        else:
            continue
        if not gap.free_letters and (gap, jumps) not in found:
            found.append((gap, jumps))
    return found[:MOST_KINKS]


def _scalars(relation: Relation, gap: Node) -> list[str]:
    uses = relation.setting.depends(gap)
    return [n for n in relation.scalars if n in uses and "binary" not in relation.setting.kinds(n)][:MOST_NAMES]


def _draws(relation: Relation, sizes: Sizes, name: str) -> Iterator[Point]:
    """Points for all givens but one."""
    others = [n for n in relation.whole if n != name]
    for style in STYLES if len(relation.sizes.givens) > 1 else STYLES[:1]:
        yield relation.at_random(sizes, style=style)
    for value in WHOLE if others else ():
        yield relation.at_random(sizes, dict.fromkeys(others, value))


def _roots(relation: Relation, gap: Node, point: Point, name: str) -> Iterator[float]:
    """Where the first entry of an expression changes its sign along a scalar."""

    def height(value: float) -> float:
        return float(relation.value(gap, point.having({name: value})).reshape(-1)[0])

    grid = SHARES if "fraction" in relation.setting.kinds(name) else POSITIVE
    if not relation.setting.kinds(name) & {"fraction", "positive"}:
        grid = np.concatenate([-grid[::-1], [0.0], grid])
    try:
        with np.errstate(all="ignore"):
            heights = [height(float(value)) for value in grid]
            for k in range(len(grid) - 1):
                if heights[k] * heights[k + 1] < 0:
                    yield _between(height, float(grid[k]), float(grid[k + 1]), heights[k], heights[k + 1])
    except (KeyError, NoExactValue, Refusal):
        return


def _between(height: Callable[[float], float], low: float, high: float, below: float, above: float) -> float:
    """The place between two others where the sign changes: where a line would have it, or else half-way."""
    for step in range(HALVINGS):
        straight = low - below * (high - low) / (above - below)
        middle = straight if step % 2 == 0 and low < straight < high else (low + high) / 2
        here = height(middle)
        if here == 0 or not math.isfinite(here) or high - low <= 1e-15 * abs(middle):
            return middle
        if abs(here) <= 1e-15 * (abs(below) + abs(above)):
            return middle
        if (here < 0) == (below < 0):
            low, below = middle, here
        else:
            high, above = middle, here
    return (low + high) / 2


def _placed(relation: Relation, point: Point, name: str, value: float) -> Iterator[Point]:
    """The point with the scalar there, if its kind allows that; whole numbers on both sides of it."""
    whole = "integer" in relation.setting.kinds(name)
    for place in (float(math.floor(value)), float(math.ceil(value))) if whole else (value,):
        if allows(relation, name, place) and not ("fraction" in relation.setting.kinds(name) and not 0 < place < 1):
            yield point.having({name: place})

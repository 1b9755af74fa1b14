"""A small, readable counterexample: small sizes, small whole numbers, both sides shown."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from lmlab.checker.limits import Deadline, OutOfTime
from lmlab.checker.numbers.autograd import TorchOps
from lmlab.checker.numbers.points import Point, Sizes, make_frame
from lmlab.checker.shapes.setting import distribution
from lmlab.checker.sheets.report import Counterexample

if TYPE_CHECKING:
    from lmlab.checker.numbers.sides import Sides
    from lmlab.checker.sheets.verdict import Finding, Judge

TRIES = 24
CLEAR = 1e-3  # relative difference a reader can see
ROUNDING = 1e-12  # what is this small beside the rest is taken for the 0 it stands for


def readable(judge: Judge, finding: Finding) -> Counterexample:
    """A counterexample as small as can be found; the one that refuted the claim if no smaller one fails clearly."""
    assert finding.point is not None
    try:
        found = _search(judge)
        if found is not None:
            return found
        sides = judge.sides(finding.point)
    except OutOfTime:
        judge.deadline = Deadline(1.0)
        sides = judge.sides(finding.point)
    return _describe(judge, finding.point, sides, digits=17)


def _search(judge: Judge) -> Counterexample | None:
    for sizes in _small_sizes(judge):
        for _ in range(TRIES // 4 if sizes else TRIES):
            drawn = judge.draw(sizes, "readable", strict=True)
            if drawn is None or not drawn[1].defined:
                continue
            point, sides = drawn
            seen = abs(sides.gap[sides.worst(judge.relation)]) > 1e-9  # both sides may be rounding alone
            if seen and judge.amount(sides) > max(CLEAR, sides.tolerance) and sides.scale < 1e4:
                return _describe(judge, point, sides, digits=6)
    return None


def _small_sizes(judge: Judge) -> list[Sizes]:
    names = judge.sizes.names
    if not names:
        return [{}]
    options = [dict.fromkeys(names, 1), dict.fromkeys(names, 2)]
    options += [judge.sizes.distinct(judge.rng, 2), judge.sizes.distinct(judge.rng, 3)]
    return [sizes for sizes in options if judge.sizes.allowed(sizes)]


def _describe(judge: Judge, point: Point, sides: Sides, digits: int) -> Counterexample:
    frame = make_frame(judge.setting, point, TorchOps(), judge.deadline)
    values = {}
    for name in judge.sizes.givens:
        if distribution(judge.setting.givens[name]) is None or not judge.averages:
            values[name.split("#")[0]] = plain(frame.value(name).detach().numpy(), digits)
    sizes = {name: point.sizes[name] for name in judge.sizes.names}
    where = sides.worst(judge.relation)
    left, right = (
        np.where(np.abs(side) < ROUNDING * sides.scale, 0.0, side) if digits < 17 else side
        for side in (sides.left, sides.right)
    )
    return Counterexample(sizes=sizes, values=values, left=plain(left, digits), right=plain(right, digits), where=where)


def plain(array: np.ndarray, digits: int) -> Any:
    """Nested lists of numbers with this many significant digits; whole numbers as int, what is undefined as None."""
    if array.ndim:
        return [plain(row, digits) for row in array]
    value = float(array)
    if not np.isfinite(value):
        return None
    value = float(f"{value:.{digits}g}")
    return int(value) if value == int(value) and abs(value) < 1e15 else value

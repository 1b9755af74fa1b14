"""Exact fractions: claims between numbers alone are settled by computing them."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np

from lmlab.checker.limits import Deadline, NoExactValue, OutOfTime
from lmlab.checker.numbers.doubles import ArrayOps
from lmlab.checker.numbers.evaluate import Array, Frame, evaluate
from lmlab.checker.numbers.points import Point, make_frame
from lmlab.checker.shapes.setting import Setting
from lmlab.checker.tree import Derivative, Expectation, Node

_HOLDS = {
    "==": lambda a, b: a == b,
    "<=": lambda a, b: a <= b,
    ">=": lambda a, b: a >= b,
    "<": lambda a, b: a < b,
    ">": lambda a, b: a > b,
}


class FractionOps(ArrayOps):
    """Arrays of fractions. Functions that leave them (exp, sqrt, ...) have no exact value here."""

    dtype = object
    table = {  # noqa: RUF012
        "abs": np.frompyfunc(abs, 1, 1),
        "relu": np.frompyfunc(lambda x: max(x, Fraction(0)), 1, 1),
        "square": np.frompyfunc(lambda x: x * x, 1, 1),
        "floor": np.frompyfunc(lambda x: Fraction(math.floor(x)), 1, 1),
        "ceil": np.frompyfunc(lambda x: Fraction(math.ceil(x)), 1, 1),
        "round": np.frompyfunc(lambda x: Fraction(round(x)), 1, 1),
        "sign": np.frompyfunc(lambda x: Fraction((x > 0) - (x < 0)), 1, 1),
    }

    def elementwise(self, name: str, value: Array) -> Array:
        """Only what maps fractions to fractions."""
        if name not in self.table:
            raise NoExactValue
        return super().elementwise(name, value)

    def number(self, value: Fraction | str) -> Array:
        """A fraction as it is."""
        if isinstance(value, str):
            raise NoExactValue
        return np.asarray(value, dtype=object)

    def divide(self, left: Array, right: Array) -> Array:
        """Exact, and undefined by 0."""
        if np.any(np.asarray(right == 0)):
            raise NoExactValue
        return self.wrap(left / right)

    def raise_to(self, left: Array, right: Array) -> Array:
        """Powers that are arrays are left to other arithmetic."""
        raise NoExactValue

    def power(self, base: Array, exponent: Fraction) -> Array:
        """Whole powers."""
        if exponent.denominator != 1 or (exponent < 0 and np.any(np.asarray(base == 0))):
            raise NoExactValue
        return self.wrap(base ** int(exponent))

    def from_numpy(self, raw: Any) -> Array:
        """Doubles are fractions."""
        return self.wrap(np.frompyfunc(lambda x: Fraction(float(x)), 1, 1)(np.asarray(raw, dtype=float)))

    def derivative(self, node: Derivative, frame: Frame) -> Array:
        """Numbers alone have none."""
        raise NoExactValue

    def expectation(self, node: Expectation, frame: Frame) -> Array:
        """Left to the prover."""
        raise NoExactValue


def settle(setting: Setting, left: Node, relation: str, right: Node, deadline: Deadline) -> bool | None:
    """Whether a relation between numbers alone holds; None when it has names in it or leaves the fractions."""
    givens, sizes = setting.needed([left, right])
    if givens or sizes:
        return None
    try:
        frame = make_frame(setting, Point({}, {}), FractionOps(), deadline)
        x, y = np.broadcast_arrays(evaluate(left, frame), evaluate(right, frame))
    except (NoExactValue, OutOfTime, OverflowError):
        return None
    return all(_HOLDS[relation](a, b) for a, b in zip(x.reshape(-1), y.reshape(-1), strict=True))

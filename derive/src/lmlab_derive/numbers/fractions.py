"""Exact fractions: claims between numbers alone are settled by computing them."""

from __future__ import annotations

from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np

from lmlab_derive.functions import Entrywise
from lmlab_derive.functions.record import Array
from lmlab_derive.limits import Deadline, NoExactValue, OutOfTime, Refusal
from lmlab_derive.numbers.doubles import ArrayOps
from lmlab_derive.numbers.evaluate import COMPARISONS, Frame
from lmlab_derive.shapes.setting import Setting
from lmlab_derive.tree import Node


@cache
def _of_arrays(function: Entrywise) -> np.ufunc:
    if function.exact is None:
        raise NoExactValue
    return np.frompyfunc(lambda x: function.computed("exact", None, x), 1, 1)


class FractionOps(ArrayOps):
    """Arrays of fractions. Functions that leave them (exp, sqrt, ...) have no exact value here."""

    way = "exact"
    dtype = object

    def entrywise(self, function: Entrywise, value: Array) -> Array:
        """Only what maps fractions to fractions."""
        return self.wrap(_of_arrays(function)(value))

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


def settle(setting: Setting, left: Node, relation: str, right: Node, deadline: Deadline) -> bool | None:
    """Whether a relation between numbers alone holds; None when it has names in it or leaves the fractions."""
    givens, sizes = setting.needed([left, right])
    if givens or sizes:
        return None
    try:
        frame = Frame(setting, FractionOps(), {}, {}, deadline)
        x, y = np.broadcast_arrays(frame.evaluate(left), frame.evaluate(right))
    except (NoExactValue, OutOfTime, OverflowError, Refusal):  # a sum of more terms than are added up one by one
        return None
    return all(COMPARISONS[relation](a, b) for a, b in zip(x.reshape(-1), y.reshape(-1), strict=True))

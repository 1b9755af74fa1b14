"""NumPy arithmetic: what doubles, fractions and long decimals share, and doubles themselves."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np

from lmlab_derive.functions import Entrywise, Kink
from lmlab_derive.functions.record import Array
from lmlab_derive.limits import NoExactValue
from lmlab_derive.numbers.accuracy import Accuracy
from lmlab_derive.numbers.evaluate import COMPARISONS, Frame, Ops
from lmlab_derive.numbers.means import Helpers, expectation
from lmlab_derive.tree import Derivative, Expectation


class ArrayOps(Ops):
    """What doubles and long decimals have in common."""

    library = np
    dtype: Any

    def wrap(self, value: Any) -> Array:
        """0-d results of object arrays come back as bare numbers; make them arrays again."""
        return value if isinstance(value, np.ndarray) else np.asarray(value, dtype=self.dtype)

    def compare(self, op: str, left: Array, right: Array) -> Array:
        """0 and 1."""
        self.near(self.wrap(left - right))
        return self.from_numpy(np.asarray(COMPARISONS[op](left, right), dtype=float))

    def full(self, shape: tuple[int, ...], value: int) -> Array:
        """By NumPy."""
        return self.from_numpy(np.full(shape, float(value)))

    def eye(self, size: int) -> Array:
        """By NumPy."""
        return self.from_numpy(np.eye(size))

    def determinant(self, value: Array) -> Array:
        """By elimination."""
        return self.wrap(_eliminate(value, None)[0])

    def inverse(self, value: Array) -> Array:
        """By elimination."""
        return _eliminate(value, self.eye(value.shape[0]))[1]

    def cholesky(self, value: Array) -> Array:
        """Row by row."""
        size = value.shape[0]
        out = [[self.full((), 0)] * size for _ in range(size)]
        for i in range(size):
            for j in range(i + 1):
                rest = self.wrap(value[i, j] - sum(out[i][k] * out[j][k] for k in range(j)))
                out[i][j] = self.power(rest, Fraction(1, 2)) if i == j else self.wrap(rest / out[j][j])
        return self.library.stack([self.library.stack(row) for row in out])

    def derivative(self, node: Derivative, frame: Frame) -> Array:
        """Most of this arithmetic has none."""
        raise NoExactValue

    def expectation(self, node: Expectation, frame: Frame) -> Array:
        """Most of this arithmetic has none."""
        raise NoExactValue

    def bends(self, function: Entrywise, value: Array) -> None:
        """Note how far the kink of a function is."""
        if function.kink is not Kink.NONE and (self.notes_kinks or self.collected is not None):
            distance = function.kink_distance(np if self.dtype is float else _Rounding, value)
            self.near(distance, function.kink is Kink.EDGE)


class _Rounding:
    """What kinks need of NumPy, for long decimals."""

    round = np.frompyfunc(mpmath.nint, 1, 1)
    floor = np.frompyfunc(mpmath.floor, 1, 1)


def _eliminate(value: Array, right: Array | None) -> tuple[Any, Array]:
    """Gauss-Jordan with pivoting: the determinant, and the inverse when `right` is the identity."""
    work, size = value.copy(), value.shape[0]
    out = np.empty((size, 0), dtype=object) if right is None else right.copy()
    det: Any = 1
    for column in range(size):
        pivot = column + max(range(size - column), key=lambda i: abs(work[column + i, column]))
        if work[pivot, column] == 0:
            return work[pivot, column], out * mpmath.nan
        if pivot != column:
            work[[column, pivot]], out[[column, pivot]] = work[[pivot, column]], out[[pivot, column]]
            det = -det
        det = det * work[column, column]
        scale = 1 / work[column, column]
        for row in range(0 if right is not None else column + 1, size):
            if row != column:
                factor = work[row, column] * scale
                work[row], out[row] = work[row] - factor * work[column], out[row] - factor * out[column]
        work[column], out[column] = work[column] * scale, out[column] * scale
    return det, out


class FloatOps(ArrayOps):
    """Doubles. Derivatives must be there already (as for `hints`), or are left to `DualOps`."""

    way = "numpy"
    dtype = float
    notes_kinks = True

    def __init__(self, helpers: Helpers | None = None) -> None:
        super().__init__()
        self.accuracy = Accuracy()
        self.helpers = helpers
        self.largest: float | None = None  # the largest number computed so far, where somebody asks

    def met(self, value: Array) -> None:
        """Keep the largest number, slopes included, where `largest` is a number."""
        if self.largest is not None:
            numbers = np.abs(np.asarray(getattr(value, "data", value) if not isinstance(value, np.ndarray) else value))
            self.largest = max(self.largest, float(numbers.max(initial=0.0, where=np.isfinite(numbers))))

    def expectation(self, node: Expectation, frame: Frame) -> Array:
        """Exact, integrated, or as the helpers have it; none without them."""
        if self.helpers is None:
            raise NoExactValue
        return expectation(node, frame, self.accuracy, self.helpers)

    def number(self, value: Fraction | str) -> Array:
        """A 0-d array."""
        return np.asarray(float(getattr(math, value) if isinstance(value, str) else value))

    def from_numpy(self, raw: Any) -> Array:
        """As it is."""
        return np.asarray(raw, dtype=float)

    def entrywise(self, function: Entrywise, value: Array) -> Array:
        """As NumPy has it."""
        self.bends(function, value)
        return self.wrap(function.computed("numpy", np, value))

    def divide(self, left: Array, right: Array) -> Array:
        """nan where the denominator is 0: 1 / (1 / 0) is no number. Integrals have inf at their ends."""
        return self._but_nan(right == 0, left / right)

    def _but_nan(self, lost: Array, value: Array) -> Array:
        return self.wrap(value if self.collected is not None or not lost.any() else value * np.where(lost, np.nan, 1.0))

    def raise_to(self, left: Array, right: Array) -> Array:
        """nan for negative bases, and for what divides by 0."""
        return self._but_nan((left == 0) & (right < 0), np.power(left, right))

    def power(self, base: Array, exponent: Fraction) -> Array:
        """A written power."""
        whole = exponent.denominator == 1 and exponent >= 0
        if exponent.denominator == 2:
            self.near(base, edge=True)
        power = base ** (int(exponent) if whole else float(exponent))
        return self._but_nan(base == 0, power) if exponent < 0 else self.wrap(power)

    def determinant(self, value: Array) -> Array:
        """By NumPy."""
        return self.wrap(np.linalg.det(value))

    def inverse(self, value: Array) -> Array:
        """By NumPy; nan when there is none."""
        try:
            return np.linalg.inv(value)
        except np.linalg.LinAlgError:
            return np.full(value.shape, np.nan)

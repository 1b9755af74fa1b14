"""Long decimals (mpmath): the referee that rounding cannot fool.

Derivatives are central differences, so they share nothing with dual arrays: with 60 digits and a step of 1e-18 the
truncation error is near 1e-36, far below what is asked of them.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cache
from typing import Any

import mpmath
import numpy as np

from lmlab_derive.functions import Entrywise
from lmlab_derive.functions.elementwise import HUGE
from lmlab_derive.functions.record import Array
from lmlab_derive.numbers.accuracy import Accuracy
from lmlab_derive.numbers.doubles import ArrayOps
from lmlab_derive.numbers.evaluate import Frame
from lmlab_derive.numbers.means import expectation
from lmlab_derive.tree import Derivative, Expectation

NAN = mpmath.nan
DECIMAL = math.log10(2)  # digits of a bit
STEP_SHARE = 3  # a step of differences has this many tenths of the digits


@cache
def _of_arrays(function: Entrywise) -> np.ufunc:
    """A function of arrays of long decimals that answers nan outside of where it is defined."""

    def safe(x: Any) -> Any:
        if x >= function.lowest and abs(x) <= function.largest:
            return function.computed("long", mpmath, x)
        return NAN

    return np.frompyfunc(safe, 1, 1)


def _quotient(a: Any, b: Any) -> Any:
    return NAN if b == 0 or b != b or a != a else a / b


def _raise(a: Any, b: Any) -> Any:
    if a != a or b != b or (a < 0 and b != mpmath.floor(b)) or (a == 0 and b <= 0 and b != 0):
        return NAN
    if a != 0 and abs(b * mpmath.log(abs(a))) > HUGE:
        return NAN
    return a**b


class LongOps(ArrayOps):
    """Long decimals, as many digits as mpmath is set to; `step` is that of the central differences."""

    way = "long"
    dtype = object

    def __init__(self, digits: int) -> None:
        super().__init__()
        self.accuracy = Accuracy()
        self.step = mpmath.mpf(10) ** (-(digits * STEP_SHARE) // 10)
        self.depth = self.deepest = 0  # differences of differences that are taken now, and that were taken
        self.spread = 0.0  # between 10**-spread and 10**spread lies all that was met, the terms inside of functions too

    @property
    def digits_needed(self) -> int:
        """So many digits keep 1 + x from being x, for the largest and the smallest numbers that were met."""
        left_tenths = max(
            1, 10 - STEP_SHARE * self.deepest
        )  # a difference divided by its step loses that share of the digits
        return (int(2 * min(self.spread, 1e9)) + 60) * 10 // left_tenths

    def met(self, value: Array) -> None:
        """Take note of how large and how small numbers get."""
        for number in value.reshape(-1):
            if isinstance(number, mpmath.mpf) and number._mpf_[1]:
                _, _, exponent, bits = number._mpf_
                self.spread = max(self.spread, DECIMAL * abs(exponent + bits))

    def number(self, value: Fraction | str) -> Array:
        """A 0-d object array."""
        if isinstance(value, str):
            return np.asarray(+mpmath.pi if value == "pi" else mpmath.inf, dtype=object)
        return np.asarray(mpmath.mpf(value.numerator) / value.denominator, dtype=object)

    def entrywise(self, function: Entrywise, value: Array) -> Array:
        """Number by number."""
        self.bends(function, value)
        if function.steep:
            for x in value.reshape(-1):
                if mpmath.isfinite(x):
                    self.spread = max(self.spread, float(min(abs(x), HUGE)) ** function.steep / math.log(10))
        return self.wrap(_of_arrays(function)(value))

    def divide(self, left: Array, right: Array) -> Array:
        """nan where the denominator is 0."""
        return self.wrap(np.frompyfunc(_quotient, 2, 1)(left, right))

    def raise_to(self, left: Array, right: Array) -> Array:
        """nan where the power is not real."""
        return self.wrap(np.frompyfunc(_raise, 2, 1)(left, right))

    def power(self, base: Array, exponent: Fraction) -> Array:
        """A written power."""
        if exponent.denominator == 1 and exponent >= 0:
            return self.wrap(base ** int(exponent))
        return self.raise_to(base, self.number(exponent))

    def from_numpy(self, raw: Any) -> Array:
        """Doubles are exact in long decimals."""
        return self.wrap(np.frompyfunc(mpmath.mpf, 1, 1)(np.asarray(raw, dtype=float)))

    def derivative(self, node: Derivative, frame: Frame) -> Array:
        """Central differences, one entry of the name at a time; a second derivative is the difference of the first."""
        name = node.by[-1]
        here = frame.value(name)
        flat = here.reshape(-1)
        columns = []
        self.depth += 1
        self.deepest = max(self.deepest, self.depth)
        for i in range(flat.size):
            sides = []
            for sign in (1, -1):
                moved = flat.copy()
                moved[i] = moved[i] + sign * self.step
                sides.append(self.top(node, frame.child({name: moved.reshape(here.shape)})))
            columns.append(self.wrap((sides[0] - sides[1]) / (2 * self.step)))
        self.depth -= 1
        return np.stack(columns, axis=-1).reshape(columns[0].shape + here.shape)

    def expectation(self, node: Expectation, frame: Frame) -> Array:
        """Exact, or integrated; anything else has no value here."""
        return expectation(node, frame, self.accuracy)

"""Long decimals (mpmath): the referee that rounding cannot fool.

Derivatives are central differences, so they share nothing with autograd: with 60 digits and a step of 1e-18 the
truncation error is near 1e-36, far below what is asked of them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np

from lmlab.checker.numbers.doubles import ArrayOps
from lmlab.checker.numbers.evaluate import Array, Frame, evaluate
from lmlab.checker.shapes.infer import scalar_like
from lmlab.checker.tree import Derivative

_HUGE = mpmath.mpf(10) ** 6  # beyond exp(10**6) long decimals would eat memory; they become inf there
NAN = mpmath.nan


def _total(function: Callable[[Any], Any], low: float = -math.inf, bound: float = math.inf) -> Callable[[Array], Array]:
    """A function of arrays of long decimals that answers nan below `low` and beyond `bound`."""

    def safe(x: Any) -> Any:
        return function(x) if x >= low and abs(x) <= bound else NAN

    return np.frompyfunc(safe, 1, 1)


def _exp(x: Any) -> Any:
    if x != x:
        return NAN
    if x > _HUGE:
        return mpmath.inf
    return mpmath.mpf(0) if x < -_HUGE else mpmath.exp(x)


def _sigmoid(x: Any) -> Any:
    return 1 / (1 + _exp(-x)) if x > -_HUGE else mpmath.mpf(0)


def _softplus(x: Any) -> Any:
    return x if x > _HUGE else mpmath.log(1 + _exp(x))


def _sign(x: Any) -> Any:
    return mpmath.mpf((x > 0) - (x < 0))


_LONG: dict[str, Callable[[Array], Array]] = {
    "exp": np.frompyfunc(_exp, 1, 1), "log": _total(lambda x: mpmath.log(x) if x else -mpmath.inf, 0.0),
    "sqrt": _total(mpmath.sqrt, 0.0), "sin": _total(mpmath.sin, bound=1e9), "cos": _total(mpmath.cos, bound=1e9),
    "tan": _total(mpmath.tan, bound=1e9), "sinh": _total(mpmath.sinh, bound=1e6),
    "cosh": _total(mpmath.cosh, bound=1e6),
    "tanh": _total(lambda x: mpmath.tanh(x) if abs(x) < _HUGE else _sign(x)), "sigmoid": np.frompyfunc(_sigmoid, 1, 1),
    "relu": _total(lambda x: max(x, mpmath.mpf(0))), "abs": np.frompyfunc(abs, 1, 1),
    "sign": np.frompyfunc(_sign, 1, 1),
    "softplus": np.frompyfunc(_softplus, 1, 1), "silu": np.frompyfunc(lambda x: x * _sigmoid(x), 1, 1),
    "erf": _total(mpmath.erf, bound=1e6), "log1p": _total(lambda x: mpmath.log(1 + x), -1 + 1e-15),
    "floor": _total(mpmath.floor), "ceil": _total(mpmath.ceil), "round": _total(mpmath.nint),
    "expm1": np.frompyfunc(lambda x: _exp(x) - 1, 1, 1), "square": np.frompyfunc(lambda x: x * x, 1, 1),
}  # fmt: skip


def _quotient(a: Any, b: Any) -> Any:
    return NAN if b == 0 or b != b or a != a else a / b


def _raise(a: Any, b: Any) -> Any:
    if a != a or b != b or (a < 0 and b != mpmath.floor(b)) or (a == 0 and b <= 0 and b != 0):
        return NAN
    if a != 0 and abs(b * mpmath.log(abs(a))) > _HUGE:
        return NAN
    return a**b


class LongOps(ArrayOps):
    """Long decimals, as many digits as mpmath is set to; `step` is that of the central differences."""

    table = _LONG
    dtype = object

    def __init__(self, digits: int) -> None:
        self.step = mpmath.mpf(10) ** (-(digits * 3) // 10)

    def number(self, value: Fraction | str) -> Array:
        """A 0-d object array."""
        if isinstance(value, str):
            return np.asarray(+mpmath.pi, dtype=object)
        return np.asarray(mpmath.mpf(value.numerator) / value.denominator, dtype=object)

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
        return (
            np.frompyfunc(lambda x: mpmath.mpf(float(x)), 1, 1)(np.asarray(raw, dtype=float))
            if np.ndim(raw)
            else self.wrap(mpmath.mpf(float(raw)))
        )

    def derivative(self, node: Derivative, frame: Frame) -> Array:
        """Central differences, one entry of the name at a time; a second derivative is the difference of the first."""
        name = node.by[-1]
        here = frame.value(name)
        flat = here.reshape(-1)
        columns = []
        for i in range(flat.size):
            sides = []
            for sign in (1, -1):
                moved = flat.copy()
                moved[i] = moved[i] + sign * self.step
                sides.append(self._top(node, frame.child({name: moved.reshape(here.shape)})))
            columns.append(self.wrap((sides[0] - sides[1]) / (2 * self.step)))
        return np.stack(columns, axis=-1).reshape(columns[0].shape + here.shape)

    def _top(self, node: Derivative, frame: Frame) -> Array:
        if len(node.by) > 1:
            return self.derivative(Derivative(node.top, node.by[:-1], node.strict), frame)
        top = evaluate(node.top, frame)
        if not node.strict and scalar_like(frame.setting.shape(node.top)):
            top = top.reshape(())
        return self.wrap(top)

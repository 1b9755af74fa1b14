"""NumPy arithmetic: what doubles, fractions and long decimals share, and doubles themselves."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np

from lmlab.checker.limits import NoExactValue
from lmlab.checker.numbers.evaluate import Array, Frame, Ops
from lmlab.checker.numbers.moments import exact_expectation
from lmlab.checker.tree import Derivative, Expectation


class ArrayOps(Ops):
    """What doubles and long decimals have in common. `table` holds the elementwise functions."""

    table: dict[str, Callable[[Array], Array]]
    dtype: Any

    def wrap(self, value: Any) -> Array:
        """0-d results of object arrays come back as bare numbers; make them arrays again."""
        return value if isinstance(value, np.ndarray) else np.asarray(value, dtype=self.dtype)

    def negate(self, value: Array) -> Array:
        """-value."""
        return self.wrap(-value)

    def binary(self, op: str, left: Array, right: Array) -> Array:
        """NumPy's own operators, with divisions and powers that answer nan instead of failing."""
        match op:
            case "+":
                return self.wrap(left + right)
            case "-":
                return self.wrap(left - right)
            case "*":
                return self.wrap(left * right)
            case "/":
                return self.divide(left, right)
            case "@":
                return self.wrap(left @ right)
        return self.raise_to(left, right)

    def divide(self, left: Array, right: Array) -> Array:
        """left / right."""
        raise NotImplementedError

    def raise_to(self, left: Array, right: Array) -> Array:
        """left ** right with an array as exponent."""
        raise NotImplementedError

    def compare(self, op: str, left: Array, right: Array) -> Array:
        """0 and 1."""
        function = {">": np.greater, "<": np.less, ">=": np.greater_equal, "<=": np.less_equal}
        function |= {"==": np.equal, "!=": np.not_equal}
        return self.from_numpy(np.asarray(function[op](left, right), dtype=float))

    def elementwise(self, name: str, value: Array) -> Array:
        """One function of every entry."""
        return self.wrap(self.table[name](value))

    def reduce(self, name: str, value: Array, axis: int | None, keepdims: bool) -> Array:
        """Over everything when axis is None."""
        if not value.ndim:
            return self.reduce(name, value.reshape(1), 0, False)
        count = value.size if axis is None else value.shape[axis]
        match name:
            case "sum":
                return self.wrap(value.sum(axis=axis, keepdims=keepdims))
            case "mean":
                return self.wrap(value.sum(axis=axis, keepdims=keepdims) / count)
            case "max":
                return self.wrap(value.max(axis=axis, keepdims=keepdims))
            case "min":
                return self.wrap(value.min(axis=axis, keepdims=keepdims))
            case "prod":
                return self.wrap(value.prod(axis=axis, keepdims=keepdims))
            case "norm":
                return self.elementwise("sqrt", self.wrap((value * value).sum(axis=axis, keepdims=keepdims)))
            case "logsumexp":
                top = value.max(axis=axis, keepdims=True)
                total = self.wrap(self.elementwise("exp", value - top).sum(axis=axis, keepdims=keepdims))
                return self.wrap(self.elementwise("log", total) + (top if keepdims else _drop(top, axis)))
        centred = value - value.sum(axis=axis, keepdims=True) / count
        variance = self.wrap((centred * centred).sum(axis=axis, keepdims=keepdims) / count)
        return variance if name == "var" else self.elementwise("sqrt", variance)

    def along(self, name: str, value: Array, axis: int) -> Array:
        """Keeps the shape."""
        if name == "cumsum":
            return np.cumsum(value, axis=axis)
        if name == "log_softmax":
            return value - self.reduce("logsumexp", value, axis, True)
        raised = self.elementwise("exp", value - value.max(axis=axis, keepdims=True))
        return self.divide(raised, raised.sum(axis=axis, keepdims=True))

    def pair(self, name: str, left: Array, right: Array) -> Array:
        """The larger or smaller, entry by entry."""
        return self.wrap((np.maximum if name == "maximum" else np.minimum)(left, right))

    def choose(self, condition: Array, yes: Array, no: Array) -> Array:
        """Entries of `yes` where the condition is not 0."""
        return np.where(condition != 0, yes, no)

    def matrix(self, name: str, value: Array) -> Array:
        """Functions of one matrix (or vector, for diag)."""
        match name:
            case "transpose":
                return value.T
            case "trace":
                return self.wrap(value.diagonal().sum())
            case "det":
                return self.det(value)
            case "inv":
                return self.inv(value)
            case "diag":
                if value.ndim == 2:
                    return value.diagonal()
                out = self.full((value.shape[0],) * 2, 0).copy()
                out[np.arange(value.shape[0]), np.arange(value.shape[0])] = value
                return out
            case "tril" | "triu":
                below = np.tril(np.ones(value.shape[-2:], dtype=bool), 0 if name == "tril" else -1)
                return np.where(below == (name == "tril"), value, self.full((), 0))
        return value.reshape(-1)

    def det(self, value: Array) -> Array:
        """The determinant."""
        return self.wrap(_eliminate(value, None)[0])

    def inv(self, value: Array) -> Array:
        """The inverse."""
        inverse = _eliminate(value, self.eye(value.shape[0]))[1]
        assert inverse is not None
        return inverse

    def outer(self, left: Array, right: Array) -> Array:
        """Flattens both."""
        return left.reshape(-1, 1) * right.reshape(1, -1)

    def kron(self, left: Array, right: Array) -> Array:
        """The Kronecker product, block by block."""
        rank = max(left.ndim, right.ndim)
        left = left.reshape((1,) * (rank - left.ndim) + left.shape)
        right = right.reshape((1,) * (rank - right.ndim) + right.shape)
        shape = tuple(a * b for a, b in zip(left.shape, right.shape, strict=True))
        spread_left = left.reshape([n for size in left.shape for n in (size, 1)])
        spread_right = right.reshape([n for size in right.shape for n in (1, size)])
        return self.wrap(spread_left * spread_right).reshape(shape)

    def full(self, shape: Sequence[int], value: int) -> Array:
        """Zeros or ones."""
        out = np.empty(tuple(shape), dtype=self.dtype)
        out[...] = self.number(Fraction(value)).item() if self.dtype is object else value
        return out

    def eye(self, size: int) -> Array:
        """The identity."""
        return self.matrix("diag", self.full((size,), 1))

    def concat(self, parts: Sequence[Array], axis: int) -> Array:
        """Join along an axis."""
        return np.concatenate(parts, axis=axis)

    def stack(self, parts: Sequence[Array]) -> Array:
        """A new first axis."""
        return np.stack(parts)

    def reshape(self, value: Array, shape: Sequence[int]) -> Array:
        """Row by row."""
        return value.reshape(tuple(shape))

    def index(self, value: Array, items: tuple[int | slice, ...]) -> Array:
        """Positions and slices."""
        return self.wrap(value[items])

    def swap(self, value: Array, first: int, second: int) -> Array:
        """Two axes exchanged."""
        return value.swapaxes(first, second)

    def expectation(self, node: Expectation, frame: Frame) -> Array:
        """Exact moments of polynomials, or enumeration; anything else has no exact value."""
        return exact_expectation(node, frame)


def _drop(top: Array, axis: int | None) -> Array:
    return top.reshape(()) if axis is None else top.squeeze(axis)


def _eliminate(value: Array, right: Array | None) -> tuple[Any, Array | None]:
    """Gauss-Jordan with pivoting: the determinant, and the inverse when `right` is the identity."""
    work, size = value.copy(), value.shape[0]
    out = None if right is None else right.copy()
    det: Any = 1
    for column in range(size):
        pivot = column + max(range(size - column), key=lambda i: abs(work[column + i, column]))
        if work[pivot, column] == 0:
            return work[pivot, column], None if out is None else out * mpmath.nan
        if pivot != column:
            work[[column, pivot]] = work[[pivot, column]]
            det = -det
            if out is not None:
                out[[column, pivot]] = out[[pivot, column]]
        det = det * work[column, column]
        scale = 1 / work[column, column]
        for row in range(size):
            if row == column or (out is None and row < column):
                continue
            factor = work[row, column] * scale
            work[row] = work[row] - factor * work[column]
            if out is not None:
                out[row] = out[row] - factor * out[column]
        if out is not None:
            work[column], out[column] = work[column] * scale, out[column] * scale
    return det, out


_FLOAT: dict[str, Callable[[Array], Array]] = {
    "exp": np.exp, "log": np.log, "sqrt": np.sqrt, "sin": np.sin, "cos": np.cos, "tan": np.tan, "sinh": np.sinh,
    "cosh": np.cosh, "tanh": np.tanh, "abs": np.abs, "sign": np.sign, "log1p": np.log1p, "expm1": np.expm1,
    "square": np.square, "relu": lambda x: np.maximum(x, 0.0), "sigmoid": lambda x: 0.5 * (1 + np.tanh(0.5 * x)),
    "softplus": lambda x: np.logaddexp(x, 0.0), "silu": lambda x: x * 0.5 * (1 + np.tanh(0.5 * x)),
    "erf": np.vectorize(math.erf, otypes=[float]), "floor": np.floor, "ceil": np.ceil, "round": np.round,
}  # fmt: skip


class FloatOps(ArrayOps):
    """Doubles: the quick arithmetic of the search for hints. Derivatives must be there already (see `hints`)."""

    table = _FLOAT
    dtype = float

    def number(self, value: Fraction | str) -> Array:
        """A 0-d array."""
        return np.asarray(math.pi if value == "pi" else float(value))

    def divide(self, left: Array, right: Array) -> Array:
        """nan and inf as IEEE has them."""
        return self.wrap(left / right)

    def raise_to(self, left: Array, right: Array) -> Array:
        """nan for negative bases."""
        return self.wrap(np.power(left, right))

    def power(self, base: Array, exponent: Fraction) -> Array:
        """A written power."""
        whole = exponent.denominator == 1
        return self.wrap(
            np.asarray(base, dtype=float) ** (int(exponent) if whole and exponent >= 0 else float(exponent))
        )

    def det(self, value: Array) -> Array:
        """The determinant, by NumPy."""
        return self.wrap(np.linalg.det(value))

    def inv(self, value: Array) -> Array:
        """The inverse, by NumPy; nan when there is none."""
        try:
            return np.linalg.inv(value)
        except np.linalg.LinAlgError:
            return np.full(value.shape, np.nan)

    def from_numpy(self, raw: Any) -> Array:
        """As it is."""
        return np.asarray(raw, dtype=float)

    def derivative(self, node: Derivative, frame: Frame) -> Array:
        """Not by this arithmetic."""
        raise NoExactValue

    def expectation(self, node: Expectation, frame: Frame) -> Array:
        """Not by this arithmetic."""
        raise NoExactValue

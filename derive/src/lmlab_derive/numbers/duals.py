"""Dual arrays: every number carries its slopes in some directions, or its values at many points, along hidden axes.

Each derivative that is being taken adds an axis in front: its first entry is the value, the others are the slopes in
each direction. Linear operations treat all entries alike, products obey the product rule, functions the chain rule.
Each rule of points adds an axis in front as well, over its points. Shapes and axes count from behind the hidden axes,
so whoever computes with these arrays sees those of NumPy.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

Array = Any  # of NumPy, or dual
Hidden = tuple[bool, ...]  # the hidden axes, the front one last: whether each holds slopes rather than points
_NO_SLOPES = {
    *(np.greater, np.less, np.greater_equal, np.less_equal, np.equal, np.not_equal),
    *(np.logical_and, np.logical_or, np.bitwise_and, np.bitwise_or, np.invert, np.isfinite),
}


class Dual(NDArrayOperatorsMixin):
    """An array with hidden axes. Those in front of length 1 are left out: `dual` makes plain arrays where none is left."""

    def __init__(self, data: Any, hidden: Hidden) -> None:
        self.data, self.hidden = data, hidden

    @property
    def shape(self) -> tuple[int, ...]:
        """Without the hidden axes."""
        found: tuple[int, ...] = self.data.shape[len(self.hidden) :]
        return found

    @property
    def ndim(self) -> int:
        """Without the hidden axes."""
        return len(self.shape)

    @property
    def T(self) -> Array:
        """All axes reversed."""
        lead = len(self.hidden)
        return self._moved(self.data.transpose(*range(lead), *reversed(range(lead, self.data.ndim))))

    def __getitem__(self, items: Any) -> Array:
        items = items if isinstance(items, tuple) else (items,)
        return self._moved(self.data[(slice(None),) * len(self.hidden) + items])

    def reshape(self, *shape: Any) -> Array:
        """As in NumPy."""
        shape = shape[0] if shape and not isinstance(shape[0], int) else shape
        return self._moved(self.data.reshape(*self.data.shape[: len(self.hidden)], *shape))

    def swapaxes(self, first: int, second: int) -> Array:
        """As in NumPy."""
        return self._moved(self.data.swapaxes(*self._axes((first, second))))

    def squeeze(self, axes: Any) -> Array:
        """As in NumPy."""
        return self._moved(self.data.squeeze(self._axes(axes)))

    def diagonal(self) -> Array:
        """Of a matrix."""
        return self._moved(self.data.diagonal(axis1=-2, axis2=-1))

    def sum(self, axis: Any = None, keepdims: bool = False) -> Array:
        """As in NumPy."""
        return self._moved(self.data.sum(axis=self._axes(axis), keepdims=keepdims))

    def prod(self, axis: Any = None, keepdims: bool = False) -> Array:
        """By halves, so that the product rule is asked only a few times."""
        axes = tuple(i - len(self.hidden) for i in self._axes(axis))
        shape = [1 if i in axes else n for i, n in enumerate(self.shape)]
        flat = _moveaxis(self, axes, tuple(range(-len(axes), 0)))
        flat = flat.reshape(*flat.shape[: flat.ndim - len(axes)], -1)
        while (half := flat.shape[-1] // 2) > 0:
            flat = np.concatenate([flat[..., :half] * flat[..., half : 2 * half], flat[..., 2 * half :]], axis=-1)
        product = flat[..., 0] if flat.shape[-1] else np.ones(flat.shape[:-1])
        return product.reshape(shape) if keepdims else product

    def max(self, axis: Any = None, keepdims: bool = False) -> Array:
        """As in NumPy; where several are largest, the slopes are the mean of theirs."""
        return _extreme(np.amax, self, axis, keepdims)

    def astype(self, kind: Any) -> Array:
        """As in NumPy."""
        return self._moved(self.data.astype(kind))

    def any(self) -> bool:
        """Whether anything is true, at any point."""
        return bool(self.data.any())

    def _axes(self, axis: Any) -> tuple[int, ...]:
        """Axes of the data."""
        lead, ndim = len(self.hidden), self.ndim
        axes = range(ndim) if axis is None else axis if isinstance(axis, tuple) else (axis,)
        return tuple(lead + i % ndim for i in axes)

    def _moved(self, data: Any) -> Array:
        return dual(data, self.hidden)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        if method != "__call__" or options:
            return NotImplemented
        if ufunc in _RULES:
            return _RULES[ufunc](*inputs)
        if ufunc in _NO_SLOPES:
            return _entry_by_entry(ufunc, *map(value_of, inputs))
        return NotImplemented if any(_slope_level(x) is not None for x in inputs) else _entry_by_entry(ufunc, *inputs)

    def __array_function__(self, function: Any, types: Any, args: Any, options: Any) -> Any:
        return _FUNCTIONS[function](*args, **options) if function in _FUNCTIONS else NotImplemented


def dual(data: Any, hidden: Hidden) -> Array:
    """An array with hidden axes, as far as something lies along them."""
    while hidden and data.shape[0] == 1:
        data, hidden = data[0], hidden[:-1]
    return Dual(data, hidden) if hidden else data


def lifted(x: Array, hidden: Hidden, ndim: int = 0) -> Any:
    """The data of an array with all of the hidden axes, and at least so many others."""
    data, lead = (x.data, len(x.hidden)) if isinstance(x, Dual) else (np.asarray(x), 0)
    assert lead <= len(hidden)
    missing = ndim - (data.ndim - lead)
    return data.reshape((1,) * (len(hidden) - lead) + data.shape[:lead] + (1,) * missing + data.shape[lead:])


def value_of(x: Array) -> Array:
    """The array without its slopes."""
    if not isinstance(x, Dual):
        return x
    return dual(x.data[tuple(slice(1) if slopes else slice(None) for slopes in reversed(x.hidden))], x.hidden)


def with_slopes(value: Array, slopes: Array, level: int, hidden: Hidden) -> Array:
    """The array of a value and its slopes, which are then along this one of the hidden axes."""
    axis = len(hidden) - 1 - level
    others = tuple(slopes and i != level for i, slopes in enumerate(hidden))
    pair = _padded([lifted(part, hidden, max(_ndim(value), _ndim(slopes))) for part in (value, slopes)], others)
    shape = np.broadcast_shapes(*(part.shape[:axis] + part.shape[axis + 1 :] for part in pair))
    whole = np.empty((*shape[:axis], pair[0].shape[axis] + pair[1].shape[axis], *shape[axis:]))
    front = (slice(None),) * axis
    whole[(*front, slice(1))], whole[(*front, slice(1, None))] = pair
    return dual(whole, hidden)


def chain(function: Callable[[Any], Any], slope: Callable[[Array, Array], Array], x: Array) -> Array:
    """A function of every entry, where `slope` gives its derivative from its value and its argument."""
    if (level := _slope_level(x)) is None:
        return dual(function(x.data), x.hidden) if isinstance(x, Dual) else function(x)
    here, slopes = _parts(x, level)
    value = chain(function, slope, here)
    return with_slopes(value, slope(value, here) * slopes, level, x.hidden)


def determinant(x: Array) -> Array:
    """Of a square matrix; its slope by an entry is the cofactor of that."""
    if (level := _slope_level(x)) is None:
        return dual(np.linalg.det(x.data), x.hidden) if isinstance(x, Dual) else np.linalg.det(x)
    here, slopes = _parts(x, level)
    return with_slopes(determinant(here), (_cofactors(here) * slopes).sum(axis=(-2, -1)), level, x.hidden)


def _cofactors(x: Array) -> Array:
    size = x.shape[0]
    rest = [[j for j in range(size) if j != i] for i in range(size)]
    signed = [determinant(x[rest[i]][:, rest[j]]) * (-1.0) ** (i + j) for i in range(size) for j in range(size)]
    return np.stack(signed).reshape((size, size))


def inverse(x: Array) -> Array:
    """Of a square matrix; nan where there is none."""
    if (level := _slope_level(x)) is None:
        return dual(_inverse(x.data), x.hidden) if isinstance(x, Dual) else _inverse(x)
    here, slopes = _parts(x, level)
    value = inverse(here)
    return with_slopes(value, -(value @ slopes @ value), level, x.hidden)


def _inverse(data: Any) -> Any:
    try:
        return np.linalg.inv(data)
    except np.linalg.LinAlgError:
        return np.full(data.shape, np.nan) if data.ndim == 2 else np.stack([_inverse(matrix) for matrix in data])


def _ndim(x: Array) -> int:
    found: int = np.ndim(x) if not isinstance(x, Dual) else x.ndim
    return found


def _slope_level(*arrays: Array) -> int | None:
    """The frontmost hidden axis along which one of the arrays has slopes."""
    found = (
        level
        for x in arrays
        if isinstance(x, Dual)
        for level, slopes in enumerate(x.hidden)
        if slopes and x.data.shape[len(x.hidden) - 1 - level] > 1
    )
    return max(found, default=None)


def _parts(x: Array, level: int) -> tuple[Array, Array | None]:
    """What stands first along a hidden axis, and the slopes after it; None where it has none."""
    if not isinstance(x, Dual) or len(x.hidden) <= level or x.data.shape[len(x.hidden) - 1 - level] == 1:
        return x, None
    front = (slice(None),) * (len(x.hidden) - 1 - level)
    return dual(x.data[(*front, slice(1))], x.hidden), dual(x.data[(*front, slice(1, None))], x.hidden)


def _hidden(*arrays: Array) -> Hidden:
    """The hidden axes of all: each array has the first few of them."""
    return max((x.hidden for x in arrays if isinstance(x, Dual)), key=len, default=())


def _aligned(*arrays: Array) -> tuple[Hidden, list[Any]]:
    """The data of arrays with the same hidden axes, and as many others."""
    hidden = _hidden(*arrays)
    ndim = max(map(_ndim, arrays))
    return hidden, [lifted(x, hidden, ndim) for x in arrays]


def _padded(parts: list[Any], hidden: Hidden) -> list[Any]:
    """The data with slopes of 0 where one array has some and another has none."""
    for level, slopes in enumerate(hidden):
        axis = len(hidden) - 1 - level
        most = max(part.shape[axis] for part in parts) if slopes else 0
        for i, part in enumerate(parts):
            if part.shape[axis] < most:
                lacking = (*part.shape[:axis], most - part.shape[axis], *part.shape[axis + 1 :])
                parts[i] = np.concatenate([part, np.zeros(lacking)], axis=axis)
    return parts


def _entry_by_entry(ufunc: Any, *arrays: Array) -> Array:
    hidden, parts = _aligned(*arrays)
    return dual(ufunc(*parts), hidden)


def _sum(ufunc: Any) -> Callable[..., Array]:
    def rule(left: Array, right: Array) -> Array:
        hidden, parts = _aligned(left, right)
        return dual(ufunc(*_padded(parts, hidden)), hidden)

    return rule


def _product(left: Array, right: Array, ufunc: Any = np.multiply) -> Array:
    hidden, (a, b) = _aligned(left, right)
    slopes = [len(hidden) - 1 - level for level, is_slope in enumerate(hidden) if is_slope]
    return dual(_expanded(a, b, slopes, ufunc), hidden)


def _expanded(a: Any, b: Any, axes: list[int], ufunc: Any) -> Any:
    """The product rule along every axis along which both factors have slopes."""
    axes = [axis for axis in axes if a.shape[axis] > 1 and b.shape[axis] > 1]
    if not axes:
        return ufunc(a, b)
    front = (slice(None),) * axes[0]
    (a0, a1), (b0, b1) = ((x[(*front, slice(1))], x[(*front, slice(1, None))]) for x in (a, b))
    slopes = _expanded(a1, b0, axes[1:], ufunc) + _expanded(a0, b1, axes[1:], ufunc)
    return np.concatenate([_expanded(a0, b0, axes[1:], ufunc), slopes], axis=axes[0])


def _quotient(left: Array, right: Array) -> Array:
    if (level := _slope_level(right)) is None:
        return _entry_by_entry(np.true_divide, left, right)
    (a, a_slopes), (b, b_slopes) = _parts(left, level), _parts(right, level)
    value = _quotient(a, b)
    moved = -(value * b_slopes) if a_slopes is None else a_slopes - value * b_slopes
    return with_slopes(value, _quotient(moved, b), level, _hidden(left, right))


def _power(base: Array, exponent: Array) -> Array:
    if (level := _slope_level(base, exponent)) is None:
        return _entry_by_entry(np.power, base, exponent)
    (a, a_slopes), (b, b_slopes) = _parts(base, level), _parts(exponent, level)
    value, slopes = _power(a, b), []
    if a_slopes is not None:
        slopes.append(np.where(value_of(b) == 0, 0.0, b * _power(a, b - 1)) * a_slopes)
    if b_slopes is not None:
        slopes.append(np.where(value_of(value) == 0, 0.0, value * _logarithm(a)) * b_slopes)
    return with_slopes(value, sum(slopes[1:], start=slopes[0]), level, _hidden(base, exponent))


def _logarithm(x: Array) -> Array:
    return chain(np.log, lambda v, u: 1 / u, x)


def _matmul(left: Array, right: Array) -> Array:
    """A vector counts as a row on the left and as a column on the right."""
    row, column = left.ndim == 1, right.ndim == 1
    found = _product(left[None] if row else left, right[:, None] if column else right, np.matmul)
    return found[(..., *([0] if row else []), *([slice(None)] if row and not column else []), *([0] if column else []))]


def _larger(ufunc: Any, sign: Any) -> Callable[..., Array]:
    """The larger or smaller of two; half the slopes of each where they are equal."""

    def rule(left: Array, right: Array) -> Array:
        a, b = value_of(left), value_of(right)
        return np.where(sign(a, b), left, np.where(sign(b, a), right, (left + right) / 2))

    return rule


def _extreme(function: Any, x: Array, axis: Any = None, keepdims: bool = False) -> Array:
    if _slope_level(x) is None:
        return dual(function(x.data, axis=x._axes(axis), keepdims=keepdims), x.hidden)
    plain = value_of(x)
    chosen = (plain == function(plain, axis=axis, keepdims=True)).astype(float)
    whole = np.where(chosen == 0, 0.0, x).sum(axis=axis, keepdims=True) / chosen.sum(axis=axis, keepdims=True)
    return whole if keepdims else whole.squeeze(axis)


def _sort(x: Array, axis: int) -> Array:
    """Without slopes: it tells how far ties are."""
    plain = value_of(x)
    return dual(np.sort(plain.data, axis=axis), plain.hidden) if isinstance(plain, Dual) else np.sort(plain, axis=axis)


def _where(condition: Array, left: Array, right: Array) -> Array:
    hidden, (chosen, *parts) = _aligned(value_of(condition), left, right)
    return dual(np.where(chosen, *_padded(parts, hidden)), hidden)


def _alongside(arrays: Sequence[Array]) -> tuple[Hidden, list[Any]]:
    """The data of arrays that stand beside each other: with the same hidden axes, equally long."""
    hidden, parts = _aligned(*arrays)
    parts, lead = _padded(parts, hidden), len(hidden)
    shape = np.broadcast_shapes(*(part.shape[:lead] for part in parts))
    return hidden, [np.broadcast_to(part, shape + part.shape[lead:]) for part in parts]


def _joined(function: Any) -> Callable[..., Array]:
    def rule(arrays: Sequence[Array], axis: int = 0) -> Array:
        hidden, parts = _alongside(arrays)
        return dual(function(parts, axis=axis + len(hidden) if axis >= 0 else axis), hidden)

    return rule


def _broadcast_to(x: Dual, shape: tuple[int, ...]) -> Array:
    data, lead = lifted(x, x.hidden, len(shape)), len(x.hidden)
    return dual(np.broadcast_to(data, data.shape[:lead] + tuple(shape)), x.hidden)


def _moveaxis(x: Array, source: Any, target: Any) -> Array:
    return dual(np.moveaxis(x.data, x._axes(source), x._axes(target)), x.hidden)


_RULES: dict[Any, Callable[..., Array]] = {
    np.add: _sum(np.add),
    np.subtract: _sum(np.subtract),
    np.negative: lambda x: dual(-x.data, x.hidden),
    np.multiply: _product,
    np.true_divide: _quotient,
    np.power: _power,
    np.matmul: _matmul,
    np.sqrt: lambda x: chain(np.sqrt, lambda v, u: 0.5 / v, x),
    np.maximum: _larger(np.maximum, np.greater),
    np.minimum: _larger(np.minimum, np.less),
}
_FUNCTIONS: dict[Any, Callable[..., Array]] = {
    np.where: _where,
    np.stack: _joined(np.stack),
    np.concatenate: _joined(np.concatenate),
    np.broadcast_to: _broadcast_to,
    np.moveaxis: _moveaxis,
    np.cumsum: lambda x, axis: dual(np.cumsum(x.data, axis=x._axes(axis)[0]), x.hidden),
    np.sort: _sort,
    np.sum: Dual.sum,
    np.prod: Dual.prod,
    np.amax: lambda x, axis=None, keepdims=False: _extreme(np.amax, x, axis, keepdims),
    np.amin: lambda x, axis=None, keepdims=False: _extreme(np.amin, x, axis, keepdims),
}

"""Functions along axes: those that reduce them (sum, max, norm, ...) and those that keep the shape (softmax, ...)."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np

from lmlab_derive.functions.elementwise import EXP, LOG, SQRT
from lmlab_derive.functions.record import Arithmetic, Array, At, Function, Kink, ShapeReader
from lmlab_derive.functions.shapes import axis_of
from lmlab_derive.limits import Refusal
from lmlab_derive.sizes import ONE, Shape
from lmlab_derive.small_formulas import call, over
from lmlab_derive.text import to_text
from lmlab_derive.tree import Call

Axes = tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Reduction(Function):
    """Over everything, unless axis= is given."""

    compute: Callable[[Arithmetic, Array, Axes, bool], Array] = lambda ops, x, axes, keepdims: x
    _: KW_ONLY
    takes_axis: bool = True
    takes_keepdims: bool = True

    def shape(self, call: Call, shapes: ShapeReader) -> Shape:
        """Without the axis, or with one of size 1 in its place."""
        shape = shapes.of(call.args[0])
        if call.axis is None:
            return (ONE,) * len(shape) if call.keepdims else ()
        axis = axis_of(call, shape)
        return shape[:axis] + ((ONE,) if call.keepdims else ()) + shape[axis + 1 :]

    def value(self, call: Call, at: At) -> Array:
        """A scalar counts as one row."""
        return self.of(at.ops, at.evaluate(call.args[0]), call.axis, call.keepdims)

    def of(self, ops: Arithmetic, x: Array, axis: int | None, keepdims: bool) -> Array:
        """The reduction of an array."""
        if not x.ndim:
            return self.of(ops, x.reshape(1), 0, False)
        axes = tuple(range(x.ndim)) if axis is None else (axis % x.ndim,)
        return ops.wrap(self.compute(ops, x, axes, keepdims))


@dataclass(frozen=True, eq=False)
class Along(Function):
    """Keeps the shape; along the last axis, unless axis= is given."""

    compute: Callable[[Arithmetic, Array, int], Array] = lambda ops, x, axis: x
    _: KW_ONLY
    takes_axis: bool = True

    def shape(self, call: Call, shapes: ShapeReader) -> Shape:
        """That of the argument, which has at least one axis."""
        shape = shapes.of(call.args[0])
        if not shape:
            raise Refusal(
                f"{self.name} needs an array, and {to_text(call.args[0])} is a scalar", code="reduction-of-scalar"
            )
        axis_of(call, shape)
        return shape

    def value(self, call: Call, at: At) -> Array:
        """Row by row."""
        x, axis = at.evaluate(call.args[0]), -1 if call.axis is None else call.axis
        return self.compute(at.ops, x, axis)


def _total(x: Array, axes: Axes, keepdims: bool) -> Array:
    return x.sum(axis=axes, keepdims=keepdims)


def _mean(x: Array, axes: Axes, keepdims: bool) -> Array:
    return _total(x, axes, keepdims) / math.prod(x.shape[axis] for axis in axes)


def _root(ops: Arithmetic, squares: Array) -> Array:
    """A square root that is a kink where it is 0 itself, rather than where its argument is."""
    has_slopes = ops.way == "numpy" and not isinstance(squares, np.ndarray)
    root = ops.library.sqrt(squares) if has_slopes else ops.entrywise(SQRT, ops.wrap(squares))
    ops.near(root, edge=True)
    return root


def _variance(ops: Arithmetic, x: Array, axes: Axes, keepdims: bool) -> Array:
    centred = x - _mean(x, axes, True)
    return _mean(centred * centred, axes, keepdims)


def _extreme(ops: Arithmetic, x: Array, axes: Axes, keepdims: bool, name: str) -> Array:
    """The largest or smallest entry; a tie of the first two is a kink."""
    if ops.notes_kinks:
        ordered = _sorted(ops, x, axes)
        if ordered.shape[-1] > 1:
            first = -1 if name == "amax" else 0
            ops.near(ordered[..., first] - ordered[..., -2 if name == "amax" else 1])
    return getattr(ops.library, name)(x, axis=axes, keepdims=keepdims)


def _sorted(ops: Arithmetic, x: Array, axes: Axes) -> Array:
    """The entries that are reduced together in order, along the last axis."""
    return ops.library.sort(_flattened(ops.library, x, axes), axis=-1)


def _flattened(library: Any, x: Array, axes: Axes) -> Array:
    """An array with the reduced axes flattened into its last one."""
    moved = library.moveaxis(x, axes, tuple(range(-len(axes), 0)))
    return moved.reshape(*moved.shape[: -len(axes)], -1)


def _logsumexp(ops: Arithmetic, x: Array, axes: Axes, keepdims: bool) -> Array:
    top = x.max(axis=axes, keepdims=True)
    total = ops.entrywise(LOG, ops.wrap(_total(ops.entrywise(EXP, x - top), axes, True)))
    out = ops.wrap(total + top)
    return out if keepdims else out.squeeze(axes)


def _softmax(ops: Arithmetic, x: Array, axis: int) -> Array:
    raised = ops.entrywise(EXP, x - x.max(axis=axis, keepdims=True))
    return ops.divide(raised, raised.sum(axis=axis, keepdims=True))


SUM = Reduction(
    "sum",
    lambda ops, x, axes, keepdims: _total(x, axes, keepdims),
    degree="same",
    confused_with=("mean", "max", "logsumexp", "norm"),
)
NORM = Reduction(
    "norm",
    lambda ops, x, axes, keepdims: _root(ops, _total(x * x, axes, keepdims)),
    kink=Kink.EDGE,
    slope=lambda v, u: over(u, v),
    confused_with=("sum",),
)

REDUCTIONS = [
    SUM,
    Reduction("mean", lambda ops, x, axes, keepdims: _mean(x, axes, keepdims), degree="same", confused_with=("sum",)),
    Reduction(
        "max",
        lambda ops, x, axes, keepdims: _extreme(ops, x, axes, keepdims, "amax"),
        aliases=("amax",),
        kink=Kink.BEND,
        confused_with=("min", "sum", "logsumexp"),
    ),
    Reduction(
        "min",
        lambda ops, x, axes, keepdims: _extreme(ops, x, axes, keepdims, "amin"),
        aliases=("amin",),
        kink=Kink.BEND,
        confused_with=("max",),
    ),
    Reduction("prod", lambda ops, x, axes, keepdims: x.prod(axis=axes, keepdims=keepdims)),
    Reduction("var", _variance, degree="double", confused_with=("std",)),
    Reduction(
        "std",
        lambda ops, x, axes, keepdims: _root(ops, _variance(ops, x, axes, keepdims)),
        kink=Kink.EDGE,
        confused_with=("var",),
    ),
    NORM,
    Reduction(
        "logsumexp",
        _logsumexp,
        slope=lambda v, u: call("softmax", u),
        confused_with=("sum", "max"),
        sign_slips=True,
    ),
]

ALONG = [
    Along(
        "softmax",
        _softmax,
        confused_with=("sigmoid", "exp", "log_softmax"),
        sign_slips=True,
    ),
    Along(
        "log_softmax",
        lambda ops, x, axis: x - _logsumexp(ops, x, (axis,), True),
        aliases=("logsoftmax",),
        sign_slips=True,
    ),
    Along("cumsum", lambda ops, x, axis: ops.library.cumsum(x, axis=axis), degree="same"),
]

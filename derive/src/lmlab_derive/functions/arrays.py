"""Functions of whole arrays: products, triangles, joins, and arrays made from sizes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from lmlab_derive.functions import shapes as rules
from lmlab_derive.functions.elementwise import trigamma
from lmlab_derive.functions.record import Arithmetic, Array, At, Function, Kink, ShapeReader
from lmlab_derive.sizes import Shape
from lmlab_derive.tree import Call, constant_value


@dataclass(frozen=True, eq=False)
class ArrayFunction(Function):
    """A function of arrays, by its shape rule and what it computes from the values of its arguments."""

    rule: Callable[[Call, list[Shape]], Shape] = rules.same
    compute: Callable[..., Array] = lambda ops, *args: args[0]

    def shape(self, call: Call, shapes: ShapeReader) -> Shape:
        """By the rule."""
        return self.rule(call, [shapes.of(arg) for arg in call.args])

    def value(self, call: Call, at: At) -> Array:
        """From the values of the arguments, and the axis where it takes one."""
        args = [at.evaluate(arg) for arg in call.args]
        return self.compute(at.ops, args, call.axis or 0) if self.takes_axis else self.compute(at.ops, *args)


@dataclass(frozen=True, eq=False)
class Choice(ArrayFunction):
    """where(condition, yes, no). One number chooses before the other two are computed: x[i-1] has no value at i = 1."""

    def value(self, call: Call, at: At) -> Array:
        """By the indices and sizes of the condition, if it has nothing else in it; entry by entry otherwise."""
        condition, yes, no = call.args
        if not at.is_counted(condition):
            return super().value(call, at)
        chosen = yes if float(at.evaluate(condition)) else no
        return at.ops.library.broadcast_to(at.evaluate(chosen), at.extents(call))


@dataclass(frozen=True, eq=False)
class Arranging(Function):
    """A function some of whose arguments are sizes or axes: its rule and its value look at the call itself."""

    rule: Callable[[Call, ShapeReader], Shape] = lambda call, shapes: ()
    compute: Callable[[Call, At], Array] = lambda call, at: at.ops.full(at.extents(call), 1)

    def shape(self, call: Call, shapes: ShapeReader) -> Shape:
        """By the rule."""
        return self.rule(call, shapes)

    def value(self, call: Call, at: At) -> Array:
        """From the call."""
        return self.compute(call, at)


def _reshaped(call: Call, at: At) -> Array:
    return at.evaluate(call.args[0]).reshape(at.extents(call))


def _swapped(call: Call, at: At) -> Array:
    first, second = (int(constant_value(arg) or 0) for arg in call.args[1:])
    return at.evaluate(call.args[0]).swapaxes(first, second)


def _sizes(call: Call, at: At) -> Array:
    extents = at.extents(call.args[0]) or (1,)
    return at.ops.library.stack([at.ops.number(Fraction(size)) for size in extents])


def transposed(ops: Arithmetic, x: Array) -> Array:
    """All axes reversed."""
    return x.T


def _diag(ops: Arithmetic, x: Array) -> Array:
    if x.ndim == 2:
        return x.diagonal()
    library = ops.library
    return library.where(library.eye(x.shape[0], dtype=bool), x, ops.full((), 0))


def _triangle(ops: Arithmetic, x: Array, name: str) -> Array:
    """By a mask of 0 and 1, which every arithmetic has."""
    library = ops.library
    mask = getattr(library, name)(library.ones(tuple(x.shape[-2:]), dtype=bool))
    return library.where(mask, x, ops.full((), 0))


def outer(ops: Arithmetic, left: Array, right: Array) -> Array:
    """Of both, flattened."""
    return left.reshape(-1, 1) * right.reshape(1, -1)


def _kron(ops: Arithmetic, left: Array, right: Array) -> Array:
    """Block by block."""
    rank = max(left.ndim, right.ndim)
    left = left.reshape((1,) * (rank - left.ndim) + tuple(left.shape))
    right = right.reshape((1,) * (rank - right.ndim) + tuple(right.shape))
    shape = tuple(a * b for a, b in zip(left.shape, right.shape, strict=True))
    spread_left = left.reshape([n for size in left.shape for n in (size, 1)])
    spread_right = right.reshape([n for size in right.shape for n in (1, size)])
    return ops.wrap(spread_left * spread_right).reshape(shape)


def _extremum(ops: Arithmetic, left: Array, right: Array, name: str) -> Array:
    if ops.notes_kinks:
        ops.near(left - right)
    library: Any = ops.library
    return ops.wrap(getattr(library, name)(left, right))


ARRAYS = [
    ArrayFunction(
        "trace",
        rules.scalar_of_square,
        lambda ops, x: ops.wrap(x.diagonal().sum()),
        aliases=("tr", "Tr"),
        degree="same",
        confused_with=("sum", "det"),
    ),
    ArrayFunction("det", rules.scalar_of_square, lambda ops, x: ops.determinant(x), confused_with=("trace",)),
    ArrayFunction(
        "inv", rules.square, lambda ops, x: ops.inverse(x), aliases=("inverse",), confused_with=("transpose",)
    ),
    ArrayFunction("diag", rules.diag, _diag, degree="same"),
    ArrayFunction("outer", rules.outer, outer, arguments=2, degree="sum"),
    ArrayFunction("kron", rules.kron, _kron, arguments=2, degree="sum"),
    ArrayFunction(
        "dot", rules.dot, lambda ops, a, b: ops.wrap(a @ b if a.ndim and b.ndim else a * b), arguments=2, degree="sum"
    ),
    ArrayFunction("transpose", rules.transpose, transposed, degree="same"),
    ArrayFunction("vec", rules.vec, lambda ops, x: x.reshape(-1), aliases=("ravel", "flatten"), degree="same"),
    ArrayFunction("tril", rules.matrix, lambda ops, x: _triangle(ops, x, "tril"), degree="same"),
    ArrayFunction("triu", rules.matrix, lambda ops, x: _triangle(ops, x, "triu"), degree="same"),
    ArrayFunction(
        "maximum",
        rules.together,
        lambda ops, a, b: _extremum(ops, a, b, "maximum"),
        arguments=2,
        is_broadcast=True,
        kink=Kink.BEND,
        confused_with=("minimum",),
    ),
    ArrayFunction(
        "minimum",
        rules.together,
        lambda ops, a, b: _extremum(ops, a, b, "minimum"),
        arguments=2,
        is_broadcast=True,
        kink=Kink.BEND,
        confused_with=("maximum",),
    ),
    Choice(
        "where",
        rules.together,
        lambda ops, condition, yes, no: ops.library.where(condition != 0, yes, no),
        arguments=3,
        is_broadcast=True,
        kink=Kink.BEND,
        is_method=False,
    ),
    ArrayFunction(
        "trigamma", rules.same, lambda ops, x: ops.wrap(trigamma(ops.library, ops.way, x)), is_broadcast=True
    ),
    ArrayFunction(
        "concat",
        rules.concat,
        lambda ops, parts, axis: ops.library.concatenate(parts, axis=axis),
        arguments=None,
        aliases=("concatenate", "cat"),
        takes_axis=True,
        is_method=False,
        degree="same",
    ),
    Arranging("expand_dims", rules.expand_dims, _reshaped, takes_axis=True, degree="same"),
    Arranging("reshape", rules.reshape, _reshaped, arguments=None, degree="same"),
    Arranging("swapaxes", rules.swapaxes, _swapped, arguments=3, degree="same"),
    Arranging("shape", rules.shape, _sizes),
    Arranging("ones", rules.sized, arguments=None, takes_sizes=True, is_method=False, confused_with=("zeros",)),
    Arranging(
        "zeros",
        rules.sized,
        lambda call, at: at.ops.full(at.extents(call), 0),
        arguments=None,
        takes_sizes=True,
        is_method=False,
    ),
    Arranging(
        "eye",
        rules.eye,
        lambda call, at: at.ops.eye(at.size(call.args[0])),
        aliases=("identity",),
        takes_sizes=True,
        is_method=False,
    ),
]

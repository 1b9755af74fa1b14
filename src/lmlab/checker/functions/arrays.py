"""Functions of whole arrays: products, triangles, joins, and arrays made from sizes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from lmlab.checker.functions import shapes as rules
from lmlab.checker.functions.record import Arithmetic, Array, At, Function, Kink, ShapeReader
from lmlab.checker.sizes import Shape
from lmlab.checker.tree import Call, constant_value


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
    return (x.permute(*range(x.ndim - 1, -1, -1)) if ops.way == "torch" else x.T) if x.ndim > 1 else x


def _diag(ops: Arithmetic, x: Array) -> Array:
    if x.ndim == 2:
        return x.diagonal()
    if ops.way == "torch":
        return ops.library.diag_embed(x)
    out, places = ops.full((x.shape[0],) * 2, 0), list(range(x.shape[0]))
    out[places, places] = x
    return out


def _triangle(ops: Arithmetic, x: Array, name: str) -> Array:
    """By a mask of 0 and 1, which every arithmetic has."""
    library = ops.library
    mask = getattr(library, name)(library.ones(tuple(x.shape[-2:]), dtype=bool))
    return library.where(mask, x, ops.full((), 0))


def outer(ops: Arithmetic, left: Array, right: Array) -> Array:
    """Of both, flattened."""
    return left.reshape(-1, 1) * right.reshape(1, -1)


def _kron(ops: Arithmetic, left: Array, right: Array) -> Array:
    """Block by block; torch.kron refuses some transposed matrices with one row."""
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
        aliases=("tr",),
        rule=rules.scalar_of_square,
        compute=lambda ops, x: ops.wrap(x.diagonal().sum()),
        degree="same",
        confused_with=("sum", "det"),
    ),
    ArrayFunction(
        "det",
        rule=rules.scalar_of_square,
        compute=lambda ops, x: ops.determinant(x),
        confused_with=("trace",),
    ),
    ArrayFunction(
        "inv",
        aliases=("inverse",),
        rule=rules.square,
        compute=lambda ops, x: ops.inverse(x),
        confused_with=("transpose",),
    ),
    ArrayFunction("diag", rule=rules.diag, compute=_diag, degree="same"),
    ArrayFunction("outer", arguments=2, rule=rules.outer, compute=outer, degree="sum"),
    ArrayFunction("kron", arguments=2, rule=rules.kron, compute=_kron, degree="sum"),
    ArrayFunction(
        "dot",
        arguments=2,
        rule=rules.dot,
        compute=lambda ops, a, b: ops.wrap(a @ b if a.ndim and b.ndim else a * b),
        degree="sum",
    ),
    ArrayFunction("transpose", rule=rules.transpose, compute=transposed, degree="same"),
    ArrayFunction(
        "vec",
        aliases=("ravel", "flatten"),
        rule=rules.vec,
        compute=lambda ops, x: x.reshape(-1),
        degree="same",
    ),
    ArrayFunction("tril", rule=rules.matrix, compute=lambda ops, x: _triangle(ops, x, "tril"), degree="same"),
    ArrayFunction("triu", rule=rules.matrix, compute=lambda ops, x: _triangle(ops, x, "triu"), degree="same"),
    ArrayFunction(
        "maximum",
        arguments=2,
        rule=rules.together,
        is_broadcast=True,
        compute=lambda ops, a, b: _extremum(ops, a, b, "maximum"),
        kink=Kink.BEND,
        confused_with=("minimum",),
    ),
    ArrayFunction(
        "minimum",
        arguments=2,
        rule=rules.together,
        is_broadcast=True,
        compute=lambda ops, a, b: _extremum(ops, a, b, "minimum"),
        kink=Kink.BEND,
        confused_with=("maximum",),
    ),
    ArrayFunction(
        "where",
        arguments=3,
        rule=rules.together,
        is_broadcast=True,
        compute=lambda ops, condition, yes, no: ops.library.where(condition != 0, yes, no),
        kink=Kink.BEND,
        is_method=False,
    ),
    ArrayFunction(
        "concat",
        arguments=None,
        aliases=("concatenate", "cat"),
        takes_axis=True,
        is_method=False,
        rule=rules.concat,
        compute=lambda ops, parts, axis: ops.library.concatenate(parts, axis=axis),
        degree="same",
    ),
    Arranging("expand_dims", takes_axis=True, rule=rules.expand_dims, compute=_reshaped, degree="same"),
    Arranging("reshape", arguments=None, rule=rules.reshape, compute=_reshaped, degree="same"),
    Arranging("swapaxes", arguments=3, rule=rules.swapaxes, compute=_swapped, degree="same"),
    Arranging("shape", rule=rules.shape, compute=_sizes),
    Arranging(
        "ones",
        arguments=None,
        takes_sizes=True,
        is_method=False,
        rule=rules.sized,
        confused_with=("zeros",),
    ),
    Arranging(
        "zeros",
        arguments=None,
        takes_sizes=True,
        is_method=False,
        rule=rules.sized,
        compute=lambda call, at: at.ops.full(at.extents(call), 0),
    ),
    Arranging(
        "eye",
        aliases=("identity",),
        takes_sizes=True,
        is_method=False,
        rule=rules.eye,
        compute=lambda call, at: at.ops.eye(at.size(call.args[0])),
    ),
]

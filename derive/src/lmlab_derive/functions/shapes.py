"""The shapes that functions of whole arrays give, in symbols: products, triangles, joins."""

from __future__ import annotations

import math
from dataclasses import replace

from lmlab_derive.functions.record import ShapeReader
from lmlab_derive.limits import MAX_LITERAL_SIZE, MAX_RANK, Refusal
from lmlab_derive.sizes import ONE, Misfit, Shape, Size, aligned, broadcast, shape_text
from lmlab_derive.text import to_text
from lmlab_derive.tree import Call, constant_value


def matmul_shape(left: Shape, right: Shape) -> Shape:
    """NumPy's matmul: 1-d operands lose their axis, axes before the last two broadcast."""
    if not left or not right:
        raise Refusal("@ needs arrays; write * with a scalar", code="product-of-scalar")
    inner_left = left[-1]
    inner_right = right[-2] if len(right) > 1 else right[0]
    if inner_left != inner_right:
        raise Misfit("inner sizes", inner_left, inner_right)
    batch = broadcast(left[:-2], right[:-2])
    return batch + (left[-2:-1] if len(left) > 1 else ()) + (right[-1:] if len(right) > 1 else ())


def checked(shape: Shape, name: str) -> Shape:
    """The shape itself, refused when it is too large to be drawn."""
    for axis in shape:
        if axis.number is not None and not 1 <= axis.number <= MAX_LITERAL_SIZE:
            raise Refusal(
                f"{name}({', '.join(map(str, shape))}): a size written as a number is 1 to {MAX_LITERAL_SIZE}",
                code="written-size-too-large",
            )
    if len(shape) > MAX_RANK:
        raise Refusal(f"an array has at most {MAX_RANK} axes", code="too-many-axes")
    return shape


def count(shape: Shape) -> Size:
    """How many entries an array of this shape has."""
    return math.prod(shape, start=ONE)


def axis_of(node: Call, shape: Shape, shown: Shape | None = None) -> int:
    """The axis of a call, counted from the front; a message speaks of the shape that is `shown`."""
    axis = -1 if node.axis is None else node.axis
    if not -len(shape) <= axis < len(shape):
        raise Refusal(
            f"{to_text(node)}: axis {axis} is out of range for shape {shape_text(shape if shown is None else shown)}",
            code="axis-out-of-range",
        )
    return axis % len(shape)


def same(call: Call, args: list[Shape]) -> Shape:
    """That of the first argument."""
    return args[0]


def transpose(call: Call, args: list[Shape]) -> Shape:
    """All axes reversed."""
    return args[0][::-1]


def vec(call: Call, args: list[Shape]) -> Shape:
    """All entries in a row."""
    return (count(args[0]),)


def matrix(call: Call, args: list[Shape]) -> Shape:
    """The same, of something with rows and columns."""
    if len(args[0]) < 2:
        raise Refusal(
            f"{call.function} needs a matrix, and {to_text(call.args[0])} is {shape_text(args[0])}",
            code="matrix-needed",
        )
    return args[0]


def square(call: Call, args: list[Shape]) -> Shape:
    """The same, of a square matrix."""
    shape = args[0]
    if len(shape) != 2 or shape[0] != shape[1]:
        raise Refusal(
            f"{call.function} needs a square matrix, and {to_text(call.args[0])} is {shape_text(shape)}",
            code="square-matrix-needed",
        )
    return shape


def scalar_of_square(call: Call, args: list[Shape]) -> Shape:
    """A number for a square matrix."""
    return square(call, args)[:0]


def diag(call: Call, args: list[Shape]) -> Shape:
    """The matrix of a vector, the vector of a matrix."""
    shape = args[0]
    if len(shape) == 1:
        return shape * 2
    if len(shape) == 2 and ONE in shape and shape[0] != shape[1]:
        hint = "sum(..., axis=0)" if shape[0] == ONE else "sum(..., axis=1)"
        raise Refusal(
            f"diag of {shape_text(shape)}: one row or column has no diagonal to spread; "
            f"make it a vector, as with {hint} or vec(...)",
            code="diag-without-diagonal",
        )
    return square(call, args)[:1]


def outer(call: Call, args: list[Shape]) -> Shape:
    """Every entry with every entry."""
    return (count(args[0]), count(args[1]))


def kron(call: Call, args: list[Shape]) -> Shape:
    """Axis by axis the product, counted from the back."""
    left, right = aligned(*args)
    return tuple(a * b for a, b in zip(left, right, strict=True))


def dot(call: Call, args: list[Shape]) -> Shape:
    """The matrix product, or the product with a scalar."""
    left, right = args
    if not left or not right:
        return left or right
    if len(left) > 2 or len(right) > 2:
        raise Refusal("dot takes vectors and matrices; use @ for more axes", code="dot-of-many-axes")
    try:
        return matmul_shape(left, right)
    except Refusal as refusal:
        raise Refusal(
            f"dot of {shape_text(left)} and {shape_text(right)}: {refusal}", code="dot-does-not-fit"
        ) from None


def together(call: Call, args: list[Shape]) -> Shape:
    """All arguments, broadcast."""
    out: Shape = ()
    try:
        for arg in args:
            out = broadcast(out, arg)
    except Refusal as refusal:
        raise Refusal(
            f"{call.function} of {' and '.join(map(shape_text, args))}: {refusal}", code="shapes-do-not-broadcast"
        ) from None
    return out


def concat(call: Call, args: list[Shape]) -> Shape:
    """Joined along an axis, the first unless another is named."""
    first = args[0]
    if not first:
        raise Refusal("concat joins arrays; write [a, b] for a vector of scalars", code="concat-of-scalars")
    axis = axis_of(replace(call, axis=call.axis or 0), first)
    total = first[axis]
    for other in args[1:]:
        if len(other) != len(first) or other[:axis] != first[:axis] or other[axis + 1 :] != first[axis + 1 :]:
            sideways = len(first) == len(other) == 2 and axis == 0 and first[0] == other[0]
            raise Refusal(
                f"concat of {shape_text(first)} and {shape_text(other)} along axis {axis}: "
                f"the other axes differ{'; did you mean axis=1?' if sideways else ''}",
                code="concat-does-not-fit",
            )
        total = total + other[axis]
    return (*first[:axis], total, *first[axis + 1 :])


def expand_dims(call: Call, shapes: ShapeReader) -> Shape:
    """One more axis, of size 1."""
    shape = shapes.of(call.args[0])
    axis = axis_of(call, (*shape, ONE), shown=shape)
    return checked((*shape[:axis], ONE, *shape[axis:]), "expand_dims")


def reshape(call: Call, shapes: ShapeReader) -> Shape:
    """The sizes that follow the array, which hold as many entries."""
    source = shapes.of(call.args[0])
    target = tuple(shapes.size(arg) for arg in call.args[1:])
    if count(source) != count(target):
        raise Refusal(
            f"reshape of {shape_text(source)} to {shape_text(target)}: {count(source)} entries are not {count(target)}",
            code="reshape-does-not-fit",
        )
    return checked(target, "reshape")


def swapaxes(call: Call, shapes: ShapeReader) -> Shape:
    """Two axes exchanged."""
    axes = list(shapes.of(call.args[0]))
    first, second = swapped_axes(call, tuple(axes))
    axes[first], axes[second] = axes[second], axes[first]
    return tuple(axes)


def swapped_axes(call: Call, shape: Shape) -> tuple[int, int]:
    """The two axes that swapaxes exchanges in an array of this shape, counted from the front."""
    found = []
    for arg in call.args[1:]:
        axis = constant_value(arg)
        if axis is None or axis.denominator != 1 or not -len(shape) <= axis < len(shape):
            raise Refusal(
                f"{to_text(call)}: {to_text(arg)} is not an axis of shape {shape_text(shape)}", code="not-an-axis"
            )
        found.append(int(axis) % len(shape))
    return found[0], found[1]


def shape(call: Call, shapes: ShapeReader) -> Shape:
    """One number for each axis; a scalar has one."""
    return (Size.of(max(1, len(shapes.of(call.args[0])))),)


def sized(call: Call, shapes: ShapeReader) -> Shape:
    """The sizes themselves."""
    return checked(tuple(shapes.size(arg) for arg in call.args), call.function)


def eye(call: Call, shapes: ShapeReader) -> Shape:
    """A square of this size."""
    return checked((shapes.size(call.args[0]),) * 2, call.function)

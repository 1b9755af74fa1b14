"""The shapes that functions of whole arrays give, in symbols: products, triangles, joins."""

from __future__ import annotations

from collections.abc import Callable

from lmlab.checker.limits import MAX_LITERAL_SIZE, MAX_RANK, Refusal
from lmlab.checker.sizes import ONE, Misfit, Shape, Size, broadcast, shape_text
from lmlab.checker.text import to_text
from lmlab.checker.tree import Call


def matmul_shape(left: Shape, right: Shape) -> Shape:
    """NumPy's matmul: 1-d operands lose their axis, axes before the last two broadcast."""
    if not left or not right:
        raise Refusal("@ needs arrays; write * with a scalar")
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
                f"{name}({', '.join(map(str, shape))}): a size written as a number is 1 to {MAX_LITERAL_SIZE}"
            )
    if len(shape) > MAX_RANK:
        raise Refusal(f"an array has at most {MAX_RANK} axes")
    return shape


def count(shape: Shape) -> Size:
    """How many entries an array of this shape has."""
    total = ONE
    for axis in shape:
        total = total * axis
    return total


def axis_of(node: Call, shape: Shape) -> int:
    """The axis of a call, counted from the front."""
    axis = -1 if node.axis is None else node.axis
    if not -len(shape) <= axis < len(shape):
        raise Refusal(f"{to_text(node)}: axis {axis} is out of range for shape {shape_text(shape)}")
    return axis % len(shape)


def _expand_dims(node: Call, args: list[Shape]) -> Shape:
    shape = args[0]
    axis = -1 if node.axis is None else node.axis
    if not -len(shape) - 1 <= axis <= len(shape):
        raise Refusal(f"{to_text(node)}: axis {axis} is out of range for shape {shape_text(shape)}")
    axis %= len(shape) + 1
    return checked((*shape[:axis], ONE, *shape[axis:]), "expand_dims")


def _triangle(node: Call, args: list[Shape]) -> Shape:
    if len(args[0]) < 2:
        raise Refusal(f"{node.function} needs a matrix, and {to_text(node.args[0])} is {shape_text(args[0])}")
    return args[0]


def _square(node: Call, args: list[Shape]) -> Shape:
    shape = args[0]
    if len(shape) != 2 or shape[0] != shape[1]:
        raise Refusal(f"{node.function} needs a square matrix, and {to_text(node.args[0])} is {shape_text(shape)}")
    return shape


def _diag(node: Call, args: list[Shape]) -> Shape:
    shape = args[0]
    if len(shape) == 1:
        return shape * 2
    if len(shape) == 2 and ONE in shape and shape[0] != shape[1]:
        hint = "sum(..., axis=0)" if shape[0] == ONE else "sum(..., axis=1)"
        raise Refusal(
            f"diag of {shape_text(shape)}: one row or column has no diagonal to spread; "
            f"make it a vector, as with {hint} or vec(...)"
        )
    return _square(node, args)[:1]


def _outer(node: Call, args: list[Shape]) -> Shape:
    return (count(args[0]), count(args[1]))


def _kron(node: Call, args: list[Shape]) -> Shape:
    left, right = args
    rank = max(len(left), len(right))
    left = (ONE,) * (rank - len(left)) + left
    right = (ONE,) * (rank - len(right)) + right
    return tuple(a * b for a, b in zip(left, right, strict=True))


def _dot(node: Call, args: list[Shape]) -> Shape:
    left, right = args
    if not left or not right:
        return left or right
    if len(left) > 2 or len(right) > 2:
        raise Refusal("dot takes vectors and matrices; use @ for more axes")
    return _matmul_args(node, left, right)


def _matmul_args(node: Call, left: Shape, right: Shape) -> Shape:
    try:
        return matmul_shape(left, right)
    except Refusal as refusal:
        raise Refusal(f"dot of {shape_text(left)} and {shape_text(right)}: {refusal}") from None


def _concat(node: Call, args: list[Shape]) -> Shape:
    first = args[0]
    if not first:
        raise Refusal("concat joins arrays; write [a, b] for a vector of scalars")
    probe = Call("concat", node.args, 0 if node.axis is None else node.axis)
    axis = axis_of(probe, first)
    total = first[axis]
    for other in args[1:]:
        if len(other) != len(first) or any(
            a != b for i, (a, b) in enumerate(zip(first, other, strict=True)) if i != axis
        ):
            advice = (
                "; did you mean axis=1?" if len(first) == len(other) == 2 and axis == 0 and first[0] == other[0] else ""
            )
            raise Refusal(
                f"concat of {shape_text(first)} and {shape_text(other)} along axis {axis}: "
                f"the other axes differ{advice}"
            )
        total = total + other[axis]
    return (*first[:axis], total, *first[axis + 1 :])


OF_ARRAYS: dict[str, Callable[[Call, list[Shape]], Shape]] = {
    "trace": lambda node, args: _square(node, args)[:0],
    "det": lambda node, args: _square(node, args)[:0],
    "inv": _square,
    "diag": _diag,
    "outer": _outer,
    "kron": _kron,
    "transpose": lambda node, args: args[0][::-1],
    "dot": _dot,
    "vec": lambda node, args: (count(args[0]),),
    "concat": _concat,
    "expand_dims": _expand_dims,
    "tril": _triangle,
    "triu": _triangle,
    "shape": lambda node, args: (Size.of(max(1, len(args[0]))),),
}

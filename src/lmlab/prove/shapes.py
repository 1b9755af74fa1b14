"""Shapes in symbols: what every expression's axes are, and one clear line when they do not fit together."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from lmlab.prove.functions import ALONG, ELEMENTWISE, PAIRWISE, REDUCTIONS
from lmlab.prove.limits import MAX_RANK, Refusal
from lmlab.prove.reader import constant_value
from lmlab.prove.render import level, to_text
from lmlab.prove.sizes import ONE, Misfit, Shape, Size, broadcast, shape_text
from lmlab.prove.syntax import (
    Binary,
    Call,
    Compare,
    Constant,
    Derivative,
    Expectation,
    Index,
    Name,
    Negate,
    Node,
    Number,
    Slice,
    Stack,
    Transpose,
)


@dataclass
class Shapes:
    """The shapes of the names a claim can see, and which names are sizes. Remembers what it has inferred."""

    names: dict[str, Shape]
    sizes: frozenset[str]
    quiet: bool = False  # leave mistakes unexplained: the search for hints meets thousands
    seen: dict[int, tuple[Node, Shape]] = field(default_factory=dict)  # by identity; the node is kept alive beside it


def infer(node: Node, shapes: Shapes) -> Shape:
    """The shape of an expression. Raises `Refusal`, explained in symbols, when sizes do not fit."""
    found = shapes.seen.get(id(node))
    if found is None:
        found = shapes.seen[id(node)] = (node, _infer(node, shapes))
    return found[1]


def _infer(node: Node, shapes: Shapes) -> Shape:
    match node:
        case Number() | Constant():
            return ()
        case Name():
            return () if node.name in shapes.sizes else shapes.names[node.name]
        case Negate():
            return infer(node.operand, shapes)
        case Transpose():
            return infer(node.operand, shapes)[::-1]
        case Binary(op="@"):
            return _matmul(node, shapes)
        case Binary() | Compare():
            return _elementwise_pair(node, shapes)
        case Call():
            return _call(node, shapes)
        case Stack():
            return _stack(node, shapes)
        case Index():
            return _index(node, shapes)
        case Derivative():
            return _derivative(node, shapes)
        case Expectation():
            return infer(node.operand, shapes)
    raise AssertionError(node)


def scalar_like(shape: Shape) -> bool:
    """Whether an array of this shape always holds one number."""
    return all(axis == ONE for axis in shape)


def _operand_text(node: Node) -> str:
    text = to_text(node)
    return text if level(node) == 100 else f"({text})"


def _transposed(node: Node) -> str:
    """How to write the transpose of an operand: W2.T for W2, and W2 for W2.T."""
    return _operand_text(node.operand) if isinstance(node, Transpose) else _operand_text(node) + ".T"


def _matmul(node: Binary, shapes: Shapes) -> Shape:
    left, right = infer(node.left, shapes), infer(node.right, shapes)
    try:
        return matmul_shape(left, right)
    except Refusal as refusal:
        if shapes.quiet:
            raise
        what = f"{shape_text(left)} @ {shape_text(right)}: {refusal}"
        raise Refusal(what + _suggest(node, left, right, matmul_shape)) from None


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


def _elementwise_pair(node: Binary | Compare, shapes: Shapes) -> Shape:
    left, right = infer(node.left, shapes), infer(node.right, shapes)
    try:
        return broadcast(left, right)
    except Refusal as refusal:
        if shapes.quiet:
            raise
        what = f"{shape_text(left)} {node.op} {shape_text(right)}: {refusal}"
        raise Refusal(what + _suggest(node, left, right, broadcast)) from None


def _suggest(node: Binary | Compare, left: Shape, right: Shape, combine: Callable[[Shape, Shape], Shape]) -> str:
    """A question that names the transpose or the order that would fit, or nothing."""

    def fits(a: Shape, b: Shape) -> bool:
        try:
            combine(a, b)
        except Refusal:
            return False
        return True

    if len(right) > 1 and fits(left, right[::-1]):
        return f"; did you mean {_transposed(node.right)}?"
    if len(left) > 1 and fits(left[::-1], right):
        return f"; did you mean {_transposed(node.left)}?"
    if node.op == "@" and fits(right, left):
        return f"; did you mean {_operand_text(node.right)} @ {_operand_text(node.left)}?"
    if node.op == "@" and left and right and _broadcasts(left, right):
        return f"; did you mean {_operand_text(node.left)} * {_operand_text(node.right)}?"
    if node.op == "*" and left and right:
        try:
            matmul_shape(left, right)
        except Refusal:
            return ""
        return f"; did you mean {_operand_text(node.left)} @ {_operand_text(node.right)}?"
    return ""


def _broadcasts(left: Shape, right: Shape) -> bool:
    try:
        broadcast(left, right)
    except Refusal:
        return False
    return True


def size_of(node: Node, shapes: Shapes) -> Size:
    """An expression used as a size, as in eye(n) or x[0:n]."""
    match node:
        case Number() if node.value.denominator == 1:
            return Size.of(int(node.value))
        case Name() if node.name in shapes.sizes:
            return Size.of(node.name)
        case Binary(op="+"):
            return size_of(node.left, shapes) + size_of(node.right, shapes)
        case Binary(op="-"):
            return size_of(node.left, shapes) + -size_of(node.right, shapes)
        case Binary(op="*"):
            return size_of(node.left, shapes) * size_of(node.right, shapes)
        case Negate():
            return -size_of(node.operand, shapes)
    raise Refusal(f"{to_text(node)} is not a size; sizes are whole numbers and the names used in shapes")


def _call(node: Call, shapes: Shapes) -> Shape:
    name = node.function
    if name in ("ones", "zeros"):
        return _checked(tuple(size_of(arg, shapes) for arg in node.args), name)
    if name == "eye":
        size = size_of(node.args[0], shapes)
        return _checked((size, size), name)
    if name == "reshape":
        return _reshape(node, shapes)
    if name == "swapaxes":
        first, second = swapped_axes(node, shapes)
        axes = list(infer(node.args[0], shapes))
        axes[first], axes[second] = axes[second], axes[first]
        return tuple(axes)
    args = [infer(arg, shapes) for arg in node.args]
    if name in ELEMENTWISE:
        return args[0]
    if name in REDUCTIONS:
        return _reduce(node, args[0])
    if name in ALONG:
        if not args[0]:
            raise Refusal(f"{name} needs an array, and {to_text(node.args[0])} is a scalar")
        _axis(node, args[0])
        return args[0]
    if name in PAIRWISE or name == "where":
        return _broadcast_all(node, args)
    return _MATRIX[name](node, args)


def _checked(shape: Shape, name: str) -> Shape:
    for axis in shape:
        if axis.number is not None and not 1 <= axis.number <= 64:
            raise Refusal(f"{name}({', '.join(map(str, shape))}): a size written as a number is 1 to 64")
    if len(shape) > MAX_RANK:
        raise Refusal(f"an array has at most {MAX_RANK} axes")
    return shape


def _reshape(node: Call, shapes: Shapes) -> Shape:
    source = infer(node.args[0], shapes)
    target = tuple(size_of(arg, shapes) for arg in node.args[1:])
    if _count(source) != _count(target):
        raise Refusal(
            f"reshape of {shape_text(source)} to {shape_text(target)}: "
            f"{_count(source)} entries are not {_count(target)}"
        )
    return _checked(target, "reshape")


def _count(shape: Shape) -> Size:
    total = ONE
    for axis in shape:
        total = total * axis
    return total


def _axis(node: Call, shape: Shape) -> int:
    """The axis of a call, counted from the front."""
    axis = -1 if node.axis is None else node.axis
    if not -len(shape) <= axis < len(shape):
        raise Refusal(f"{to_text(node)}: axis {axis} is out of range for shape {shape_text(shape)}")
    return axis % len(shape)


def swapped_axes(node: Call, shapes: Shapes) -> tuple[int, int]:
    """The two axes that swapaxes exchanges, counted from the front."""
    shape = infer(node.args[0], shapes)
    found = []
    for arg in node.args[1:]:
        axis = constant_value(arg)
        if axis is None or axis.denominator != 1 or not -len(shape) <= axis < len(shape):
            raise Refusal(f"{to_text(node)}: {to_text(arg)} is not an axis of shape {shape_text(shape)}")
        found.append(int(axis) % len(shape))
    return found[0], found[1]


def _expand_dims(node: Call, args: list[Shape]) -> Shape:
    shape = args[0]
    axis = -1 if node.axis is None else node.axis
    if not -len(shape) - 1 <= axis <= len(shape):
        raise Refusal(f"{to_text(node)}: axis {axis} is out of range for shape {shape_text(shape)}")
    axis %= len(shape) + 1
    return _checked((*shape[:axis], ONE, *shape[axis:]), "expand_dims")


def _triangle(node: Call, args: list[Shape]) -> Shape:
    if len(args[0]) < 2:
        raise Refusal(f"{node.function} needs a matrix, and {to_text(node.args[0])} is {shape_text(args[0])}")
    return args[0]


def _reduce(node: Call, shape: Shape) -> Shape:
    if node.axis is None:
        return (ONE,) * len(shape) if node.keepdims else ()
    axis = _axis(node, shape)
    return shape[:axis] + ((ONE,) if node.keepdims else ()) + shape[axis + 1 :]


def _broadcast_all(node: Call, args: list[Shape]) -> Shape:
    out: Shape = ()
    try:
        for arg in args:
            out = broadcast(out, arg)
    except Refusal as refusal:
        raise Refusal(f"{node.function} of {' and '.join(map(shape_text, args))}: {refusal}") from None
    return out


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
    return (_count(args[0]), _count(args[1]))


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
    axis = _axis(probe, first)
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


_MATRIX: dict[str, Callable[[Call, list[Shape]], Shape]] = {
    "trace": lambda node, args: _square(node, args)[:0],
    "det": lambda node, args: _square(node, args)[:0],
    "inv": _square,
    "diag": _diag,
    "outer": _outer,
    "kron": _kron,
    "transpose": lambda node, args: args[0][::-1],
    "dot": _dot,
    "vec": lambda node, args: (_count(args[0]),),
    "concat": _concat,
    "expand_dims": _expand_dims,
    "tril": _triangle,
    "triu": _triangle,
    "shape": lambda node, args: (Size.of(max(1, len(args[0]))),),
}


def _stack(node: Stack, shapes: Shapes) -> Shape:
    items = [infer(item, shapes) for item in node.items]
    if any(item != items[0] for item in items):
        raise Refusal(f"the items of {to_text(node)} have different shapes: {', '.join(map(shape_text, items))}")
    if len(items[0]) >= MAX_RANK:
        raise Refusal(f"an array has at most {MAX_RANK} axes")
    return (Size.of(len(items)), *items[0])


def slice_bounds(item: Slice, axis: Size, shapes: Shapes) -> tuple[Size, Size]:
    """Where a slice starts and stops, in sizes; a stop counted from the end is written n-1, not -1."""
    start = Size.of(0) if item.start is None else size_of(item.start, shapes)
    stop = axis if item.stop is None else size_of(item.stop, shapes)
    start = axis + start if (start.number or 0) < 0 else start
    stop = axis + stop if (stop.number or 0) < 0 else stop
    return start, stop


def _index(node: Index, shapes: Shapes) -> Shape:
    shape = infer(node.operand, shapes)
    if len(node.items) > len(shape):
        raise Refusal(f"{to_text(node)}: {len(node.items)} positions for shape {shape_text(shape)}")
    out: list[Size] = []
    for item, axis in zip(node.items, shape, strict=False):
        if isinstance(item, Slice):
            start, stop = slice_bounds(item, axis, shapes)
            length = stop + -start
            if length.number is not None and length.number < 1:
                raise Refusal(f"{to_text(node)}: the slice holds nothing")
            out.append(length)
        else:
            position = size_of(item, shapes)
            if (
                axis.number is not None
                and position.number is not None
                and not -axis.number <= position.number < axis.number
            ):
                raise Refusal(f"{to_text(node)}: position {position} is out of range for size {axis}")
    return tuple(out) + shape[len(node.items) :]


def _derivative(node: Derivative, shapes: Shapes) -> Shape:
    shape = infer(node.top, shapes)
    if scalar_like(shape) and not node.strict:
        shape = ()
    for name in node.by:
        if name in shapes.sizes:
            raise Refusal(f"{name} is a size; one differentiates by a given or a let")
        shape = shape + shapes.names[name]
    if len(shape) > MAX_RANK:
        raise Refusal(f"{to_text(node)} has {len(shape)} axes; at most {MAX_RANK} are allowed")
    return shape


def exponent_of(node: Binary) -> int | None:
    """The whole number that a power is raised to, when it is written out."""
    value = constant_value(node.right)
    return int(value) if value is not None and value.denominator == 1 else None

"""Shapes in symbols: what every expression's axes are, and one clear line when they do not fit together."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from lmlab.checker.functions.shapes import OF_ARRAYS, axis_of, checked, count, matmul_shape
from lmlab.checker.kinds import ALONG, ELEMENTWISE, PAIRWISE, REDUCTIONS
from lmlab.checker.limits import MAX_RANK, Refusal
from lmlab.checker.read.cursor import constant_value
from lmlab.checker.sizes import ONE, Shape, Size, broadcast, shape_text
from lmlab.checker.text import level, to_text
from lmlab.checker.tree import (
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
    raise Refusal(
        f"{to_text(node)} is not a size; sizes and positions are whole numbers and the names used in shapes "
        "(for a random entry of f, write y @ f with y: n onehot(p))"
    )


def _call(node: Call, shapes: Shapes) -> Shape:
    name = node.function
    if name in ("ones", "zeros"):
        return checked(tuple(size_of(arg, shapes) for arg in node.args), name)
    if name == "eye":
        size = size_of(node.args[0], shapes)
        return checked((size, size), name)
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
        axis_of(node, args[0])
        return args[0]
    if name in PAIRWISE or name == "where":
        return _broadcast_all(node, args)
    return OF_ARRAYS[name](node, args)


def _reshape(node: Call, shapes: Shapes) -> Shape:
    source = infer(node.args[0], shapes)
    target = tuple(size_of(arg, shapes) for arg in node.args[1:])
    if count(source) != count(target):
        raise Refusal(
            f"reshape of {shape_text(source)} to {shape_text(target)}: {count(source)} entries are not {count(target)}"
        )
    return checked(target, "reshape")


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


def _reduce(node: Call, shape: Shape) -> Shape:
    if node.axis is None:
        return (ONE,) * len(shape) if node.keepdims else ()
    axis = axis_of(node, shape)
    return shape[:axis] + ((ONE,) if node.keepdims else ()) + shape[axis + 1 :]


def _broadcast_all(node: Call, args: list[Shape]) -> Shape:
    out: Shape = ()
    try:
        for arg in args:
            out = broadcast(out, arg)
    except Refusal as refusal:
        raise Refusal(f"{node.function} of {' and '.join(map(shape_text, args))}: {refusal}") from None
    return out


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
            before, beyond = start.number, (stop + -axis).number
            if (before is not None and before < 0) or (beyond is not None and beyond > 0):
                raise Refusal(f"{to_text(node)}: the slice goes beyond size {axis}")
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

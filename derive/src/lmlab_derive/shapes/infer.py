"""Shapes in symbols: what every expression's axes are, and one clear line when they do not fit together."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from lmlab_derive import tree
from lmlab_derive.functions import FUNCTIONS, Reduction
from lmlab_derive.functions.shapes import matmul_shape
from lmlab_derive.limits import MAX_RANK, Refusal
from lmlab_derive.sizes import ONE, Shape, Size, broadcast, shape_text
from lmlab_derive.text import operand_text, to_text
from lmlab_derive.tree import (
    Binary,
    Derivative,
    Index,
    Name,
    Negate,
    Node,
    Number,
    Slice,
    Stack,
    Transpose,
)

Combine = Callable[[Shape, Shape], Shape]


def scalar_like(shape: Shape) -> bool:
    """Whether an array of this shape always holds one number."""
    return all(axis == ONE for axis in shape)


@dataclass
class Shapes:
    """The shapes of the names a claim can see, and which names are sizes. Remembers what it has inferred."""

    names: dict[str, Shape]
    sizes: frozenset[str]
    recursive: frozenset[str] = frozenset()  # lets that are defined step by step
    quiet: bool = False  # leave mistakes unexplained: the search for hints meets thousands
    seen: dict[int, tuple[Node, Shape]] = field(default_factory=dict)  # by identity; the node is kept alive beside it

    def of(self, node: Node) -> Shape:
        """The shape of an expression. Raises `Refusal`, explained in symbols, when sizes do not fit."""
        found = self.seen.get(id(node))
        if found is None:
            found = self.seen[id(node)] = (node, self._infer(node))
        return found[1]

    def _infer(self, node: Node) -> Shape:
        match node:
            case Number() | tree.Constant() | tree.Letter():
                return ()
            case Name():
                return () if node.name in self.sizes else self.names[node.name]
            case Negate() | tree.Expectation() | tree.Over():
                return self.of(node.operand)
            case Transpose():
                return self.of(node.operand)[::-1]
            case Binary() | tree.Compare():
                return self._pair(node, matmul_shape if node.op == "@" else broadcast)
            case tree.Call():
                return FUNCTIONS[node.function].shape(node, self)
            case Stack():
                return self._stack(node)
            case Index():
                return self._index(node)
            case Derivative():
                return self._derivative(node)
            case tree.Table():
                return (*(self.range_of(witness) for _, witness in node.letters), *self.of(node.operand))
            case tree.Recursion():
                return self._recursion(node)
        raise AssertionError(node)

    def from_zero(self, node: Node, axis: int) -> bool:
        """Whether an axis holds the rows of a recursion, whose first is called h[0]; in derivatives too."""
        if isinstance(node, Name):
            return axis == 0 and (node.name.endswith("#") or node.name in self.recursive)
        if not isinstance(node, Derivative):
            return axis == 0 and isinstance(node, tree.Recursion)
        plain = scalar_like(self.of(node.operand)) and not node.strict
        for part in [*([] if plain else [node.operand]), *map(Name, node.by)]:
            rank = len(self.of(part))
            if axis < rank:
                return self.from_zero(part, axis)
            axis -= rank
        return False

    def range_of(self, witness: tree.Witness) -> Size:
        """How many values a letter has: those of the axis that it stands for alone; of a recursion, its steps."""
        shape = self.of(witness.operand)
        if witness.axis >= len(shape):
            raise Refusal(
                f"{to_text(witness.operand)} has {len(shape)} axes, and {witness.axis + 1} positions are named",
                code="too-many-positions-of-letters",
            )
        fewer = Size.of(-witness.beyond - int(self.from_zero(witness.operand, witness.axis)))
        return shape[witness.axis] + fewer + (-self.range_of(witness.less) if witness.less else Size.of(0))

    def _recursion(self, node: tree.Recursion) -> Shape:
        row = self.of(node.start)
        length = self.range_of(node.witness)
        self.names[node.name] = (length + ONE, *row)
        step = self.of(node.operand)
        if step != row:
            shapes = f"{shape_text(row)} at the start and {shape_text(step)} afterwards"
            raise Refusal(f"{node.name} would be {shapes}", code="definition-of-two-shapes")
        return self.names[node.name]

    def size(self, node: Node) -> Size:
        """An expression used as a size, as in eye(n) or x[0:n]."""
        match node:
            case Number() if node.value.denominator == 1:
                return Size.of(int(node.value))
            case Name() if node.name in self.sizes:
                return Size.of(node.name)
            case Binary(op="+"):
                return self.size(node.left) + self.size(node.right)
            case Binary(op="-"):
                return self.size(node.left) + -self.size(node.right)
            case Binary(op="*"):
                return self.size(node.left) * self.size(node.right)
            case Negate():
                return -self.size(node.operand)
        raise Refusal(
            f"{to_text(node)} is not a size; sizes and positions are whole numbers and the names used in shapes "
            "(for a random entry of f, write y @ f with y: n onehot(p))",
            code="not-a-size",
        )

    def bounds(self, item: Slice, axis: Size) -> tuple[Size, Size]:
        """Where a slice starts and stops, in sizes; a stop counted from the end is written n-1, not -1."""
        start = Size.of(0) if item.start is None else self.size(item.start)
        stop = axis if item.stop is None else self.size(item.stop)
        start = axis + start if (start.number or 0) < 0 else start
        stop = axis + stop if (stop.number or 0) < 0 else stop
        return start, stop

    def _pair(self, node: Binary | tree.Compare, combine: Combine) -> Shape:
        left, right = self.of(node.left), self.of(node.right)
        try:
            return combine(left, right)
        except Refusal as refusal:
            if self.quiet:
                raise
            what = f"{shape_text(left)} {node.op} {shape_text(right)}: {refusal}"
            by_rows = self._by_rows(node.left) or self._by_rows(node.right) if combine is matmul_shape else ""
            raise Refusal(
                what + (by_rows or _suggestion(node, left, right, combine)), code="shapes-do-not-fit"
            ) from None

    def _by_rows(self, node: Node) -> str:
        """What to write for one number a row, where a sum is one of a whole matrix, as H(K) is; or nothing."""
        inner = node.operand if isinstance(node, tree.Negate) else node
        if not isinstance(inner, tree.Call) or not isinstance(FUNCTIONS[inner.function], Reduction) or self.of(inner):
            return ""
        if len(self.of(inner.args[0])) != 2:
            return ""
        wanted = to_text(node).replace(to_text(inner), to_text(replace(inner, axis=1)))
        return f"; {to_text(node)} is one number for all rows together, {wanted} is one for each"

    def _stack(self, node: Stack) -> Shape:
        items = [self.of(item) for item in node.items]
        if any(item != items[0] for item in items):
            raise Refusal(
                f"the items of {to_text(node)} have different shapes: {', '.join(map(shape_text, items))}",
                code="items-of-different-shapes",
            )
        if len(items[0]) >= MAX_RANK:
            raise Refusal(f"an array has at most {MAX_RANK} axes", code="too-many-axes")
        return (Size.of(len(items)), *items[0])

    def _index(self, node: Index) -> Shape:
        shape = self.of(node.operand)
        if len(node.items) > len(shape):
            raise Refusal(
                f"{to_text(node)}: {len(node.items)} positions for shape {shape_text(shape)}", code="too-many-positions"
            )
        out: list[Size] = []
        for item, axis in zip(node.items, shape, strict=False):
            if isinstance(item, Slice):
                start, stop = self.bounds(item, axis)
                length = stop + -start
                if length.number is not None and length.number < 1:
                    raise Refusal(f"{to_text(node)}: the slice holds nothing", code="slice-empty")
                if (start.number or 0) < 0 or ((stop + -axis).number or 0) > 0:
                    raise Refusal(f"{to_text(node)}: the slice goes beyond size {axis}", code="slice-out-of-range")
                out.append(length)
            elif not item.free_letters:
                position = self.size(item)
                beyond, before = (position + -axis).number, (position + axis).number
                if (beyond is not None and beyond >= 0) or (before is not None and before < 0):
                    raise Refusal(
                        f"{to_text(node)}: position {position} is out of range for size {axis}",
                        code="position-out-of-range",
                    )
        return tuple(out) + shape[len(node.items) :]

    def _derivative(self, node: Derivative) -> Shape:
        shape = self.of(node.operand)
        if scalar_like(shape) and not node.strict:
            shape = ()
        for name in node.by:
            if name in self.sizes:
                raise Refusal(f"{name} is a size; one differentiates by a given or a let", code="derivative-by-size")
            if name in self.recursive and Name(name) in tree.walk(node.operand):
                raise Refusal(
                    f"rows of {name} follow from each other by its step: give the step a name, such as let f(u) = …,"
                    " and write d(f(u))/du",
                    code="derivative-by-rows",
                )
            shape = shape + self.names[name]
        if len(shape) > MAX_RANK:
            raise Refusal(
                f"{to_text(node)} has {len(shape)} axes; at most {MAX_RANK} are allowed", code="too-many-axes"
            )
        return shape


def _suggestion(node: Binary | tree.Compare, left: Shape, right: Shape, combine: Combine) -> str:
    """A question that names the transpose or the order that would fit, or nothing."""

    def fits(a: Shape, b: Shape, combine: Combine = combine) -> bool:
        try:
            combine(a, b)
        except Refusal:
            return False
        return True

    first, second = operand_text(node.left), operand_text(node.right)
    better = ""
    if len(right) > 1 and fits(left, right[::-1]):
        better = _transposed(node.right)
    elif len(left) > 1 and fits(left[::-1], right):
        better = _transposed(node.left)
    elif node.op == "@" and fits(right, left):
        better = f"{second} @ {first}"
    elif node.op == "@" and left and right and fits(left, right, broadcast):
        better = f"{first} * {second}"
    elif node.op == "*" and left and right and fits(left, right, matmul_shape):
        better = f"{first} @ {second}"
    return f"; did you mean {better}?" if better else ""


def _transposed(node: Node) -> str:
    """How to write the transpose of an operand: W2.T for W2, and W2 for W2.T."""
    return operand_text(node.operand) if isinstance(node, Transpose) else operand_text(node) + ".T"

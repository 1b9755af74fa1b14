"""The meaning of an expression at a point: one walk over the tree, with the arithmetic left to an `Ops`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from lmlab.checker.kinds import ALONG, ELEMENTWISE, PAIRWISE, REDUCTIONS
from lmlab.checker.limits import Deadline
from lmlab.checker.read.cursor import constant_value
from lmlab.checker.shapes.infer import size_of, slice_bounds, swapped_axes
from lmlab.checker.shapes.setting import Setting
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

Array = Any  # a torch tensor, or a numpy array of doubles, long decimals or polynomials


class Ops(ABC):
    """The arithmetic of one kind of array. Meanings are NumPy's."""

    margin: float = float(
        "inf"
    )  # how near the nearest kink (relu at 0, a tie of max, ...) came since it was last reset

    @abstractmethod
    def number(self, value: Fraction | str) -> Array:
        """A scalar: an exact fraction, or "pi"."""

    @abstractmethod
    def negate(self, value: Array) -> Array:
        """-value."""

    @abstractmethod
    def binary(self, op: str, left: Array, right: Array) -> Array:
        """+ - * / @ or ** (with an array as exponent)."""

    @abstractmethod
    def power(self, base: Array, exponent: Fraction) -> Array:
        """A power written as a number."""

    @abstractmethod
    def compare(self, op: str, left: Array, right: Array) -> Array:
        """1 where the comparison holds, else 0."""

    @abstractmethod
    def elementwise(self, name: str, value: Array) -> Array:
        """exp, log, sigmoid, ..."""

    @abstractmethod
    def reduce(self, name: str, value: Array, axis: int | None, keepdims: bool) -> Array:
        """sum, mean, max, norm, ..."""

    @abstractmethod
    def along(self, name: str, value: Array, axis: int) -> Array:
        """softmax, log_softmax, cumsum."""

    @abstractmethod
    def pair(self, name: str, left: Array, right: Array) -> Array:
        """maximum, minimum."""

    @abstractmethod
    def choose(self, condition: Array, yes: Array, no: Array) -> Array:
        """where(condition, yes, no)."""

    @abstractmethod
    def matrix(self, name: str, value: Array) -> Array:
        """trace, det, inv, diag, transpose, tril, triu, vec of one array."""

    @abstractmethod
    def outer(self, left: Array, right: Array) -> Array:
        """outer of two flattened arrays."""

    @abstractmethod
    def kron(self, left: Array, right: Array) -> Array:
        """The Kronecker product."""

    @abstractmethod
    def full(self, shape: Sequence[int], value: int) -> Array:
        """An array filled with 0 or 1."""

    @abstractmethod
    def eye(self, size: int) -> Array:
        """The identity matrix."""

    @abstractmethod
    def concat(self, parts: Sequence[Array], axis: int) -> Array:
        """Join along an axis."""

    @abstractmethod
    def stack(self, parts: Sequence[Array]) -> Array:
        """Stack along a new first axis."""

    @abstractmethod
    def reshape(self, value: Array, shape: Sequence[int]) -> Array:
        """The same entries, row by row, in another shape."""

    @abstractmethod
    def index(self, value: Array, items: tuple[int | slice, ...]) -> Array:
        """Positions and slices."""

    @abstractmethod
    def swap(self, value: Array, first: int, second: int) -> Array:
        """Two axes exchanged."""

    @abstractmethod
    def from_numpy(self, raw: Any) -> Array:
        """An array of doubles, taken over exactly."""

    @abstractmethod
    def derivative(self, node: Derivative, frame: Frame) -> Array:
        """d top / d name at the frame's point."""

    @abstractmethod
    def expectation(self, node: Expectation, frame: Frame) -> Array:
        """E or Var at the frame's point."""


class Frame:
    """The values of names at one point. A child overrides some of them; lets that depend on those are recomputed."""

    def __init__(
        self,
        setting: Setting,
        ops: Ops,
        sizes: Mapping[str, int],
        values: dict[str, Array],
        deadline: Deadline,
        parent: Frame | None = None,
        graph: bool = False,
    ) -> None:
        self.setting = setting
        self.ops = ops
        self.sizes = sizes
        self.values = values
        self.deadline = deadline
        self.parent = parent
        self.graph = graph  # something outside differentiates through this frame
        self.overridden = frozenset(values) if parent is not None else frozenset()
        self.memo: dict[int, tuple[Node, Array]] = {}  # by identity; the node is kept so that its id stays taken

    def child(self, overrides: dict[str, Array], graph: bool | None = None) -> Frame:
        """A frame where these names have other values."""
        graph = self.graph if graph is None else graph
        return Frame(self.setting, self.ops, self.sizes, dict(overrides), self.deadline, self, graph)

    def value(self, name: str) -> Array:
        """The value of a given, a let or a size."""
        found = self.values.get(name)
        if found is not None:
            return found
        if name in self.setting.shapes.sizes:
            found = self.ops.number(Fraction(self.sizes[name]))
        elif self.parent is not None and not (self.overridden & self.setting.uses.get(name, frozenset())):
            return self.parent.value(name)
        else:
            assert name in self.setting.lets, name
            found = evaluate(self.setting.lets[name].value, self)
        self.values[name] = found
        return found

    def independent(self, node: Node) -> bool:
        """Whether an expression is untouched by this frame's overrides, so that the parent's value serves."""
        return not (self.overridden & self.setting.depends(node))


def evaluate(node: Node, frame: Frame) -> Array:
    """The value of an expression in a frame."""
    match node:
        case Name():
            return frame.value(node.name)
        case Number():
            return frame.ops.number(node.value)
        case Constant():
            return frame.ops.number(node.name)
    found = frame.memo.get(id(node))
    if found is None:
        frame.deadline.check()
        found = frame.memo[id(node)] = (node, _compute(node, frame))
    return found[1]


def _compute(node: Node, frame: Frame) -> Array:
    ops = frame.ops
    match node:
        case Negate():
            return ops.negate(evaluate(node.operand, frame))
        case Binary(op="**"):
            exponent = constant_value(node.right)
            if exponent is not None:
                return ops.power(evaluate(node.left, frame), exponent)
            return ops.binary("**", evaluate(node.left, frame), evaluate(node.right, frame))
        case Binary():
            return ops.binary(node.op, evaluate(node.left, frame), evaluate(node.right, frame))
        case Compare():
            return ops.compare(node.op, evaluate(node.left, frame), evaluate(node.right, frame))
        case Transpose():
            return ops.matrix("transpose", evaluate(node.operand, frame))
        case Call():
            return _call(node, frame)
        case Stack():
            return ops.stack([evaluate(item, frame) for item in node.items])
        case Index():
            return ops.index(evaluate(node.operand, frame), _positions(node, frame))
        case Derivative():
            return ops.derivative(node, frame)
        case Expectation():
            return ops.expectation(node, frame)
    raise AssertionError(node)


def _size(node: Node, frame: Frame) -> int:
    return size_of(node, frame.setting.shapes).value(frame.sizes)


def _call(node: Call, frame: Frame) -> Array:
    ops, name = frame.ops, node.function
    if name in ("ones", "zeros"):
        return ops.full([_size(arg, frame) for arg in node.args], int(name == "ones"))
    if name == "eye":
        return ops.eye(_size(node.args[0], frame))
    if name == "reshape":
        return ops.reshape(evaluate(node.args[0], frame), [_size(arg, frame) for arg in node.args[1:]])
    if name == "shape":
        shape = frame.setting.shape(node.args[0])
        numbers = [ops.number(Fraction(axis.value(frame.sizes))) for axis in shape]
        return ops.stack(numbers or [ops.number(Fraction(1))])
    if name == "expand_dims":
        return ops.reshape(
            evaluate(node.args[0], frame), [axis.value(frame.sizes) for axis in frame.setting.shape(node)]
        )
    if name == "swapaxes":
        return ops.swap(evaluate(node.args[0], frame), *swapped_axes(node, frame.setting.shapes))
    args = [evaluate(arg, frame) for arg in node.args]
    if name in ELEMENTWISE:
        return ops.elementwise(name, args[0])
    if name in REDUCTIONS:
        return ops.reduce(name, args[0], node.axis, node.keepdims)
    if name in ALONG:
        return ops.along(name, args[0], -1 if node.axis is None else node.axis)
    if name in PAIRWISE:
        return ops.pair(name, args[0], args[1])
    match name:
        case "where":
            return ops.choose(args[0], args[1], args[2])
        case "outer":
            return ops.outer(args[0], args[1])
        case "kron":
            return ops.kron(args[0], args[1])
        case "dot":
            return ops.binary("@" if args[0].ndim and args[1].ndim else "*", args[0], args[1])
        case "concat":
            return ops.concat(args, 0 if node.axis is None else node.axis)
    return ops.matrix(name, args[0])


def _positions(node: Index, frame: Frame) -> tuple[int | slice, ...]:
    shapes = frame.setting.shapes
    axes = frame.setting.shape(node.operand)
    items: list[int | slice] = []
    for item, axis in zip(node.items, axes, strict=False):
        if isinstance(item, Slice):
            start, stop = slice_bounds(item, axis, shapes)
            items.append(slice(start.value(frame.sizes), stop.value(frame.sizes)))
        else:
            position = size_of(item, shapes).value(frame.sizes)
            items.append(position if position >= 0 else position + axis.value(frame.sizes))
    return tuple(items)

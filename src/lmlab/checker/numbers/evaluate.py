"""The meaning of an expression at a point: one walk over the tree, with the arithmetic left to an `Ops`."""

from __future__ import annotations

import operator
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from lmlab.checker import tree
from lmlab.checker.functions import FUNCTIONS
from lmlab.checker.functions.arrays import transposed
from lmlab.checker.functions.record import Arithmetic, Array
from lmlab.checker.limits import Deadline
from lmlab.checker.shapes.setting import Setting
from lmlab.checker.tree import Binary, Derivative, Expectation, Index, Name, Node, Slice, constant_value

OPERATORS = {"+": operator.add, "-": operator.sub, "*": operator.mul, "@": operator.matmul}
COMPARISONS = {">": operator.gt, "<": operator.lt, ">=": operator.ge, "<=": operator.le}
COMPARISONS |= {"==": operator.eq, "!=": operator.ne}


class Ops(Arithmetic):
    """An arithmetic that also knows what derivatives and expectations are, and keeps note of kinks.

    `margin` is how near the nearest kink (relu at 0, a tie of max, ...) came; `touched`: something lay exactly on one
    (`edged`: on the edge of where it is defined, as sqrt at 0).
    Inside an integral, which looks at many points at once, the distances are `collected` instead.
    """

    def __init__(self) -> None:
        self.margin = float("inf")
        self.touched = self.edged = False
        self.collected: list[Array] | None = None

    def distances(self, distance: Array) -> Any:
        """A distance as an array of doubles."""
        return np.asarray(distance, dtype=float)

    def near(self, distance: Array, edge: bool = False) -> None:
        """Note how near a kink is. Exactly on it is noted apart: at random points that is the formula's own doing."""
        if self.collected is not None:
            self.collected.append(distance)
            return
        if not self.notes_kinks:
            return
        away = np.abs(self.distances(distance))
        if away.size:
            self.touched |= bool((away == 0).any())
            self.edged |= edge and bool((away == 0).any())
            self.margin = min(self.margin, float(away.min(initial=np.inf, where=away > 0)))

    @abstractmethod
    def compare(self, op: str, left: Array, right: Array) -> Array:
        """1 where the comparison holds, else 0."""

    @abstractmethod
    def derivative(self, node: Derivative, frame: Frame) -> Array:
        """d operand / d name at the frame's point."""

    @abstractmethod
    def expectation(self, node: Expectation, frame: Frame) -> Array:
        """E or Var at the frame's point."""

    def to_numpy(self, value: Array) -> Any:
        """An array of doubles."""
        return value

    def binary(self, op: str, left: Array, right: Array) -> Array:
        """+ - * / @ or ** (with an array as exponent)."""
        if op == "/":
            return self.divide(left, right)
        return self.wrap(OPERATORS[op](left, right)) if op != "**" else self.raise_to(left, right)


@dataclass(eq=False)
class Frame:
    """The values of names at one point. A child overrides some of them; lets that depend on those are recomputed."""

    setting: Setting
    ops: Ops
    sizes: Mapping[str, int]
    values: dict[str, Array]
    deadline: Deadline
    parent: Frame | None = None
    graph: bool = False  # something outside differentiates through this frame
    trailing: int = 0  # axes that arrays have inside an integral, where the first one runs over its points

    def __post_init__(self) -> None:
        self.overridden = frozenset(self.values) if self.parent is not None else frozenset()
        self.memo: dict[int, tuple[Node, Array]] = {}  # by identity; the node is kept so that its id stays taken

    def child(self, overrides: dict[str, Array], graph: bool | None = None) -> Frame:
        """A frame where these names have other values."""
        graph = self.graph if graph is None else graph
        return Frame(self.setting, self.ops, self.sizes, dict(overrides), self.deadline, self, graph, self.trailing)

    def translated(self, ops: Ops) -> Frame:
        """The same point in another arithmetic."""
        values: dict[str, Array] = {}
        frame: Frame | None = self
        while frame is not None:
            kept = frame.overridden if frame.parent is not None else frozenset(self.setting.givens)
            values = {name: frame.values[name] for name in kept if name in frame.values} | values
            frame = frame.parent
        taken = {name: ops.from_numpy(self.ops.to_numpy(value)) for name, value in values.items()}
        return Frame(self.setting, ops, self.sizes, taken, self.deadline, trailing=self.trailing)

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
            found = self.evaluate(self.setting.lets[name].value)
        self.values[name] = found
        return found

    def size(self, node: Node) -> int:
        """The value of an expression used as a size."""
        return self.setting.shapes.size(node).value(self.sizes)

    def extents(self, node: Node) -> tuple[int, ...]:
        """The shape of an expression in numbers."""
        return tuple(axis.value(self.sizes) for axis in self.setting.shape(node))

    def evaluate(self, node: Node) -> Array:
        """The value of an expression."""
        match node:
            case Name():
                return self.value(node.name)
            case tree.Number():
                return self.ops.number(node.value)
            case tree.Constant():
                return self.ops.number(node.name)
        found = self.memo.get(id(node))
        if found is None:
            self.deadline.check()
            found = self.memo[id(node)] = (node, self._compute(node))
        return found[1]

    def _compute(self, node: Node) -> Array:
        ops = self.ops
        match node:
            case tree.Negate():
                return ops.wrap(-self.evaluate(node.operand))
            case Binary():
                exponent = constant_value(node.right) if node.op == "**" else None
                if exponent is not None:
                    return ops.power(self.evaluate(node.left), exponent)
                return ops.binary(node.op, self.evaluate(node.left), self.evaluate(node.right))
            case tree.Compare():
                return ops.compare(node.op, self.evaluate(node.left), self.evaluate(node.right))
            case tree.Transpose():
                return transposed(ops, self.evaluate(node.operand))
            case tree.Call():
                return FUNCTIONS[node.function].value(node, self)
            case tree.Stack():
                return ops.library.stack([self.evaluate(item) for item in node.items])
            case Index():
                return ops.wrap(self.evaluate(node.operand)[self._positions(node)])
            case Derivative():
                return ops.derivative(node, self)
            case Expectation():
                return ops.expectation(node, self)
        raise AssertionError(node)

    def _positions(self, node: Index) -> tuple[int | slice, ...]:
        items: list[int | slice] = []
        for item, axis in zip(node.items, self.setting.shape(node.operand), strict=False):
            if isinstance(item, Slice):
                start, stop = self.setting.shapes.bounds(item, axis)
                items.append(slice(start.value(self.sizes), stop.value(self.sizes)))
            else:
                position = self.size(item)
                items.append(position if position >= 0 else position + axis.value(self.sizes))
        return tuple(items)

"""The meaning of an expression at a point: one walk over the tree, with the arithmetic left to an `Ops`."""

from __future__ import annotations

import operator
from abc import abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from lmlab_derive import tree
from lmlab_derive.functions import FUNCTIONS, is_entrywise
from lmlab_derive.functions.arrays import transposed
from lmlab_derive.functions.record import Arithmetic, Array
from lmlab_derive.limits import AT_ONCE, MAX_RANGE, MAX_TERMS, Deadline, Refusal
from lmlab_derive.shapes.infer import scalar_like
from lmlab_derive.shapes.setting import Setting
from lmlab_derive.text import to_text
from lmlab_derive.tree import (
    Binary,
    Derivative,
    Expectation,
    Index,
    Name,
    Node,
    Slice,
    constant_value,
    walk,
)

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
        self.long_sums: Any = None  # who adds up more terms than this arithmetic has time for

    def near(self, distance: Array, edge: bool = False) -> None:
        """Note how near a kink is. Exactly on it is noted apart: at random points that is the formula's own doing."""
        if self.collected is not None:
            self.collected.append(distance)
            return
        if not self.notes_kinks:
            return
        away = np.abs(np.asarray(self.to_numpy(distance), dtype=float))
        if away.size:
            self.touched |= bool((away == 0).any())
            self.edged |= edge and bool((away == 0).any())
            self.margin = min(self.margin, float(away.min(initial=np.inf, where=away > 0)))

    def met(self, value: Array) -> None:
        """Take note of a value on the way; most arithmetic does not care."""

    @contextmanager
    def collecting(self) -> Iterator[list[Array]]:
        """Inside: the distances of many points at once, which say nothing of the point outside."""
        outside, self.collected = self.collected, []
        try:
            yield self.collected
        finally:
            self.collected = outside

    @abstractmethod
    def compare(self, op: str, left: Array, right: Array) -> Array:
        """1 where the comparison holds, else 0."""

    @abstractmethod
    def derivative(self, node: Derivative, frame: Frame) -> Array:
        """d operand / d name at the frame's point."""

    def top(self, node: Derivative, frame: Frame) -> Array:
        """What is differentiated last: the operand itself, or its derivative by all names but the last."""
        if len(node.by) > 1:
            return self.derivative(Derivative(node.operand, node.by[:-1], node.strict), frame)
        top = frame.evaluate(node.operand)
        plain = not node.strict and scalar_like(frame.setting.shape(node.operand))
        return self.wrap(top.reshape(()) if plain else top)

    @abstractmethod
    def expectation(self, node: Expectation, frame: Frame) -> Array:
        """E or Var at the frame's point."""

    def to_numpy(self, value: Array) -> Any:
        """An array of NumPy."""
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
        self.letters: dict[str, Any] = {}  # whole numbers; inside a sum that is taken at once, an array of them
        self.memo: dict[int, tuple[Node, Array]] = {}  # by identity; the node is kept so that its id stays taken

    def child(self, overrides: dict[str, Array], graph: bool | None = None) -> Frame:
        """A frame where these names have other values."""
        graph = self.graph if graph is None else graph
        return Frame(self.setting, self.ops, self.sizes, dict(overrides), self.deadline, self, graph, self.trailing)

    def translated(self, ops: Ops) -> Frame:
        """The same point in another arithmetic."""
        values: dict[str, Array] = {}
        letters: dict[str, Any] = {}
        frame: Frame | None = self
        while frame is not None:
            letters = frame.letters | letters
            kept = frame.overridden if frame.parent is not None else frozenset(self.setting.givens)
            values = {name: frame.values[name] for name in kept if name in frame.values} | values
            frame = frame.parent
        taken = {name: ops.from_numpy(self.ops.to_numpy(value)) for name, value in values.items()}
        found = Frame(self.setting, ops, self.sizes, taken, self.deadline, trailing=self.trailing)
        found.letters = letters
        return found

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
            if name not in self.setting.lets:
                raise KeyError(name)  # a row of a recursion, outside of it: hints try such things
            found = self.evaluate(self.setting.lets[name].value)
        self.values[name] = found
        return found

    def placed(self, name: str, standard: Array, arguments: list[Array]) -> Array:
        """The value of a random given whose standard variable has this value, where its arguments are these."""
        if self.setting.covaries(name):
            return self.ops.wrap(arguments[0] + self.ops.cholesky(arguments[1]) @ standard)
        return self.ops.wrap(self.setting.family(name)[0].place(standard, arguments))

    def size(self, node: Node) -> int:
        """The value of an expression used as a size."""
        return self.setting.shapes.size(node).value(self.sizes)

    def is_counted(self, node: Node) -> bool:
        """Whether an expression is one number, made of indices and sizes alone."""
        return not self.trailing and self.setting.is_counted(node) and self.evaluate(node).ndim == 0

    def extents(self, node: Node) -> tuple[int, ...]:
        """The shape of an expression in numbers."""
        return tuple(axis.value(self.sizes) for axis in self.setting.shape(node))

    def evaluate(self, node: Node) -> Array:
        """The value of an expression, computed once for all values of the indices that it does not contain."""
        if self.letters and self.parent and not self.overridden and node.free_letters.isdisjoint(self.letters):
            return self.parent.evaluate(node)
        match node:
            case Name():
                return self.value(node.name)
            case tree.Number():
                return self.ops.number(node.value)
            case tree.Constant():
                return self.ops.number(node.name)
            case tree.Letter():
                place = self.letter(node.name)
                return self.ops.number(Fraction(place)) if isinstance(place, int) else place
        found = self.memo.get(id(node))
        if found is None:
            self.deadline.check()
            found = self.memo[id(node)] = (node, self._compute(node))
            self.ops.met(found[1])
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
                return ops.wrap(self.evaluate(node.operand)[self.positions(node)])
            case Derivative():
                return ops.derivative(node, self)
            case Expectation():
                return ops.expectation(node, self)
            case tree.Over():
                return self._over(node)
            case tree.Table():
                return self._table(node)
            case tree.Recursion():
                return self._recursion(node)
        raise AssertionError(node)

    def _first(self, node: Index, axis: int, item: Node) -> int:
        """What the first entry along an axis is called: rows of a recursion count from 0, others as the letter does."""
        if self.setting.shapes.from_zero(node.operand, axis):
            return 0
        return max(part.first for part in walk(item) if isinstance(part, tree.Letter))

    def letter(self, name: str) -> Any:
        """The value of an index; all of its values inside a sum that is taken at once."""
        found = self.letters.get(name)
        if found is not None:
            return found
        if self.parent is None:
            raise KeyError(name)  # outside of its sum
        return self.parent.letter(name)

    def bound(self, letters: dict[str, Any]) -> Frame:
        """A frame where indices have these values."""
        inner = self.child({})
        inner.letters = letters
        return inner

    def integer(self, node: Node) -> int:
        """The value of a position or bound that is written with indices, sizes and numbers."""
        match node:
            case tree.Letter():
                return int(self.letter(node.name))
            case tree.Number() if node.value.denominator == 1:
                return int(node.value)
            case Name() if node.name in self.setting.shapes.sizes:
                return self.sizes[node.name]
            case Name() if "integer" in self.setting.kinds(node.name):
                return int(np.asarray(self.ops.to_numpy(self.value(node.name)), dtype=float))
            case tree.Negate():
                return -self.integer(node.operand)
            case Binary(op="+" | "-" | "*"):
                return int(OPERATORS[node.op](self.integer(node.left), self.integer(node.right)))
        what = "positions are made of indices, sizes and whole numbers, as `given n: positive integer`"
        raise Refusal(f"{to_text(node)} is no position; {what}", code="not-a-position")

    def terms(self, node: tree.Over) -> tuple[int, int]:
        """The first and the last value of the letter of a sum or product."""
        if node.start is not None and node.stop is not None:
            return self.integer(node.start), self.integer(node.stop)
        assert node.witness is not None
        return node.letter.first, node.letter.first + self._count(node.witness) - 1

    def _count(self, witness: tree.Witness) -> int:
        """How many values a letter has."""
        return self.setting.shapes.range_of(witness).value(self.sizes)

    def _table(self, node: tree.Table) -> Array:
        return self._rows(node.letters, node.operand)

    def _rows(self, letters: tuple[tuple[tree.Letter, tree.Witness], ...], entry: Node) -> Array:
        """An array of entries: one axis for each index, in a frame of its own for each value of each index."""
        if not letters:
            return self.evaluate(entry)
        (letter, witness), *inner = letters
        places = range(letter.first, letter.first + self._count(witness))
        return self.ops.library.stack([self.bound({letter.name: at})._rows(tuple(inner), entry) for at in places])

    def _over(self, node: tree.Over) -> Array:
        start, stop = self.terms(node)
        at_once = self._at_once(node)
        if stop - start > (most := MAX_TERMS if at_once else MAX_RANGE):
            raise Refusal(f"the sum over {node.letter.name} has more than {most} terms", code="sum-too-long")
        if at_once and stop > start:
            return self._summed(node, start, stop)
        total = self.ops.full(self.extents(node), 0 if node.function == "sum" else 1)
        for value in range(start, stop + 1):
            term = self.bound({node.letter.name: value}).evaluate(node.operand)
            total = self.ops.binary("+" if node.function == "sum" else "*", total, term)
        return total

    def _at_once(self, node: tree.Over) -> bool:
        """Whether the terms of a sum are numbers that can be computed as one array: no position depends on its letter."""
        if self.ops.way == "exact" or self.ops.collected is not None or self.trailing or self.extents(node):
            return False
        return _entrywise_in(node.letter.name, node.operand)

    def _summed(self, node: tree.Over, start: int, stop: int) -> Array:
        """A sum or product of many terms, by arrays of them; of long decimals few at a time, since those are slow."""
        ops = self.ops
        if ops.long_sums is not None and node.function == "sum" and stop - start >= MAX_RANGE:
            return ops.long_sums.total(self, node, start, stop)
        reduce = getattr(ops.library, node.function)
        total = [ops.wrap(reduce(terms)) for _, terms in self.blocks(node, start, stop)]
        return ops.wrap(reduce(ops.library.stack(total)))

    def blocks(self, node: tree.Over, start: int, stop: int) -> Iterator[tuple[Any, Array]]:
        """The values of the letter of a sum or product and its terms there, many at a time."""
        length = MAX_RANGE if self.ops.way == "long" else AT_ONCE
        for low in range(start, stop + 1, length):
            self.deadline.check()
            places = np.arange(low, min(low + length, stop + 1), dtype=float)
            yield places, self.at_places(node, places)

    def at_places(self, node: tree.Over, places: Any) -> Array:
        """The terms of a sum or product where its letter has these values."""
        terms = self.bound({node.letter.name: self.ops.from_numpy(places)}).evaluate(node.operand)
        return self.ops.library.broadcast_to(terms, places.shape)

    def _recursion(self, node: tree.Recursion) -> Array:
        rows = [self.evaluate(node.start)]
        for step in range(1, self._count(node.witness) + 1):
            inner = self.child({node.name: self.ops.library.stack(rows)})
            inner.letters = {node.letter.name: step}
            rows.append(inner.evaluate(node.operand))
        return self.ops.library.stack(rows)

    def positions(self, node: Index) -> tuple[int | slice, ...]:
        """Where an index points to, counted from 0."""
        items: list[int | slice] = []
        for place, (item, axis) in enumerate(zip(node.items, self.setting.shape(node.operand), strict=False)):
            if isinstance(item, Slice):
                start, stop = self.setting.shapes.bounds(item, axis)
                items.append(slice(start.value(self.sizes), stop.value(self.sizes)))
            elif item.free_letters:
                position = self.integer(item) - self._first(node, place, item)
                if not 0 <= position < axis.value(self.sizes):
                    raise Refusal(
                        f"{to_text(node)} goes beyond the {axis} entries along its axis", code="position-beyond-entries"
                    )
                items.append(position)
            else:
                position = self.size(item)
                items.append(position if position >= 0 else position + axis.value(self.sizes))
        return tuple(items)


def _entrywise_in(letter: str, node: Node) -> bool:
    """Whether an expression has a value for each of an array of values of a letter: no position or bound of it uses it."""
    if letter not in node.free_letters or isinstance(node, tree.Letter):
        return True
    return is_entrywise(node) and all(_entrywise_in(letter, child) for child in node.children())

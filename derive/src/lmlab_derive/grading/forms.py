"""Whether two formulas are the same writing: up to order, brackets, zeros, ones, like terms and names for parts.

This is no proof of anything. It tells an answer from the question said again, and counts the different lines of a
derivation. Every formula becomes a number, the same for the same writing; a let is opened once, however often it is used.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator
from fractions import Fraction
from typing import Any

from lmlab_derive.shapes.scope import Scope
from lmlab_derive.tree import (
    Binary,
    Call,
    Derivative,
    Expectation,
    Let,
    Letter,
    Name,
    Negate,
    Node,
    Number,
    Over,
    Recursion,
    Table,
    walk,
)

# What adds up, multiplies or compares many numbers; a product of matrices adds up as well.
GATHERING = {"sum", "mean", "prod", "max", "min", "var", "std", "norm", "logsumexp", "trace", "det", "dot", "@"}

Terms = dict[int, Fraction]  # a sum: the number of each term, and its factor
ONE = 0  # the number of the formula 1
MOST_BITS = 4_000  # a factor longer than this is left as it is written


class Forms:
    """Formulas of a student's scope, which stands on the scope of a key, as numbers: all lets opened."""

    def __init__(self, scope: Scope, key: Scope) -> None:
        self.scope = scope
        self._numbers: dict[object, int] = {}
        self._parts: list[frozenset[int]] = []  # of each formula: those it is made of
        self._heads: list[Node | None] = []  # of each formula: a node that is written so
        self._factors: dict[int, Terms] = {}
        self._lets: dict[str, Terms] = {}
        self._own = {
            name: definition.value
            for name, definition in scope.definitions.items()
            if isinstance(definition, Let) and name not in key.definitions
        }
        self._sizes = scope.sizes
        self._bound: dict[str, int] = {}  # the letters of the sums around what is looked at
        self._number(("one",), frozenset())
        for name, definition in scope.definitions.items():  # in order, so that no chain of lets is deep
            if isinstance(definition, Let):
                self._lets[name] = self._terms(definition.value)

    def of(self, node: Node) -> int:
        """The number of a formula."""
        return self._sum(self._terms(node))

    def inside(self, number: int) -> set[int]:
        """The numbers of a formula and of everything in it."""
        found, pending = {number}, [number]
        while pending:
            fresh = self._parts[pending.pop()] - found
            found |= fresh
            pending += fresh
        return found

    def averages_and_slopes(self, number: int) -> dict[int, Node]:
        """What is left to be worked out in a formula: its derivatives and expectations."""
        heads = {part: self._heads[part] for part in self.inside(number)}
        return {part: head for part, head in heads.items() if isinstance(head, (Derivative, Expectation))}

    def same_matter(self, left: Node, right: Node) -> bool:
        """Whether two formulas are made of the same givens, and both or neither have something left to be worked out."""
        left_over = [bool(self.averages_and_slopes(self.of(node))) for node in (left, right)]
        return self.givens(left) == self.givens(right) and left_over[0] == left_over[1]

    def written(self, node: Node) -> set[str]:
        """The functions that a formula calls, those of the student's own lets included; a sum over an index is one too."""
        return functions_in(self._open(node))

    def primed(self, node: Node) -> set[str]:
        """The slopes f' that the reader worked out in a formula, and in the student's own lets."""
        return {inner.primed for inner in self._open(node) if inner.primed}

    def givens(self, node: Node) -> set[str]:
        """The givens that a formula is made of, all lets opened; not those that drop out."""
        heads = (self._heads[part] for part in self.inside(self.of(node)))
        return {head.name for head in heads if isinstance(head, Name)} - self._sizes

    def _open(self, node: Node) -> Iterator[Node]:
        """Everything in a formula, and in the student's own lets that it uses."""
        pending, seen = [node], set[str]()
        while pending:
            for inner in walk(pending.pop()):
                yield inner
                if isinstance(inner, Name) and inner.name in self._own and inner.name not in seen:
                    seen.add(inner.name)
                    pending.append(self._own[inner.name])

    def _number(self, key: object, parts: frozenset[int], head: Node | None = None) -> int:
        if key not in self._numbers:
            self._numbers[key] = len(self._parts)
            self._parts.append(parts)
            self._heads.append(head)
        return self._numbers[key]

    def _terms(self, node: Node) -> Terms:
        match node:
            case Number():
                return {ONE: node.value} if node.value else {}
            case Name() if node.name in self._lets:
                return self._lets[node.name]
            case Negate():
                return _scaled(self._terms(node.operand), Fraction(-1))
            case Binary(op="+" | "-"):
                sign = Fraction(1 if node.op == "+" else -1)
                return _added(self._terms(node.left), _scaled(self._terms(node.right), sign))
            case Binary(op="*" | "/"):
                return self._product(node)
            case Binary(op="**", right=Number(value=power)) if power.denominator == 1 and power != 0:
                return self._power(self._terms(node.left), power)
        return {self._plain(node): Fraction(1)}

    def _product(self, node: Binary) -> Terms:
        left, right = self._terms(node.left), self._terms(node.right)
        if node.op == "/":
            if not right:  # division by zero stays as it is written
                return {self._plain(node): Fraction(1)}
            right = self._power(right, Fraction(-1))
        factor, bases = Fraction(1), Terms()
        for side in (left, right):
            if not side:
                return {}
            number, times = next(iter(side.items())) if len(side) == 1 else (self._sum(side), Fraction(1))
            factor *= times
            bases = _added(bases, self._factors.get(number, {number: Fraction(1)} if number != ONE else {}))
        if factor.numerator.bit_length() + factor.denominator.bit_length() > MOST_BITS:
            return {self._plain(node): Fraction(1)}
        return {self._of_factors(bases): factor}

    def _power(self, base: Terms, power: Fraction) -> Terms:
        number, times = next(iter(base.items())) if len(base) == 1 else (self._sum(base), Fraction(1))
        long = (times.numerator.bit_length() + times.denominator.bit_length()) * abs(power) > MOST_BITS
        if long or (not times and power < 0):
            return {self._number(("power", number, power), frozenset({number})): Fraction(1)}
        bases = self._factors.get(number, {number: Fraction(1)} if number != ONE else {})
        return {self._of_factors(_scaled(bases, power)): times ** int(power)}

    def _of_factors(self, bases: Terms) -> int:
        if not bases:
            return ONE
        if len(bases) == 1 and next(iter(bases.values())) == 1:
            return next(iter(bases))
        number = self._number(("product", frozenset(bases.items())), frozenset(bases))
        self._factors[number] = bases
        return number

    def _sum(self, terms: Terms) -> int:
        if len(terms) == 1 and next(iter(terms.values())) == 1:
            return next(iter(terms))
        return self._number(("sum", frozenset(terms.items())), frozenset(terms))

    def _plain(self, node: Node) -> int:
        """Any other formula: what it is, around the numbers of what is inside; a bound letter is the place of its sum."""
        if isinstance(node, (Over, Table, Recursion)):
            return self._binding(node)
        if isinstance(node, Letter):
            return self._number(("letter", self._bound.get(node.name, node.name)), frozenset(), node)
        inner: set[int] = set()

        def written(value: Any) -> object:
            if isinstance(value, Node):
                inner.add(number := self.of(value))
                return ("formula", number)
            if isinstance(value, tuple):
                return tuple(map(written, value))
            if dataclasses.is_dataclass(value):
                return _fields(value)
            return value

        def _fields(value: Any) -> object:
            names = (field.name for field in dataclasses.fields(value) if field.name != "column")
            return (type(value).__name__, *(written(getattr(value, name)) for name in names))

        return self._number(_fields(node), frozenset(inner), node)

    def _binding(self, node: Over | Table | Recursion) -> int:
        """A sum, a table or a recursion: the same whatever its letters are called."""
        if isinstance(node, Over):
            letters = [(node.letter, node.witness if node.start is None else None)]
            outside = node.bounds
        elif isinstance(node, Table):
            letters, outside = [*node.letters], []
        else:
            letters, outside = [(node.letter, node.witness)], [node.start]
        over = [(witness and (self.of(witness.operand), witness.axis), letter.first) for letter, witness in letters]
        around = [self.of(part) for part in outside]
        kept = dict(self._bound)
        for letter, _ in letters:
            self._bound[letter.name] = len(self._bound)
        inner = self.of(node.operand)
        self._bound = kept
        kind = node.function if isinstance(node, Over) else type(node).__name__
        return self._number((kind, tuple(over), tuple(around), inner), frozenset({inner, *around}), node)


def _added(left: Terms, right: Terms) -> Terms:
    total = dict(left)
    for number, times in right.items():
        total[number] = total.get(number, Fraction(0)) + times
    return {number: times for number, times in total.items() if times}


def _scaled(terms: Terms, factor: Fraction) -> Terms:
    return {number: times * factor for number, times in terms.items()}


def functions_in(nodes: Iterable[Node]) -> set[str]:
    """The functions among these parts of a formula, with sums over an index and @."""
    found: set[str] = set()
    for node in nodes:
        if isinstance(node, Call | Over):
            found.add(node.function)
        elif isinstance(node, Binary) and node.op == "@":
            found.add("@")
    return found

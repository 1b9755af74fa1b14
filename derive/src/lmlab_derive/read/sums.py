"""Sums and products over indices: sum(i=1..n, f), sum(i, j, f), Σ_(i,j) f, Σ_(i<j) f; and the ranges of indices."""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import partial

from lmlab_derive import tree
from lmlab_derive.read.cursor import refusal
from lmlab_derive.read.derivatives import DerivativeParser
from lmlab_derive.read.expressions import CONDITIONS
from lmlab_derive.read.tokens import Token
from lmlab_derive.small_formulas import ONE, ZERO, call
from lmlab_derive.tree import (
    Binary,
    Compare,
    Derivative,
    Index,
    Let,
    Letter,
    Name,
    Node,
    Number,
    Over,
    Slice,
    Witness,
    walk,
)

PREFIXES = {"Σ": "sum", "Π": "prod"}
_OPTIONS = ("axis", "dim", "keepdims", "keepdim")
Range = tuple[str, Node | None, Node | None]


class SumParser(DerivativeParser):
    """Expressions with sums over indices."""

    letters: dict[str, int]

    def is_range(self, at: int) -> bool:
        """Whether a range of an index stands there, as in sum(i, ...) and sum(i=1..n, ...), rather than an array."""
        name = self.peek(at)
        if name.kind != "name" or name.text in self.known:
            return False
        if self.peek(at + 1).text == "=":
            return name.text not in _OPTIONS
        return self.peek(at + 1).text == "," and self.peek(at + 2).text not in _OPTIONS

    def ranged_call(self, token: Token) -> Node:
        """sum(i=1..n, term), sum(i, j, term)."""
        self.at += 2
        ranges = self._ranges()
        self.expect(",", f"after the range of {ranges[-1][0]}")
        while self.is_range(0):
            ranges += self._ranges()
            self.expect(",", f"after the range of {ranges[-1][0]}")
        found = self._nested_sums(token, token.text, ranges, self.expression)
        self.expect(")", f"to close {token.text}(...)")
        return found

    def prefixed_sum(self, token: Token) -> Node:
        """Σ_(i=1..n) term, Σ_i term, Σ_ij term, Σ_(i<j) term, Σ(array)."""
        start = self.at
        self.at += 1
        self.forgave = True
        function, rest = PREFIXES[token.text[0]], token.text[1:].strip("_")
        read: Callable[[], Node] = partial(self.sum_of_products, 10)
        if rest:
            return self._nested_sums(token, function, [(name, None, None) for name in self._letters_of(rest)], read)
        if not token.text.endswith("_") or not self.take("("):
            return call(function, self.sum_of_products(10))
        ranges = self._ranges()
        while self.take(",") or self.next.text in self.letters:
            ranges += self._ranges()
        condition = self._restriction(ranges)
        self.expect(")", "after the range of the sum")
        if condition is None:
            return self._nested_sums(token, function, ranges, read)
        body = read()
        before = {earlier.text for earlier in self.tokens[:start]}
        others = sorted(condition.right.free_letters & body.free_letters - before - {name for name, _, _ in ranges})
        ranges += [(name, None, None) for name in others]
        term = call("where", condition, body, ZERO if function == "sum" else ONE)
        found = self._nested_sums(token, function, ranges, lambda: term)
        if any(later.text in others for later in self.tokens[self.at :]):
            wanted = f"as in sum({ranges[0][0]}, ({ranges[0][0]} {condition.op} ...) * ...)"
            raise refusal(token, f"which indices this sum runs over can be read in two ways; write it {wanted}")
        return found

    def _restriction(self, ranges: list[Range]) -> Compare | None:
        """i < j below the sign of a sum; the cursor is behind the i."""
        token = self.next
        if not self.take(*CONDITIONS):
            return None
        name = ranges[-1][0]
        return Compare(token.text, Letter(name, self.letters.get(name, 1)), self.sum_of_products())

    def _letters_of(self, name: str) -> list[str]:
        """The indices of Σ_ij, where i and j are indices and ij is none."""
        apart = name not in self.letters and len(name) > 1 and set(name) <= set(self.letters)
        return list(name) if apart else [name]

    def _nested_sums(self, token: Token, function: str, ranges: list[Range], read: Callable[[], Node]) -> Node:
        """Σ_(i,j) term: the sum over j inside that over i."""
        (name, start, stop), inner = ranges[0], ranges[1:]
        body = partial(self._nested_sums, token, function, inner, read) if inner else read
        return self._over(token, function, name, start, stop, body)

    def _ranges(self) -> list[Range]:
        name = self.next.text
        if self.next.kind != "name" or name in self.known:
            raise self.error("an index that is no other name is expected here, as in sum(i=1..n, x[i])")
        self.at += 1
        if not self.take("="):
            return [(letter, None, None) for letter in self._letters_of(name)]
        start = self.sum_of_products()
        self.expect("..", "in a range such as i=1..n")
        return [(name, start, self.sum_of_products())]

    def _over(
        self, token: Token, function: str, name: str, start: Node | None, stop: Node | None, read: Callable[[], Node]
    ) -> Node:
        """The body of a sum, in which the letter is known."""
        first = 0 if start == ZERO else 1
        outer = dict(self.letters)
        self.letters[name] = first
        body = read()
        self.letters = outer
        witness = self.witness(body, name)
        if start is None and witness is None:
            raise refusal(token, f"the range of {name} is not clear; write {function}({name}=1..n, ...)")
        return Over(body, function, Letter(name, first), start, stop, witness, column=token.column)

    def witness(self, node: Node, letter: str) -> Witness | None:
        """Where the range of a letter is seen: on an array, beside another letter, or on a recursion, whose steps it counts."""
        found = witness_of(node, letter, self.scope.recursive) or _beside_another(node, letter)
        if found is not None:
            return found
        for part in walk(node):
            if isinstance(part, Index) and isinstance(part.operand, Name) and part.operand.name in self.scope.recursive:
                step, definition = part.items[0], self.scope.definitions[part.operand.name]
                if isinstance(step, Letter) and step.name == letter and isinstance(definition, Let):
                    assert isinstance(definition.value, tree.Recursion)
                    return definition.value.witness
        return None


def witness_of(node: Node, letter: str, besides: Collection[str] = ()) -> Witness | None:
    """Where a letter stands alone as a position of an array, other than on the steps of those `besides`."""
    for part in walk(node):
        if isinstance(part, Index):
            steps = isinstance(part.operand, Name) and part.operand.name in besides
            for axis, item in enumerate(part.items):
                if not isinstance(item, Letter) or item.name != letter or (steps and axis == 0):
                    continue
                if not part.operand.free_letters:
                    return Witness(part.operand, axis)
                if isinstance(part.operand, Derivative) and len(part.operand.by) == 1:  # d(p[i])/dz[j]
                    whole = sum(isinstance(place, Slice) for place in part.items[:axis])  # axes of what stands above
                    return Witness(Name(part.operand.by[0]), axis - whole)
    return None


def _beside_another(node: Node, letter: str) -> Witness | None:
    """The range of a letter that no array shows: i of sum(k=1..i, x[k]), of sum(k, (k <= i) * x[k]), of sum(k, x[i+k])."""
    for part in walk(node):
        if not isinstance(part, Over) or part.witness is None:
            continue
        other = part.letter.name
        if isinstance(part.stop, Letter) and part.stop.name == letter:
            return part.witness
        for inner in walk(part.operand):
            if isinstance(inner, Compare) and _letter_names(inner) == {letter, other}:
                return part.witness
            if not isinstance(inner, Index) or part.start is not None:
                continue
            for axis, item in enumerate(inner.items):
                if isinstance(item, Node) and (beyond := _beyond(item, letter, other)) is not None:
                    return Witness(inner.operand, axis, less=part.witness, beyond=beyond + part.letter.first - 1)
    return None


def _beyond(item: Node, letter: str, other: str) -> int | None:
    """c of a position i + k + c, of these letters."""
    constant = 0
    if isinstance(item, Binary) and item.op in "+-" and isinstance(item.right, Number):
        constant, item = int(item.right.value) * (1 if item.op == "+" else -1), item.left
    is_sum = isinstance(item, Binary) and item.op == "+" and _letter_names(item) == {letter, other}
    return constant if is_sum else None


def _letter_names(node: Node) -> set[str]:
    """The names of both sides, where both are letters."""
    sides = [side.name for side in node.children() if isinstance(side, Letter)]
    return set(sides) if len(sides) == len(node.children()) else set()

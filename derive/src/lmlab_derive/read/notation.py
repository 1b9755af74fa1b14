"""Mathematical notation: letters as indices, sums over them, |x|, d/dx f, probabilities, entropies, let f(x) = ..."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import reduce

from lmlab_derive import tree
from lmlab_derive.functions import WRITTEN_OUT
from lmlab_derive.limits import NoExactValue, Refusal
from lmlab_derive.read.cursor import BARS, refusal
from lmlab_derive.read.ranks import is_row, rank_of
from lmlab_derive.read.spellings import NOT_READ, with_new_axes
from lmlab_derive.read.subscripts import entries, in_the_only_row, numbered_entry, refuse_numbers
from lmlab_derive.read.sums import PREFIXES, SumParser
from lmlab_derive.read.tokens import Token
from lmlab_derive.shapes.scope import Macro, Scope, substituted
from lmlab_derive.shapes.setting import build
from lmlab_derive.sizes import Size
from lmlab_derive.slopes import Alone, slope
from lmlab_derive.small_formulas import ZERO, call, normal_distribution, number, plus, times
from lmlab_derive.text import to_text
from lmlab_derive.tree import (
    Compare,
    Given,
    Index,
    Letter,
    Name,
    Node,
    Slice,
    Table,
    names_in,
)


def free_letters(tokens: Sequence[Token], known: set[str]) -> set[str]:
    """Names in brackets after a name that are nothing else: letters that run over all entries."""
    found: set[str] = set()
    stack: list[bool] = []
    for i, token in enumerate(tokens):
        if token.text in ("(", "[", "{"):
            after = i > 0 and (tokens[i - 1].kind == "name" or tokens[i - 1].text in ("]", ")"))
            named = i > 0 and (tokens[i - 1].text in known or tokens[i - 1].text not in ("E", "Var", "Cov", "P"))
            stack.append(token.text == "[" and token.glued and after and named)
        elif token.text in (")", "]", "}"):
            stack = stack[:-1]
        elif token.kind == "name" and stack and stack[-1] and tokens[i + 1].text != "(":
            found |= {token.text} - known - {"None", "newaxis"}
    return found


class NotationParser(SumParser):
    """Expressions with letters and the names of the scope."""

    def __init__(self, tokens: Sequence[Token], scope: Scope) -> None:
        tokens = in_the_only_row(entries(tokens, scope.known), scope)
        super().__init__(tokens, scope.known)
        self.scope = scope
        self.letters: dict[str, int] = dict.fromkeys(free_letters(tokens, scope.known | set(scope.functions)), 1)
        self.forgave = False  # something was read that is not the language

    def joined(self, left: Node, right: Node, token: Token) -> Node:
        """Side by side: a product of numbers, of a number and an array, or of matrices; of vectors it is not clear."""
        self.forgave = True
        ranks = [rank_of(side, self.scope) for side in (left, right)]
        if 0 in ranks or (None in ranks and token.text == "·"):
            return tree.Binary("*", left, right, column=token.column)
        turned = [is_row(side, self.scope) for side in (left, right)]
        if ranks == [1, 1] and turned == [False, True]:
            return call("outer", left, right)
        unclear = turned == [False, False] and not isinstance(_first_factor(left), tree.Transpose)  # A.T v w is read
        if None in ranks or (ranks == [1, 1] and unclear):
            sides = [to_text(side) for side in (left, right)]
            wanted = f"{sides[0]} @ {sides[1]} for a matrix product, {sides[0]} * {sides[1]} entry by entry"
            what = "a dot can be read in two ways" if token.text == "·" else "an operator is missing"
            raise refusal(token, f"{what}; write {wanted}")
        return tree.Binary("@", left, right, column=token.column)

    # -- letters ------------------------------------------------------------------------------------------------------

    def tabled(self, sides: list[Node], bounds: bool = False) -> list[Node]:
        """Sides with free letters as arrays of all their values; the ranges are those of the axes they stand on.

        A number without letters stays one, where it `bounds`: it bounds all entries of a row as well.
        """
        free = sorted(set[str]().union(*(part.free_letters for part in sides)))
        if not free:
            return sides
        letters = []
        for name in free:
            found = [self.witness(side, name) for side in sides]
            witness = next((w for w in found if w is not None), None)
            if witness is None:
                raise Refusal(
                    f"the range of {name} is not clear; let it stand alone as a position once, as in x[{name}]",
                    code="range-not-clear",
                )
            letters.append((Letter(name), witness))
        sides = self._of_one_rank(sides)
        plain = [bounds and not side.free_letters and rank_of(side, self.scope) == 0 for side in sides]
        return [side if number else Table(side, tuple(letters)) for side, number in zip(sides, plain, strict=True)]

    def _of_one_rank(self, sides: list[Node]) -> list[Node]:
        """Sides with equally many axes: for each value of the letters they are compared as NumPy would, from the last one."""
        setting = build(self.scope)
        try:
            ranks = [len(setting.shape(side)) for side in sides]
        except Refusal:  # which is explained where the claim is checked
            return sides
        missing = [max(ranks) - rank for rank in ranks]
        return [with_new_axes(side, [None] * count) for side, count in zip(sides, missing, strict=True)]

    def subscript(self, before: Token, places: Sequence[Node | Slice | None]) -> None:
        """Refuse numbers in a subscript, but for those of a recursion, whose h_T is h[T]."""
        if not {before.text, before.text.removeprefix("d")} & self.scope.recursive:
            refuse_numbers(places)

    def no_name(self, name: str) -> str:
        """What to write in place of x_1, of AB, and of words of LaTeX."""
        if advice := NOT_READ.get(name.partition("_")[0]):
            return advice
        if len(set(name)) > 1 and all(letter in self.known for letter in name):
            sign = " * " if all(map(self.is_number, name)) else " @ "
            return f"did you mean {sign.join(name)}?"
        base = name.rstrip("'")
        if base != name and base in self.known and not self.is_number(base):
            return f"write {base}.T for the transpose"
        return numbered_entry(name, self.scope)

    def notation(self, token: Token, following: str) -> Node | None:
        """What a name begins that is notation; None for a plain name or call."""
        text = token.text
        if text in self.letters:
            self.at += 1
            return Letter(text, self.letters[text], column=token.column)
        if text in ("d", "d2", "nabla", "nabla2") and following == "/" and (found := self.operator(token)) is not None:
            return found
        if text in self.known:
            self._no_entry(token)
            return self._before_bracket(token)
        if text[0] in PREFIXES:
            return self.prefixed_sum(token)
        if text in ("sum", "prod") and following == "(" and self.is_range(2):
            return self.ranged_call(token)
        if text == "P" and following in ("[", "("):
            return self._probability()
        if text in ("KL", "H") and following == "(":
            return self._information(token)
        if text.rstrip("'") in self.scope.functions and following == "(":
            return self._own_function(token)
        if text in ("σ", "Φ") and following == "(":
            return self._greek(token)
        return self.entry_derivative(token) or self.habit(token, following)

    def _no_entry(self, token: Token) -> None:
        """Refuse x_i among entries i, where x_i is a number of its own."""
        base, _, letters = token.text.partition("_")
        if letters and set(letters) <= set(self.letters) and self.is_number(token.text):
            wanted = f"give {base} a shape, as in `given {base}: n`, or write let {base}[{', '.join(letters)}] = ..."
            raise refusal(token, f"{token.text} is a number of its own, not an entry of {base}; {wanted}")

    def _before_bracket(self, token: Token) -> Node | None:
        """p in p(1 - p), a product: a number is no function, and what follows is a sum.

        After `let f = x**2`, f(x + 1) may be meant as a call; it is left to be asked about.
        """
        if self.peek(1).text != "(" or not self.peek(1).glued or not self.is_number(token.text):
            return None
        depth, is_sum, inside = 0, False, set[str]()
        closing = self.at
        for inner in self.tokens[self.at + 1 :]:
            closing += 1
            depth += (inner.text in ("(", "[")) - (inner.text in (")", "]"))
            is_sum |= depth == 1 and inner.text in ("+", "-")
            inside.add(inner.text)
            if depth == 0:
                break
        if token.text == "d" and self._is_slope(closing):
            return None
        if not is_sum or (token.text not in inside and self.scope.behind(token.text) & inside):
            return None
        self.at += 1
        self.forgave = True
        return Name(token.text, column=token.column)

    def _is_slope(self, closing: int) -> bool:
        """Whether the bracket that closes here is that of d(...)/dx, though d is a size as well."""
        slash, bottom = ([token.text for token in self.tokens[closing + 1 : closing + 3]] + ["", ""])[:2]
        return slash == "/" and bottom[:1] == "d" and bottom[1:] in self.known

    def is_number(self, name: str) -> bool:
        """Whether a name is a size, or a given or a let without axes."""
        return name in self.scope.sizes or (name in self.scope.definitions and rank_of(Name(name), self.scope) == 0)

    def habit(self, token: Token, following: str) -> Node | None:
        """What people write by habit; see `HabitParser`."""
        return None

    def bars(self) -> Node | None:
        """|x|, ||x|| and ‖x‖, where an operand is expected; || that a single bar closes opens two, as in ||x| - |y||."""
        start, token = self.at, self.take(*BARS)
        if token is None:
            return None
        self.forgave = True
        inner = self.enclosed(token.text, self.expression)
        if token.text == "||" and self.next.text == "|":
            if self.peek(1).text == "|":
                self.at += 2
                return call("norm", inner)
            if self.tokens[start + 1].text not in BARS:  # of three bars, any two may be a norm
                self.halve(start)
                self.at = start
                return self.bars()
        if token.text == "|" and self.next.text == "||":
            self.halve(self.at)
        self.expect(token.text, f"to close {token.text}...{token.text}")
        return call("abs" if token.text == "|" else "norm", inner)

    def _index(self, operand: Node) -> Node:
        """A part of anything; m[z] of a random place z is the sum of the entries, each where z is its place."""
        found = super()._index(operand)
        if not isinstance(found, Index):
            return found
        axes = [k for k, item in enumerate(found.items) if isinstance(item, Name) and self._is_place(item.name)]
        shape = build(self.scope).shape(found.operand) if axes and names_in(found) <= self.scope.known else ()
        if len(axes) != 1 or (axes[0] and axes[0] != len(shape) - 1) or not shape:
            return found
        self.forgave = True
        (axis,) = axes
        place = found.items[axis]
        assert isinstance(place, Name)
        there = Compare("==", WRITTEN_OUT["arange"].means(_as_formula(shape[axis])), place)
        if axis:
            return tree.Binary("@", Index(found.operand, found.items[:axis]), there)
        chosen = tree.Binary("@", there, found.operand)
        return Index(chosen, found.items[1:]) if found.items[1:] else chosen

    def _is_place(self, name: str) -> bool:
        """Whether a name is a random place."""
        given = self.scope.definitions.get(name)
        return isinstance(given, Given) and not given.shape and any(k.name == "categorical" for k in given.kinds)

    # -- functions of one's own -------------------------------------------------------------------------------------------

    def _own_function(self, token: Token) -> Node:
        """f(a), f'(a) and f''(a)."""
        name = token.text.rstrip("'")
        macro = self.scope.functions[name]
        self.at += 2
        args, _ = self._arguments(")", f"{name}(...)")
        if len(args) != len(macro.parameters):
            raise refusal(token, f"{name} takes {len(macro.parameters)} arguments, not {len(args)}")
        value = macro.value
        for _ in range(len(token.text) - len(name)):
            value = self._slope_of(token, name, replace(macro, value=value))
        found = substituted(value, dict(zip(macro.parameters, args, strict=True)))
        return replace(found, primed=token.text) if name != token.text else found

    def _slope_of(self, token: Token, name: str, macro: Macro) -> Node:
        if len(macro.parameters) != 1:
            raise refusal(token, f"{name} has {len(macro.parameters)} arguments; write d({name}(x, y))/dx")
        try:
            return slope(macro.value, macro.parameters[0], Alone())
        except NoExactValue:
            raise refusal(token, f"{name}' is not known as a formula; write d({name}(x))/dx") from None

    def _greek(self, token: Token) -> Node:
        """σ(x) and Φ(x), where nobody has said what else they are."""
        self.at += 2
        self.forgave = True
        args, _ = self._arguments(")", f"{token.text}(...)")
        if len(args) != 1:
            raise refusal(token, f"{token.text} takes one argument here")
        return call("sigmoid", args[0]) if token.text == "σ" else normal_distribution(args[0])


def _as_formula(size: Size) -> Node:
    """A size as an expression."""
    total: Node = ZERO
    for monomial, count in size.terms:
        factors: list[Node] = [Name(name) for name in monomial]
        term = reduce(times, factors if factors and count == 1 else [number(count), *factors])
        total = term if total == ZERO else plus(total, term)
    return total


def _first_factor(node: Node) -> Node:
    while isinstance(node, tree.Binary) and node.op == "@":
        node = node.left
    return node

"""Tokens to shapes: sizes that are names, numbers, and sums and products of them."""

from __future__ import annotations

from dataclasses import replace

from lmlab_derive.kinds import ALSO_NAMES, KIND_WORDS
from lmlab_derive.limits import MAX_LITERAL_SIZE, MAX_RANK, Refusal
from lmlab_derive.read.cursor import refusal
from lmlab_derive.read.expressions import RELATIONS
from lmlab_derive.read.habits import HabitParser
from lmlab_derive.read.tokens import KEYWORDS, Token
from lmlab_derive.sizes import Shape, Size
from lmlab_derive.tree import Given, Let, constant_value

RESERVED = frozenset(KEYWORDS) | {"where", "True", "False"} | (KIND_WORDS - ALSO_NAMES)


class ShapeParser(HabitParser):
    """Parses the shape of a given."""

    def shape(self) -> Shape:
        """Sizes separated by commas, possibly in brackets; none for a scalar."""
        bracket = self.take("(", "[")
        axes: list[Size] = []
        while self.next.kind in ("name", "number", "symbol") and self.next.text not in (",", ")", "]"):
            if self._is_kind():
                break
            start = self.at
            if axes and not bracket and self._starts_item():
                self.at = start - 1
                break
            axis = self.size()
            if axes and not bracket and self.next.text in RELATIONS:
                self.at = start - 1  # a condition of a where clause, not a size
                break
            self._check_axis(axis)
            axes.append(axis)
            if not self.take(","):
                break
        if bracket:
            self.expect(")" if bracket.text == "(" else "]", "to close the shape")
        if len(axes) > MAX_RANK:
            raise Refusal(f"a shape has at most {MAX_RANK} axes, not {len(axes)}", code="shape-with-many-axes")
        return tuple(axes)

    def _is_kind(self) -> bool:
        """Whether a kind follows; beta and gamma are names as well, unless an argument follows them."""
        return self.next.text in KIND_WORDS and (self.next.text not in ALSO_NAMES or self.peek(1).text == "(")

    def _starts_item(self) -> bool:
        """Whether a new `name:` or `name =` follows, rather than one more size."""
        return self.next.kind == "name" and self.peek(1).text in (":", "~", "=")

    def _check_axis(self, axis: Size) -> None:
        if axis.number is not None and not 1 <= axis.number <= MAX_LITERAL_SIZE:
            raise Refusal(
                f"the size {axis} is not allowed; a size written as a number is 1 to {MAX_LITERAL_SIZE}, "
                "any other is a name",
                code="size-not-allowed",
            )
        if any(abs(count) > MAX_LITERAL_SIZE or len(monomial) > 4 for monomial, count in axis.terms):
            raise Refusal(f"the size {axis} is too large; use a name for it", code="size-too-large")

    def size(self) -> Size:
        """A size: numbers and names with + - and *."""
        total = self._size_product()
        while token := self.take("+", "-"):
            term = self._size_product()
            total = total + (term if token.text == "+" else -term)
        return total

    def _size_product(self) -> Size:
        product = self._size_atom()
        while self.take("*"):
            product = product * self._size_atom()
        return product

    def _size_atom(self) -> Size:
        token = self.next
        if self.take("("):
            inner = self._nested(self.size)
            self.expect(")", "to close the bracket")
            return inner
        if token.kind == "number":
            if not token.text.isdigit() or len(token.text) > 20:
                raise self.error(f"a size is a whole number up to {MAX_LITERAL_SIZE} or a name")
            self.at += 1
            return Size.of(int(token.text))
        if token.kind != "name" or token.text in RESERVED:
            raise self.error("a size is a name or a whole number")
        self.at += 1
        return self._size_name(token)

    def _size_name(self, token: Token) -> Size:
        """A name as a size. A scalar given becomes a size; a let of a whole number is that number."""
        definition = self.scope.definitions.get(token.text)
        if isinstance(definition, Let):
            value = constant_value(definition.value)
            if value is None or value.denominator != 1:
                raise refusal(token, f"{token.text} is a let; a size is a name of its own or a whole number")
            return Size.of(int(value))
        if isinstance(definition, Given):
            if definition.shape:
                raise refusal(token, f"{token.text} is an array; a size is a name of its own or a whole number")
            rest = {k: v for k, v in self.scope.definitions.items() if k != token.text}
            self.scope = replace(self.scope, definitions=rest, sizes=self.scope.sizes | {token.text})
        return Size.of(token.text)

"""Derivatives as they are written on paper: d/dx f, d/dx[j] f, dp[i]/dz[j]."""

from __future__ import annotations

from lmlab.checker.read.chances import ChanceParser
from lmlab.checker.read.cursor import refusal, two_names
from lmlab.checker.read.ranks import rank_of
from lmlab.checker.read.tokens import Token
from lmlab.checker.tree import Derivative, Index, Name, Node, Slice, names_in

Places = tuple[Node | Slice, ...]


class DerivativeParser(ChanceParser):
    """Expressions with operators that differentiate what follows them, and with entries of derivatives."""

    forgave: bool

    def operator(self, token: Token) -> Node | None:
        """d/dx f, d/dx[j] f, d2/dx2 f and d2/dxdy f: of the factors that follow; None where it is none of these."""
        by = self._names_below(token, self.peek(2))
        if by is None:
            return None
        start = self.at
        self.at += 3
        places = self._positions_below(by)
        if token.text in self.known and not self._beside():  # d is a size, say, and this a quotient
            self.at = start
            return None
        self.forgave = True
        self._rounded()
        operand = self.sum_of_products(10)
        whole = Derivative(operand, by, column=token.column)
        if not places:
            return whole
        rank = rank_of(operand, self.scope)
        if rank is None:
            raise refusal(token, "the shape of what is differentiated is not clear; give it a name with let")
        return Index(whole, (*[Slice(None, None)] * rank, *places), column=token.column)

    def _names_below(self, token: Token, bottom: Token) -> tuple[str, ...] | None:
        """The names an operator differentiates by: x of d/dx, x and y of d2/dxdy."""
        if bottom.kind != "name" or not bottom.text.startswith("d") or {token.text, bottom.text} <= set(self.known):
            return None
        if token.text == "d":
            return (bottom.text[1:],) if bottom.text[1:] in self.known else None
        return two_names(bottom.text, self.known)

    def _positions_below(self, by: tuple[str, ...]) -> Places:
        """[j] of d/dx[j] f; nothing where the bracket holds what is differentiated, as in d/dx[x**2]."""
        start = self.at
        if self.next.text != "[" or not self.next.glued:
            return ()
        places = tuple(self.positions())
        names = set[str]().union(*(names_in(place) for place in places if not isinstance(place, Slice)))
        if any({name} & set(by) or self.scope.behind(name) & set(by) for name in names):
            self.at = start
            return ()
        return places

    def _rounded(self) -> None:
        """Make round brackets of the square ones in d/dx [f + g], which are no list of one entry."""
        depth = 0
        for at in range(self.at, len(self.tokens)):
            text = self.tokens[at].text
            depth += (text in ("(", "[", "{")) - (text in (")", "]", "}"))
            if depth == 0 or (depth == 1 and text == ","):
                break
        if self.next.text == "[" and self.tokens[at].text == "]":
            self.exchange(self.at, "(")
            self.exchange(at, ")")

    def entry_derivative(self, token: Token) -> Node | None:
        """dp[i]/dz[j] is entry [i, j] of dp/dz."""
        name = token.text[1:]
        if (
            not token.text.startswith("d")
            or name not in self.known
            or self.peek(1).text != "["
            or not self.peek(1).glued
        ):
            return None
        start = self.at
        self.at += 1
        items = self.positions()
        bottom = self.peek(1)
        if self.next.text != "/" or not bottom.text.startswith("d") or bottom.text[1:] not in self.known:
            self.at = start
            return None
        self.at += 2
        if self.next.text == "[" and self.next.glued:
            rest = (rank_of(Name(name), self.scope) or 0) - len(items)  # dY[t]/dX[s]: of Y a row, whole
            items += [Slice(None, None)] * rest + self.positions()
        whole = Derivative(Name(name, column=token.column), (bottom.text[1:],), column=token.column)
        return Index(whole, tuple(items), column=token.column)

"""Derivatives as they are written on paper: dJ/dx, d(f)/d(x[j]), d/dx f, d/dx[j] f, dp[i]/dz[j], grad(J, x).

A place behind the name that is differentiated by belongs to that name, however it is spelt: dh/dx_j is the derivative
of all of h by one entry of x, a column of the Jacobian. A place behind a bracket, (dh/dx)[j], is one of the whole: a row.
"""

from __future__ import annotations

from dataclasses import replace

from lmlab_derive.read.chances import ChanceParser
from lmlab_derive.read.cursor import refusal, two_names
from lmlab_derive.read.ranks import rank_above, rank_of
from lmlab_derive.read.tokens import Token
from lmlab_derive.text import to_text
from lmlab_derive.tree import Derivative, Index, Name, Node, Slice, names_in

Places = tuple[Node | Slice, ...]
_WHOLE = Slice(None, None)


class DerivativeParser(ChanceParser):
    """Expressions with derivatives, with operators that differentiate what follows them, and with entries of both."""

    forgave: bool

    # -- dJ/dx --------------------------------------------------------------------------------------------------------

    def derivative(self) -> Node | None:
        """dJ/dx, d2J/dz2, d2J/dxdy or d(expression)/dx; None when the tokens are something else."""
        token = self.next
        if token.text in ("d", "d2") and self.peek(1).text == "(":
            return self._of_bracket()
        bottom = self.peek(2)
        if self.peek(1).text != "/" or bottom.kind != "name" or not bottom.text.startswith("d"):
            return None
        if not token.text.startswith("d") or (self.peek(3).text == "(" and bottom.text != "d"):
            return None
        if token.text in ("d", "d2") or {token.text, bottom.text} <= set(self.known):
            return None  # nothing is differentiated, or both are plain names: a quotient
        if bottom.text == "d":
            return self._by_bracket(token)
        by: tuple[str, ...]
        if token.text.startswith("d2") and token.text[2:] in self.known and token.text[1:] not in self.known:
            top, by = token.text[2:], self._second_by(bottom)
        else:
            top, by = token.text[1:], (bottom.text[1:],)
            plain = token.text in self.known or bottom.text in self.known  # dx may be a size as well
            if plain and not {top, *by} <= set(self.known):
                return None
            self._known_name(top, token), self._known_name(by[0], bottom)
        self.at += 3
        return self._placed(Derivative(Name(top, column=token.column), by, column=token.column), token)

    def _by_bracket(self, token: Token) -> Node | None:
        """dJ/d(x) and dJ/d(x[j])."""
        if self.peek(3).text != "(" or token.text[1:] not in self.known:
            return None
        self.at += 2
        return self._by_name(Name(token.text[1:], column=token.column), token)

    def _of_bracket(self) -> Node:
        """d(formula)/dx, d2(formula)/dx2, d(formula)/d(x[j])."""
        token = self.next
        self.at += 2
        top = self.expression()
        self.expect(")", "to close the bracket")
        self.expect("/", f"after {token.text}(...), as in d(...)/dx")
        bottom = self.next
        if bottom.kind != "name" or not bottom.text.startswith("d"):
            raise self.error("write what to differentiate by, as in d(...)/dx")
        if bottom.text == "d" and token.text == "d" and self.peek(1).text == "(":
            return self._by_name(top, token)
        self.at += 1
        twice = token.text == "d2"
        by = self._second_by(bottom) if twice else (self._known_name(bottom.text[1:], bottom),)
        return self._placed(Derivative(top, by, column=token.column), token)

    def _by_name(self, top: Node, token: Token) -> Node:
        """A derivative by d(x) or d(x[j]), of which the cursor is at the d."""
        self.at += 2
        name = self._known_name(self.next.text, self.next)
        self.at += 1
        places = tuple(self.positions()) if self.next.text == "[" else ()
        if self.next.text != ")":
            wanted = "write let s = ... for this formula, use s in what is differentiated, and differentiate by s"
            raise self.error(f"one differentiates by a name; {wanted}")
        self.expect(")", "")
        return self._by_entry(Derivative(top, (name,), column=token.column), places, token)

    def _second_by(self, bottom: Token) -> tuple[str, ...]:
        if found := two_names(bottom.text, self.known):
            return found
        raise refusal(
            bottom,
            f"{bottom.text!r} names no second derivative; write it like d2J/dz2 or d2J/dxdy, by entries like d/dx[i] d/dx[j] J",
        )

    def no_derivative(self, following: str) -> str:
        """What to write in place of d/dj f, where j is no name, and of d**3/dt**3 f; the cursor is behind the d."""
        below = self.peek(1).text.removeprefix("d")
        if following == "**":
            if self.peek(1).text == "2":
                return "d is not defined"
            return "derivatives of a higher order are written one after the other, as in d/dt d2/dt2 f"
        if below and below not in self.known and two_names(f"d{below}", self.known) is None:
            return (
                f"{below} is not defined; write the name to differentiate by, as in d/dx[j] f, dJ/dx or d(formula)/dx"
            )
        return "write what is differentiated above, as in dJ/dx or d(formula)/dx"

    def derivative_call(self, token: Token) -> Node:
        """grad(J, x), jacobian(h, x), hessian(J, x); also by an entry, x[j]."""
        args, _ = self._arguments(")", f"{token.text}(...)")
        by = args[1] if len(args) == 2 else None
        name = by.operand if isinstance(by, Index) else by
        if not isinstance(name, Name) or (isinstance(by, Index) and token.text == "hessian"):
            raise refusal(token, f"write {token.text}(h, x) with x the name to differentiate by")
        names = (name.name,) * (2 if token.text == "hessian" else 1)
        whole = Derivative(args[0], names, strict=token.text == "jacobian", column=token.column)
        return self._by_entry(whole, by.items if isinstance(by, Index) else (), token)

    # -- places of derivatives ----------------------------------------------------------------------------------------

    def _by_entry(self, whole: Derivative, places: Places, token: Token) -> Node:
        """The derivative by x[j], or by x where no place is named: all axes of what is differentiated stay."""
        if not places:
            return whole
        return Index(whole, (*[_WHOLE] * self._rank_above(whole, token), *places), column=token.column)

    def _rank_above(self, whole: Derivative, token: Token) -> int:
        rank = rank_above(whole, self.scope)
        if rank is None:
            raise refusal(token, "the shape of what is differentiated is not clear; give it a name with let")
        return rank

    def _placed(self, whole: Derivative, token: Token) -> Node:
        """A derivative and the places right behind it, in dh/dx_j those of x; in dh/dx[i, j], too many for x, of all."""
        bracket, start = self.next, self.at
        if bracket.text != "[" or not bracket.glued or not (above := rank_above(whole, self.scope)):
            return whole
        items = self._items()
        places = tuple(item for item in items if item is not None)
        if len(places) < len(items) or len(places) > self._rank_below(whole):
            self.at = start
            return whole
        by_entry = Index(whole, (*[_WHOLE] * above, *places), column=token.column)
        if bracket.paper:
            return by_entry
        text, place = to_text(whole), to_text(Index(Name(""), places))
        raise refusal(bracket, f"{text}{place} can be read in two ways; {_two_ways(whole, place, to_text(by_entry))}")

    def _rank_below(self, whole: Derivative) -> int:
        return sum(rank_of(Name(name), self.scope) or 0 for name in whole.by)

    def _index(self, operand: Node) -> Node:
        """A part of anything; of a derivative in brackets, (dh/dx)[i], with all axes named, as dh/dx[i, :] is clear."""
        if isinstance(operand, Index) and isinstance(operand.operand, Derivative):
            operand = _without_whole_axes(operand)
        found = super()._index(operand)
        return self._with_whole_axes(found) if isinstance(found, Index) else found

    def _with_whole_axes(self, found: Index) -> Index:
        """dh/dx[i, :] for (dh/dx)[i] and dh[i]/dx, which would not be read again as dh/dx[i]."""
        if not isinstance(whole := found.operand, Derivative) or whole.strict:
            return found
        above, below = rank_above(whole, self.scope), self._rank_below(whole)
        if not above or len(found.items) > below:
            return found
        return replace(found, items=(*found.items, *[_WHOLE] * (above + below - len(found.items))))

    # -- d/dx f -------------------------------------------------------------------------------------------------------

    def operator(self, token: Token) -> Node | None:
        """d/dx f, d/dx[j] f, d2/dx2 f, d2/dxdy f and nabla/dx f: of the factors that follow; None where it is none of these."""
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
        if token.text.startswith("nabla"):
            self._one_factor(token)
        whole = Derivative(self.sum_of_products(10), by, column=token.column)
        if token.text.startswith("nabla") and self._rank_above(whole, token):
            raise refusal(token, f"∇ of an array can be read in two ways; write {to_text(whole)} or its transpose")
        return self._by_entry(whole, places, token)

    def _one_factor(self, token: Token) -> None:
        """Refuse ∇_x J v, where J is a number: ∇ may be that of J alone."""
        start = self.at
        first = self._power()
        if rank_of(first, self.scope) == 0 and (self._beside() or self.next.text in ("*", "@", "·", "/")):
            raise refusal(token, "∇ before several factors can be read in two ways; put brackets around what it is of")
        self.at = start

    def _names_below(self, token: Token, bottom: Token) -> tuple[str, ...] | None:
        """The names an operator differentiates by: x of d/dx, x and y of d2/dxdy."""
        if bottom.kind != "name" or not bottom.text.startswith("d") or {token.text, bottom.text} <= set(self.known):
            return None
        if token.text != "d2":
            by = (bottom.text[1:],) if bottom.text[1:] in self.known else None
            return by * 2 if by and token.text == "nabla2" else by
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
            depth += self.tokens[at].nesting
            if depth == 0 or (depth == 1 and self.tokens[at].text == ","):
                break
        if self.next.text == "[" and self.tokens[at].text == "]":
            self.exchange(self.at, "(")
            self.exchange(at, ")")

    # -- dp[i]/dz[j] --------------------------------------------------------------------------------------------------

    def entry_derivative(self, token: Token) -> Node | None:
        """dp[i]/dz[j] is entry [i, j] of dp/dz."""
        name = token.text[1:]
        placed = self.peek(1).text == "[" and self.peek(1).glued
        if not token.text.startswith("d") or name not in self.known or not placed:
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
            items += [_WHOLE] * rest + self.positions()
        whole = Derivative(Name(name, column=token.column), (bottom.text[1:],), column=token.column)
        return self._with_whole_axes(Index(whole, tuple(items), column=token.column))


def _two_ways(whole: Derivative, place: str, by_entry: str) -> str:
    """What to write for a row and for a column of a Jacobian."""
    text = to_text(whole)
    return f"write {by_entry} for the derivative by {whole.by[-1]}{place}, or ({text}){place} for that place of {text}"


def _without_whole_axes(node: Index) -> Index:
    """x[i] for x[i, :]."""
    kept = len(node.items)
    while kept > 1 and node.items[kept - 1] == _WHOLE:
        kept -= 1
    return replace(node, items=node.items[:kept])

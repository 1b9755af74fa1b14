"""A cursor over tokens, and what tokens say by themselves: numbers, constants, sizes."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import replace
from fractions import Fraction

from lmlab_derive.functions import FUNCTIONS, NAMES
from lmlab_derive.limits import MAX_NUMBER, MAX_TREE_DEPTH, Refusal
from lmlab_derive.read.tokens import Token
from lmlab_derive.tree import Node

_ENDS_OPERAND = (")", "]", "}", ".T")
BARS = ("|", "||", "‖")


def refusal(token: Token, message: str) -> Refusal:
    """A refusal that names the column of a token."""
    return Refusal(f"column {token.column}: {message}", code="statement-not-read")


class TokenReader:
    """A cursor over tokens with errors that say where and what was expected."""

    def __init__(self, tokens: Sequence[Token]) -> None:
        self.tokens = [*tokens]
        self.at = 0

    @property
    def next(self) -> Token:
        """The token under the cursor."""
        return self.tokens[min(self.at, len(self.tokens) - 1)]

    def peek(self, ahead: int) -> Token:
        """The token this many places further on."""
        return self.tokens[min(self.at + ahead, len(self.tokens) - 1)]

    def take(self, *texts: str) -> Token | None:
        """Move past the next token if it is one of these signs or words."""
        if self.next.kind in ("symbol", "name") and self.next.text in texts:
            self.at += 1
            return self.tokens[self.at - 1]
        return None

    def expect(self, text: str, where: str) -> Token:
        """Move past this sign or refuse, naming what was found."""
        token = self.take(text)
        if token is None:
            raise self.error(f"{text!r} is missing {where}")
        return token

    def halve(self, at: int) -> None:
        """Make two bars of the || at this place."""
        token = self.tokens[at]
        second = replace(token, text="|", column=token.column + 1, glued=True)
        self.tokens[at : at + 1] = [replace(token, text="|"), second]

    def exchange(self, at: int, text: str) -> None:
        """Put another sign in the place of the one here."""
        self.tokens[at] = replace(self.tokens[at], text=text)

    def error(self, message: str) -> Refusal:
        """A refusal that names the column under the cursor."""
        found = f" (found {self.next.text!r})" if self.next.kind != "end" else ""
        return refusal(self.next, message + found)


def read_number(token: Token) -> Fraction:
    """The exact value of a number token; refuses what no double can hold sensibly."""
    exponent = re.search(r"[eE]([+-]?\d+)$", token.text)
    long = len(token.text) > 40 or (exponent and abs(int(exponent[1])) > 30)
    if long or (value := Fraction(token.text)) > MAX_NUMBER:
        what = f"the number {token.text[:12]} is too large, too small or too long"
        raise refusal(token, f"{what}; read are sizes from 1e-30 to {MAX_NUMBER:.0e}, in at most 40 signs")
    return value


def two_names(bottom: str, known: Collection[str]) -> tuple[str, ...] | None:
    """The two names of dz2 or dxdy, below a second derivative; None where they are not known."""
    if bottom.endswith("2") and bottom[1:-1] in known:
        return (bottom[1:-1], bottom[1:-1])
    for cut in range(2, len(bottom) - 1):
        if bottom[cut] == "d" and bottom[1:cut] in known and bottom[cut + 1 :] in known:
            return (bottom[1:cut], bottom[cut + 1 :])
    return None


def shallow(node: Node) -> Node:
    """The expression itself, refused when it is nested so deep that walking it would exhaust the stack."""
    pending = [(node, 1)]
    while pending:
        inner, depth = pending.pop()
        if depth > MAX_TREE_DEPTH:
            raise Refusal(
                f"the formula is nested more than {MAX_TREE_DEPTH} levels deep; use let for parts of it",
                code="formula-too-deep",
            )
        pending += [(child, depth + 1) for child in inner.children()]
    return node


def sizes_in_builders(tokens: Sequence[Token], known: Collection[str]) -> set[str]:
    """Names inside eye(...), ones(...) and zeros(...) that are nothing else: sizes that no given has named."""
    found: set[str] = set()
    for i, token in enumerate(tokens[:-1]):
        function = FUNCTIONS.get(token.text)
        if function is None or not function.takes_sizes or tokens[i + 1].text != "(":
            continue
        depth = 0
        for inner in tokens[i + 1 :]:
            depth += (inner.text == "(") - (inner.text == ")")
            if depth == 0:
                break
            if inner.kind == "name" and inner.text not in known and inner.text not in NAMES:
                found.add(inner.text)
    return found


def splits_claim(tokens: Sequence[Token], index: int) -> bool:
    """Whether the `where` at this place opens a where clause rather than the function where(c, a, b)."""
    if tokens[index].text != "where" or tokens[index].kind != "name" or index == 0:
        return False
    before = tokens[index - 1]
    if before.text in BARS:  # which may open or close; the function has its bracket at once
        return not (tokens[index + 1 : index + 2] and tokens[index + 1].text == "(" and tokens[index + 1].glued)
    return before.kind in ("name", "number") or before.text in _ENDS_OPERAND

"""Small formulas, written out: what records and hints are made of."""

from __future__ import annotations

from fractions import Fraction
from functools import reduce

from lmlab_derive.sizes import Size
from lmlab_derive.tree import Binary, Call, Name, Node, Number


def number(value: int | Fraction) -> Number:
    """A number as an expression."""
    return Number(Fraction(value))


ZERO, ONE, TWO = number(0), number(1), number(2)


def plus(left: Node, right: Node) -> Node:
    """left + right."""
    return Binary("+", left, right)


def minus(left: Node, right: Node) -> Node:
    """left - right."""
    return Binary("-", left, right)


def times(left: Node, right: Node) -> Node:
    """left * right."""
    return Binary("*", left, right)


def over(left: Node, right: Node) -> Node:
    """left / right."""
    return Binary("/", left, right)


def power(base: Node, exponent: int | Fraction) -> Node:
    """base ** exponent."""
    return Binary("**", base, number(exponent))


def call(function: str, *args: Node) -> Node:
    """function(args)."""
    return Call(function, args)


def normal_distribution(x: Node) -> Node:
    """The probability that a standard normal is below x, often written Φ(x)."""
    return over(plus(ONE, call("erf", over(x, call("sqrt", TWO)))), TWO)


def size_as_formula(size: Size) -> Node:
    """A size as an expression."""
    total: Node = ZERO
    for monomial, count in size.terms:
        factors: list[Node] = [Name(name) for name in monomial]
        term = reduce(times, factors if factors and count == 1 else [number(count), *factors])
        total = term if total == ZERO else plus(total, term)
    return total

"""Small formulas, written out: what records and hints are made of."""

from __future__ import annotations

from fractions import Fraction

from lmlab_derive.tree import Binary, Call, Node, Number


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

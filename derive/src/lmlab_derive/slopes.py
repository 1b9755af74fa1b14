"""Derivatives as formulas, where everything is entry by entry: so that they can be averaged."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

from lmlab_derive import tree
from lmlab_derive.functions import FUNCTIONS, Entrywise
from lmlab_derive.limits import NoExactValue
from lmlab_derive.small_formulas import ONE, ZERO, call, minus, number, over, plus, power, times
from lmlab_derive.tree import Binary, Call, Compare, Expectation, Let, Name, Negate, Node, constant_value, names_in

MeanSlope = Callable[[Expectation, str], Node]  # the derivative of a mean by a name


class Definitions(Protocol):
    """What a slope asks of its surroundings."""

    @property
    def lets(self) -> Mapping[str, Let]:
        """The lets, by name."""

    def depends(self, node: Node) -> frozenset[str]:
        """Every name an expression depends on, through lets."""


class Alone:
    """Surroundings without lets: a formula that stands by itself."""

    lets: Mapping[str, Let] = {}

    def depends(self, node: Node) -> frozenset[str]:
        """The names in it."""
        return frozenset(names_in(node))


def slope(node: Node, name: str, setting: Definitions, of_mean: MeanSlope | None = None) -> Node:
    """The derivative by a scalar name, entry by entry; `NoExactValue` where an operation is not."""

    def of(inner: Node) -> Node:
        return slope(inner, name, setting, of_mean)

    if name not in setting.depends(node):
        return ZERO
    match node:
        case Name():
            return ONE if node.name == name else of(setting.lets[node.name].value)
        case Negate():
            return Negate(of(node.operand))
        case Binary(op="+" | "-"):
            left, right = of(node.left), of(node.right)
            return left if right == ZERO else Binary(node.op, left, right)
        case Binary(op="*"):
            return _plus(_times(of(node.left), node.right), _times(node.left, of(node.right)))
        case Binary(op="/"):
            first = ZERO if (left := of(node.left)) == ZERO else over(left, node.right)
            right = of(node.right)
            return first if right == ZERO else minus(first, over(times(node.left, right), power(node.right, 2)))
        case Binary(op="**"):
            return _power(node, of)
        case Compare():
            return ZERO
        case Call():
            return _call(node, of)
        case Expectation() if of_mean is not None:
            return of_mean(node, name)
    raise NoExactValue


def _power(node: Binary, of: tree.Rewrite) -> Node:
    exponent = constant_value(node.right)
    if exponent is not None:
        return ZERO if not exponent else _times(times(number(exponent), power(node.left, exponent - 1)), of(node.left))
    return _times(node, of(times(node.right, call("log", node.left))))


def _call(node: Call, of: tree.Rewrite) -> Node:
    function = FUNCTIONS[node.function]
    if isinstance(function, Entrywise) and function.slope is not None:
        return _times(function.slope(node, node.args[0]), of(node.args[0]))
    if node.function in ("maximum", "minimum"):
        first, second = node.args
        test = Compare(">" if node.function == "maximum" else "<", first, second)
        return call("where", test, of(first), of(second))
    if node.function == "where":
        return call("where", node.args[0], *map(of, node.args[1:]))
    raise NoExactValue


def _times(left: Node, right: Node) -> Node:
    if ZERO in (left, right):
        return ZERO
    return right if left == ONE else left if right == ONE else times(left, right)


def _plus(left: Node, right: Node) -> Node:
    return right if left == ZERO else left if right == ZERO else plus(left, right)

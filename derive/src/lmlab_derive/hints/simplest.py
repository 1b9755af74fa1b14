"""A formula said shorter: numbers worked out, like terms and factors put together, transposes moved inside."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction

from lmlab_derive.functions import FUNCTIONS, Along
from lmlab_derive.sizes import Shape
from lmlab_derive.small_formulas import ONE, ZERO, minus, number, over, plus, times
from lmlab_derive.text import to_text
from lmlab_derive.tree import Binary, Call, Negate, Node, Number, Over, Table, Transpose, constant_value

ShapeOf = Callable[[Node], "Shape | None"]  # None: the parts do not fit together
Parts = dict[Node, Fraction]  # terms with their coefficients, in order


def simplest(node: Node, shape_of: ShapeOf) -> Node:
    """The same formula in fewer signs where that is easily seen; what is short already is left as it was written."""
    node = node.rebuild(tuple(simplest(child, shape_of) for child in node.children()))
    match node:
        case Binary(left=Table() as table) if not isinstance(node.right, Table) and shape_of(node.right) == ():
            return replace(table, operand=simplest(replace(node, left=table.operand), shape_of))
        case Binary(right=Table() as table) if not isinstance(node.left, Table) and shape_of(node.left) == ():
            return replace(table, operand=simplest(replace(node, right=table.operand), shape_of))
        case Negate(operand=Table() as table):
            return replace(table, operand=Negate(table.operand))
        case Call(axis=int()) if isinstance(FUNCTIONS[node.function], Along):
            return replace(node, axis=None) if node.axis in (-1, len(shape_of(node) or ()) - 1) else node
        case Over():
            bounds = [None if bound is None else simplest(bound, shape_of) for bound in (node.start, node.stop)]
            return replace(node, start=bounds[0], stop=bounds[1])
        case Negate(operand=Negate(operand=inside)):
            return inside
        case Binary(op="+" | "-"):
            return _shorter(node, _sum(node))
        case Binary(op="/", left=Number(), right=Number()):
            return node  # 6 / 32 may be closer to what was counted
        case Binary(op="*" | "/" | "@"):
            return _shorter(node, _product(node, shape_of))
        case Binary(op="**", right=Number(value=Fraction(numerator=1, denominator=1))):
            return node.left
        case Transpose():
            return _shorter(node, _turned(node.operand, shape_of))
    return node


def _shorter(node: Node, other: Node) -> Node:
    """The other one, if it is shorter or as long: 2 * x for x + x; what is longer is left as it was written."""
    return other if len(to_text(other)) <= len(to_text(node)) else node


def _sum(node: Node) -> Node:
    """The sum of its terms, each once."""
    terms: Parts = {}
    _add(node, Fraction(1), terms)
    found: Node | None = None
    for term, coefficient in terms.items():
        if not coefficient:
            continue
        size = _scaled(term, abs(coefficient))
        if found is None:
            found = size if coefficient > 0 else Negate(size)
        else:
            found = plus(found, size) if coefficient > 0 else minus(found, size)
    return found or ZERO


def _add(node: Node, coefficient: Fraction, terms: Parts) -> None:
    if isinstance(node, Binary) and node.op in "+-":
        _add(node.left, coefficient, terms)
        _add(node.right, coefficient if node.op == "+" else -coefficient, terms)
    elif isinstance(node, Negate):
        _add(node.operand, -coefficient, terms)
    elif (value := constant_value(node)) is not None:
        terms[ONE] = terms.get(ONE, Fraction(0)) + coefficient * value
    else:
        if isinstance(node, Binary) and node.op == "*" and isinstance(node.left, Number):
            coefficient, node = coefficient * node.left.value, node.right
        terms[node] = terms.get(node, Fraction(0)) + coefficient


def _scaled(node: Node, coefficient: Fraction) -> Node:
    """A formula times a positive number, the way it is written by hand: 3 * x / 4."""
    if coefficient.numerator != 1:
        node = times(number(coefficient.numerator), node) if node != ONE else number(coefficient.numerator)
    return node if coefficient.denominator == 1 else over(node, number(coefficient.denominator))


def _product(node: Node, shape_of: ShapeOf) -> Node:
    powers: dict[Node, Node] = {}  # each factor with its exponent
    coefficient = _multiply(node, ONE, powers)
    above: Node | None = None
    below: Node | None = None
    for base, exponent in powers.items():
        exponent = simplest(exponent, shape_of)
        value = constant_value(exponent)
        if value == 0:
            continue
        under = value is not None and value < 0
        size = exponent if value is None else number(abs(value))
        factor = base if size == ONE else Binary("**", base, size)
        if under:
            below = factor if below is None else times(below, factor)
        else:
            above = factor if above is None else times(above, factor)
    if coefficient.denominator != 1:
        below = number(coefficient.denominator) if below is None else times(number(coefficient.denominator), below)
    whole = _scaled(above or ONE, Fraction(abs(coefficient.numerator)))
    whole = whole if below is None else over(whole, below)
    return whole if coefficient > 0 else Negate(whole)


def _multiply(node: Node, exponent: Node, powers: dict[Node, Node]) -> Fraction:
    """The factors of a product into `powers`; the number that stands before them."""
    sign = -1 if exponent == number(-1) else 1
    if isinstance(node, Binary) and node.op in "*/" and exponent in (ONE, number(-1)):
        other = exponent if node.op == "*" else number(-sign)
        return _multiply(node.left, exponent, powers) * _multiply(node.right, other, powers)
    if isinstance(node, Negate):
        return -_multiply(node.operand, exponent, powers)
    if (value := constant_value(node)) and abs(value) < 1_000:
        return value**sign
    own: Node = ONE
    number_inside, node = _number_inside(node)
    if isinstance(node, Binary) and node.op == "**":
        own = node.right
        node = node.left
    own = own if sign == 1 else Negate(own)
    constant = constant_value(own)
    own = own if constant is None else number(constant)
    powers[node] = own if node not in powers else plus(powers[node], own)
    return number_inside**sign


def _number_inside(node: Node) -> tuple[Fraction, Node]:
    """The number that stands inside a matrix product, and the product without it: 2 and A @ B for (2 * A) @ B."""
    if not isinstance(node, Binary) or node.op not in "*@":
        return Fraction(1), node
    if node.op == "*" and isinstance(node.left, Number) and node.left.value:
        inside, rest = _number_inside(node.right)
        return node.left.value * inside, rest
    first, left = _number_inside(node.left)
    second, right = _number_inside(node.right)
    return first * second, node if first * second == 1 else replace(node, left=left, right=right)


def _turned(node: Node, shape_of: ShapeOf) -> Node:
    """The transpose of a formula, written inside it where it can be."""
    match node:
        case Transpose():
            return node.operand
        case Binary(op="+" | "-"):
            return replace(node, left=_turned(node.left, shape_of), right=_turned(node.right, shape_of))
        case Binary(op="@") if all(len(shape_of(side) or ()) == 2 for side in (node.left, node.right)):
            return Binary("@", _turned(node.right, shape_of), _turned(node.left, shape_of))
        case Binary(op="*" | "/") if shape_of(node.right) == ():
            return replace(node, left=_turned(node.left, shape_of))
        case Call(function="outer"):
            return replace(node, args=node.args[::-1])
        case Call(function="eye"):
            return node
    return Transpose(node)

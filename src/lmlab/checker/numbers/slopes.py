"""Derivatives as formulas, where everything is entry by entry: so that they can be averaged without autograd."""

from __future__ import annotations

from lmlab.checker import tree
from lmlab.checker.formulas import ONE, call, minus, number, over, plus, power, times
from lmlab.checker.functions import FUNCTIONS, Entrywise
from lmlab.checker.limits import NoExactValue
from lmlab.checker.shapes.setting import Setting
from lmlab.checker.tree import Binary, Call, Compare, Derivative, Name, Negate, Node, constant_value

ZERO = number(0)


def without_derivatives(node: Node, setting: Setting) -> Node:
    """The expression with every derivative by a scalar written out; `NoExactValue` where that is not possible."""
    if isinstance(node, Derivative):
        found = node.operand
        for name in node.by:
            if setting.shapes.names.get(name) != ():
                raise NoExactValue
            found = without_derivatives(_slope(found, name, setting), setting)
        whole = setting.shape(node)
        return (
            found
            if setting.shape(found) == whole
            else plus(times(ZERO, without_derivatives(node.operand, setting)), found)
        )
    if isinstance(node, Name) and node.name in setting.lets:
        inner = without_derivatives(setting.lets[node.name].value, setting)
        return node if inner is setting.lets[node.name].value else inner
    children = tuple(without_derivatives(child, setting) for child in node.children())
    same = all(a is b for a, b in zip(children, node.children(), strict=True))
    return node if same else node.rebuild(children)


def _slope(node: Node, name: str, setting: Setting) -> Node:
    def of(inner: Node) -> Node:
        return _slope(inner, name, setting)

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
        case tree.Derivative():
            return of(without_derivatives(node, setting))
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

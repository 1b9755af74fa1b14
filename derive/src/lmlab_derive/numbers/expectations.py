"""The algebra of expectations that needs no numbers: linearity, independence, polynomials, and where they bend."""

from __future__ import annotations

import math
from collections.abc import Callable

from lmlab_derive import tree
from lmlab_derive.distributions import is_finite
from lmlab_derive.functions import Kink, function_of, is_entrywise, kink_of
from lmlab_derive.functions.arrays import transposed
from lmlab_derive.functions.record import Array
from lmlab_derive.limits import Refusal
from lmlab_derive.numbers.evaluate import Frame
from lmlab_derive.shapes.setting import Setting
from lmlab_derive.small_formulas import ONE, minus, over, plus, power, times
from lmlab_derive.tree import (
    Binary,
    Call,
    Compare,
    Expectation,
    Index,
    Name,
    Node,
    Over,
    Stack,
    Transpose,
    constant_value,
)

MOST_ENTRIES = 64  # of a finite given whose outcomes are enumerated
SMOOTH = frozenset(
    ["exp", "expm1", "sin", "cos", "sinh", "cosh", "tanh", "sigmoid", "softplus", "silu", "erf", "square"]
)


class Averager:
    """Takes an expectation apart by linearity and independence; `leaf` averages what cannot be taken apart."""

    def __init__(self, frame: Frame, over: frozenset[str], leaf: Callable[[Node, frozenset[str]], Array]) -> None:
        self.frame = frame
        self.over = over
        self.leaf = leaf
        self.seen: dict[int, tuple[Node, frozenset[str]]] = {}  # by identity; the node is kept alive beside it

    def touches(self, node: Node) -> frozenset[str]:
        """The names to average over that the expression depends on."""
        found = self.seen.get(id(node))
        if found is None:
            found = self.seen[id(node)] = (node, self.frame.setting.random_names(node) & self.over)
        return found[1]

    def mean(self, node: Node) -> Array:
        """E[node]."""
        if not self.touches(node):
            return self.frame.evaluate(node)
        ops, function = self.frame.ops, function_of(node)
        match node:
            case Name() if node.name in self.frame.setting.lets:
                return self.mean(self.frame.setting.lets[node.name].value)
            case tree.Negate():
                return ops.wrap(-self.mean(node.operand))
            case Binary(op="+" | "-"):
                return ops.binary(node.op, self.mean(node.left), self.mean(node.right))
            case Binary(op="/") if not self.touches(node.right):
                return ops.divide(self.mean(node.left), self.frame.evaluate(node.right))
            case Binary(op="/") if self.touches(node.left) and not (self.touches(node.left) & self.touches(node.right)):
                return ops.binary("*", self.mean(node.left), self.mean(over(ONE, node.right)))
            case Binary(op="*" | "@") if not (self.touches(node.left) & self.touches(node.right)):
                return ops.binary(node.op, self.mean(node.left), self.mean(node.right))
            case Transpose():
                return transposed(ops, self.mean(node.operand))
            case Index():  # by the node itself, which knows whether its rows count from 0
                return ops.wrap(self.mean(node.operand)[self.frame.positions(node)])
            case Stack():
                return self._rebuilt(node)
            case Compare() if (each := _each(node)) is not None:
                return self.mean(each)
            case Call() if function is not None and function.degree == "sum":
                if not (self.touches(node.args[0]) & self.touches(node.args[1])):
                    return self._rebuilt(node)
            case Call() if function is not None and function.is_linear:
                return self._rebuilt(node)
        return self.leaf(node, self.touches(node))

    def _rebuilt(self, node: Node) -> Array:
        """The same linear operation on averaged arguments, which enter under names of their own."""
        overrides: dict[str, Array] = {}
        children: list[Node] = []
        for i, child in enumerate(node.children()):
            if self.touches(child):
                overrides[f"#{i}"] = self.mean(child)
                self.frame.setting.shapes.names[f"#{i}"] = self.frame.setting.shape(child)
            children.append(Name(f"#{i}") if self.touches(child) else child)
        return self.frame.child(overrides).evaluate(node.rebuild(tuple(children)))

    def variance(self, node: Node) -> Array:
        """Var[node] = E[node**2] - E[node]**2, entry by entry."""
        ops, mean = self.frame.ops, self.mean(node)
        if not self.touches(node):
            return ops.binary("-", mean, mean)
        return ops.binary("-", self.mean(power(node, 2)), ops.binary("*", mean, mean))


def _each(node: Compare) -> Node | None:
    """min(a, b) > t and max(a, b) < t ask the same of both, and what is asked of each may be independent."""
    sides = {"minimum": (">", ">="), "maximum": ("<", "<=")}
    turned = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
    for inner, sign, bound in (
        (node.left, node.op, node.right),
        (node.right, turned.get(node.op, ""), node.left),
    ):
        if isinstance(inner, Call) and inner.function in sides and sign:
            first, second = (Compare(sign, argument, bound) for argument in inner.args)
            if sign in sides[inner.function]:
                return times(first, second)
            return minus(plus(first, second), times(first, second))
    return None


def average(node: Expectation, frame: Frame, leaf: Callable[[Node, frozenset[str]], Array]) -> Array:
    """The value of E[...] or Var[...], with `leaf` for what linearity and independence leave over."""
    over = frame.setting.random_names(node.operand) - set(node.fixed)
    if not over:
        raise Refusal(
            f"nothing inside {node.kind}[...] is random; give a name a distribution, such as normal(0, 1)",
            code="nothing-random",
        )
    averager = Averager(frame, over, leaf)
    return averager.mean(node.operand) if node.kind == "E" else averager.variance(node.operand)


def _touches(node: Node, over: frozenset[str], setting: Setting) -> bool:
    return bool((setting.random_names(node) | setting.open_names(node)) & over)


def degree(node: Node, over: frozenset[str], frame: Frame) -> int | None:
    """The degree of an expression as a polynomial in the random names, or None when it is none (or might not be).

    A product along an axis has as many factors as the axis has entries at the frame's sizes.
    """
    setting = frame.setting
    if not setting.random_names(node) & over:
        return 0
    match node:
        case Name():
            meaning = setting.lets.get(node.name)
            return degree(meaning.value, over, frame) if meaning else _own_degree(node, over, frame)
        case Binary(op="**"):
            return _power_degree(node, over, frame)
        case Call(function="prod") | Over():
            return _product_degree(node, over, frame)
        case Binary(op="/") if setting.random_names(node.right) & over:
            return None
        case Binary(op="*" | "@"):
            growth: str | None = "sum"
        case Expectation():
            growth = "same" if node.kind == "E" else "double"
        case tree.Negate() | Transpose() | Binary() | Stack() | Index():
            growth = "same"
        case _:
            function = function_of(node)
            growth = function.degree if function else None
    inner = [degree(child, over, frame) for child in node.children()]
    known = [d for d in inner if d is not None]
    if growth is None or len(known) < len(inner):
        return None
    return sum(known) if growth == "sum" else max(known) * (2 if growth == "double" else 1)


def _own_degree(node: Name, over: frozenset[str], frame: Frame) -> int | None:
    """The degree of a random given, whose parameters may be random as well."""
    setting = frame.setting
    family, kind = setting.family(node.name)
    inner = [degree(part, over, frame) for part in kind.nodes]
    if not any(d is None or d > 0 for d in inner):
        return 1
    known = [d for d in inner if d is not None]
    if len(known) < len(inner) or not (is_finite(kind) or (family.shifts and not setting.covaries(node.name))):
        return None
    return max(known) * (MOST_ENTRIES if is_finite(kind) else 1) + 1  # chances of all entries are multiplied


def _power_degree(node: Binary, over: frozenset[str], frame: Frame) -> int | None:
    power = constant_value(node.right)
    if power is None or power.denominator != 1 or power < 0:
        return None
    base, exponent = node.left, int(power)
    if isinstance(base, Call) and base.function == "norm" and exponent % 2 == 0:
        base = base.args[0]
    inner = degree(base, over, frame)
    return None if inner is None else inner * exponent


def _product_degree(node: Call | Over, over: frozenset[str], frame: Frame) -> int | None:
    """The degree of a product along an axis, or of a sum or product over an index."""
    if isinstance(node, Over):
        inner, factors = degree(node.operand, over, frame), _factors(node, over, frame)
    else:
        extents = frame.extents(node.args[0])
        inner = degree(node.args[0], over, frame)
        factors = math.prod(extents) if node.axis is None else extents[node.axis]
    return None if inner is None or factors is None else inner * factors


def _factors(node: Over, over: frozenset[str], frame: Frame) -> int | None:
    """How many factors a product over an index has, if that can be said; the terms of a sum are no factors."""
    if any(frame.setting.random_names(bound) & over for bound in node.bounds):
        return None
    if node.function == "sum":
        return 1
    if any(part.free_letters for part in node.bounds):  # those of a sum around this one
        return None
    first, last = frame.terms(node)
    return max(0, last - first + 1)


def elementwise_in(node: Node, over: frozenset[str], setting: Setting) -> bool:
    """Whether entry i of the result depends on entry i of the random arrays alone."""
    if not _touches(node, over, setting):
        return True
    if isinstance(node, Name):
        return elementwise_in(setting.lets[node.name].value, over, setting) if node.name in setting.lets else True
    entrywise = is_entrywise(node) or isinstance(node, Expectation)
    return entrywise and all(elementwise_in(child, over, setting) for child in node.children())


def has_kink(node: Node, over: frozenset[str], setting: Setting) -> bool:
    """Whether the expression bends or jumps in the random names: quadrature of smooth functions is not to be trusted."""
    if not setting.random_names(node) & over:
        return False
    if kink_of(node) is not Kink.NONE:
        return True
    if isinstance(node, Name) and node.name in setting.lets:
        return has_kink(setting.lets[node.name].value, over, setting)
    return any(has_kink(child, over, setting) for child in node.children())


def is_smooth(node: Node, over: frozenset[str], setting: Setting) -> bool:
    """Whether the expression has neither kinks nor poles nor edges in the random names, wherever these are."""
    if not _touches(node, over, setting):
        return True
    function = function_of(node)
    match node:
        case Name() if node.name in setting.lets:
            return is_smooth(setting.lets[node.name].value, over, setting)
        case Name() if node.name in setting.givens:
            return all(is_smooth(part, over, setting) for part in setting.family(node.name)[1].nodes)
        case Binary(op="/"):
            smooth = not _touches(node.right, over, setting)
        case Binary(op="**"):
            exponent = constant_value(node.right)
            smooth = exponent is not None and exponent.denominator == 1 and exponent >= 0
        case Call():
            smooth = function is not None and (function.degree is not None or function.name in SMOOTH)
        case _:
            smooth = isinstance(node, Name | tree.Negate | Binary | Stack | Index | Transpose)
    return smooth and all(is_smooth(child, over, setting) for child in node.children())

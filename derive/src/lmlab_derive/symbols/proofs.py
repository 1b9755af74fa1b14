"""Proofs: a claim in normal form, for all sizes and all values at once. What is not proved here stays "supported"."""

from __future__ import annotations

from lmlab_derive.functions import Kink, kink_of
from lmlab_derive.limits import PROOF_SECONDS, Deadline, OutOfTime, Refusal
from lmlab_derive.shapes.setting import Setting
from lmlab_derive.sizes import ONE
from lmlab_derive.small_formulas import minus
from lmlab_derive.symbols.build import Builder
from lmlab_derive.symbols.signs import at_least_zero
from lmlab_derive.symbols.terms import NoProof
from lmlab_derive.tree import Binary, Call, Node, Stack, constant_value, shown

AWAY_FROM_ROOTS = "wherever no root that is divided by is 0"
AWAY_FROM_ZERO = "wherever nothing that is divided by is 0"


def prove(setting: Setting, left: Node, relation: str, right: Node, deadline: Deadline) -> str | None:
    """How the relation is proved, in words, or None."""
    for expanded in (False, True):
        try:
            builder = Builder(setting, deadline.within(PROOF_SECONDS / 2), expanded)
            gap = builder.build(minus(left, right)).sum
            if relation == "==":
                if builder.algebra.vanishes(gap):
                    return _words(setting, left, right, expanded)
                continue
            gap = gap if relation in (">=", ">") else builder.algebra.scale(-1, gap)
            if at_least_zero(builder.algebra, gap, strict=relation in (">", "<")):
                return "proved: the difference is a sum of terms that cannot be negative"
        except (NoProof, OutOfTime, Refusal, RecursionError, OverflowError, ZeroDivisionError):
            continue
    if relation == "==" and _same_shapes(setting, left, right):
        return "proved: the shapes are equal in symbols"
    return None


def _words(setting: Setting, left: Node, right: Node, expanded: bool) -> str:
    sizes = setting.needed([left, right])[1]
    where = f"for all sizes {', '.join(map(shown, sizes))}" if sizes else "exactly"
    how = "written with exp and brought over common denominators" if expanded else "in index notation"
    but = f", {AWAY_FROM_ROOTS}" if divides_by_a_root(setting, left, right) else ""
    return f"proved {where}: both sides have the same normal form {how}{but}"


def divides_by_a_root(setting: Setting, *sides: Node) -> bool:
    """Whether a denominator has a root in it: what is at 0 there is not looked at (see "What a claim means")."""
    for node in setting.opened(*sides):
        below = node.right if isinstance(node, Binary) and node.op == "/" else None
        if isinstance(node, Binary) and node.op == "**" and (constant_value(node.right) or 0) < 0:
            below = node
        if below is not None and any(map(_is_root, setting.opened(below))):
            return True
    return False


def _is_root(node: Node) -> bool:
    exponent = constant_value(node.right) if isinstance(node, Binary) and node.op == "**" else None
    by_power = exponent is not None and exponent.denominator != 1
    return by_power or (isinstance(node, Call) and kink_of(node) is Kink.EDGE)


def _same_shapes(setting: Setting, left: Node, right: Node) -> bool:
    """shape(X) == (n, m), compared symbol by symbol."""
    shapes = []
    for side in (left, right):
        if isinstance(side, Call) and side.function == "shape":
            shapes.append(list(setting.shape(side.args[0])) or [ONE])
        elif isinstance(side, Stack):
            try:
                shapes.append([setting.shapes.size(item) for item in side.items])
            except Refusal:
                return False
        else:
            return False
    return shapes[0] == shapes[1]

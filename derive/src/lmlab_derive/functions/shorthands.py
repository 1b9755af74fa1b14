"""Functions that are short for others, and written out as soon as they are read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from lmlab_derive.small_formulas import ONE, TWO, call, minus, normal_distribution, number, over, plus, times
from lmlab_derive.tree import Binary, Letter, Node, Over, Stack


@dataclass(frozen=True)
class Shorthand:
    """name(args) means another expression."""

    name: str
    arguments: int | None  # None: one or more
    means: Callable[..., Node]
    is_method: bool = True
    takes_axis: bool = False
    takes_keepdims: bool = False


_FACTOR = Letter("r_")  # of a factorial or a binomial; no name that a student gives


def factorial(n: Node) -> Node:
    """1 * 2 * ... * n."""
    return Over(_FACTOR, "prod", _FACTOR, ONE, n)


def _binomial(n: Node, k: Node) -> Node:
    """(n - k + 1)/1 * ... * n/k, for any n."""
    return Over(over(plus(minus(n, k), _FACTOR), _FACTOR), "prod", _FACTOR, ONE, k)


SHORTHANDS = [
    Shorthand("factorial", 1, factorial, is_method=False),
    Shorthand("binom", 2, _binomial, is_method=False),
    Shorthand("comb", 2, _binomial, is_method=False),
    Shorthand("log2", 1, lambda x: over(call("log", x), call("log", TWO))),
    Shorthand("log10", 1, lambda x: over(call("log", x), call("log", number(10)))),
    Shorthand("clip", 3, lambda x, low, high: call("minimum", call("maximum", x, low), high)),
    Shorthand("gelu", 1, lambda x: times(x, normal_distribution(x))),  # exact
    Shorthand("logdet", 1, lambda x: call("log", call("det", x))),
    Shorthand("arange", 1, lambda n: minus(call("cumsum", call("ones", n)), ONE), is_method=False),
    Shorthand("matmul", 2, lambda a, b: Binary("@", a, b)),
    Shorthand("stack", None, lambda *items: Stack(items), is_method=False),
]

"""Functions that are short for others, and written out as soon as they are read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from lmlab_derive.small_formulas import ONE, TWO, call, minus, normal_distribution, number, over, times
from lmlab_derive.tree import Binary, Node, Stack


@dataclass(frozen=True)
class Shorthand:
    """name(args) means another expression."""

    name: str
    arguments: int | None  # None: one or more
    means: Callable[..., Node]
    is_method: bool = True
    takes_axis: bool = False
    takes_keepdims: bool = False


SHORTHANDS = [
    Shorthand("log2", 1, lambda x: over(call("log", x), call("log", TWO))),
    Shorthand("log10", 1, lambda x: over(call("log", x), call("log", number(10)))),
    Shorthand("clip", 3, lambda x, low, high: call("minimum", call("maximum", x, low), high)),
    Shorthand("gelu", 1, lambda x: times(x, normal_distribution(x))),  # exact
    Shorthand("logdet", 1, lambda x: call("log", call("det", x))),
    Shorthand("arange", 1, lambda n: minus(call("cumsum", call("ones", n)), ONE), is_method=False),
    Shorthand("matmul", 2, lambda a, b: Binary("@", a, b)),
    Shorthand("stack", None, lambda *items: Stack(items), is_method=False),
]

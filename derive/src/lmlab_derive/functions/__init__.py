"""The functions of the language, one record each. To add one, write its record; nothing else need know of it.

record       what a record holds, and what it may ask of an arithmetic
elementwise  exp, sigmoid, relu, ...
reductions   over axes: sum, max, norm, ...; and along them: softmax, cumsum
arrays       outer, inv, concat, eye, ...; `shapes` has their shape rules
shorthands   gelu, log2, clip, ...: written out by others as soon as they are read
"""

from __future__ import annotations

from lmlab_derive.functions.arrays import ARRAYS
from lmlab_derive.functions.elementwise import ELEMENTWISE
from lmlab_derive.functions.record import Entrywise, Function, Kink
from lmlab_derive.functions.reductions import ALONG, REDUCTIONS, Along, Reduction
from lmlab_derive.functions.shorthands import SHORTHANDS, Shorthand
from lmlab_derive.tree import Binary, Call, Compare, Negate, Node

FUNCTIONS: dict[str, Function] = {f.name: f for f in [*ELEMENTWISE, *REDUCTIONS, *ALONG, *ARRAYS]}
WRITTEN_OUT: dict[str, Shorthand] = {f.name: f for f in SHORTHANDS}
DERIVATIVES = frozenset(["jacobian", "grad", "hessian"])  # of a formula by a name
OTHER_NAMES = {alias: f.name for f in FUNCTIONS.values() for alias in f.aliases}
NAMES = frozenset(FUNCTIONS) | DERIVATIVES | {"stack"}  # what a misspelt name is compared with


def function_of(node: Node) -> Function | None:
    """The function that an expression calls, if it is a call."""
    return FUNCTIONS[node.function] if isinstance(node, Call) else None


def is_reduction(node: Node) -> bool:
    """Whether an expression is a call of sum, mean, max, ..."""
    return isinstance(function_of(node), Reduction)


def is_entrywise(node: Node) -> bool:
    """Whether entry i of what an expression does last is made of entry i of each operand, after broadcasting."""
    function = function_of(node)
    if function is not None:
        return function.is_broadcast
    return isinstance(node, Negate | Compare) or (isinstance(node, Binary) and node.op != "@")


def kink_of(node: Node) -> Kink:
    """How the outermost operation of an expression is not smooth. A comparison bends what it is a factor of."""
    function = function_of(node)
    return function.kink if function else Kink.BEND if isinstance(node, Compare) else Kink.NONE


__all__ = [
    "DERIVATIVES", "FUNCTIONS", "NAMES", "OTHER_NAMES", "WRITTEN_OUT", "Along", "Entrywise", "Function", "Kink",
    "Reduction", "function_of", "is_entrywise", "is_reduction", "kink_of",
]  # fmt: skip

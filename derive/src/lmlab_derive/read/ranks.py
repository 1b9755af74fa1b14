"""How many axes a formula has, as far as that can be said while reading: what stands side by side depends on it."""

from __future__ import annotations

from lmlab_derive import tree
from lmlab_derive.functions import FUNCTIONS, Along, Reduction
from lmlab_derive.limits import Refusal
from lmlab_derive.shapes.infer import scalar_like
from lmlab_derive.shapes.scope import Scope
from lmlab_derive.shapes.setting import build
from lmlab_derive.sizes import ONE
from lmlab_derive.tree import Binary, Call, Given, Let, Name, Node, Slice, names_in

_RANKS = {"outer": 2, "inv": 2, "eye": 2, "trace": 0, "det": 0, "kron": 2, "tril": 2, "triu": 2, "vec": 1}


def rank_of(node: Node, scope: Scope, lets: dict[str, int | None] | None = None) -> int | None:
    """The number of axes; None where it is not clear. `lets` are known: lets of lets would double with every one."""
    lets = {} if lets is None else lets
    inner = [rank_of(child, scope, lets) for child in node.children()]
    if None in inner:
        return None
    ranks = [rank for rank in inner if rank is not None]
    match node:
        case Name():
            found = scope.definitions.get(node.name)
            if isinstance(found, Given):
                return len(found.shape)
            if isinstance(found, Let) and node.name not in lets:
                lets[node.name] = rank_of(found.value, scope, lets)
            return lets.get(node.name, 0)
        case Binary(op="@"):
            return None if 0 in ranks else sum(ranks) - 2
        case tree.Index():
            return ranks[0] - sum(not isinstance(item, Slice) for item in node.items)
        case tree.Stack():
            return 1 + max(ranks)
        case tree.Derivative():
            by = [rank_of(Name(name), scope, lets) for name in node.by]
            return None if None in by else ranks[0] + sum(rank for rank in by if rank is not None)
        case tree.Table():
            return len(node.letters) + ranks[0]
        case tree.Recursion():
            return 1 + ranks[0]
        case Call():
            return _rank_of_call(node, ranks)
    return max(ranks, default=0)


def rank_above(node: tree.Derivative, scope: Scope) -> int | None:
    """How many axes a derivative has before those of what it is taken by; None where it is not clear.

    They are those of what is differentiated, but none where that is one number, of whatever shape.
    """
    if names_in(node.operand) <= scope.known:  # not inside let f(x) = ..., whose x may have any shape
        shape = build(scope).shape(node.operand)
        return 0 if scalar_like(shape) and not node.strict else len(shape)
    return rank_of(node.operand, scope)


def is_square(node: Node, scope: Scope) -> bool:
    """Whether this is a matrix with as many rows as columns, and not of one entry."""
    if not names_in(node) <= scope.known or rank_of(node, scope) not in (2, None):
        return False
    try:
        shape = build(scope).shape(node)
    except Refusal:
        return False
    return len(shape) == 2 and shape[0] == shape[1] != ONE


def is_row(node: Node, scope: Scope) -> bool:
    """y.T, y.T @ W and 2 * y.T, with y a vector: what stands before a vector; A.T @ y of a matrix is none."""
    match node:
        case tree.Transpose():
            return rank_of(node.operand, scope) == 1
        case tree.Negate():
            return is_row(node.operand, scope)
        case Binary(op="@"):
            return is_row(node.left, scope)
        case Binary():
            vectors = [side for side in (node.left, node.right) if rank_of(side, scope) != 0]
            return bool(vectors) and all(is_row(side, scope) for side in vectors)
    return False


def _rank_of_call(node: Call, ranks: list[int]) -> int | None:
    function = FUNCTIONS[node.function]
    if isinstance(function, Reduction):
        return ranks[0] if node.keepdims else 0 if node.axis is None else ranks[0] - 1
    if isinstance(function, Along) or function.is_broadcast or node.function == "transpose":
        return max(ranks)
    if node.function == "diag":
        return {1: 2, 2: 1}.get(ranks[0])
    if node.function == "dot":
        return 0 if ranks == [1, 1] else None
    if function.takes_sizes and node.function != "eye":
        return len(node.args)
    return _RANKS.get(node.function)

"""Other ways of writing things: NumPy's other forms of a call and of an index."""

from __future__ import annotations

from dataclasses import replace

from lmlab_derive.functions import FUNCTIONS, WRITTEN_OUT, Along, Reduction
from lmlab_derive.read.cursor import refusal
from lmlab_derive.read.tokens import Token
from lmlab_derive.small_formulas import minus, number
from lmlab_derive.tree import Call, Index, Node, Slice, Stack, constant_value

Options = dict[str, int | bool | None]
Item = Node | Slice | None  # of x[...]; None is a new axis

OTHER_OPTIONS = {"dim": "axis", "keepdim": "keepdims", "diagonal": "k"}  # as torch has them
TRIANGLES = {"tril": "triu", "triu": "tril"}  # each with the one that is left out of it without its diagonal
NOT_READ = {  # words of LaTeX and letters of paper, with what to write in their place
    "E": "write E[...] with brackets; it averages over all random names inside, and E[... | y] holds y fixed",
    "I": "write eye(n) for the identity",
    "T": "write A.T for a transpose, inv(A).T for that of an inverse",
    "approx": "write what is claimed, as in abs(a - b) <= 1/n",
    "propto": "write the factor, as in p = c * q",
    "begin": "write where(c, a, b) for cases, and one claim a line",
    "int": "write an integral as a mean, as E[f(x)] with x: uniform(0, 1)",
    "lim": "there are no limits; write a bound or a derivative",
    "cov": "write Cov[a, b], which averages over all random names inside",
    "corr": "write Cov[a, b] / sqrt(Var[a] * Var[b])",
    "otimes": "write kron(A, B), or outer(x, y) of vectors",
    "arg": "write what holds of the largest value, as in max(x)",
    "implies": "write the condition behind the claim, as in a <= b where a < b",
    "pm": "write one claim for each sign",
    "nabla": "write dJ/dx",
    "nabla2": "write hessian(J, x)",
}
TWO_WAYS = ("max", "min", "norm")  # max(x, 0) and norm(x, 1) are read in two ways


def _axis_by_place(name: str) -> bool:
    return isinstance(FUNCTIONS.get(name), Reduction | Along) and name not in TWO_WAYS


def numpy_forms(name: str, args: tuple[Node, ...], options: Options) -> tuple[Node, ...]:
    """Other ways NumPy has of writing a call: sum(x, 0), concat([a, b], 1), ones((n, m)), reshape(x, (n, m))."""
    if len(args) == 2 and "axis" not in options and (_axis_by_place(name) or isinstance(args[0], Stack)):
        value = constant_value(args[1])
        if value is not None and value.denominator == 1 and abs(value) < 10:
            options["axis"] = int(value)
            args = args[:1]
    if len(args) == 1 and isinstance(args[0], Stack) and name in ("concat", "stack", "ones", "zeros"):
        return args[0].items
    if name == "reshape" and len(args) == 2 and isinstance(args[1], Stack):
        return (args[0], *args[1].items)
    return args


def with_new_axes(node: Node, items: list[Item]) -> Node:
    """x[:, None] as expand_dims(x, axis=1); `node` is already indexed by the items that are not None."""
    axis = 0
    for item in items:
        if item is None:
            node = Call("expand_dims", (node,), axis, column=node.column)
        axis += item is None or isinstance(item, Slice)
    return node


def entry_of(node: Node, items: tuple[Node | Slice, ...], column: int) -> Node:
    """x[i, j], which may also be written x[i][j]."""
    if isinstance(node, Index) and not any(isinstance(item, Slice) for item in node.items):
        return replace(node, items=node.items + items)
    return Index(node, items, column=column)


def last_two_swapped(node: Node, column: int) -> Node:
    """x.mT: every matrix of a batch transposed."""
    return Call("swapaxes", (node, number(-1), number(-2)), column=column)


def strict_triangle(token: Token, name: str, args: tuple[Node, ...], options: Options) -> Node:
    """triu(x, 1) and tril(x, k=-1): what lies above the diagonal, and below it."""
    place = options.get("k") if len(args) == 1 else constant_value(args[1])
    if place == 0:
        return Call(name, args[:1], column=token.column)
    if place != (1 if name == "triu" else -1):
        raise refusal(
            token, f"{name} starts on the diagonal or next to it: triu(x), triu(x, 1), tril(x) and tril(x, -1)"
        )
    return minus(args[0], Call(TRIANGLES[name], args[:1], column=token.column))


def check_call(token: Token, name: str, args: tuple[Node, ...], options: Options) -> None:
    """Refuse a call with the wrong number of arguments, or with options that the function does not take."""
    function = FUNCTIONS.get(name) or WRITTEN_OUT[name]
    wanted = function.arguments
    if len(args) == 2 and name in TWO_WAYS:
        other = "sum(abs(x)) or max(abs(x))" if name == "norm" else f"{name}imum(a, b)"
        raise refusal(token, f"{name} takes one array; write {name}(x, axis=0) or {other}")
    if wanted is not None and len(args) != wanted:
        raise refusal(token, f"{name} takes {wanted} argument{'s' * (wanted > 1)}, not {len(args)}")
    if not args:
        raise refusal(token, f"{name} needs at least one argument")
    for option, taken in (("axis", function.takes_axis), ("keepdims", function.takes_keepdims), ("k", False)):
        if option in options and not taken:
            raise refusal(token, f"{name} takes no {option}=")

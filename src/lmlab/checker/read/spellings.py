"""Other ways of writing things: NumPy's other names and forms of a call, and functions that others are made of."""

from __future__ import annotations

from fractions import Fraction

from lmlab.checker.kinds import ALONG, REDUCTIONS
from lmlab.checker.read.cursor import constant_value
from lmlab.checker.tree import Binary, Call, Node, Number, Slice, Stack

Options = dict[str, int | bool | None]
Item = Node | Slice | None  # of x[...]; None is a new axis

OTHER_NAMES = {
    "ln": "log", "absolute": "abs", "concatenate": "concat", "cat": "concat", "identity": "eye", "amax": "max",
    "amin": "min", "swish": "silu", "logsoftmax": "log_softmax", "tr": "trace", "ravel": "vec", "flatten": "vec",
    "inverse": "inv",
}  # fmt: skip
OTHER_OPTIONS = {"dim": "axis", "keepdim": "keepdims"}  # as torch has them
NO_NUMBERS = {
    "inf": "infinity is no number here; a large one such as -1e9 does the same inside softmax",
    "e": "write exp(1)",
}
WRITTEN_OUT = {
    "log2": 1,
    "log10": 1,
    "clip": 3,
    "gelu": 1,
    "logdet": 1,
    "arange": 1,
    "matmul": 2,
}  # and their arguments
NOT_METHODS = frozenset(["ones", "zeros", "eye", "where", "jacobian", "grad", "hessian", "arange", "stack", "concat"])
BY_PLACE = (REDUCTIONS | ALONG) - {"max", "min", "norm"}  # max(x, 0) and norm(x, 1) are read in two ways


def _number(value: int) -> Number:
    return Number(Fraction(value))


def written_out(name: str, args: tuple[Node, ...], column: int) -> Node:
    """A function that is short for others."""
    first = args[0]
    match name:
        case "log2" | "log10":
            base = Call("log", (_number(int(name[3:])),))
            return Binary("/", Call("log", args, column=column), base, column=column)
        case "clip":
            return Call("minimum", (Call("maximum", args[:2], column=column), args[2]), column=column)
        case "arange":
            return Binary("-", Call("cumsum", (Call("ones", args, column=column),)), _number(1), column=column)
        case "gelu":  # exact, as torch has it: x times the normal distribution function
            inside = Call("erf", (Binary("/", first, Call("sqrt", (_number(2),))),))
            half = Binary("/", Binary("+", _number(1), inside), _number(2))
            return Binary("*", first, half, column=column)
        case "logdet":
            return Call("log", (Call("det", args, column=column),), column=column)
        case "matmul":
            return Binary("@", *args, column=column)
    raise AssertionError(name)


def numpy_forms(name: str, args: tuple[Node, ...], options: Options) -> tuple[Node, ...]:
    """Other ways NumPy has of writing a call: sum(x, 0), concat([a, b], 1), ones((n, m)), reshape(x, (n, m))."""
    if len(args) == 2 and "axis" not in options and (name in BY_PLACE or isinstance(args[0], Stack)):
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


def last_two_swapped(node: Node, column: int) -> Node:
    """x.mT: every matrix of a batch transposed."""
    return Call("swapaxes", (node, _number(-1), _number(-2)), column=column)

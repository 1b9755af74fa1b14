"""The algebra of expectations that needs no numbers: linearity, independence, and which names are random."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

from lmlab.checker.kinds import ELEMENTWISE, PAIRWISE
from lmlab.checker.limits import Refusal
from lmlab.checker.numbers.evaluate import Array, Frame, evaluate
from lmlab.checker.read.cursor import constant_value
from lmlab.checker.shapes.setting import Setting, distribution, kind_nodes
from lmlab.checker.tree import (
    Binary,
    Call,
    Compare,
    Derivative,
    Expectation,
    Index,
    Name,
    Negate,
    Node,
    Number,
    Stack,
    Transpose,
)

FINITE = ("finite", "bernoulli", "categorical", "rademacher", "onehot")
_LINEAR = frozenset(["sum", "mean", "trace", "diag", "vec", "transpose", "reshape", "concat", "cumsum", "expand_dims"])
_PRODUCTS = frozenset(("*", "@"))


def random_names(node: Node, setting: Setting) -> frozenset[str]:
    """The random givens an expression depends on, through lets and through the parameters of other random givens."""
    found: set[str] = set()
    pending = [name for name in open_names(node, setting) if name in setting.givens]
    while pending:
        name = pending.pop()
        kind = distribution(setting.givens[name])
        if kind is None or name in found:
            continue
        found.add(name)
        for part in kind_nodes(kind):
            pending += [n for n in setting.depends(part) if n in setting.givens]
    return frozenset(found)


def open_names(node: Node, setting: Setting) -> frozenset[str]:
    """Names that occur outside inner expectations (an inner expectation has averaged its own away)."""
    if isinstance(node, Expectation):
        return frozenset(node.fixed)
    if isinstance(node, Name):
        if node.name in setting.lets:
            return open_names(setting.lets[node.name].value, setting)
        return frozenset({node.name})
    found: frozenset[str] = frozenset()
    if isinstance(node, Derivative):
        for name in node.by:
            found |= open_names(Name(name), setting)
    for child in node.children():
        found |= open_names(child, setting)
    return found


def is_finite(kind_name: str, arguments: int) -> bool:
    """Whether a distribution has finitely many outcomes."""
    return kind_name in FINITE or (kind_name == "uniform" and arguments == 0)


class Averager:
    """Takes an expectation apart by linearity and independence; `leaf` averages what cannot be taken apart."""

    def __init__(self, frame: Frame, over: frozenset[str], leaf: Callable[[Node, frozenset[str]], Array]) -> None:
        self.frame = frame
        self.over = over
        self.leaf = leaf
        self.seen: dict[int, frozenset[str]] = {}

    def touches(self, node: Node) -> frozenset[str]:
        """The names to average over that the expression depends on."""
        found = self.seen.get(id(node))
        if found is None:
            found = self.seen[id(node)] = random_names(node, self.frame.setting) & self.over
        return found

    def mean(self, node: Node) -> Array:
        """E[node]."""
        if not self.touches(node):
            return evaluate(node, self.frame)
        ops = self.frame.ops
        match node:
            case Name() if node.name in self.frame.setting.lets:
                return self.mean(self.frame.setting.lets[node.name].value)
            case Negate():
                return ops.negate(self.mean(node.operand))
            case Binary(op="+" | "-"):
                return ops.binary(node.op, self.mean(node.left), self.mean(node.right))
            case Binary(op="/") if not self.touches(node.right):
                return ops.binary("/", self.mean(node.left), evaluate(node.right, self.frame))
            case Binary(op="*" | "@") if not (self.touches(node.left) & self.touches(node.right)):
                return ops.binary(node.op, self.mean(node.left), self.mean(node.right))
            case Transpose():
                return ops.matrix("transpose", self.mean(node.operand))
            case Call(function=name) if name in ("outer", "kron", "dot"):
                if not (self.touches(node.args[0]) & self.touches(node.args[1])):
                    return self._rebuilt(node)
            case Call(function=name) if name in _LINEAR:
                return self._rebuilt(node)
            case Stack() | Index():
                return self._rebuilt(node)
        return self.leaf(node, self.touches(node))

    def _rebuilt(self, node: Node) -> Array:
        """The same linear operation on averaged arguments, which enter under names of their own."""
        children = node.children()
        names = tuple(f"#{i}" for i in range(len(children)))
        if isinstance(node, Call) and node.function == "reshape":
            children, names = children[:1], names[:1]
        overrides = {name: self.mean(child) for name, child in zip(names, children, strict=True)}
        inner = self.frame.child(overrides)
        shapes = self.frame.setting.shapes
        for name, child in zip(names, children, strict=True):
            shapes.names[name] = self.frame.setting.shape(child)
        args: tuple[Node, ...] = tuple(Name(name) for name in names)
        if isinstance(node, Call) and node.function == "reshape":
            args = (*args, *node.args[1:])
        return evaluate(node.rebuild(args), inner)

    def variance(self, node: Node) -> Array:
        """Var[node] = E[node**2] - E[node]**2, entry by entry."""
        if not self.touches(node):
            mean = self.mean(node)
            return self.frame.ops.binary("-", mean, mean)
        square = self.mean(Binary("**", node, Number(Fraction(2))))
        mean = self.mean(node)
        return self.frame.ops.binary("-", square, self.frame.ops.binary("*", mean, mean))


def average(node: Expectation, frame: Frame, leaf: Callable[[Node, frozenset[str]], Array]) -> Array:
    """The value of E[...] or Var[...], with `leaf` for what linearity and independence leave over."""
    over = random_names(node.operand, frame.setting) - set(node.fixed)
    if not over:
        raise Refusal(f"nothing inside {node.kind}[...] is random; give a name a distribution, such as normal(0, 1)")
    averager = Averager(frame, over, leaf)
    return averager.mean(node.operand) if node.kind == "E" else averager.variance(node.operand)


def degree(node: Node, over: frozenset[str], setting: Setting) -> int | None:
    """The degree of an expression as a polynomial in the random names, or None when it is none (or might not be)."""
    if not random_names(node, setting) & over:
        return 0
    match node:
        case Name():
            return degree(setting.lets[node.name].value, over, setting) if node.name in setting.lets else 1
        case Binary(op="**"):
            return _power_degree(node, over, setting)
        case Binary(op="/"):
            below = degree(node.right, over, setting)
            return degree(node.left, over, setting) if below == 0 else None
        case Negate() | Transpose() | Binary() | Stack() | Index():
            pass
        case Call(function=name) if name in _LINEAR | {"outer", "kron", "dot", "var", "square"}:
            pass
        case _:
            return None
    inner = [degree(child, over, setting) for child in node.children()]
    if any(d is None for d in inner):
        return None
    numbers = [d for d in inner if d is not None]
    multiplies = (isinstance(node, Binary) and node.op in _PRODUCTS) or (
        isinstance(node, Call) and node.function in ("outer", "kron", "dot")
    )
    if isinstance(node, Call) and node.function in ("var", "square"):
        return 2 * numbers[0]
    return sum(numbers) if multiplies else max(numbers)


def _power_degree(node: Binary, over: frozenset[str], setting: Setting) -> int | None:
    power = constant_value(node.right)
    if power is None or power.denominator != 1 or power < 0:
        return None
    base, exponent = node.left, int(power)
    if isinstance(base, Call) and base.function == "norm" and exponent % 2 == 0:
        inner = degree(base.args[0], over, setting)
    else:
        inner = degree(base, over, setting)
    return None if inner is None else inner * exponent


def elementwise_in(node: Node, over: frozenset[str], setting: Setting) -> bool:
    """Whether entry i of the result depends on entry i of the random arrays alone."""
    if not random_names(node, setting) & over:
        return True
    match node:
        case Name():
            return elementwise_in(setting.lets[node.name].value, over, setting) if node.name in setting.lets else True
        case Negate() | Compare():
            pass
        case Binary(op=op) if op != "@":
            pass
        case Call(function=name) if name in ELEMENTWISE | PAIRWISE or name == "where":
            pass
        case _:
            return False
    return all(elementwise_in(child, over, setting) for child in node.children())


_KINKED = frozenset(["relu", "abs", "sign", "max", "min", "maximum", "minimum", "where", "sqrt", "norm", "std"])


def has_kink(node: Node, over: frozenset[str], setting: Setting) -> bool:
    """Whether the expression bends or jumps in the random names: quadrature of smooth functions is not to be trusted."""
    if not random_names(node, setting) & over:
        return False
    if isinstance(node, Compare) or (isinstance(node, Call) and node.function in _KINKED):
        return True
    if isinstance(node, Name) and node.name in setting.lets:
        return has_kink(setting.lets[node.name].value, over, setting)
    return any(has_kink(child, over, setting) for child in node.children())

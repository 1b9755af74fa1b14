"""Small slips and their repairs: every way one place of a formula is commonly wrong, as a change of the tree.

Each edit carries a cost: among several repairs that work, the cheapest is named. Costs follow how often a slip is made.
What a repair may bring in from its surroundings (chain factors, terms) is in `supplies`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction

from lmlab.checker.kinds import REDUCTIONS
from lmlab.checker.read.cursor import constant_value
from lmlab.checker.sizes import Shape
from lmlab.checker.text import level, to_text
from lmlab.checker.tree import (
    Binary,
    Call,
    Compare,
    Expectation,
    Name,
    Negate,
    Node,
    Number,
    Transpose,
)

LONG = 70  # letters of a formula in a sentence


@dataclass(frozen=True)
class Edit:
    """A changed part, how unlikely the slip is, and what was wrong in words (with formulas, rendered late)."""

    node: Node
    cost: float
    parts: tuple[str | Node, ...]
    path: tuple[int, ...] = ()  # where in the whole formula the part stands
    keeps: Shape | None = None  # the shape the part must have: what it had before

    def within(self, root: Node) -> Edit:
        """The same edit as a change of the whole formula."""
        return replace(self, node=put(root, self.path, self.node), path=()) if self.path else self

    @property
    def words(self) -> str:
        """What was wrong."""
        text = ""
        formulas = [to_text(part) for part in self.parts if not isinstance(part, str)]
        start = _shared_start(formulas)
        for part in self.parts:
            text += part if isinstance(part, str) else short(part, 21 if text.endswith("* ") else 0, start)
        return text


def edit(node: Node, cost: float, *parts: str | Node) -> Edit:
    """An edit with its words in order."""
    return Edit(node, cost, parts)


def short(node: Node, needed: int = 0, start: int = 0) -> str:
    """A formula in a sentence: in brackets when it binds looser than `needed`, cut when it is long, and from `start`."""
    text = to_text(node)
    if level(node) < needed and not text.startswith("("):
        text = f"({text})"
    if len(text) <= LONG:
        return text
    text = f"...{text[start:]}" if start else text
    return text if len(text) <= LONG else text[: LONG - 3] + "..."


def _shared_start(texts: list[str]) -> int:
    """Where to start long formulas that would look alike if they were cut at their end."""
    if len(texts) < 2 or len({text[: LONG - 3] for text in texts}) == len(texts):
        return 0
    pairs = enumerate(zip(*texts, strict=False))  # one may be the start of another
    same = next((i for i, letters in pairs if len(set(letters)) > 1), min(map(len, texts)))
    return max(0, same - LONG // 2)


def shown(name: str) -> str:
    """A name as the user wrote it (one hidden by a later definition carries its line)."""
    return name.split("#")[0]


def number(value: int | Fraction) -> Node:
    """A number as a node."""
    return Number(Fraction(value))


ONE, TWO = number(1), number(2)


def times(left: Node, right: Node) -> Node:
    """left * right."""
    return Binary("*", left, right)


def minus(left: Node, right: Node) -> Node:
    """left - right."""
    return Binary("-", left, right)


def flip(node: Node) -> Node:
    """The transpose, without writing .T twice."""
    return node.operand if isinstance(node, Transpose) else Transpose(node)


def negated(node: Node) -> Node:
    """The formula with the other sign: a minus in front of its first factor goes, or one is put there."""
    if isinstance(node, Negate):
        return node.operand
    if isinstance(node, Binary) and node.op in ("*", "/", "@"):
        first = node.left
        while isinstance(first, Binary) and first.op in ("*", "/", "@"):
            first = first.left
        if isinstance(first, Negate):
            return replace(node, left=negated(node.left))
    return Negate(node)


def paths(root: Node, path: tuple[int, ...] = ()) -> Iterator[tuple[tuple[int, ...], Node]]:
    """Every part of a formula with the way to it."""
    yield path, root
    for i, child in enumerate(root.children()):
        yield from paths(child, (*path, i))


def put(root: Node, path: tuple[int, ...], node: Node) -> Node:
    """The formula with the part at `path` replaced."""
    if not path:
        return node
    children = list(root.children())
    children[path[0]] = put(children[path[0]], path[1:], node)
    return root.rebuild(tuple(children))


def slips(node: Node, inside: bool, scalar: bool) -> Iterator[Edit]:
    """Repairs of one node that need nothing but the node itself; one that is `scalar` has nothing to sum."""
    yield from _signs(node, inside)
    yield from _transposes(node)
    match node:
        case Binary(op="+" | "-"):
            yield from _sums(node)
        case Binary(op="@"):
            yield from _matrix_products(node)
        case Binary(op="*" | "/"):
            yield from _products(node)
        case Binary(op="**"):
            yield from _powers(node)
        case Number():
            yield from _numbers(node)
        case Call():
            yield from _calls(node)
        case Compare():
            turned = replace(node, op={">": "<", "<": ">", ">=": "<=", "<=": ">=", "==": "!=", "!=": "=="}[node.op])
            yield edit(turned, 1.3, "the comparison is turned around: ", turned)
        case Expectation():
            other = "Var" if node.kind == "E" else "E"
            yield edit(replace(node, kind=other), 1.6, f"{other} in place of {node.kind}")
        case Name():
            yield from _functions_of(node)
    if isinstance(node, Call) or (isinstance(node, Binary) and node.op != "**"):
        root, square = Call("sqrt", (node,)), Binary("**", node, TWO)
        yield edit(root, 1.65, "a square root is missing: ", root)
        yield edit(square, 1.65, "a square is missing: ", square)
    if not scalar:
        yield from _reductions(node)


def _signs(node: Node, inside: bool) -> Iterator[Edit]:
    if isinstance(node, Negate):
        yield edit(node.operand, 1.0, "the sign is wrong: drop the minus before ", node.operand)
    elif not inside:
        yield edit(Negate(node), 1.0, "the sign is wrong")
    elif not isinstance(node, Number):
        yield edit(Negate(node), 1.6, "the sign of ", node, " is wrong")


def _transposes(node: Node) -> Iterator[Edit]:
    if isinstance(node, Transpose):
        yield edit(node.operand, 1.2, "the transpose is wrong: ", node.operand, ", not ", node)
    elif isinstance(node, Binary) and node.op == "@":
        turned = Binary("@", flip(node.right), flip(node.left))
        yield edit(turned, 1.2, "a transpose is missing, of the whole product: ", turned, ", not ", node)
    elif isinstance(node, (Name, Binary, Call)) and not (isinstance(node, Call) and node.function == "outer"):
        yield edit(Transpose(node), 1.2, "a transpose is missing: ", Transpose(node), ", not ", node)


def _sums(node: Binary) -> Iterator[Edit]:
    left, right, op = node.left, node.right, node.op
    other = replace(node, op="-" if op == "+" else "+")
    yield edit(other, 1.1, "the sign is wrong: ", other, ", not ", node)
    yield edit(left, 1.35, f"a term too many: {op} ", right)
    yield edit(right if op == "+" else Negate(right), 1.4, "a term too many: ", left)
    if op == "-":
        turned = replace(node, left=right, right=left)
        cost = 1.05 if isinstance(left, Number) or isinstance(right, Number) else 0.95
        yield edit(turned, cost, "the sign is wrong, the operands are swapped: ", turned, ", not ", node)
    yield edit(times(left, right), 1.7, f"* in place of {op}: ", times(left, right))


def _matrix_products(node: Binary) -> Iterator[Edit]:
    a, b = node.left, node.right
    turned = Binary("@", b, a)
    yield edit(turned, 1.4, "the operands are swapped: ", turned, ", not ", node)
    for x, y in [(flip(a), b), (a, flip(b)), (flip(a), flip(b))]:
        form = Binary("@", x, y)
        yield edit(form, 1.25, "the transpose is wrong: ", form, ", not ", node)
    for x, y in [(flip(b), a), (b, flip(a)), (flip(b), flip(a))]:
        form = Binary("@", x, y)
        yield edit(form, 1.7, "the operands are swapped and the transpose is wrong: ", form, ", not ", node)
    yield edit(times(a, b), 1.3, "elementwise product in place of the matrix product: ", times(a, b))
    yield edit(Call("outer", (a, b)), 1.5, "outer product in place of @: ", Call("outer", (a, b)))
    yield edit(a, 1.9, "a factor too many: @ ", b)
    yield edit(b, 1.9, "a factor too many: ", a, " @")


def _products(node: Binary) -> Iterator[Edit]:
    a, b, op = node.left, node.right, node.op
    other = replace(node, op="/" if op == "*" else "*")
    yield edit(other, 1.5, f"{other.op} in place of {op}: ", other)
    yield edit(a, _too_many(b), f"a factor too many: {op} ", b)
    if op == "/":
        turned = replace(node, left=b, right=a)
        yield edit(turned, 1.4, "the operands are swapped: ", turned, ", not ", node)
        return
    yield edit(b, _too_many(a), "a factor too many: ", a, " *")
    for x, y, cost in [
        (a, b, 1.25),
        (flip(a), b, 1.5),
        (a, flip(b), 1.5),
        (b, a, 1.6),
        (b, flip(a), 1.7),
        (flip(b), a, 1.7),
    ]:
        form = Binary("@", x, y)
        yield edit(form, cost, "matrix product in place of the elementwise product: ", form)
    outer = Call("outer", (a, b))
    yield edit(outer, 1.6, "outer product in place of the elementwise product: ", outer)
    for sign in "-+":
        total = Binary(sign, a, b)
        yield edit(total, 1.7, f"{sign} in place of *: ", total)
    if isinstance(a, Number) and a.value == 2:
        both = Binary("+", b, Transpose(b))
        yield edit(
            both, 1.3, "a term is missing, the transpose (the matrix need not be symmetric): ", both, ", not ", node
        )


def _too_many(factor: Node) -> float:
    """The cost of leaving out a factor: a plain number or name is written by mistake more easily than a formula."""
    return 1.13 if isinstance(factor, (Number, Name)) else 1.25


def _powers(node: Binary) -> Iterator[Edit]:
    base, power = node.left, constant_value(node.right)
    yield edit(base, 1.1, "a power too many: ", base, ", not ", node)
    for value in (
        Fraction(2),
        Fraction(3),
        Fraction(4),
        Fraction(-1),
        Fraction(1, 2),
        Fraction(-1, 2),
        Fraction(-2),
        Fraction(3, 2),
    ):
        changed = Binary("**", base, number(value))
        near = power is not None and abs(power - value) == 1 and power * value > 0
        yield edit(changed, 1.15 if near else 1.45, "the power is wrong: ", changed, ", not ", node)


def _numbers(node: Number) -> Iterator[Edit]:
    value = node.value
    options = {2 * value, value / 2, value + 1, value - 1, -value, 3 * value, value / 3} | (
        {1 / value} if value else set()
    )
    for option in sorted(options - {value, Fraction(0)}):
        yield edit(number(option), 1.45, "the number is wrong: ", number(option), ", not ", node)


_RELATED = {
    "sum": ("mean", "max", "logsumexp", "norm"),
    "mean": ("sum",),
    "max": ("min", "sum", "logsumexp"),
    "min": ("max",),
    "logsumexp": ("sum", "max"),
    "norm": ("sum",),
    "var": ("std",),
    "std": ("var",),
    "sigmoid": ("tanh", "relu", "softmax"),
    "tanh": ("sigmoid", "relu"),
    "relu": ("sigmoid", "softplus"),
    "softmax": ("sigmoid", "exp", "log_softmax"),
    "exp": ("log", "sigmoid", "softmax"),
    "log": ("exp", "log_softmax"),
    "sin": ("cos",),
    "cos": ("sin",),
    "inv": ("transpose",),
    "trace": ("sum", "det"),
    "det": ("trace",),
    "ones": ("zeros",),
    "maximum": ("minimum",),
    "minimum": ("maximum",),
}


_SIGN_MATTERS = frozenset(["exp", "sigmoid", "softplus", "softmax", "log_softmax", "relu", "logsumexp"])


def _calls(node: Call) -> Iterator[Edit]:
    name = node.function
    for other in _RELATED.get(name, ()):
        changed = replace(node, function=other)
        cost = 1.18 if {name, other} == {"sum", "mean"} else 1.25 if name in REDUCTIONS else 1.6
        yield edit(changed, cost, f"{other} in place of {name}: ", changed)
    if len(node.args) == 1 and name not in ("ones", "zeros", "eye", "shape"):
        yield edit(node.args[0], 1.6, f"{name} too many: ", node.args[0], ", not ", node)
    if name in _SIGN_MATTERS:
        turned = replace(node, args=(negated(node.args[0]),))
        yield edit(turned, 1.25, "the sign inside is wrong: ", turned, ", not ", node)
    if len(node.args) == 2 and name not in ("reshape", "ones", "zeros"):
        turned = replace(node, args=node.args[::-1])
        yield edit(turned, 1.3, "the operands are swapped: ", turned, ", not ", node)
    if name == "ones" and len(node.args) == 2 and node.args[0] == node.args[1]:
        identity = Call("eye", node.args[:1])
        yield edit(identity, 1.3, "eye in place of ones: ", identity)
    if name == "outer":
        product, entries = Binary("@", *node.args), times(*node.args)
        yield edit(product, 1.5, "@ in place of outer: ", product)
        yield edit(entries, 1.5, "elementwise product in place of outer: ", entries)
    if name in REDUCTIONS or name in ("softmax", "log_softmax", "cumsum", "concat"):
        yield from _axes(node)


def _axes(node: Call) -> Iterator[Edit]:
    for axis in (None, 0, 1, -1):
        for keepdims in (False, True) if node.function in REDUCTIONS else (False,):
            changed = replace(node, axis=axis, keepdims=keepdims)
            if changed == node:
                continue
            what, cost = ("the sum runs over the wrong axis" if node.function == "sum" else "the axis is wrong"), 1.3
            if axis == node.axis:
                what, cost = ("keepdims is missing" if keepdims else "keepdims too many"), 1.2
            yield edit(changed, cost, f"{what}: ", changed, ", not ", node)


def _functions_of(node: Name) -> Iterator[Edit]:
    """What is often written as the bare name."""
    name = shown(node.name)
    yield edit(minus(ONE, node), 1.6, f"1 - {name} in place of {name}")
    yield edit(Binary("**", node, TWO), 1.6, f"{name}**2 in place of {name}, a square is missing")
    yield edit(Call("sqrt", (node,)), 1.6, f"a square root is missing: sqrt({name})")
    yield edit(Call("diag", (node,)), 1.6, f"diag is missing: diag({name})")
    yield edit(Binary("/", ONE, node), 1.7, f"1/{name} in place of {name}")
    yield edit(Call("inv", (node,)), 1.7, f"the inverse is missing: inv({name})")


def _reductions(node: Node) -> Iterator[Edit]:
    """A missing sum: over rows, columns or everything."""
    if isinstance(node, (Number, Compare)) or (isinstance(node, Call) and node.function in REDUCTIONS):
        return
    for axis, over in ((0, "over the rows (axis 0)"), (1, "over the columns (axis 1)"), (None, "over everything")):
        for keepdims in (False, True):
            wrapped = Call("sum", (node,), axis, keepdims)
            yield edit(wrapped, 1.3 + 0.1 * keepdims, f"a sum {over} is missing: ", wrapped)
            averaged = Call("mean", (node,), axis, keepdims)
            yield edit(averaged, 1.7 + 0.1 * keepdims, f"a mean {over} is missing: ", averaged)

"""Small slips and their repairs: every way one place of a formula is commonly wrong, as a change of the tree.

Each edit carries a cost: among several repairs that work, the cheapest is named. Costs follow how often a slip is made.
What a repair may bring in from its surroundings (chain factors, terms) is in `supplies`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction

from lmlab_derive.functions import FUNCTIONS, is_reduction
from lmlab_derive.sizes import Shape
from lmlab_derive.small_formulas import ONE, call, minus, number, over, plus, power, times
from lmlab_derive.text import level, to_text
from lmlab_derive.tree import (
    Binary,
    Call,
    Compare,
    Expectation,
    Name,
    Negate,
    Node,
    Number,
    Transpose,
    constant_value,
    shown,
)

_POWERS = "2 3 4 -1 1/2 -1/2 -2 3/2"
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


def instead(new: Node, cost: float, what: str, old: Node, path: tuple[int, ...] = ()) -> Edit:
    """An edit that shows what would be right and what stands there."""
    return Edit(new, cost, (f"{what}: ", new, ", not ", old), path)


def anew(new: Node, cost: float, what: str, path: tuple[int, ...] = ()) -> Edit:
    """An edit that shows what would be right."""
    return Edit(new, cost, (f"{what}: ", new), path)


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
            yield anew(turned, 1.3, "the comparison is turned around")
        case Expectation():
            other = "Var" if node.kind == "E" else "E"
            yield edit(replace(node, kind=other), 1.6, f"{other} in place of {node.kind}")
        case Name():
            yield from _functions_of(node)
    if isinstance(node, Call) or (isinstance(node, Binary) and node.op != "**"):
        yield anew(call("sqrt", node), 1.65, "a square root is missing")
        yield anew(power(node, 2), 1.65, "a square is missing")
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
        yield instead(node.operand, 1.2, "the transpose is wrong", node)
    elif isinstance(node, Binary) and node.op == "@":
        turned = Binary("@", flip(node.right), flip(node.left))
        yield instead(turned, 1.2, "a transpose is missing, of the whole product", node)
    elif isinstance(node, (Name, Binary, Call)) and not (isinstance(node, Call) and node.function == "outer"):
        yield instead(Transpose(node), 1.2, "a transpose is missing", node)


def _sums(node: Binary) -> Iterator[Edit]:
    left, right, op = node.left, node.right, node.op
    other = replace(node, op="-" if op == "+" else "+")
    yield instead(other, 1.1, "the sign is wrong", node)
    yield edit(left, 1.35, f"a term too many: {op} ", right)
    yield edit(right if op == "+" else Negate(right), 1.4, "a term too many: ", left)
    if op == "-":
        turned = replace(node, left=right, right=left)
        cost = 1.05 if isinstance(left, Number) or isinstance(right, Number) else 0.95
        yield instead(turned, cost, "the sign is wrong, the operands are swapped", node)
    yield anew(times(left, right), 1.7, f"* in place of {op}")
    yield from _brackets(node)


def _brackets(node: Binary) -> Iterator[Edit]:
    """(a + b) * c for a + b * c."""
    left, right, op = node.left, node.right, node.op
    for product, at_right in ((right, True), (left, False)):
        if not isinstance(product, Binary) or product.op not in ("*", "@"):
            continue
        for factor, rest in ((product.left, product.right), (product.right, product.left)):
            whole = Binary(op, left, factor) if at_right else Binary(op, factor, right)
            pair = (whole, rest) if factor is product.left else (rest, whole)
            yield instead(Binary(product.op, *pair), 1.3, "brackets are missing", node)


def _matrix_products(node: Binary) -> Iterator[Edit]:
    a, b = node.left, node.right
    turned = Binary("@", b, a)
    yield instead(turned, 1.4, "the operands are swapped", node)
    for x, y in [(flip(a), b), (a, flip(b)), (flip(a), flip(b))]:
        form = Binary("@", x, y)
        yield instead(form, 1.25, "the transpose is wrong", node)
    for x, y in [(flip(b), a), (b, flip(a)), (flip(b), flip(a))]:
        form = Binary("@", x, y)
        yield instead(form, 1.7, "the operands are swapped and the transpose is wrong", node)
    yield from _gram_matrices(node)
    if _is_square(a) and _is_square(b):
        whole = power(Binary("@", a.children()[0], b.children()[0]), 2)
        yield instead(whole, 1.3, "the square of the product in place of a product of squares", node)
    yield anew(times(a, b), 1.3, "elementwise product in place of the matrix product")
    yield anew(call("outer", a, b), 1.5, "outer product in place of @")
    yield edit(a, 1.9, "a factor too many: @ ", b)
    yield edit(b, 1.9, "a factor too many: ", a, " @")


def _gram_matrices(node: Binary) -> Iterator[Edit]:
    """X.T @ X for X @ X.T, also where a vector stands behind it: (X @ X.T) @ w."""
    left, right = node.left, node.right
    if right == flip(left):
        yield instead(Binary("@", right, left), 1.2, "the factors are in the wrong order", node)


def _is_square(node: Node) -> bool:
    return isinstance(node, Binary) and node.op == "**" and constant_value(node.right) == 2


def _products(node: Binary) -> Iterator[Edit]:
    a, b, op = node.left, node.right, node.op
    other = replace(node, op="/" if op == "*" else "*")
    yield anew(other, 1.5, f"{other.op} in place of {op}")
    yield edit(a, _too_many(b), f"a factor too many: {op} ", b)
    if op == "/":
        turned = replace(node, left=b, right=a)
        yield instead(turned, 1.4, "the operands are swapped", node)
        return
    yield edit(b, _too_many(a), "a factor too many: ", a, " *")
    transposed = [(flip(a), b, 1.5), (a, flip(b), 1.5), (b, a, 1.6), (b, flip(a), 1.7), (flip(b), a, 1.7)]
    for x, y, cost in [(a, b, 1.25), *transposed]:
        form = Binary("@", x, y)
        yield anew(form, cost, "matrix product in place of the elementwise product")
    outer = Call("outer", (a, b))
    yield anew(outer, 1.6, "outer product in place of the elementwise product")
    for sign in "-+":
        total = Binary(sign, a, b)
        yield anew(total, 1.7, f"{sign} in place of *")
    if isinstance(a, Number) and a.value == 2:
        both = plus(b, Transpose(b))
        yield instead(both, 1.3, "a term is missing, the transpose (the matrix need not be symmetric)", node)


def _too_many(factor: Node) -> float:
    """The cost of leaving out a factor: a plain number or name is written by mistake more easily than a formula."""
    return 1.13 if isinstance(factor, (Number, Name)) else 1.25


def _powers(node: Binary) -> Iterator[Edit]:
    base, exponent = node.left, constant_value(node.right)
    yield instead(base, 1.1, "a power too many", node)
    for value in map(Fraction, _POWERS.split()):
        changed = power(base, value)
        near = exponent is not None and abs(exponent - value) == 1 and exponent * value > 0
        yield instead(changed, 1.15 if near else 1.45, "the power is wrong", node)


def _numbers(node: Number) -> Iterator[Edit]:
    value = node.value
    options = {2 * value, value / 2, value + 1, value - 1, -value, 3 * value, value / 3}
    options |= {1 / value} if value else set()
    for option in sorted(options - {value, Fraction(0)}):
        yield instead(number(option), 1.45, "the number is wrong", node)


def _calls(node: Call) -> Iterator[Edit]:
    name, function, reduces = node.function, FUNCTIONS[node.function], is_reduction(node)
    for other in function.confused_with:
        cost = 1.18 if {name, other} == {"sum", "mean"} else 1.25 if reduces else 1.6
        yield anew(replace(node, function=other), cost, f"{other} in place of {name}")
    if len(node.args) == 1 and not function.takes_sizes and name != "shape":
        yield instead(node.args[0], 1.6, f"{name} too many", node)
    if function.sign_slips:
        yield instead(replace(node, args=(negated(node.args[0]),)), 1.25, "the sign inside is wrong", node)
    if len(node.args) == 2 and not function.takes_sizes and name != "reshape":
        yield instead(replace(node, args=node.args[::-1]), 1.3, "the operands are swapped", node)
    if name == "ones" and len(node.args) == 2 and node.args[0] == node.args[1]:
        yield anew(call("eye", node.args[0]), 1.3, "eye in place of ones")
    if name == "outer":
        yield anew(Binary("@", *node.args), 1.5, "@ in place of outer")
        yield anew(times(*node.args), 1.5, "elementwise product in place of outer")
    if function.takes_axis and name != "expand_dims":
        yield from _axes(node)


def _axes(node: Call) -> Iterator[Edit]:
    for axis in (None, 0, 1, -1):
        for keepdims in (False, True) if is_reduction(node) else (False,):
            changed = replace(node, axis=axis, keepdims=keepdims)
            if changed == node:
                continue
            what, cost = ("the sum runs over the wrong axis" if node.function == "sum" else "the axis is wrong"), 1.3
            if axis == node.axis:
                what, cost = ("keepdims is missing" if keepdims else "keepdims too many"), 1.2
            yield instead(changed, cost, what, node)


def _functions_of(node: Name) -> Iterator[Edit]:
    """What is often written as the bare name."""
    name = shown(node.name)
    yield edit(minus(ONE, node), 1.6, f"1 - {name} in place of {name}")
    yield edit(power(node, 2), 1.6, f"{name}**2 in place of {name}, a square is missing")
    yield edit(call("sqrt", node), 1.6, f"a square root is missing: sqrt({name})")
    yield edit(call("diag", node), 1.6, f"diag is missing: diag({name})")
    yield edit(over(ONE, node), 1.7, f"1/{name} in place of {name}")
    yield edit(call("inv", node), 1.7, f"the inverse is missing: inv({name})")


def _reductions(node: Node) -> Iterator[Edit]:
    """A missing sum: over rows, columns or everything."""
    if isinstance(node, (Number, Compare)) or is_reduction(node):
        return
    for axis, where in ((0, "over the rows (axis 0)"), (1, "over the columns (axis 1)"), (None, "over everything")):
        for keepdims in (False, True):
            for what, cost in (("sum", 1.3), ("mean", 1.7)):
                yield anew(Call(what, (node,), axis, keepdims), cost + 0.1 * keepdims, f"a {what} {where} is missing")

"""The typed tree of the derivation language: expressions, and the statements of a sheet. Nothing here computes."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from fractions import Fraction

from lmlab_derive.limits import MAX_EXPONENT, Refusal
from lmlab_derive.sizes import Shape


@dataclass(frozen=True)
class Node:
    """An expression. Equality ignores where it was written, and that the reader worked it out of f'(x), say."""

    column: int = field(default=0, compare=False, kw_only=True)
    primed: str = field(default="", compare=False, kw_only=True)  # the slope that the reader worked out here

    @functools.cached_property
    def free_letters(self) -> frozenset[str]:
        """The letters of an expression, those in positions included, that no sum inside binds."""
        return frozenset(_free_letters(self))

    def children(self) -> tuple[Node, ...]:
        """The expressions directly inside this one."""
        return ()

    def rebuild(self, children: tuple[Node, ...]) -> Node:
        """The same expression around other children."""
        assert not children
        return self


Rewrite = Callable[[Node], Node]


@dataclass(frozen=True)
class Number(Node):
    """A number, kept exactly as it was written."""

    value: Fraction


@dataclass(frozen=True)
class Constant(Node):
    """A named number that is no fraction: pi, and inf, which has its place in masks of a softmax."""

    name: str


@dataclass(frozen=True)
class Name(Node):
    """A given, a let, or a size used as a number."""

    name: str


@dataclass(frozen=True)
class _Around(Node):
    """What holds one expression."""

    operand: Node

    def children(self) -> tuple[Node, ...]:
        """The operand."""
        return (self.operand,)

    def rebuild(self, children: tuple[Node, ...]) -> Node:
        """The same around another operand."""
        return replace(self, operand=children[0])


@dataclass(frozen=True)
class _Between(Node):
    """An operator between two expressions."""

    op: str
    left: Node
    right: Node

    def children(self) -> tuple[Node, ...]:
        """Both operands."""
        return (self.left, self.right)

    def rebuild(self, children: tuple[Node, ...]) -> Node:
        """The same operator between others."""
        return replace(self, left=children[0], right=children[1])


@dataclass(frozen=True)
class Negate(_Around):
    """-operand."""


@dataclass(frozen=True)
class Transpose(_Around):
    """operand.T: all axes reversed, as in NumPy."""


@dataclass(frozen=True)
class Binary(_Between):
    """left op right, with op one of + - * / @ **."""


@dataclass(frozen=True)
class Compare(_Between):
    """An array of 0 and 1: op is one of > < >= <= == !=."""


@dataclass(frozen=True)
class Call(Node):
    """function(args, axis=, keepdims=)."""

    function: str
    args: tuple[Node, ...]
    axis: int | None = None
    keepdims: bool = False

    def children(self) -> tuple[Node, ...]:
        """The positional arguments."""
        return self.args

    def rebuild(self, children: tuple[Node, ...]) -> Node:
        """The same call with other arguments."""
        return replace(self, args=children)


@dataclass(frozen=True)
class Stack(Node):
    """[a, b, c]: items of one shape along a new first axis."""

    items: tuple[Node, ...]

    def children(self) -> tuple[Node, ...]:
        """The items."""
        return self.items

    def rebuild(self, children: tuple[Node, ...]) -> Node:
        """A stack of other items."""
        return replace(self, items=children)


@dataclass(frozen=True)
class Slice:
    """start:stop along one axis, in sizes; `None` is the end of the axis."""

    start: Node | None
    stop: Node | None


@dataclass(frozen=True)
class Index(_Around):
    """operand[items]: sizes pick an entry, slices a stretch, counted from 0. Positions are sizes, not expressions."""

    items: tuple[Node | Slice, ...]


@dataclass(frozen=True)
class Letter(Node):
    """An index such as i, bound by a sum or by the claim. It counts from `first`: 1, unless its range starts with 0."""

    name: str
    first: int = 1


@dataclass(frozen=True)
class Witness:
    """Where a letter stands alone as a position: its range is that axis of that array.

    `less`, `beyond`: of a position i + k + c, the range of k and the number c, by which the range of i is shorter.
    """

    operand: Node
    axis: int
    less: Witness | None = None
    beyond: int = 0


@dataclass(frozen=True)
class Over(_Around):
    """sum(i=a..b, operand) or prod(...). Without bounds the letter runs along the axis of its witness."""

    function: str  # "sum" or "prod"
    letter: Letter
    start: Node | None
    stop: Node | None
    witness: Witness | None = None

    @property
    def bounds(self) -> list[Node]:
        """The bounds, as far as they are written."""
        return [bound for bound in (self.start, self.stop) if bound is not None]


@dataclass(frozen=True)
class Table(_Around):
    """The array of all values of an operand with free letters: entry [i, j, ...] has these values of the letters."""

    letters: tuple[tuple[Letter, Witness], ...]


@dataclass(frozen=True)
class Recursion(_Around):
    """name[t] = operand for t = 1..T, from name[0] = start: the array of all of them, of T + 1 rows."""

    name: str
    start: Node
    letter: Letter
    witness: Witness

    def children(self) -> tuple[Node, ...]:
        """The start and the step."""
        return (self.start, self.operand)

    def rebuild(self, children: tuple[Node, ...]) -> Node:
        """The same recursion with another start and step."""
        return replace(self, start=children[0], operand=children[1])


def _free_letters(node: Node) -> set[str]:
    found = _free_in(node.children())
    match node:
        case Letter():
            return {node.name}
        case Index():
            return found | _free_in(positions(node))
        case Over():
            return (found - {node.letter.name}) | _free_in(node.bounds)
        case Table():
            return found - {letter.name for letter, _ in node.letters}
        case Recursion():
            return found - {node.letter.name}
    return found


def _free_in(nodes: Iterable[Node]) -> set[str]:
    return set[str]().union(*(node.free_letters for node in nodes))


@dataclass(frozen=True)
class Derivative(_Around):
    """d operand / d names: shape(operand) + shape of each name; an operand with axes of size 1 alone counts as a scalar.

    `strict` (written `jacobian(h, x)`) keeps the axes of size 1.
    """

    by: tuple[str, ...]
    strict: bool = False


@dataclass(frozen=True)
class Expectation(_Around):
    """E[operand] or Var[operand] over every random name inside, except those held fixed by `| names`."""

    kind: str  # "E" or "Var"
    fixed: tuple[str, ...] = ()


def rebuilt(node: Node, children: tuple[Node, ...]) -> Node:
    """The expression around these children; itself, where they are its own."""
    same = all(new is old for new, old in zip(children, node.children(), strict=True))
    return node if same else node.rebuild(children)


def walk(node: Node) -> Iterator[Node]:
    """The node and everything inside it, outermost first."""
    yield node
    for child in node.children():
        yield from walk(child)


def positions(node: Index) -> list[Node]:
    """The sizes written between the brackets of an index, those of slices included."""
    parts: list[Node | None] = []
    for item in node.items:
        parts += [item.start, item.stop] if isinstance(item, Slice) else [item]
    return [part for part in parts if part is not None]


def names_in(node: Node) -> set[str]:
    """Every name the expression mentions, also those it differentiates by."""
    found: set[str] = set()
    for inner in walk(node):
        if isinstance(inner, Name):
            found.add(inner.name)
        elif isinstance(inner, Derivative):
            found.update(inner.by)
        elif isinstance(inner, Index | Over):
            parts = positions(inner) if isinstance(inner, Index) else inner.bounds
            found = found.union(*map(names_in, parts))
    return found


def shown(name: str) -> str:
    """A name as the user wrote it: one hidden by a later definition carries its line."""
    if name.endswith("~"):
        return f"coefficients of {name[:-1]}"
    return name.split("#")[0]


def constant_value(node: Node) -> Fraction | None:
    """The value of an expression made of written numbers alone, or None. Refuses powers that would explode."""
    if isinstance(node, Number):
        return node.value
    if isinstance(node, Negate):
        inner = constant_value(node.operand)
        return None if inner is None else -inner
    if not isinstance(node, Binary):
        return None
    left, right = constant_value(node.left), constant_value(node.right)
    if left is None or right is None:
        return None
    if node.op in "+-*":
        return {"+": left + right, "-": left - right, "*": left * right}[node.op]
    if node.op == "/" and right:
        return left / right
    if node.op == "**" and right.denominator == 1 and abs(right) <= MAX_EXPONENT and (left or right >= 0):
        if max(left.numerator.bit_length(), left.denominator.bit_length()) * abs(right) > 4_000:
            raise Refusal(f"column {node.column}: this power of powers is too large", code="power-too-large")
        return left ** int(right)
    return None


# -- statements ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Kind:
    """What the values of a given are like; `arguments` are those of a distribution, such as normal(mu, s)."""

    name: str
    arguments: tuple[Node, ...] = ()
    outcomes: tuple[tuple[Node, Node | None], ...] = ()  # of {value: probability, ...}; None: all equally likely

    @property
    def nodes(self) -> list[Node]:
        """The expressions inside, such as the mean and deviation of a normal."""
        return [*self.arguments, *(part for outcome in self.outcomes for part in outcome if part is not None)]


@dataclass(frozen=True, kw_only=True)
class Given:
    """given name: shape kinds."""

    name: str
    shape: Shape
    kinds: tuple[Kind, ...]
    line: int


@dataclass(frozen=True, kw_only=True)
class Let:
    """let name = value."""

    name: str
    value: Node
    line: int


@dataclass(frozen=True, kw_only=True)
class Condition:
    """A comparison in a where clause that every point must satisfy."""

    left: Node
    relation: str
    right: Node


@dataclass(frozen=True, kw_only=True)
class Step:
    """One side of a claim or one line of a derivation. `relation` ties it to the step before ("" for the first)."""

    relation: str
    value: Node
    line: int
    text: str = field(default="", compare=False)  # as it was written


@dataclass(frozen=True, kw_only=True)
class Claim:
    """claim a == b, or derive a followed by its steps. Each step is tied to the one before it."""

    steps: tuple[Step, ...]
    where_text: str
    line: int
    text: str
    derive: bool
    read: str = ""  # as it was understood, where it was written in other signs
    skipped: tuple[NotUnderstood, ...] = ()  # the lines of a derivation that are not understood
    in_prose: bool = False  # it stands among words, which may say anything about it
    joined: bool = False  # a row that starts with a sign goes on with it, and may be a claim of its own


@dataclass(frozen=True, kw_only=True)
class NotUnderstood:
    """A statement that is not understood, with the reason."""

    line: int
    text: str
    reason: str

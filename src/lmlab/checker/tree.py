"""The typed tree of the derivation language: expressions, and the statements of a sheet. Nothing here computes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, fields, replace
from fractions import Fraction

from lmlab.checker.sizes import Shape


@dataclass(frozen=True)
class Node:
    """An expression. Equality ignores where it was written."""

    column: int = field(default=0, compare=False, kw_only=True)

    def children(self) -> tuple[Node, ...]:
        """The expressions directly inside this one."""
        return ()

    def rebuild(self, children: tuple[Node, ...]) -> Node:
        """The same expression around other children."""
        assert not children
        return self


@dataclass(frozen=True)
class Number(Node):
    """A number, kept exactly as it was written."""

    value: Fraction


@dataclass(frozen=True)
class Constant(Node):
    """A named number that is no fraction: pi."""

    name: str


@dataclass(frozen=True)
class Name(Node):
    """A given, a let, or a size used as a number."""

    name: str


@dataclass(frozen=True)
class Negate(Node):
    """-operand."""

    operand: Node

    def children(self) -> tuple[Node, ...]:
        """The operand."""
        return (self.operand,)

    def rebuild(self, children: tuple[Node, ...]) -> Node:
        """Negate another operand."""
        return replace(self, operand=children[0])


@dataclass(frozen=True)
class Binary(Node):
    """left op right, with op one of + - * / @ **."""

    op: str
    left: Node
    right: Node

    def children(self) -> tuple[Node, ...]:
        """Both operands."""
        return (self.left, self.right)

    def rebuild(self, children: tuple[Node, ...]) -> Node:
        """The same operator on other operands."""
        return replace(self, left=children[0], right=children[1])


@dataclass(frozen=True)
class Compare(Node):
    """An array of 0 and 1: op is one of > < >= <= == !=."""

    op: str
    left: Node
    right: Node

    def children(self) -> tuple[Node, ...]:
        """Both operands."""
        return (self.left, self.right)

    def rebuild(self, children: tuple[Node, ...]) -> Node:
        """The same comparison of other operands."""
        return replace(self, left=children[0], right=children[1])


@dataclass(frozen=True)
class Transpose(Node):
    """operand.T: all axes reversed, as in NumPy."""

    operand: Node

    def children(self) -> tuple[Node, ...]:
        """The operand."""
        return (self.operand,)

    def rebuild(self, children: tuple[Node, ...]) -> Node:
        """Transpose another operand."""
        return replace(self, operand=children[0])


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
class Index(Node):
    """operand[items]: sizes pick an entry, slices a stretch, counted from 0."""

    operand: Node
    items: tuple[Node | Slice, ...]

    def children(self) -> tuple[Node, ...]:
        """The operand (positions are sizes, not expressions)."""
        return (self.operand,)

    def rebuild(self, children: tuple[Node, ...]) -> Node:
        """The same positions of another operand."""
        return replace(self, operand=children[0])


@dataclass(frozen=True)
class Derivative(Node):
    """d top / d names: shape(top) + shape of each name; a top whose axes all have size 1 counts as a scalar.

    `strict` (written `jacobian(h, x)`) keeps the axes of size 1.
    """

    top: Node
    by: tuple[str, ...]
    strict: bool = False

    def children(self) -> tuple[Node, ...]:
        """What is differentiated."""
        return (self.top,)

    def rebuild(self, children: tuple[Node, ...]) -> Node:
        """The derivative of something else by the same names."""
        return replace(self, top=children[0])


@dataclass(frozen=True)
class Expectation(Node):
    """E[operand] or Var[operand] over every random name inside, except those held fixed by `| names`."""

    kind: str  # "E" or "Var"
    operand: Node
    fixed: tuple[str, ...] = ()

    def children(self) -> tuple[Node, ...]:
        """What is averaged."""
        return (self.operand,)

    def rebuild(self, children: tuple[Node, ...]) -> Node:
        """The same average of something else."""
        return replace(self, operand=children[0])


def walk(node: Node) -> Iterator[Node]:
    """The node and everything inside it, outermost first."""
    yield node
    for child in node.children():
        yield from walk(child)


def names_in(node: Node) -> set[str]:
    """Every name the expression mentions, also those it differentiates by."""
    found: set[str] = set()
    for inner in walk(node):
        if isinstance(inner, Name):
            found.add(inner.name)
        elif isinstance(inner, Derivative):
            found.update(inner.by)
        elif isinstance(inner, Index):
            for item in inner.items:
                parts = (item.start, item.stop) if isinstance(item, Slice) else (item,)
                for part in parts:
                    if part is not None:
                        found |= names_in(part)
    return found


@dataclass(frozen=True)
class Kind:
    """What the values of a given are like; `arguments` are those of a distribution, such as normal(mu, s)."""

    name: str
    arguments: tuple[Node, ...] = ()
    outcomes: tuple[tuple[Node, Node | None], ...] = ()  # of {value: probability, ...}; None: all equally likely


@dataclass(frozen=True, kw_only=True)
class Given:
    """given name: shape kinds."""

    name: str
    shape: Shape
    kinds: tuple[Kind, ...]
    line: int
    text: str


@dataclass(frozen=True, kw_only=True)
class Let:
    """let name = value."""

    name: str
    value: Node
    line: int
    text: str


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
    text: str


@dataclass(frozen=True, kw_only=True)
class Claim:
    """claim a == b, or derive a followed by its steps. Each step is tied to the one before it."""

    steps: tuple[Step, ...]
    where: tuple[Given | Let | Condition, ...]
    where_text: str
    line: int
    text: str
    derive: bool


@dataclass(frozen=True, kw_only=True)
class Mistake:
    """A statement that is not understood, with the reason."""

    line: int
    text: str
    reason: str
    name: str | None = None  # what the statement would have defined


Statement = Given | Let | Claim | Mistake


def is_number(node: Node, value: int | Fraction) -> bool:
    """Whether the node is this number, written out."""
    return isinstance(node, Number) and node.value == value


def tree_size(node: Node) -> int:
    """How many nodes the expression has."""
    return sum(1 for _ in walk(node))


assert all(f.kw_only for f in fields(Node))  # subclasses add positional fields after `column`

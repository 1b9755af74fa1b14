"""Which repairs say something: not the other side itself, and only what has its right shape and its indices."""

from __future__ import annotations

from collections.abc import Iterator

from lmlab_derive.hints.simplest import ShapeOf, simplest
from lmlab_derive.tree import Name, Node, Number, Table, Transpose, walk


class Sense:
    """Judges repairs of `wrong` that would make it equal to `target`."""

    def __init__(self, target: Node, wrong: Node, shape_of: ShapeOf) -> None:
        self.target, self.wrong, self.shape_of = simplest(target, shape_of), wrong, shape_of
        self.sides = (self.target, simplest(wrong, shape_of))
        self.turned = {node for node in walk(wrong) if isinstance(node, Transpose)}

    def copies(self, repaired: Node) -> bool:
        """Whether a repair is one of the sides again, or holds the other one: that names no slip."""
        short, target = simplest(repaired, self.shape_of), _bare(self.target)
        return _bare(short) in map(_bare, self.sides) or (
            not isinstance(target, (Name, Number)) and target in walk(short)
        )

    def writable(self, repaired: Node) -> bool:
        """Whether a repair has no needless transposes, and can be written as it is meant."""
        new = (node for node in walk(repaired) if isinstance(node, Transpose) and node not in self.turned)
        if any(shape is not None and len(shape) < 2 for shape in (self.shape_of(node.operand) for node in new)):
            return False  # the transpose of a vector is the vector
        if isinstance(self.wrong, Table):  # beside the entries of a table only numbers can be written
            return not any(isinstance(node, Name) and self.shape_of(node) for node in _outside_tables(repaired))
        return True

    def roundabout(self, repaired: Node) -> bool:
        """Whether a repair adds something that takes something away, as in (V - 1) + 1: another says that shorter."""
        longer = _length(repaired) > _length(self.wrong)
        return longer and _length(simplest(repaired, self.shape_of)) < _length(self.wrong)


def _bare(node: Node) -> Node:
    """What stands in a table."""
    return node.operand if isinstance(node, Table) else node


def _length(node: Node) -> int:
    return sum(1 for _ in walk(node))


def _outside_tables(node: Node) -> Iterator[Node]:
    if not isinstance(node, Table):
        yield node
        for child in node.children():
            yield from _outside_tables(child)

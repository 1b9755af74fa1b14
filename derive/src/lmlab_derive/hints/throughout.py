"""Slips made throughout a formula: names exchanged, a part transposed, an axis mistaken, at every place alike."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import combinations

from lmlab_derive.functions import is_reduction
from lmlab_derive.hints.slips import Edit, edit, flip, paths, put
from lmlab_derive.tree import Call, Index, Name, Node, Number, Stack, Transpose, walk


def exchanges(root: Node) -> Iterator[Edit]:
    """Two names (or entries, like w[0] and w[1]) that stand in each other's place throughout."""
    atoms = list(dict.fromkeys(n for n in walk(root) if isinstance(n, (Name, Index, Stack, Number))))[:10]
    for a, b in combinations(atoms, 2):
        if isinstance(a, Number) != isinstance(b, Number):
            continue
        yield edit(_exchanged(root, a, b), 1.65, a, " and ", b, " are exchanged")
    for path, node in paths(root):
        if isinstance(node, Stack) and len(node.items) <= 4:
            for i, j in combinations(range(len(node.items)), 2):
                items = list(node.items)
                items[i], items[j] = items[j], items[i]
                turned = replace(node, items=tuple(items))
                yield edit(put(root, path, turned), 1.5, "the entries are swapped: ", turned)


def turned_throughout(root: Node) -> Iterator[Edit]:
    """A part that occurs more than once, transposed at every place."""
    parts = [node for node in walk(root) if isinstance(node, (Name, Call, Transpose))]
    for part in dict.fromkeys(node for node in parts if parts.count(node) > 1):
        yield edit(replaced(root, part, flip(part)), 1.4, "the transpose is wrong: ", flip(part), ", not ", part)


def axes_throughout(root: Node) -> Iterator[Edit]:
    """Several reductions that all run over one wrong axis."""
    found = [node for node in walk(root) if isinstance(node, Call) and is_reduction(node)]
    for old in dict.fromkeys((node.axis, node.keepdims) for node in found):
        if sum((node.axis, node.keepdims) == old for node in found) < 2:
            continue
        for new in ((0, False), (0, True), (1, True), (None, False)):
            if new != old:
                words = f"the axis is wrong throughout: {_axis_words(*new)}, not {_axis_words(*old)}"
                yield edit(_with_axis(root, old, new), 1.4, words)


def _axis_words(axis: int | None, keepdims: bool) -> str:
    return "over everything" if axis is None else f"axis={axis}" + ", keepdims=True" * keepdims


def _with_axis(root: Node, old: tuple[int | None, bool], new: tuple[int | None, bool]) -> Node:
    def other(node: Node) -> Node | None:
        if isinstance(node, Call) and is_reduction(node) and (node.axis, node.keepdims) == old:
            return replace(node, args=tuple(mapped(arg, other) for arg in node.args), axis=new[0], keepdims=new[1])
        return None

    return mapped(root, other)


def replaced(root: Node, old: Node, new: Node) -> Node:
    """The formula with a part replaced wherever it stands."""

    def other(node: Node) -> Node | None:
        if node == old:
            return new
        return flip(mapped(node.operand, other)) if isinstance(node, Transpose) else None

    return mapped(root, other)


def _exchanged(root: Node, a: Node, b: Node) -> Node:
    return mapped(root, lambda node: b if node == a else a if node == b else None)


def mapped(node: Node, other: Callable[[Node], Node | None]) -> Node:
    """The formula with `other(part)` in place of each outermost part for which there is one."""
    found = other(node)
    if found is not None:
        return found
    return node.rebuild(tuple(mapped(child, other) for child in node.children()))

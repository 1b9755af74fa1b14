"""Why a claim fails: which side is to be repaired, and the sentence that names the slip."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from lmlab_derive.functions import function_of
from lmlab_derive.hints.repairs import Repairer
from lmlab_derive.hints.simplest import simplest
from lmlab_derive.limits import HINT_SECONDS, Deadline, OutOfTime, Refusal
from lmlab_derive.shapes.setting import Setting
from lmlab_derive.text import to_text
from lmlab_derive.tree import Derivative, Expectation, Name, Node, Number, names_in, rebuilt, walk

LONGEST = 1_000  # parts of a formula that is still repaired with its lets written out


def opened(node: Node, setting: Setting, keep: frozenset[str]) -> Node:
    """The formula with every let written out that is not in `keep`."""
    if isinstance(node, Name) and node.name in setting.lets and node.name not in keep:
        return opened(setting.lets[node.name].value, setting, keep)
    return rebuilt(node, tuple(opened(child, setting, keep) for child in node.children()))


def _too_long(node: Node, setting: Setting, keep: frozenset[str]) -> bool:
    """Whether the formula with its lets written out is longer than anyone reads: lets of lets may double with every one."""
    sizes: dict[str, int] = {}

    def size(node: Node) -> int:
        own = sizes.get(node.name, 1) if isinstance(node, Name) else 1
        return min(own + sum(map(size, node.children())), LONGEST + 1)

    for name, let in setting.lets.items():
        if name not in keep:
            sizes[name] = size(let.value)
    return size(node) > LONGEST


LONGER, MORE = (
    1.5,
    8,
)  # times the signs of the truth, and so many more: what is longer is no repair but another way to it
LONGEST_SHOWN = 160  # signs of a repaired formula that is shown
Verify = Callable[[Node, Node, bool], bool]  # whether formulas are equal like a claim; and when read again as written


def find_hint(
    setting: Setting,
    left: Node,
    right: Node,
    rng: np.random.Generator,
    deadline: Deadline,
    verify: Verify,
    derived: frozenset[str],
    only_right: bool = False,
) -> str | None:
    """One sentence that names the slip and the repaired formula, or None. `only_right`: the left side stands already.

    Chain factors are looked for of functions that are `derived`: those inside of what the claim differentiates.
    """
    deadline = deadline.within(1.5 * HINT_SECONDS)
    for target, wrong in _roles(setting, left, right)[: None if not only_right else 1]:
        try:
            within = deadline.within(HINT_SECONDS)
            setting.shapes.quiet = True
            with np.errstate(all="ignore"):
                found = Repairer(setting, target, wrong, rng, within, derived, next_line=only_right).search()
                node = None if found is None else simplest(found.node, setting.shapes.of)
        except (Refusal, OutOfTime):
            continue
        finally:
            setting.shapes.quiet = False
        if found is None or node is None or _silly(wrong, found.node):
            continue
        repaired = to_text(node)
        if node == simplest(target, setting.shapes.of):
            return found.words
        if len(repaired) > LONGEST_SHOWN or _longer(repaired, target, setting):
            if verify(target, node, False):
                return found.words
        elif verify(target, node, True):
            return f"{found.words}; the repaired {'left side' if wrong is left else 'formula'} is {repaired}"
    return None


def _silly(wrong: Node, repaired: Node) -> bool:
    """Whether a number was replaced by a longer formula: that is another claim, not a repair."""
    wrong_parts, parts = (sum(1 for _ in walk(node)) for node in (wrong, repaired))
    return not names_in(wrong) and parts > max(wrong_parts, 3)


def _longer(repaired: str, target: Node, setting: Setting) -> bool:
    """Whether a repair is much longer than the other side with its lets, the truth if nothing in it is left to work out."""
    if _too_long(target, setting, frozenset()):
        return False
    truth = opened(target, setting, frozenset())
    unfinished = any(isinstance(node, (Derivative, Expectation)) for node in walk(truth))
    return not unfinished and len(repaired) > LONGER * len(to_text(truth)) + MORE


def _made_of_sizes(node: Node) -> bool:
    function = function_of(node)
    return function is not None and function.takes_sizes


def _values(node: Node) -> Iterator[Node]:
    """The parts of a formula that are values; n in ones(n) is a size."""
    yield node
    if not _made_of_sizes(node):
        for child in node.children():
            yield from _values(child)


def _roles(setting: Setting, left: Node, right: Node) -> list[tuple[Node, Node]]:
    """Which side is to be repaired: the right one, the left if it is a plain formula, the right with its lets open.

    The left comes first where the right says nothing of its own, as in sum(A, axis=0) == ones(n).
    """
    roles = [(left, right)]
    if not any(isinstance(n, Derivative) for n in walk(left)):
        plain = all(isinstance(n, Number) or _made_of_sizes(n) for n in _values(right))
        roles.insert(0 if plain else 1, (right, left))
    keep = setting.depends(left)
    if not _too_long(right, setting, keep) and (expanded := opened(right, setting, keep)) is not right:
        roles.append((left, expanded))
    return roles

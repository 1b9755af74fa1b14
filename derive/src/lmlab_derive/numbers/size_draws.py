"""Random sizes: distinct where they can be, so that no axis passes for another, and never too large."""

from __future__ import annotations

import math

import numpy as np

from lmlab_derive.limits import MAX_ELEMENTS, MAX_SLOPES, Refusal
from lmlab_derive.numbers.index_ranges import leaves_entries, obeyed
from lmlab_derive.shapes.setting import Setting
from lmlab_derive.sizes import ONE, Size
from lmlab_derive.tree import Derivative, Index, Name, Node, Number, Slice

Sizes = dict[str, int]
TOPS = (1, 2, 3, 4, 6, 9, 14, 30, 70, 150, 400, 1000)  # the largest of small sizes, as far as conditions ask for
LADDER = (6, 16, 40, 128, 400, 1000)  # larger sizes: what forgets a size, or holds for few entries alone, fails there
FARTHEST = 1_200  # a number of the formula up to which sizes next to it are drawn
MOST_STEPS = 12  # of the ladder
NO_ENTRY = "no entry was found whose indices obey the where conditions"


class SizeDrawer:
    """Draws values for size names so that different sizes are different numbers, and nothing gets too large."""

    def __init__(self, setting: Setting, nodes: list[Node]) -> None:
        self.givens, self.names = setting.needed(nodes)
        self.setting, self.nodes = setting, nodes
        inner = setting.opened(*nodes)
        self.shapes = {setting.shapes.of(node) for node in inner}
        self.shapes |= {setting.givens[name].shape for name in self.givens}
        self.limits = self._limits(inner)
        self.slopes = self._slopes(inner)
        about = [side for c in setting.conditions for side in (c.left, c.right)]
        self.written = {
            int(n.value) for n in [*inner, *setting.opened(*about)] if isinstance(n, Number) and n.value > 1
        }

    def _slopes(self, inner: list[Node]) -> list[tuple[Size, Size]]:
        """Of every derivative, how many numbers it is taken by, with the entries of each array that it passes through."""
        found = []
        for node in inner:
            if isinstance(node, Derivative):
                count = math.prod((axis for name in node.by for axis in self.setting.shape(Name(name))), start=ONE)
                for part in self.setting.opened(node.operand):
                    found.append((count, math.prod(self.setting.shapes.of(part), start=ONE)))
        return list(dict.fromkeys(pair for pair in found if pair[0].number is None or pair[1].number is None))

    def _limits(self, inner: list[Node]) -> list[Size]:
        """Sizes that must be at least 1: every axis, room for every position, and rows >= columns of orthogonals."""
        wanted = {axis for shape in self.shapes for axis in shape}
        shapes = self.setting.shapes
        for node in inner:
            if not isinstance(node, Index):
                continue
            for item, axis in zip(node.items, shapes.of(node.operand), strict=False):
                if isinstance(item, Slice):
                    start, stop = shapes.bounds(item, axis)
                    wanted |= {stop + -start, axis + -stop + ONE, start + ONE}
                elif not item.free_letters:
                    position = shapes.size(item)
                    wanted.add(axis + position + ONE if (position.number or 0) < 0 else axis + -position)
        for name in self.givens:
            if "orthogonal" in self.setting.kinds(name):
                rows, columns = self.setting.givens[name].shape
                wanted.add(rows + -columns + ONE)
        return [size for size in wanted if size.number is None]

    def allowed(self, sizes: Sizes) -> bool:
        """Whether every axis has at least one entry, no array has too many, and conditions on indices leave some."""
        if not all(obeyed(condition, sizes) for condition in self.setting.conditions):
            return False
        return self._fits(sizes) and all(leaves_entries(self.setting, node, sizes) for node in self.nodes)

    def _fits(self, sizes: Sizes) -> bool:
        if any(size.value(sizes) < 1 for size in self.limits):
            return False
        if any(count.value(sizes) * size.value(sizes) > MAX_SLOPES for count, size in self.slopes):
            return False
        return all(math.prod(axis.value(sizes) for axis in shape) <= MAX_ELEMENTS for shape in self.shapes)

    def _collisions(self, sizes: Sizes) -> int:
        axes = {axis for shape in self.shapes for axis in shape if len(axis.terms) <= 1} | {ONE}
        values = [axis.value(sizes) for axis in axes]
        return len(values) - len(set(values))

    def distinct(self, rng: np.random.Generator, top: int) -> Sizes:
        """Sizes of 2 and more, as distinct as can be, up to about `top` (or more when there are many names)."""
        if not self.names:
            if not self._fits({}):
                raise Refusal(
                    f"an array here has more than {MAX_ELEMENTS} entries; use smaller sizes", code="array-too-large"
                )
            if not self.allowed({}):
                raise Refusal(NO_ENTRY, code="no-entry-found")
            return {}
        best: tuple[int, Sizes] | None = None  # collisions, sizes
        for attempt in range(60):
            pool = np.arange(2, max(top, len(self.names) + 2) + 1 + attempt // 15)
            values = rng.permutation(pool)[: len(self.names)]
            sizes = {name: int(value) for name, value in zip(self.names, values, strict=True)}
            if not self.allowed(sizes):
                continue
            score = self._collisions(sizes)
            if best is None or score < best[0]:
                best = (score, sizes)
            if score == 0:
                break
        return self._smallest(rng) if best is None else best[1]

    def ladder(self, small: Sizes) -> list[Sizes]:
        """Larger and larger sizes, and those next to a number of the formula: all of them so, and each alone."""
        near = {number + beside for number in self.written if number <= FARTHEST for beside in (1, 0, -1)}
        steps = sorted({*LADDER, *sorted(near)[: MOST_STEPS - len(LADDER)]})
        found = []
        for size in steps:
            options = [dict.fromkeys(self.names, size)]
            options += [small | {name: size} for name in self.names if len(self.names) > 1]
            found += [sizes for sizes in options if self.names and size > 2 and self.allowed(sizes)]
        return found

    def _smallest(self, rng: np.random.Generator) -> Sizes:
        fitting = False
        for top in TOPS:
            for attempt in range(40):
                reach = top + top // 2 if attempt % 2 else top  # where top is the least there is, not that alone
                sizes = {name: int(rng.integers(1, reach + 1)) for name in self.names}
                if self.allowed(sizes):
                    return sizes
                fitting |= self._fits(sizes)
        if fitting:
            raise Refusal(NO_ENTRY, code="no-entry-found")
        raise Refusal(
            f"no small sizes fit: an axis would be empty, or an array would have more than {MAX_ELEMENTS} entries",
            code="no-sizes-fit",
        )

    def with_ones(self, rng: np.random.Generator) -> list[Sizes]:
        """Extra draws with sizes of 1: all of them, and each alone."""
        draws = [dict.fromkeys(self.names, 1)] if self.names else []
        for name in self.names[:3] if len(self.names) > 1 else []:
            draws.append(self.distinct(rng, 3) | {name: 1})
        return [sizes for sizes in draws if self.allowed(sizes)]

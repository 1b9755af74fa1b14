"""Random sizes: distinct where they can be, so that no axis passes for another, and never too large."""

from __future__ import annotations

import math

import numpy as np

from lmlab_derive.limits import MAX_ELEMENTS, Refusal
from lmlab_derive.numbers.index_ranges import leaves_entries
from lmlab_derive.shapes.setting import Setting
from lmlab_derive.sizes import ONE, Size
from lmlab_derive.tree import Index, Node, Slice, letters_in

Sizes = dict[str, int]
TOPS = (1, 2, 3, 4, 6, 9, 14, 30, 70, 150)  # the largest of small sizes, as far as conditions such as i > 100 ask for
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
                elif not letters_in(item):
                    position = shapes.size(item)
                    wanted.add(axis + position + ONE if (position.number or 0) < 0 else axis + -position)
        for name in self.givens:
            if "orthogonal" in self.setting.kinds(name):
                rows, columns = self.setting.givens[name].shape
                wanted.add(rows + -columns + ONE)
        return [size for size in wanted if size.number is None]

    def allowed(self, sizes: Sizes) -> bool:
        """Whether every axis has at least one entry, no array has too many, and conditions on indices leave some."""
        return self._fits(sizes) and all(leaves_entries(self.setting, node, sizes) for node in self.nodes)

    def _fits(self, sizes: Sizes) -> bool:
        if any(size.value(sizes) < 1 for size in self.limits):
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
        if best is None:
            return self._smallest(rng)
        return best[1]

    def _smallest(self, rng: np.random.Generator) -> Sizes:
        fitting = False
        for top in TOPS:
            for _ in range(40):
                sizes = {name: int(rng.integers(1, top + 1)) for name in self.names}
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

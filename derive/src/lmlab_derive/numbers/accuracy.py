"""How well the means of a point are known."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from lmlab_derive.functions.record import Array


@dataclass
class Accuracy:
    """How well the means of a point are known: each as it was computed, so that it can be moved by its error."""

    means: list[tuple[Array, Any, float]] = field(default_factory=list)  # value, error, size of what is averaged
    inside: float = 0.0  # the largest error of a mean inside the mean at hand
    depth: int = 0
    sampled: bool = False
    diverges: bool = False
    moved: int = 0  # +1 or -1: hand out the means again, moved by their error
    effort: int = 1  # 2: other nodes and more samples, to see whether a difference stays
    at: int = 0

    @property
    def size(self) -> float:
        """The largest of what is averaged."""
        return max((size for _, _, size in self.means if np.isfinite(size)), default=0.0)

    def again(self, moved: int) -> Accuracy:
        """The same means, moved up or down by their errors."""
        return Accuracy(self.means, moved=moved)

    def known(
        self, compute: Callable[[], tuple[Array, Any, float]], coarser: Callable[[int], Array] | None = None
    ) -> Array:
        """A mean, computed and kept; or, the second time, moved.

        One that is differentiated is then computed by a `coarser` rule instead: how its slopes differ tells their error.
        """
        if self.moved and not self.depth:
            value, error, _ = self.means[self.at]
            self.at += 1
            sign = self.moved if self.at % 2 else 1
            if coarser is not None:
                self.depth += 1
                try:
                    value = coarser(self.moved)
                finally:
                    self.depth -= 1
            return value + sign * error
        outer, self.inside, self.depth = self.inside, 0.0, self.depth + 1
        try:
            value, error, size = compute()
        finally:
            inner, self.inside, self.depth = self.inside, outer, self.depth - 1
        error = error + inner
        if self.depth:
            self.inside = max(self.inside, float(error))
        else:
            self.means.append((value, error, size))
        return value

"""Sums of more terms than long decimals can take: of terms in doubles, with a bound of their error."""

from __future__ import annotations

from typing import Any

import mpmath
import numpy as np

from lmlab_derive.functions import Kink, kink_of
from lmlab_derive.functions.record import Array
from lmlab_derive.limits import NoExactValue
from lmlab_derive.numbers.arithmetics import doubles
from lmlab_derive.numbers.evaluate import Frame
from lmlab_derive.tree import Over

SAMPLES = 40  # terms that long decimals look at, from the first to the last in equal steps, and as many in equal ratios
SAFETY = 16  # no term is off by so many times more than the worst of these
ROUNDING = 64 * 2.0**-53  # of adding up pair by pair, relative to the sum of absolute values
UNSEEN = 1e-6  # the same of terms on the wrong side of a jump


class LongSums:
    """The long sums of a formula, in the order in which they are met; one of them may be moved by its error."""

    def __init__(self) -> None:
        self.known: list[tuple[float, float]] = []  # value, error
        self.at = 0
        self.moved: int | None = None
        self.met = False  # any at all

    def again(self, moved: int | None) -> None:
        """From the first one on, with this one moved."""
        self.at, self.moved = 0, moved

    def total(self, frame: Frame, node: Over, start: int, stop: int) -> Array:
        """The sum as a long decimal that is off by no more than the error that is kept."""
        self.met = True
        if self.at == len(self.known):
            self.known.append(_total(frame, node, start, stop))
        value, error = self.known[self.at]
        self.at += 1
        off = error if self.moved == self.at - 1 else 0.0
        return frame.ops.wrap(mpmath.mpf(value) + mpmath.mpf(off))


def _total(frame: Frame, node: Over, start: int, stop: int) -> tuple[float, float]:
    """A sum and the bound of its error. One that bends or jumps may be wrong at a term that nobody looked at."""
    bends = any(kink_of(inner) in (Kink.BEND, Kink.JUMP) for inner in frame.setting.opened(node.operand))
    rough = frame.translated(doubles())
    with np.errstate(all="ignore"):
        parts, sizes, largest = [], [], []
        for places, terms in rough.blocks(node, start, stop):
            parts.append(terms.sum())
            sizes.append(np.abs(terms).sum())
            largest.append(places[np.argmax(np.abs(terms))])
        size = float(np.sum(sizes))
        if not np.isfinite(size):
            raise NoExactValue
        evenly, by_ratios = np.linspace(start, stop, SAMPLES), start - 1 + np.geomspace(1, stop - start + 1, SAMPLES)
        looked_at = np.unique(np.round(np.concatenate([evenly, by_ratios, largest])))
        relative, absolute = _worst(frame, rough, node, looked_at)
        off = SAFETY * min(relative * size, absolute * (stop - start + 1))
    return float(np.sum(parts)), off + (UNSEEN if bends else ROUNDING) * size


def _worst(frame: Frame, rough: Frame, node: Over, places: Any) -> tuple[float, float]:
    """The largest errors of a term in doubles, of those at these places: relative to it, and by themselves."""
    relative = absolute = 0.0
    for exact, near in zip(frame.at_places(node, places), rough.at_places(node, places), strict=True):
        off = abs(mpmath.mpf(float(near)) - exact)
        if not mpmath.isfinite(off):
            raise NoExactValue
        absolute = max(absolute, float(off))
        relative = max(relative, float(off / abs(exact)) if exact != 0 else np.inf if off else 0.0)
    return relative, absolute

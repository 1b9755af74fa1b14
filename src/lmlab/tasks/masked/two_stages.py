"""Intervals of masked losses, where two things are drawn: windows of a text, and the tokens that are masked in them.

Where most windows are read, the other windows leave little error; other masks would still give another number. So the
variance of an interval for the whole of the part, or of the file that it is spread over, is that of two-stage sampling
(Cochran, 1977, "Sampling techniques", chapter 11): (1 - f) of the variance between windows, which includes that of the masks,
plus f of the variance of the masks, where f is the share of the tokens that was read. An interval for other text needs no
second part: how its pieces differ includes their masks.

Shapes: K models, N masked tokens.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from lmlab.measure import interval
from lmlab.measure.interval import Interval
from lmlab.measure.interval_units import Units
from lmlab.measure.student import t_quantile


@dataclass(frozen=True, eq=False)
class TwoStages:
    """Nats of masked tokens, summed over windows and one by one."""

    units: Units
    nats_KN: np.ndarray

    def own_intervals(self) -> list[Interval]:
        """Of each model's bits per masked token, which are never below 0."""
        found = zip(interval.own_intervals(self.units), self.nats_KN, strict=True)
        with_masks = [self._with_masks(one, nats_N) for one, nats_N in found]
        return [replace(one, low=max(0.0, one.low)) if one.low is not None else one for one in with_masks]

    def difference(self, i: int, j: int) -> Interval:
        """Of the i-th model's bits per masked token minus the j-th's, on the same tokens."""
        return self._with_masks(interval.difference(self.units, i, j), self.nats_KN[i] - self.nats_KN[j])

    def _with_masks(self, one: Interval, nats_N: np.ndarray) -> Interval:
        """The interval with the variance of the masks."""
        read = {"part": self.units.share, "file": self.units.share * (self.units.block_share or 0.0)}
        if one.about not in read or one.low is None or one.high is None or not math.isfinite(one.estimate):
            return one
        # masked tokens are few of all that could be, and what one costs depends on the others: no correction for their share
        of_masks = nats_N.std() / math.log(2.0) / math.sqrt(len(nats_N)) * math.sqrt(read[one.about])
        half = math.hypot(one.high - one.estimate, t_quantile(one.freedom, one.level) * of_masks)
        return replace(one, low=one.estimate - half, high=one.estimate + half)

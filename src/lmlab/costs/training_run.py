"""A published training run, with the operations and the share of the peak that follow from its sizes."""

from __future__ import annotations

import functools
from dataclasses import dataclass

from lmlab.costs.devices import DEVICES
from lmlab.costs.family import Family
from lmlab.formulas import Shape, weights, work


@dataclass(frozen=True, kw_only=True)
class Run:
    """A training run whose device-hours were published.

    group: who trained it. includes: what the hours are of. length: tokens of a sequence. hours: of one device.
    """

    name: str
    group: str
    year: int
    source: str
    includes: str
    config: Family
    tokens: float
    length: int
    hours: float
    device: str

    @functools.cached_property
    def parameters(self) -> int:
        """The number of parameters, by formula."""
        return int(weights(self.config.parts(self.config, self.config.vocab_size, Shape())))

    @functools.cached_property
    def operations(self) -> float:
        """The operations of all its training, by formula."""
        sequence = work(self.config.parts(self.config, self.config.vocab_size, Shape(1, self.length))).both
        return float(sequence) / self.length * self.tokens

    @property
    def share(self) -> float:
        """The share of its device's peak that it reached."""
        return self.operations / (self.hours * 3600 * DEVICES[self.device].peak)

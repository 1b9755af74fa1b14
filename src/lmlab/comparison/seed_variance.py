"""How much the numbers of a comparison vary between seeds: measured, or not known (see `lmlab.measure.luck`)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from lmlab.comparison.compared_entry import ComparedEntry
from lmlab.comparison.findings import SeedSpread
from lmlab.measure import luck as training


@dataclass(frozen=True, kw_only=True)
class SeedVariance:
    """Standard deviation of each learned entry's bits per byte over seeds, where there are several."""

    deviations: dict[str, float]  # by entry name, of one run, in bits per byte; empty where it is not known
    seeds: int
    learned: int  # entries that were learned, and so vary between seeds
    training: training.Luck  # of all entries, for the ranking

    @classmethod
    def of(cls, entries: Sequence[ComparedEntry], seeds: int) -> SeedVariance:
        """Of these entries, in their order."""
        learned = [e for e in entries if e.learned and e.result is not None and math.isfinite(e.scored.total_nats)]
        names = {e.name for e in learned}
        found = training.Luck.measured(
            [[r.bits_per_byte for r in e.seed_results] if e.name in names else [] for e in entries]
        )
        known = {e.name: found.relative * e.scored.bits_per_byte for e in learned} if found.known else {}
        return cls(deviations=known, seeds=seeds, learned=len(learned), training=found)

    def found(self) -> SeedSpread:
        """The deviations and how they are known, also in words, for the record."""
        return SeedSpread(
            deviations=self.deviations,
            seeds=self.seeds,
            measured=self.training.known,
            sentence=self.training.sentence if self.learned else "",
        )

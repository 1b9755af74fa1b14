"""The variation of the scores of a comparison between seeds: estimated, or unknown (see `lmlab.measure.luck`)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from lmlab.comparison.compared_entry import ComparedEntry
from lmlab.comparison.findings import SeedSpread
from lmlab.measure import luck as training


@dataclass(frozen=True, kw_only=True)
class SeedVariance:
    """Standard deviation over seeds of each trained entry's bits per byte, if there are several seeds."""

    deviations: dict[str, float]  # of one run, by entry name, in bits per byte; empty: unknown
    seeds: int
    learned: int  # number of entries that vary between seeds
    training: training.Luck  # of all entries, for the ranking

    @classmethod
    def of(cls, entries: Sequence[ComparedEntry], seeds: int) -> SeedVariance:
        """Estimate the variation over seeds of these entries, in their order."""
        learned = [e for e in entries if e.learned and e.result is not None and math.isfinite(e.scored.total_nats)]
        names = {e.name for e in learned}
        found = training.Luck.measured(
            [[r.bits_per_byte for r in e.seed_results] if e.name in names else [] for e in entries]
        )
        known = {e.name: found.relative * e.scored.bits_per_byte for e in learned} if found.known else {}
        return cls(deviations=known, seeds=seeds, learned=len(learned), training=found)

    def found(self) -> SeedSpread:
        """Return the deviations, and how they were estimated in words, for the record."""
        return SeedSpread(
            deviations=self.deviations,
            seeds=self.seeds,
            measured=self.training.known,
            sentence=self.training.sentence if self.learned else "",
        )

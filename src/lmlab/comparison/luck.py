"""Luck in training: how far a learned model's number could have come out otherwise with another seed.

A ranking speaks of kinds of models. But two seeds of one kind are two different models, and a long test text tells them
apart. So a difference between entries counts as real only if it exceeds what the test text leaves open and what
training leaves open, taken together. Counted models have no seed, and no luck.

With several seeds the luck is measured in the comparison itself. With one it cannot be, and is estimated: see `Luck.of`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from lmlab.comparison.contender import Contender
from lmlab.comparison.findings import LuckFound
from lmlab.learn.run import Run
from lmlab.measure.seeds import LEVEL, student_t

# Standard deviation between seeds of one model. Measured on a Markov source and on prose with feedforward, gru and gpt, 60 to
# 960 steps: the estimate is near or above what seeds showed; `tests/comparison/test_trials.py` holds it against fresh ones.
SHARE_OF_BITS = 0.004  # of its bits per byte: what remains when training has levelled off
SHARE_OF_GAIN = 0.06  # of what the second half of training still gained: a run cut off on a slope depends on luck


@dataclass(frozen=True, kw_only=True)
class Luck:
    """Standard deviation of each learned entry's bits per byte over seeds, and how it is known."""

    deviations: dict[str, float]  # by entry name, of one run, in bits per byte
    seeds: int
    freedom: int | None  # degrees of freedom behind a measured deviation; None: estimated from single runs

    @classmethod
    def of(cls, entries: Sequence[Contender], seeds: int) -> Luck:
        """The luck of the entries that were learned and have a finite number.

        Several seeds: their variance relative to the bits per byte, pooled over all models, because few seeds say
        little of one model. One seed: a share of the bits per byte, and a share of what the second half of the training
        gained, which is large for a run that was still falling fast when its time was up; squares add.
        """
        learned = [e for e in entries if e.learned and e.result is not None and math.isfinite(e.scored.total_nats)]
        if seeds == 1:
            deviations = {e.name: _estimate(e) for e in learned}
            return cls(deviations=deviations, seeds=1, freedom=None)
        relative = [np.array([r.bits_per_byte for r in e.seed_results]) / e.scored.bits_per_byte for e in learned]
        freedom = sum(len(r) - 1 for r in relative)
        pooled = math.sqrt(sum(float(((r - 1.0) ** 2).sum()) for r in relative) / freedom) if freedom else 0.0
        deviations = {e.name: pooled * e.scored.bits_per_byte for e in learned}
        return cls(deviations=deviations, seeds=seeds, freedom=freedom or None)

    def margin(self, a: Contender, b: Contender) -> float:
        """Half the width of the 95% interval that luck alone leaves for the difference of two entries, in bits per byte."""
        variance = sum(self.deviations.get(e.name, 0.0) ** 2 / max(1, len(e.runs)) for e in (a, b))
        quantile = NormalDist().inv_cdf((1 + LEVEL) / 2) if self.freedom is None else student_t(self.freedom)
        return quantile * math.sqrt(variance)

    def found(self) -> LuckFound:
        """The deviations and how they are known, for the record."""
        return LuckFound(deviations=self.deviations, seeds=self.seeds, measured=self.freedom is not None)


def _estimate(entry: Contender) -> float:
    assert entry.run is not None
    scored = entry.scored
    gained_bits = second_half_gain(entry.run) * scored.tokens / scored.bytes / math.log(2)
    return math.hypot(SHARE_OF_BITS * scored.bits_per_byte, SHARE_OF_GAIN * gained_bits)


def second_half_gain(run: Run) -> float:
    """Validation nats per token after half of the steps minus the best since (at least 0).

    Between validations the curve is taken as straight, and before the first as coming from guessing uniformly.
    """
    lines = [line for line in run.metrics if line["valid_nats_per_token"] is not None]
    if not lines:
        return 0.0
    steps = [0, *(line["step"] for line in lines)]
    nats = [math.log(run.tokenizer.vocab_size), *(line["valid_nats_per_token"] for line in lines)]
    return max(0.0, float(np.interp(steps[-1] / 2, steps, nats)) - float(min(nats)))

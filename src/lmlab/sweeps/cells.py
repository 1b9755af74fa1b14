"""The table of a sweep: one cell a point of the grid, over all seeds."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from lmlab.measure.seeds import mean_and_margin
from lmlab.records import fields_to_json, to_json
from lmlab.sweeps.grid import TOKENIZER, Job, Measured, Outcome, Point

Unit = Literal["perplexity per token", "bits per byte"]
PERPLEXITY: Unit = "perplexity per token"
BITS: Unit = "bits per byte"


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One point of the grid over all seeds; the lists run over the seeds that came to an end."""

    settings: Point
    parameters: int
    seeds: list[int]
    perplexity: list[float]  # per token
    bits_per_byte: list[float]
    measured: Measured | None
    errors: list[str]  # of the seeds that failed
    valid_bits_per_byte: list[float] = field(default_factory=list)  # empty: there is no validation part
    missing: int = 0  # seeds that had no turn yet
    diverged: int = 0  # seeds that were measured with the best weights before their loss did

    def numbers(self, unit: Unit = PERPLEXITY) -> list[float]:
        """One for every seed."""
        return self.perplexity if unit == PERPLEXITY else self.bits_per_byte

    def mean_and_margin(self, unit: Unit = PERPLEXITY) -> tuple[float, float]:
        """The mean and half the width of its 95% interval (Student's t; NaN with one seed)."""
        return mean_and_margin(self.numbers(unit))

    @property
    def valid_mean(self) -> float | None:
        """Mean bits per byte of the validation part; None where it is not known of every seed, or a seed failed."""
        known = self.valid_bits_per_byte and len(self.valid_bits_per_byte) == len(self.seeds)
        whole = known and not self.errors and not self.missing
        return math.fsum(self.valid_bits_per_byte) / len(self.seeds) if whole else None

    def to_json(self, unit: Unit = PERPLEXITY) -> dict[str, Any]:
        """As JSON can hold it; null stands for what is infinite or cannot be told from one seed. unit: of the mean."""
        mean, margin = self.mean_and_margin(unit)
        return fields_to_json(self) | {"mean": to_json(mean), "margin": to_json(margin), "unit": unit}


def collect(points: Sequence[Point], outcomes: Mapping[str, Outcome], jobs: Sequence[Job] = ()) -> list[Cell]:
    """One cell a point, from what became of its jobs, which are given by folder. jobs: all there were to be."""
    cells = []
    for point in points:
        mine = [o for o in outcomes.values() if o.job.is_of(point)]
        good = sorted((o for o in mine if not o.error), key=lambda outcome: outcome.job.seed)
        cells.append(
            Cell(
                settings=point,
                parameters=good[0].parameters if good else 0,
                seeds=[o.job.seed for o in good],
                perplexity=[o.perplexity for o in good],
                bits_per_byte=[o.bits_per_byte for o in good],
                measured=good[0].measured if good else None,
                errors=[o.error for o in mine if o.error],
                valid_bits_per_byte=[o.valid_bits_per_byte for o in good if o.valid_bits_per_byte is not None],
                diverged=sum(o.diverged for o in good),
                missing=sum(job.is_of(point) and job.out not in outcomes for job in jobs),
            )
        )
    return cells


def unit_of(cells: Sequence[Cell]) -> Unit:
    """What cells can be compared in: perplexities per token only where all have the same tokens."""
    return BITS if any(TOKENIZER in cell.settings for cell in cells) else PERPLEXITY

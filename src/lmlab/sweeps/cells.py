"""The table of a sweep: one cell a point of the grid, and which differences between cells are real."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from lmlab.measure.seeds import LEVEL, mean_and_margin
from lmlab.records import fields_to_json, to_json
from lmlab.sweeps.grid import TOKENIZER, Measured, Outcome, Point

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

    def numbers(self, unit: Unit = PERPLEXITY) -> list[float]:
        """One for every seed."""
        return self.perplexity if unit == PERPLEXITY else self.bits_per_byte

    def mean_and_margin(self, unit: Unit = PERPLEXITY) -> tuple[float, float]:
        """The mean and half the width of its 95% interval (Student's t; NaN with one seed)."""
        return mean_and_margin(self.numbers(unit))

    @property
    def valid_mean(self) -> float | None:
        """Mean bits per byte of the validation part; None where it is not known of every seed, or a seed failed."""
        whole = self.valid_bits_per_byte and len(self.valid_bits_per_byte) == len(self.seeds) and not self.errors
        return math.fsum(self.valid_bits_per_byte) / len(self.seeds) if whole else None

    def to_json(self, unit: Unit = PERPLEXITY) -> dict[str, Any]:
        """As JSON can hold it; null stands for what is infinite or cannot be told from one seed. unit: of the mean."""
        mean, margin = self.mean_and_margin(unit)
        return fields_to_json(self) | {"mean": to_json(mean), "margin": to_json(margin), "unit": unit}


@dataclass(frozen=True, kw_only=True)
class Difference:
    """What changing one setting did, over the seeds that both cells have. unit: of the difference and its margin."""

    setting: str
    before: Point
    after: Point
    difference: float
    margin: float
    unit: Unit
    level: float
    seeds: list[int]
    real: bool

    def to_json(self) -> dict[str, Any]:
        """As JSON can hold it."""
        found = fields_to_json(self)
        return {"from": found.pop("before"), "to": found.pop("after"), **found}


def collect(points: Sequence[Point], outcomes: Mapping[str, Outcome]) -> list[Cell]:
    """One cell a point, from what became of its jobs, which are given by folder."""
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
            )
        )
    return cells


def unit_of(cells: Sequence[Cell]) -> Unit:
    """What cells can be compared in: perplexities per token only where all have the same tokens."""
    return BITS if any(TOKENIZER in cell.settings for cell in cells) else PERPLEXITY


def best_by_validation(cells: Sequence[Cell]) -> Cell | None:
    """The cell that predicts the validation part best; the test part has no say. None where that is not known."""
    known = {mean: cell for cell in reversed(cells) if (mean := cell.valid_mean) is not None and math.isfinite(mean)}
    return known[min(known)] if known else None


def differences(cells: Sequence[Cell]) -> list[Difference]:
    """For cells that differ in one setting: the mean difference in `unit_of` them, its interval over seeds, and if it is real.

    Seeds are paired: the same seed draws the same batches in both cells. A grid offers many pairs, and of twenty
    differences that are nothing but noise one would pass at 95%. So the intervals are as wide as it takes for all of them
    to hold together (Bonferroni). They are about training on this text; the test text is taken as it is.
    """
    pairs = [(a, b, changed[0]) for a, b in itertools.combinations(cells, 2) if len(changed := _changed(a, b)) == 1]
    level = 1.0 - (1.0 - LEVEL) / max(1, len(pairs))
    found, unit = [], unit_of(cells)
    for a, b, setting in pairs:
        before, after = (dict(zip(cell.seeds, cell.numbers(unit), strict=True)) for cell in (a, b))
        both = [seed for seed in before if seed in after]
        if not both:
            continue
        mean, margin = mean_and_margin([after[seed] - before[seed] for seed in both], level)
        found.append(
            Difference(
                setting=setting,
                before=a.settings,
                after=b.settings,
                difference=mean,
                margin=margin,
                unit=unit,
                level=level,
                seeds=both,
                real=math.isfinite(mean) and math.isfinite(margin) and abs(mean) > margin,
            )
        )
    return found


def _changed(a: Cell, b: Cell) -> list[str]:
    return [key for key in a.settings if a.settings[key] != b.settings[key]]

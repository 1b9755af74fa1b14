"""Which differences between the cells of a sweep are real, and which may be luck of their seeds."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from lmlab.measure.seeds import LEVEL, mean_and_margin
from lmlab.records import fields_to_json
from lmlab.sweeps.grid import Point
from lmlab.sweeps.table import Cell, Unit, unit_of


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

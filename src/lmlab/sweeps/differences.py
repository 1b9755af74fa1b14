"""Tests which differences between the cells of a sweep are significant over seeds."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from lmlab.measure.seeds import LEVEL, mean_and_margin
from lmlab.records import fields_to_json
from lmlab.sweeps.grid import Point
from lmlab.sweeps.table import UNIT, Cell


@dataclass(frozen=True, kw_only=True)
class Difference:
    """The effect of changing one setting, over the seeds that both cells have. unit: of the difference and its margin."""

    setting: str
    before: Point
    after: Point
    difference: float
    margin: float
    unit: str
    level: float
    seeds: list[int]
    real: bool

    def to_json(self) -> dict[str, Any]:
        """Return the difference as a dict for JSON."""
        found = fields_to_json(self)
        return {"from": found.pop("before"), "to": found.pop("after"), **found}


def differences(cells: Sequence[Cell]) -> list[Difference]:
    """Return the mean difference, its interval and its significance for all cells that differ in one setting.

    Seeds are paired: the same seed draws the same batches in both cells. A grid has many pairs, so the intervals are
    simultaneous (Bonferroni): one in twenty null differences would pass a separate 95% interval. The intervals cover the
    variation of training on this text; the test text is fixed.
    """
    pairs = [(a, b, changed[0]) for a, b in itertools.combinations(cells, 2) if len(changed := _changed(a, b)) == 1]
    level = 1.0 - (1.0 - LEVEL) / max(1, len(pairs))
    found = []
    for a, b, setting in pairs:
        before, after = (dict(zip(cell.seeds, cell.bits_per_byte, strict=True)) for cell in (a, b))
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
                unit=UNIT,
                level=level,
                seeds=both,
                real=math.isfinite(mean) and math.isfinite(margin) and abs(mean) > margin,
            )
        )
    return found


def _changed(a: Cell, b: Cell) -> list[str]:
    return [key for key in a.settings if a.settings[key] != b.settings[key]]

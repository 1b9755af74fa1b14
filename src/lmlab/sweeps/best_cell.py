"""The winner of a sweep: chosen by the validation part alone, and who ties with it.

What chooses is measured as the test part is, on the weights that a run keeps: where training calibrated them, calibrated. That
one factor was fitted on the validation part too gives no cell an advantage to speak of.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from lmlab.page.numbers import bits
from lmlab.sweeps.table import Cell


def best_by_validation(cells: Sequence[Cell]) -> Cell | None:
    """The cell that predicts the validation part best; the test part has no say. None where that is not known."""
    known = {mean: cell for cell in reversed(cells) if (mean := cell.valid_mean) is not None and math.isfinite(mean)}
    return known[min(known)] if known else None


def tied_with(best: Cell | None, cells: Sequence[Cell]) -> list[Cell]:
    """The other cells whose validation reads like that of the best: a choice by digits that no one shows is none."""
    if best is None:
        return []
    return [cell for cell in cells if cell is not best and cell.valid_mean is not None and _read(cell) == _read(best)]


def _read(cell: Cell) -> str:
    return bits(cell.valid_mean)

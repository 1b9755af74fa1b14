"""Selects the best cell of a sweep by the validation part alone, and the cells that tie with it.

The validation part is scored as the test part is, with the saved weights, after any calibration. Calibration fits one
factor on the validation part, which favours no cell noticeably.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from lmlab.page.numbers import bits
from lmlab.sweeps.table import Cell


def best_by_validation(cells: Sequence[Cell]) -> Cell | None:
    """Return the cell with the lowest mean validation bits per byte; None if no cell has a finite mean."""
    known = {mean: cell for cell in reversed(cells) if (mean := cell.valid_mean) is not None and math.isfinite(mean)}
    return known[min(known)] if known else None


def tied_with(best: Cell | None, cells: Sequence[Cell]) -> list[Cell]:
    """Return the other cells whose validation score equals the best one in the digits that are shown."""
    if best is None:
        return []
    return [cell for cell in cells if cell is not best and cell.valid_mean is not None and _read(cell) == _read(best)]


def _read(cell: Cell) -> str:
    return bits(cell.valid_mean)

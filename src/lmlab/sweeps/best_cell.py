"""The winner of a sweep: chosen by the validation part alone."""

from __future__ import annotations

import math
from collections.abc import Sequence

from lmlab.sweeps.cells import Cell


def best_by_validation(cells: Sequence[Cell]) -> Cell | None:
    """The cell that predicts the validation part best; the test part has no say. None where that is not known."""
    known = {mean: cell for cell in reversed(cells) if (mean := cell.valid_mean) is not None and math.isfinite(mean)}
    return known[min(known)] if known else None

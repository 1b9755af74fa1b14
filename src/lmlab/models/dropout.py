"""How much dropout a model gets by itself: more, the more often the budget reads the text."""

from __future__ import annotations

import math

DROPOUTS = [(5.0, 0.0), (15.0, 0.1), (30.0, 0.2), (math.inf, 0.3)]  # (fewer passes over the text than this, dropout)


def dropout_after(passes: float) -> float:
    """The dropout for a text that is read so often."""
    return next(dropout for most, dropout in DROPOUTS if passes < most)

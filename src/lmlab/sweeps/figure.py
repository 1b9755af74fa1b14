"""The figure of a sweep: dots for the seeds, and the mean with its interval per cell; with one seed, only a diamond."""

from __future__ import annotations

import math
from collections.abc import Sequence

from lmlab.measure.seeds import LEVEL
from lmlab.page.figures import drawing, series_colour, standalone, svg
from lmlab.sweeps.table import UNIT, Cell


def draw(cells: Sequence[Cell]) -> str:
    """Draw all cells as SVG, coloured by the last axis."""
    last = list(cells[0].settings)[-1]
    values = list(dict.fromkeys(cell.settings[last] for cell in cells))
    with drawing(7.2, 0.5 * len(cells) + 1.2) as (figure, axes):
        for place, cell in enumerate(cells):
            numbers = cell.bits_per_byte
            if not numbers or not all(map(math.isfinite, numbers)):
                continue
            colour = series_colour(values.index(cell.settings[last]))
            mean, margin = cell.mean_and_margin()
            if len(numbers) > 1:
                axes.plot(numbers, [place] * len(numbers), "o", color=colour, alpha=0.35, markersize=5)
            if math.isfinite(margin):
                axes.plot([mean - margin, mean + margin], [place, place], color=colour, linewidth=2)
            axes.plot([mean], [place], "D", color=colour, markersize=6)
        names = [", ".join(f"{k}={v}" for k, v in cell.settings.items()) for cell in cells]
        axes.set_yticks(range(len(cells)), names)
        axes.set_ylim(len(cells) - 0.5, -0.5)
        axes.set_xlabel(f"{UNIT}{_what_is_drawn(cells)}")
        axes.grid(axis="x")
        return standalone(svg(figure, f"{UNIT.capitalize()} of every cell"))


def _what_is_drawn(cells: Sequence[Cell]) -> str:
    """Return the legend of the marks; empty for one seed per cell, since a single number has no interval."""
    if not any(len(cell.bits_per_byte) > 1 for cell in cells):
        return ""
    return f" (dots: seeds; diamonds: means with {LEVEL:.0%} intervals)"

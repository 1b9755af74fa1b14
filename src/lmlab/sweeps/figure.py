"""A sweep as a picture: one dot per seed, the mean and its interval per cell."""

from __future__ import annotations

import math
from collections.abc import Sequence

from lmlab.page.figures import drawing, series_colour, standalone, svg
from lmlab.sweeps.cells import Cell


def draw(cells: Sequence[Cell]) -> str:
    """Perplexity of every cell as an SVG file, coloured by the last axis."""
    last = list(cells[0].settings)[-1]
    values = list(dict.fromkeys(cell.settings[last] for cell in cells))
    with drawing(7.2, 0.5 * len(cells) + 1.2) as (figure, axes):
        for place, cell in enumerate(cells):
            if not cell.perplexity or not all(map(math.isfinite, cell.perplexity)):
                continue
            colour = series_colour(values.index(cell.settings[last]))
            mean, margin = cell.mean_and_margin()
            axes.plot(cell.perplexity, [place] * len(cell.perplexity), "o", color=colour, alpha=0.35, markersize=5)
            if math.isfinite(margin):
                axes.plot([mean - margin, mean + margin], [place, place], color=colour, linewidth=2)
            axes.plot([mean], [place], "D", color=colour, markersize=6)
        names = [", ".join(f"{k}={v}" for k, v in cell.settings.items()) for cell in cells]
        axes.set_yticks(range(len(cells)), names)
        axes.set_ylim(len(cells) - 0.5, -0.5)
        axes.set_xlabel("perplexity per token (dots: seeds; diamonds: means with 95% intervals)")
        axes.grid(axis="x")
        return standalone(svg(figure, "Perplexity per token of every cell"))

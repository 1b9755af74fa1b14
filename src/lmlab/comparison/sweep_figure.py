"""A sweep as a picture: one dot per seed, the mean and its interval per cell."""

from __future__ import annotations

import io
import math
from collections.abc import Sequence

import matplotlib as mpl
from matplotlib.figure import Figure

from lmlab.comparison.sweep import Cell

PALETTE = ("#1f5f8b", "#c2521b", "#2f7d4f", "#8b3f87", "#8a6d0b", "#3b4fb0")


def draw(cells: Sequence[Cell]) -> str:
    """Perplexity of every cell as SVG, coloured by the last axis."""
    with mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": "lmlab"}):  # text stays text; ids are always the same
        return _draw(cells)


def _draw(cells: Sequence[Cell]) -> str:
    figure = Figure(figsize=(7.2, 0.5 * len(cells) + 1.2), layout="constrained")
    axes = figure.subplots()
    last = list(cells[0].settings)[-1]
    values = list(dict.fromkeys(cell.settings[last] for cell in cells))
    for place, cell in enumerate(cells):
        if not cell.perplexity or not all(map(math.isfinite, cell.perplexity)):
            continue
        colour = PALETTE[values.index(cell.settings[last]) % len(PALETTE)]
        mean, margin = cell.mean_and_margin()
        axes.plot(cell.perplexity, [place] * len(cell.perplexity), "o", color=colour, alpha=0.35, markersize=5)
        if math.isfinite(margin):
            axes.plot([mean - margin, mean + margin], [place, place], color=colour, linewidth=2)
        axes.plot([mean], [place], "D", color=colour, markersize=6)
    names = [", ".join(f"{k}={v}" for k, v in cell.settings.items()) for cell in cells]
    axes.set_yticks(range(len(cells)), names)
    axes.set_ylim(len(cells) - 0.5, -0.5)
    axes.set_xlabel("perplexity per token (dots: seeds; diamonds: means with 95% intervals)")
    axes.grid(axis="x", linewidth=0.5)
    axes.spines[["top", "right"]].set_visible(False)
    buffer = io.StringIO()
    figure.savefig(buffer, format="svg", metadata={"Date": None})
    return buffer.getvalue()

"""Pictures of what a model costs: where its parameters and operations are, and how operations grow."""

from __future__ import annotations

from collections.abc import Sequence

from lmlab.costs.counting import Count
from lmlab.costs.growth import Growth
from lmlab.page.figures import INK, drawing, note, series_colour, svg
from lmlab.page.numbers import short

WORTH_A_NAME = 0.06  # of a bar: narrower parts are named in the legend alone


def where(found: Count) -> str:
    """Two bars, one of parameters and one of the operations of a sequence, divided into the parts; as an SVG."""
    rows = {"parameters": [part.times * part.weights for part in found.parts]}
    if found.length is not None:
        rows["operations"] = [part.forward + part.backward for part in found.parts]
    title = f"Where the parameters and operations of {found.model} are"
    with drawing(7.5, 1.1 + 0.75 * len(rows)) as (figure, axes):
        for y, sizes in enumerate(rows.values()):
            left, total = 0.0, sum(sizes)
            for index, size in enumerate(sizes):
                share = size / total if total else 0.0
                axes.barh(y, share, left=left, color=series_colour(index), alpha=0.6, height=0.55)
                if share > WORTH_A_NAME:
                    axes.text(left + share / 2, y, f"{share:.0%}", ha="center", va="center", fontsize=9, color=INK)
                left += share
            note(axes, short(total), (1.0, y), (6, 0))
        names = [f"{part.times} × {part.name}" if part.times != 1 else part.name for part in found.parts]
        marks = [axes.barh(0, 0, color=series_colour(index), alpha=0.6) for index in range(len(names))]
        axes.legend(marks, names, loc="upper center", bbox_to_anchor=(0.5, -0.02), ncols=4, fontsize=9)
        axes.set_yticks(range(len(rows)), list(rows))
        axes.set_xlim(0, 1)
        axes.set_xticks([])
        axes.invert_yaxis()
        axes.spines[["bottom", "left"]].set_visible(False)
        axes.tick_params(length=0)
        return svg(figure, title)


def growing(found: Sequence[Growth]) -> str:
    """Operations over length, both on logarithmic axes, one line for each kind with its power; as an SVG."""
    with drawing(7.5, 4.2) as (figure, axes):
        for index, growth in enumerate(g for g in found if g.along != "k"):
            label = f"{growth.name} in {growth.along}: power {growth.power:.2f} (theory {growth.theory:g})"
            axes.loglog(
                growth.sizes, growth.operations, marker="o", markersize=3, color=series_colour(index), label=label
            )
        axes.set_xlabel("tokens")
        axes.set_ylabel("operations")
        axes.grid(visible=True)
        axes.legend(fontsize=8, loc="upper left")
        return svg(figure, "How the operations of attention grow")

"""The loss curve of a run as a picture."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lmlab.page.figures import drawing, series_colour, standalone, svg


def loss_curve(metrics: Sequence[dict[str, Any]], name: str, unit: str) -> str:
    """Training and validation over steps, in the unit of the task, as an SVG file."""
    key = unit.replace(" ", "_")
    with drawing(7, 4) as (figure, axes):
        steps = [line["step"] for line in metrics]
        axes.plot(steps, [line[f"train_{key}"] for line in metrics], label="training", color=series_colour(0))
        valid = [(line["step"], line[f"valid_{key}"]) for line in metrics if line[f"valid_{key}"] is not None]
        if valid:
            axes.plot(*zip(*valid, strict=True), label="validation", color=series_colour(1))
        axes.set_xlabel("steps")
        axes.set_ylabel(unit)
        axes.set_title(name, loc="left")
        axes.grid()
        axes.legend()
        return standalone(svg(figure, f"{unit.capitalize()} of {name} over steps"))

"""Figures of learning curves: training and validation of one run, or several runs in one figure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from lmlab.page.figures import SOFT, drawing, note, series_colour, short_ticks, standalone, svg

Over = Literal["steps", "tokens", "seconds"]
MARGINS = (0.75, 0.5, 0.1, 0.35)  # inches, for numbers of five digits, two labels and a title
COLUMNS: dict[Over, str] = {"steps": "step", "tokens": "tokens", "seconds": "seconds"}  # keys of a metrics line


def loss_curve(metrics: Sequence[Mapping[str, Any]], name: str, unit: str, extension_steps: Sequence[int] = ()) -> str:
    """Return the training and validation curves of a run over its steps as an SVG file.

    Args:
        metrics: the lines of metrics.jsonl.
        name: the title.
        unit: the unit of the task.
        extension_steps: the steps at which the budget was extended, which are marked.
    """
    return standalone(loss_figure(metrics, name, unit, extension_steps))


def loss_figure(metrics: Sequence[Mapping[str, Any]], name: str, unit: str, extension_steps: Sequence[int] = ()) -> str:
    """Return the figure of `loss_curve` as an SVG element for a page."""
    key = unit.replace(" ", "_")
    with drawing(7, 4, MARGINS) as (figure, axes):
        steps = [line["step"] for line in metrics]
        axes.plot(steps, [line[f"train_{key}"] for line in metrics], label="training", color=series_colour(0))
        valid = [(line["step"], line[f"valid_{key}"]) for line in metrics if line[f"valid_{key}"] is not None]
        if valid:
            axes.plot(*zip(*valid, strict=True), label="validation", color=series_colour(1))
        for step in extension_steps:
            axes.axvline(step, color=SOFT, linewidth=0.8)
            note(axes, "went on", (step, axes.get_ylim()[1]), (3, -5))
        axes.set_xlabel("steps")
        short_ticks(axes.xaxis)
        axes.set_ylabel(unit)
        axes.set_title(name, loc="left")
        axes.grid()
        axes.legend()
        return svg(figure, f"{unit.capitalize()} of {name} over steps")


def overlaid(curves: Mapping[str, Sequence[Mapping[str, Any]]], unit: str, over: Over) -> str:
    """Return the validation curves of several runs as an SVG element for a page.

    A run without validation shows its training curve, dotted.
    """
    key = unit.replace(" ", "_")
    with drawing(7, 4.2, MARGINS) as (figure, axes):
        for index, (name, metrics) in enumerate(curves.items()):
            held_out = all(line[f"valid_{key}"] is not None for line in metrics)
            x = [line[COLUMNS[over]] for line in metrics]
            y = [line[f"{'valid' if held_out else 'train'}_{key}"] for line in metrics]
            style: Any = "-" if held_out else (0, (1, 1.5))
            marker = "o" if len(x) == 1 else ""
            colour = series_colour(index)
            label = name if held_out else f"{name} (training)"
            axes.plot(x, y, color=colour, linestyle=style, marker=marker, markersize=4, linewidth=1.8, label=label)
        axes.set_xlabel(f"{over} of training")
        short_ticks(axes.xaxis)
        axes.set_ylabel(f"{unit}, validation part")
        axes.grid()
        axes.legend()
        return svg(figure, f"{unit.capitalize()} over {over} of {len(curves)} runs")

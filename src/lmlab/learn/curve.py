"""The loss curve of a run as a picture."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Any

from matplotlib.figure import Figure


def loss_curve(metrics: Sequence[dict[str, Any]], name: str, unit: str) -> str:
    """Training and validation over steps, in the unit of the task, as SVG."""
    figure = Figure(figsize=(7, 4), layout="constrained")
    axes = figure.subplots()
    key = unit.replace(" ", "_")
    steps = [line["step"] for line in metrics]
    axes.plot(steps, [line[f"train_{key}"] for line in metrics], label="training", color="#1f5f8b")
    valid = [(line["step"], line[f"valid_{key}"]) for line in metrics if line[f"valid_{key}"] is not None]
    if valid:
        axes.plot(*zip(*valid, strict=True), label="validation", color="#c2521b")
    axes.set_xlabel("steps")
    axes.set_ylabel(unit)
    axes.set_title(name, loc="left")
    axes.grid(linewidth=0.4)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False)
    buffer = io.StringIO()
    figure.savefig(buffer, format="svg", metadata={"Date": None})
    return buffer.getvalue()

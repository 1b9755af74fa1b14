"""The loss curve of a run as a picture."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lmlab.page.figures import drawing, series_colour, standalone, svg


def loss_curve(metrics: Sequence[dict[str, Any]], name: str) -> str:
    """Bits per byte of training and validation over steps, as an SVG file."""
    with drawing(7, 4) as (figure, axes):
        steps = [line["step"] for line in metrics]
        axes.plot(steps, [line["train_bits_per_byte"] for line in metrics], label="training", color=series_colour(0))
        valid = [(m["step"], m["valid_bits_per_byte"]) for m in metrics if m["valid_bits_per_byte"] is not None]
        if valid:
            axes.plot(*zip(*valid, strict=True), label="validation", color=series_colour(1))
        axes.set_xlabel("steps")
        axes.set_ylabel("bits per byte")
        axes.set_title(name, loc="left")
        axes.grid()
        axes.legend()
        return standalone(svg(figure, f"Bits per byte of {name} over steps"))

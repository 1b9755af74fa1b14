"""The figures of a comparison: what matters has room, names cover nothing, and odd rankings can be drawn."""

from __future__ import annotations

import itertools
import re
from typing import Any

import pytest
from matplotlib.figure import Figure

from lmlab.comparison import figures


def row(name: str, bits: float, series: int | None = 0, width: float = 0.1) -> dict[str, Any]:
    interval = None if series is None else [bits - width, bits + width]
    return {"name": name, "bits_per_byte": bits, "interval": interval, "series": series}


def ticks(svg: str) -> list[float]:
    return [float(t) for t in re.findall(r">(\d+\.\d)</text>", svg)]


def test_what_is_far_off_does_not_squeeze_the_rest() -> None:
    close = [row("a", 1.3), row("b", 1.5), row("zip", 2.0, None)]
    assert max(ticks(figures.ranking([*close, row("uniform", 8.5)], None))) < 2.5
    assert ">8.500<" in figures.ranking([*close, row("uniform", 8.5)], None)


@pytest.mark.parametrize("bits", [[2.0], [2.0, 2.0], [1.0, 99.0]])
def test_one_model_equal_models_and_enormous_differences_can_be_drawn(bits: list[float]) -> None:
    svg = figures.ranking([row(f"model {i}", b, width=0.0) for i, b in enumerate(bits)], entropy=0.9)
    assert re.findall(r">model (\d)<", svg) == [str(i) for i in range(len(bits))]
    assert "exact entropy" in svg


def test_names_of_crowded_points_cover_no_point_and_no_other_name() -> None:
    figure = Figure(figsize=(3.9, 3.4), layout="constrained")
    axes = figure.subplots()
    points = [(f"model-{i}", 10.0 + 0.05 * i, 2.0 + 0.004 * i) for i in range(7)] + [("far", 30.0, 4.0)]
    for _, x, y in points:
        axes.plot([x], [y], "o")
    axes.margins(0.2)
    figures.name_points(figure, axes, points)
    pixel = figure.dpi / 72
    boxes = []
    for note in axes.texts:
        x, y = axes.transData.transform(note.xy) / pixel
        dx, dy = note.xyann
        width, height = 0.55 * figures.NAME_SIZE * len(note.get_text()), 1.1 * figures.NAME_SIZE
        boxes.append((x + dx - width / 2, y + dy - height / 2, x + dx + width / 2, y + dy + height / 2))
        boxes.append((x - 4, y - 4, x + 4, y + 4))
    names = boxes[::2]
    assert all(figures._overlap(a, b) == 0 for a, b in itertools.combinations(names, 2))
    assert all(figures._overlap(name, point) == 0 for name in names for point in boxes[1::2])


def test_a_cost_that_nobody_has_gets_no_panel() -> None:
    counted = {"name": "ngram", "bits_per_byte": 2.0, "parameters": 10, "flops": None, "seconds": 1.0, "series": 0}
    assert len(figures.costs([counted])) == 2
    assert len(figures.costs([counted, counted | {"name": "gpt", "flops": 1e12}])) == 3


def curve(name: str, series: int, *bits: float) -> dict[str, Any]:
    return {"name": name, "series": series, "curve": [{"seconds": i, "bits_per_byte": b} for i, b in enumerate(bits)]}


def test_loss_curves_name_only_what_they_draw_and_a_single_validation_is_a_point() -> None:
    svg = figures.curves(
        [curve("near", 0, 3.0, 2.0), curve("far", 1, 9.0, 8.0), curve("once", 2, 2.5)], [("level", 2.2, 3)]
    )
    assert re.findall(r">(near|far|once|level)<", svg) == ["near", "once", "level"]
    assert svg.count("<use ") > figures.curves([curve("near", 0, 3.0, 2.0)], []).count("<use ")


def test_two_curves_of_one_colour_differ_in_their_dashes() -> None:
    pair = [curve("a", 0, 3.0, 2.0), curve("b", len(figures.SERIES), 3.0, 2.1)]
    assert "stroke-dasharray" in figures.curves(pair, [])
    assert "stroke-dasharray" not in figures.curves(pair[:1], [])

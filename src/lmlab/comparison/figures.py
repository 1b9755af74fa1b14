"""The figures of a comparison: the ranking, the loss curves, and the cost of each model."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from lmlab.comparison.findings import CurvePoint
from lmlab.page.figures import COLOURS, INK, Box, drawing, log_scale, name_points, note, series_colour, svg, width_of
from lmlab.page.numbers import short

FAR = 2.2  # multiple of the best score beyond which a model is drawn at the edge
LEAST_SPAN = 0.1  # minimum width of the ranking in bits per byte, so that equal models are not drawn far apart
CURVE_SPAN = 2.2  # bits per byte above the best that loss curves show
WIDTH = 5.6  # inches, of a figure as wide as the page
LEGEND_COLUMNS, LEGEND_SIZE = 3, 8  # maximum columns; font size in points
# Margins in inches: beside an axis with numbers and a label; below such an axis; at an edge without either.
NUMBERS, WORDS, EDGE = 0.8, 0.5, 0.15
# These margins suffice for names up to this length, and for numbers that are neither small nor close together.
LONGEST_NAME, LEAST_NUMBER, LEAST_APART = 30, 0.1, 0.01
MANY = 16  # number of models above which each dot has less room for its name
MOST_LETTERS = 36  # maximum length of a name; the end of a longer one is shown, which holds the class name


@dataclass(frozen=True, kw_only=True)
class Dot:
    """A model in the ranking chart, or a compressor baseline if `series` is None. series: index of its colour."""

    name: str
    bits_per_byte: float
    interval: tuple[float, float] | None = None
    series: int | None = None


@dataclass(frozen=True, kw_only=True)
class Curve:
    """Validation bits per byte of one model over seconds of training."""

    name: str
    series: int
    points: Sequence[CurvePoint]

    @property
    def lowest(self) -> float:
        """Lowest validation bits per byte of the curve."""
        return min(point.bits_per_byte for point in self.points)


@dataclass(frozen=True, kw_only=True)
class Cost:
    """The bits per byte and the cost of one model; None or 0 where a cost is unknown."""

    name: str
    series: int
    bits_per_byte: float
    parameters: int
    flops: float | None
    seconds: float


def ranking(dots: Sequence[Dot], entropy: float | None) -> str:
    """Draw bits per byte as dots with intervals, best on top, as SVG.

    Compressor baselines are hollow dots; the exact entropy, if known, is a line. Models far worse than the best stand at the
    edge with their number. Drawn to scale, they would compress the differences between the others.
    """
    best = min(dot.bits_per_byte for dot in dots)
    far = max(FAR * best, best + LEAST_SPAN)  # a multiple of a score near 0 would be too close
    names = max(width_of(_short(dot.name)) for dot in dots) + 0.1
    margins = _if_usual((names, WORDS, EDGE, EDGE), dots)
    with drawing(WIDTH, 0.3 * len(dots) + 0.8, margins) as (figure, axes):
        near = [dot for dot in dots if dot.bits_per_byte <= far]
        ends = [end for dot in near for end in dot.interval or (dot.bits_per_byte,)]
        ends += [] if entropy is None else [entropy]
        low, span = min(ends), max(max(ends) - min(ends), LEAST_SPAN)
        axes.set_xlim(low - 0.05 * span, low + 1.2 * span)
        edge = axes.get_xlim()[1]
        for place, dot in enumerate(dots):
            bits, colour = dot.bits_per_byte, series_colour(dot.series)
            inside = "none" if dot.series is None else colour
            if bits > far:
                axes.plot([edge], [place], ">", markersize=6, color=colour, markerfacecolor=inside, clip_on=False)
                note(axes, f"{bits:.3f}", (edge, place), (-8, 0), ha="right")
                continue
            if dot.interval:
                axes.plot(dot.interval, [place, place], color=colour, linewidth=2.2, solid_capstyle="round", alpha=0.55)
            axes.plot([bits], [place], "o", markersize=6, color=colour, markerfacecolor=inside)
            note(axes, f"{bits:.3f}", (dot.interval[1] if dot.interval else bits, place), (7, 0))
        if entropy is not None:
            axes.axvline(entropy, color=INK, linewidth=1, linestyle=(0, (4, 3)))
            note(axes, "exact entropy", (entropy, -0.8), (4, 0), color=INK)
        axes.set_yticks(range(len(dots)), [_short(dot.name) for dot in dots])
        axes.set_ylim(len(dots) - 0.4, -1.0)
        axes.tick_params(axis="y", length=0)
        axes.grid(axis="x")
        axes.set_xlabel("bits per byte (less is better)")
        return svg(figure, "Bits per byte of every model with its 95% interval")


def curves(learned: Sequence[Curve], level: Sequence[Dot]) -> str:
    """Draw validation bits per byte over training seconds, as SVG; count models are horizontal lines.

    A curve that never comes within CURVE_SPAN of the best is left out, unless none does. If there are more models than
    colours, the second curve of a colour is dotted.
    """
    lowest = min([curve.lowest for curve in learned] + [dot.bits_per_byte for dot in level])
    best_curve = min(curve.lowest for curve in learned)
    top = lowest + CURVE_SPAN if best_curve < lowest + CURVE_SPAN else best_curve + CURVE_SPAN / 2
    drawn = [curve for curve in learned if curve.lowest < top]
    level = [dot for dot in level if dot.bits_per_byte < top]
    names = [_short(name) for name in [curve.name for curve in drawn] + [dot.name for dot in level]]
    column = max((width_of(name, LEGEND_SIZE) for name in names), default=0.0) + 0.6  # including the line sample
    columns = max(1, min(LEGEND_COLUMNS, int(WIDTH / column)))
    legend = 0.2 * math.ceil(len(names) / columns)
    with drawing(WIDTH, 3.2 + legend, (NUMBERS, WORDS + legend + EDGE, EDGE, EDGE)) as (figure, axes):
        for curve in drawn:
            x, y = [p.seconds for p in curve.points], [p.bits_per_byte for p in curve.points]
            style: Any = "-" if curve.series < COLOURS else (0, (1, 1.5))
            look: dict[str, Any] = {"linewidth": 1.8, "marker": "o" if len(x) == 1 else "", "markersize": 4}
            axes.plot(x, y, linestyle=style, color=series_colour(curve.series), label=_short(curve.name), **look)
        for dot in level:
            line: dict[str, Any] = {"linewidth": 1.2, "linestyle": (0, (5, 3)), "label": _short(dot.name)}
            axes.axhline(dot.bits_per_byte, color=series_colour(dot.series), **line)
        axes.set_ylim(lowest - 0.1, top)
        axes.set_xlabel("seconds of training")
        axes.set_ylabel("bits per byte, validation part")
        axes.grid(axis="y")
        figure.legend(loc="lower left", ncols=columns, fontsize=LEGEND_SIZE)
        return svg(figure, "Validation bits per byte over training time")


def drawing_s() -> tuple[float, float]:
    """Measure the seconds to draw one figure; the first one in a process takes longest.

    Returns:
        Wall-clock seconds, and seconds of processor time.
    """
    started, started_cpu = time.perf_counter(), time.thread_time()
    costs(
        [
            Cost(name=f"model {i}", series=i, bits_per_byte=1.0 + i, parameters=10**i, flops=None, seconds=0.0)
            for i in range(1, 9)
        ]
    )
    return time.perf_counter() - started, time.thread_time() - started_cpu


def costs(found: Sequence[Cost]) -> list[str]:
    """Draw bits per byte against parameters, training FLOPs and seconds, one figure each, with logarithmic costs."""
    panels = {
        "parameters": [(cost, float(cost.parameters)) for cost in found],
        "training FLOPs": [(cost, cost.flops or 0.0) for cost in found],
        "seconds of training": [(cost, cost.seconds) for cost in found],
    }
    shown = {label: [(cost, x) for cost, x in points if x > 0] for label, points in panels.items()}
    return [_cost(points, label) for label, points in shown.items() if points]


def _short(name: str) -> str:
    return name if len(name) <= MOST_LETTERS else f"…{name[1 - MOST_LETTERS :]}"


def _if_usual(margins: Box, shown: Sequence[Dot | Cost]) -> Box | None:
    """Return the margins if they suffice for these names and numbers; None if they must be computed."""
    bits = [one.bits_per_byte for one in shown]
    apart = len(set(bits)) == 1 or max(bits) - min(bits) >= LEAST_APART
    usual = apart and min(bits) >= LEAST_NUMBER and max(len(one.name) for one in shown) <= LONGEST_NAME
    return margins if usual else None


def _cost(points: Sequence[tuple[Cost, float]], label: str) -> str:
    margins = _if_usual((NUMBERS, WORDS, EDGE, EDGE), [cost for cost, _ in points])
    with drawing(3.9, 3.4 if len(points) <= MANY else 4.6, margins) as (figure, axes):
        log_scale(axes, "x", [x for _, x in points])
        tips = {}
        for number, (cost, x) in enumerate(points):
            dot = f"dot-{number}"
            axes.plot([x], [cost.bits_per_byte], "o", markersize=6, color=series_colour(cost.series), gid=dot)
            tips[dot] = f"{cost.name}: {cost.bits_per_byte:.3f} bits per byte, {short(x)} {label}"
        axes.set_xlabel(label)
        axes.set_ylabel("bits per byte")
        axes.grid(axis="both")
        axes.margins(x=0.2, y=0.1)
        named = [(_short(cost.name), x, cost.bits_per_byte) for cost, x in _worth_most_first(points)]
        name_points(figure, axes, named, all_of_them=False)
        return svg(figure, f"Bits per byte against {label}", tips)


def _worth_most_first(points: Sequence[tuple[Cost, float]]) -> list[tuple[Cost, float]]:
    """Sort points for labelling: those on the Pareto front of cost and bits per byte first, each group by bits per byte."""
    unbeaten, lowest = list[tuple[Cost, float]](), math.inf
    for point in sorted(points, key=lambda point: (point[1], point[0].bits_per_byte)):
        if point[0].bits_per_byte < lowest:
            unbeaten.append(point)
            lowest = point[0].bits_per_byte
    return sorted(points, key=lambda point: (point not in unbeaten, point[0].bits_per_byte))

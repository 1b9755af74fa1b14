"""Figures of a comparison, as SVG that takes its colours from the page it stands in.

matplotlib draws with marker colours; these are then replaced by CSS variables, so that one figure serves light, dark and print.
Text stays text: it can be read aloud, searched and copied.
"""

from __future__ import annotations

import io
import math
import re
import zlib
from collections.abc import Sequence
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

FAR = 2.2  # times the best: from there on, a model stands at the edge of the ranking
CURVE_SPAN = 2.2  # bits per byte above the best that the loss curves show
LEGEND_COLUMNS = 3
NAME_SIZE = 8.5  # of names beside points, in points

INK, SOFT, RULE = "#010203", "#040506", "#070809"
SERIES = [
    "#0a0b0c",
    "#0d0e0f",
    "#101112",
    "#131415",
    "#161718",
    "#191a1b",
    "#1c1d1e",
    "#1f2021",
    "#222324",
    "#252627",
    "#28292a",
]
VARIABLES = {INK: "var(--ink)", SOFT: "var(--soft)", RULE: "var(--rule)"}
VARIABLES |= {colour: f"var(--series-{i})" for i, colour in enumerate(SERIES)}

STYLE: Any = {
    "svg.fonttype": "none",
    "svg.hashsalt": "lmlab",  # ids inside the file are the same for the same figure
    "font.family": "sans-serif",
    "font.size": 10,
    "text.color": INK,
    "axes.labelcolor": SOFT,
    "axes.edgecolor": RULE,
    "axes.facecolor": "none",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "figure.facecolor": "none",
    "xtick.color": RULE,
    "ytick.color": RULE,
    "xtick.labelcolor": SOFT,
    "ytick.labelcolor": INK,
    "grid.color": RULE,
    "grid.linewidth": 0.6,
    "legend.frameon": False,
}


def series_colour(index: int) -> str:
    """The marker colour of the index-th model."""
    return SERIES[index % len(SERIES)]


def ranking(rows: Sequence[dict[str, Any]], entropy: float | None) -> str:
    """Bits per byte as dots with intervals, best on top; yardsticks hollow; the exact entropy, if known, as a line.

    rows: name, bits_per_byte, interval (or None), colour index (None for a yardstick), certified. What is far worse than
    the best stands at the edge with its number: drawn to scale, it would squeeze the differences that matter.
    """
    far = FAR * min(row["bits_per_byte"] for row in rows)
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(5.6, 0.3 * len(rows) + 0.8), layout="constrained")
        axes = figure.subplots()
        near = [row for row in rows if row["bits_per_byte"] <= far]
        ends = [x for row in near for x in (row["interval"] or [row["bits_per_byte"]])]
        ends += [] if entropy is None else [entropy]
        low, span = min(ends), max(max(ends) - min(ends), 0.1)
        axes.set_xlim(low - 0.05 * span, low + 1.2 * span)
        edge = axes.get_xlim()[1]
        for place, row in enumerate(rows):
            bits, interval = row["bits_per_byte"], row["interval"]
            colour = SOFT if row["series"] is None else series_colour(row["series"])
            inside = "none" if row["series"] is None else colour
            if bits > far:
                axes.plot([edge], [place], ">", markersize=6, color=colour, markerfacecolor=inside, clip_on=False)
                _note(axes, f"{bits:.3f}", (edge, place), (-8, 0), ha="right")
                continue
            if interval:
                axes.plot(interval, [place, place], color=colour, linewidth=2.2, solid_capstyle="round", alpha=0.55)
            axes.plot([bits], [place], "o", markersize=6, color=colour, markerfacecolor=inside)
            _note(axes, f"{bits:.3f}", ((interval or [0, bits])[1], place), (7, 0))
        if entropy is not None:
            axes.axvline(entropy, color=INK, linewidth=1, linestyle=(0, (4, 3)))
            _note(axes, "exact entropy", (entropy, -0.8), (4, 0), color=INK)
        axes.set_yticks(range(len(rows)), [row["name"] for row in rows])
        axes.set_ylim(len(rows) - 0.4, -1.0)
        axes.tick_params(axis="y", length=0)
        axes.grid(axis="x")
        axes.set_axisbelow(True)
        axes.set_xlabel("bits per byte (less is better)")
        return _svg(figure, "Bits per byte of every model with its 95% interval")


def _note(axes: Axes, text: str, at: tuple[float, float], offset: tuple[float, float], **style: Any) -> None:
    """A small text beside a point; the offset is in points."""
    style = dict[str, Any](fontsize=9, color=SOFT, va="center") | style
    axes.annotate(text, at, xytext=offset, textcoords="offset points", annotation_clip=False, **style)


def curves(series: Sequence[dict[str, Any]], baselines: Sequence[tuple[str, float, int]]) -> str:
    """Validation bits per byte over training seconds; count models, which need no time to speak of, as level lines.

    A curve that never comes within CURVE_SPAN of the best is neither drawn nor named. Where there are more models than
    colours, a colour's second curve is dotted.
    """
    lows = [min(p["bits_per_byte"] for p in one["curve"]) for one in series] + [bits for _, bits, _ in baselines]
    bottom, top = min(lows) - 0.1, min(lows) + CURVE_SPAN
    drawn = [one for one in series if min(p["bits_per_byte"] for p in one["curve"]) < top]
    level = [line for line in baselines if line[1] < top]
    with mpl.rc_context(STYLE):
        names = math.ceil((len(drawn) + len(level)) / LEGEND_COLUMNS)
        figure = Figure(figsize=(5.6, 3.2 + 0.2 * names), layout="constrained")
        axes = figure.subplots()
        for one in drawn:
            x, y = [p["seconds"] for p in one["curve"]], [p["bits_per_byte"] for p in one["curve"]]
            style: Any = "-" if one["series"] < len(SERIES) else (0, (1, 1.5))
            alone = "o" if len(x) == 1 else ""
            colour = series_colour(one["series"])
            axes.plot(x, y, linestyle=style, marker=alone, markersize=4, color=colour, linewidth=1.8, label=one["name"])
        for name, bits, index in level:
            axes.axhline(bits, color=series_colour(index), linewidth=1.2, linestyle=(0, (5, 3)), label=name)
        axes.set_ylim(bottom, top)
        axes.set_xlabel("seconds of training")
        axes.set_ylabel("bits per byte, validation part")
        axes.grid(axis="y")
        axes.set_axisbelow(True)
        figure.legend(loc="outside lower left", ncols=LEGEND_COLUMNS, fontsize=8, labelcolor=INK)
        return _svg(figure, "Validation bits per byte over training time")


def costs(rows: Sequence[dict[str, Any]]) -> list[str]:
    """Bits per byte against parameters, training operations and seconds: a figure each; logarithmic costs."""
    panels = (("parameters", "parameters"), ("flops", "training FLOPs"), ("seconds", "seconds of training"))
    shown = {key: [row for row in rows if row[key] and row[key] > 0] for key, _ in panels}
    return [_cost(shown[key], key, label) for key, label in panels if shown[key]]


def _cost(rows: Sequence[dict[str, Any]], key: str, label: str) -> str:
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(3.9, 3.4), layout="constrained")
        axes = figure.subplots()
        axes.set_xscale("log")
        for row in rows:
            axes.plot([row[key]], [row["bits_per_byte"]], "o", markersize=6, color=series_colour(row["series"]))
        axes.set_xlabel(label)
        axes.set_ylabel("bits per byte")
        axes.grid(axis="both")
        axes.set_axisbelow(True)
        axes.margins(x=0.2, y=0.1)
        axes.xaxis.set_minor_locator(mpl.ticker.NullLocator())
        name_points(figure, axes, [(row["name"], row[key], row["bits_per_byte"]) for row in rows])
        return _svg(figure, f"Bits per byte against {label}")


def name_points(figure: Figure, axes: Axes, points: Sequence[tuple[str, float, float]]) -> None:
    """Write each point's name beside it, or, where it is crowded, a little off with a line to it.

    Names go where they cover no point and no other name: places around the point are tried from near to far.
    """
    figure.draw_without_rendering()  # the layout must stand before places can be compared
    pixel = figure.dpi / 72
    spots = [tuple(axes.transData.transform((x, y)) / pixel) for _, x, y in points]
    taken = [(x - 4, y - 4, x + 4, y + 4) for x, y in spots]
    frame = [edge / pixel for edge in axes.get_window_extent().extents]
    for (name, x, y), spot in zip(points, spots, strict=True):
        width, height = 0.55 * NAME_SIZE * len(name), 1.1 * NAME_SIZE
        box, offset = _free_place(spot, width, height, taken, frame)
        taken.append(box)
        line = {"arrowstyle": "-", "color": RULE, "linewidth": 0.8, "shrinkA": 0, "shrinkB": 3}
        far = math.hypot(*offset) > 16
        axes.annotate(
            name, (x, y), xytext=offset, textcoords="offset points", ha="center", va="center", fontsize=NAME_SIZE,
            color=SOFT, arrowprops=line if far else None,
        )  # fmt: skip


Box = tuple[float, float, float, float]  # left, bottom, right, top, in points


def _free_place(
    spot: tuple[float, float], width: float, height: float, taken: Sequence[Box], frame: Sequence[float]
) -> tuple[Box, tuple[float, float]]:
    """The box of a name near a point, and the offset of its centre; the nearest place that covers least."""
    best: tuple[float, Box, tuple[float, float]] | None = None
    for reach in (0, 8, 16, 26, 38, 52):
        for turn in range(16):
            angle = turn * math.pi / 8
            dx = math.cos(angle) * (width / 2 + 6 + reach)
            dy = math.sin(angle) * (height / 2 + 5 + reach)
            left, bottom = spot[0] + dx - width / 2, spot[1] + dy - height / 2
            box = (left, bottom, left + width, bottom + height)
            outside = left < frame[0] or bottom < frame[1] or box[2] > frame[2] or box[3] > frame[3]
            covered = sum(_overlap(box, other) for other in taken) + 1000.0 * outside
            if best is None or covered < best[0]:
                best = (covered, box, (dx, dy))
        if best is not None and best[0] == 0:
            break
    assert best is not None
    return best[1], best[2]


def _overlap(a: Box, b: Box) -> float:
    """The area that two boxes share."""
    return max(0.0, min(a[2], b[2]) - max(a[0], b[0])) * max(0.0, min(a[3], b[3]) - max(a[1], b[1]))


def _svg(figure: Figure, title: str) -> str:
    """The figure as an inline SVG with a title for screen readers, its colours taken from the page."""
    buffer = io.StringIO()
    figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None})
    text = buffer.getvalue()
    text = text[text.index("<svg") :]
    width, height = (float(n) for n in re.search(r'viewBox="0 0 ([\d.]+) ([\d.]+)"', text).groups())  # type: ignore[union-attr]
    spaces = 'xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink"'
    head = f'<svg class="figure" viewBox="0 0 {width:g} {height:g}" role="img" aria-label="{title}" {spaces}>'
    text = head + text[text.index(">") + 1 :]
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    for colour, variable in VARIABLES.items():
        text = text.replace(colour, variable)
    # Ids must be unique on the page: several figures stand on it.
    prefix = f"f{zlib.crc32(title.encode()):x}-"
    return re.sub(r'(id="|url\(#|xlink:href="#)', rf"\g<1>{prefix}", text)


def standalone(svg: str, css: str) -> str:
    """A figure of the page as a file of its own: the colours of both schemes go inside."""
    schemes = re.findall(r"--[\w-]+: #[0-9a-f]{6};", css)
    light, dark = schemes[: len(schemes) // 2], schemes[len(schemes) // 2 :]
    head, _, rest = svg.partition(">")
    day, night = "".join(light) + "font-family:sans-serif", "".join(dark)
    style = f"<style>svg{{{day}}}@media(prefers-color-scheme:dark){{svg{{{night}}}}}</style>"
    return f"{head}>{style}{rest}"


def finite(value: float | None) -> bool:
    """Whether there is a number to draw."""
    return value is not None and math.isfinite(value)

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
from matplotlib.figure import Figure

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
    "font.size": 11,
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

    rows: name, bits_per_byte, interval (or None), colour index (None for a yardstick), certified.
    """
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(7.2, 0.34 * len(rows) + 0.9), layout="constrained")
        axes = figure.subplots()
        for place, row in enumerate(rows):
            bits, interval = row["bits_per_byte"], row["interval"]
            colour = SOFT if row["series"] is None else series_colour(row["series"])
            if interval:
                axes.plot(interval, [place, place], color=colour, linewidth=2.2, solid_capstyle="round", alpha=0.55)
            axes.plot(
                [bits],
                [place],
                "o",
                markersize=7,
                color=colour,
                markerfacecolor="none" if row["series"] is None else colour,
            )
            axes.annotate(
                f"{bits:.3f}", ((interval or [0, bits])[1], place), xytext=(8, 0), textcoords="offset points", va="center",
                fontsize=9.5, color=SOFT,
            )  # fmt: skip
        if entropy is not None:
            axes.axvline(entropy, color=INK, linewidth=1, linestyle=(0, (4, 3)))
            axes.annotate("exact entropy", (entropy, -0.8), xytext=(4, 0), textcoords="offset points", fontsize=9.5)
        axes.set_yticks(range(len(rows)), [row["name"] for row in rows])
        axes.set_ylim(len(rows) - 0.4, -1.0)
        axes.tick_params(axis="y", length=0)
        axes.grid(axis="x")
        axes.set_axisbelow(True)
        axes.set_xlabel("bits per byte (less is better)")
        axes.margins(x=0.14)
        return _svg(figure, "Bits per byte of every model with its 95% interval")


def curves(series: Sequence[dict[str, Any]], baselines: Sequence[tuple[str, float, int]]) -> str:
    """Validation bits per byte over training seconds; count models, which need no time to speak of, as level lines."""
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(7.2, 3.9), layout="constrained")
        axes = figure.subplots()
        lows = []
        for one in series:
            x, y = [p["seconds"] for p in one["curve"]], [p["bits_per_byte"] for p in one["curve"]]
            axes.plot(x, y, color=series_colour(one["series"]), linewidth=1.8, label=one["name"])
            lows.append(min(y))
        for name, bits, index in baselines:
            axes.axhline(bits, color=series_colour(index), linewidth=1.2, linestyle=(0, (5, 3)), label=name)
            lows.append(bits)
        if lows:
            axes.set_ylim(min(lows) - 0.1, min(lows) + 2.2)
        axes.set_xlabel("seconds of training")
        axes.set_ylabel("bits per byte, validation part")
        axes.grid(axis="y")
        axes.set_axisbelow(True)
        axes.legend(ncols=2, fontsize=9, labelcolor=INK)
        return _svg(figure, "Validation bits per byte over training time")


def costs(rows: Sequence[dict[str, Any]]) -> str:
    """Bits per byte against parameters, training operations and seconds, side by side; logarithmic costs."""
    panels = (("parameters", "parameters"), ("flops", "training FLOPs"), ("seconds", "seconds of training"))
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(7.2, 3.1), layout="constrained")
        for axes, (key, label) in zip(figure.subplots(1, 3, sharey=True), panels, strict=True):
            shown = [row for row in rows if row[key] and row[key] > 0]
            for row in shown:
                axes.plot([row[key]], [row["bits_per_byte"]], "o", markersize=6.5, color=series_colour(row["series"]))
                axes.annotate(
                    row["name"], (row[key], row["bits_per_byte"]), xytext=(0, 6), textcoords="offset points", ha="center",
                    fontsize=7.5, color=SOFT,
                )  # fmt: skip
            axes.set_xscale("log")
            axes.set_xlabel(label)
            axes.grid(axis="both")
            axes.set_axisbelow(True)
            axes.margins(x=0.22, y=0.14)
            axes.xaxis.set_minor_locator(mpl.ticker.NullLocator())
        figure.axes[0].set_ylabel("bits per byte")
        return _svg(figure, "Bits per byte against parameters, training operations and seconds")


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

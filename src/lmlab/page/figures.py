"""Figures as SVG that takes its colours from the page it stands in: the one style of all pictures.

matplotlib draws with marker colours; these are then replaced by CSS variables, so that one figure serves light, dark and print.
Text stays text: it can be read aloud, searched and copied.
"""

from __future__ import annotations

import io
import math
import re
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Literal

from lmlab.page.numbers import SUFFIXES
from lmlab_derive.shared.html import escape, stylesheet

if TYPE_CHECKING:  # matplotlib takes half a second to import, and most verbs that could draw do not
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure

NAME_SIZE = 8.5  # of names beside points, in points
LETTER_WIDTH = 0.64  # of its size: as wide as the sans-serif letters of common systems
NEARLY_EQUAL = 2.0  # largest by smallest, below which an axis need not be logarithmic
DECADES = 15.0  # from which powers of ten are marks enough
COLOURS = 12  # of series that the stylesheet has

Box = tuple[float, float, float, float]  # left, bottom, right, top

INK, SOFT, RULE = "#010203", "#040506", "#070809"
SERIES = [f"#0a{index:02x}0c" for index in range(COLOURS)]
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
    "axes.axisbelow": True,
    "figure.facecolor": "none",
    "xtick.color": RULE,
    "ytick.color": RULE,
    "xtick.labelcolor": SOFT,
    "ytick.labelcolor": INK,
    "grid.color": RULE,
    "grid.linewidth": 0.6,
    "legend.frameon": False,
    "legend.labelcolor": INK,
}


@contextmanager
def drawing(width: float, height: float, margins: Box | None = None) -> Iterator[tuple[Figure, Axes]]:
    """A figure of so many inches and its axes, in the style of the lab; it is drawn and written inside the block.

    margins: inches left of the axes, below, right and above, where these are known to be enough: finding out what would
    be takes longer than drawing.
    """
    import matplotlib as mpl
    from matplotlib.figure import Figure

    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(width, height), layout="constrained" if margins is None else None)
        if margins is not None:
            left, bottom, right, top = margins
            figure.subplots_adjust(left / width, bottom / height, 1 - right / width, 1 - top / height)
        yield figure, figure.subplots()


@contextmanager
def panels(width: float, height: float, rows: int, columns: int) -> Iterator[tuple[Figure, list[Axes]]]:
    """As `drawing`, with several axes: row by row."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(width, height), layout="constrained")
        yield figure, list(figure.subplots(rows, columns, squeeze=False).flat)


def short_ticks(axis: Axis) -> None:
    """Ticks of counts on a linear axis that read 500, 20k, 1.5M."""
    from matplotlib.ticker import FuncFormatter

    axis.set_major_formatter(FuncFormatter(lambda value, _: _power(value) if value >= 1 else f"{value:g}"))


def log_scale(axes: Axes, along: Literal["x", "y"], values: Sequence[float] = ()) -> None:
    """A logarithmic axis whose ticks read 10, 1k, 1M.

    values: that are to be shown, where they may lie close together. Then 20 and 50 are marked too; next to each other no power
    of ten may lie between them, and the axis is a plain one.

    Powers of ten as matplotlib sets them are formulas, and setting those takes longer than all else of a figure.
    """
    from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullLocator

    axis: Axis = axes.xaxis if along == "x" else axes.yaxis
    span = max(values) / min(values) if values else math.inf
    if 1 < span < NEARLY_EQUAL:
        axis.set_major_locator(MaxNLocator(4))
        short_ticks(axis)
        return
    axes.set(**{f"{along}scale": "log"})
    if 1 < span < DECADES:
        axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axis.set_major_formatter(FuncFormatter(lambda value, _: _power(value)))
    axis.set_minor_locator(NullLocator())


def _power(value: float) -> str:
    """A round number on an axis."""
    power = math.floor(math.log10(value) + 1e-9) // 3 * 3
    suffix = {0: "", **SUFFIXES}.get(power)
    return f"{value:g}" if suffix is None else f"{value / 10**power:g}{suffix}"


def series_colour(index: int | None) -> str:
    """The marker colour of the index-th series; None: of what is only a yardstick."""
    return SOFT if index is None else SERIES[index % COLOURS]


def note(axes: Axes, text: str, at: tuple[float, float], offset: tuple[float, float], **style: Any) -> None:
    """A small text beside a point; the offset is in points."""
    style = dict[str, Any](fontsize=9, color=SOFT, va="center") | style
    axes.annotate(text, at, xytext=offset, textcoords="offset points", annotation_clip=False, **style)


def name_points(
    figure: Figure, axes: Axes, points: Sequence[tuple[str, float, float]], all_of_them: bool = True
) -> None:
    """Write each point's name beside it, or, where it is crowded, a little off with a line to it.

    Names go where they cover no point and no other name: places around the point are tried from near to far.
    all_of_them: without, a name that has no such place is left out; the first of the points choose first.
    """
    if figure.get_layout_engine() is None:
        axes.get_xlim(), axes.get_ylim()  # what lies where is known as soon as the ends of the axes are
    else:
        figure.draw_without_rendering()  # the layout must stand before places can be compared
        figure.set_layout_engine("none")  # and then stays: laying out is most of the work
    pixel = figure.dpi / 72
    spots = [tuple(axes.transData.transform((x, y)) / pixel) for _, x, y in points]
    taken = [(x - 4, y - 4, x + 4, y + 4) for x, y in spots]
    frame = [edge / pixel for edge in axes.get_window_extent().extents]
    for (name, x, y), spot in zip(points, spots, strict=True):
        width, height = 72 * width_of(name, NAME_SIZE), 1.1 * NAME_SIZE
        box, offset, covers = _free_place(spot, width, height, taken, frame)
        if covers and not all_of_them:
            continue
        taken.append(box)
        line = {"arrowstyle": "-", "color": RULE, "linewidth": 0.8, "shrinkA": 0, "shrinkB": 3}
        far = math.hypot(*offset) > 16
        axes.annotate(
            name, (x, y), xytext=offset, textcoords="offset points", ha="center", va="center", fontsize=NAME_SIZE,
            color=SOFT, arrowprops=line if far else None,
        )  # fmt: skip


def width_of(text: str, size: float = 10) -> float:
    """Inches that a text takes in letters of so many points, about: pages set it in the letters of the reader's system."""
    return LETTER_WIDTH * size * len(text) / 72


def _free_place(
    spot: tuple[float, float], width: float, height: float, taken: Sequence[Box], frame: Sequence[float]
) -> tuple[Box, tuple[float, float], float]:
    """The box of a name near a point, the offset of its centre, in points, and what it covers: the nearest with least."""
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
    return best[1], best[2], best[0]


def _overlap(a: Box, b: Box) -> float:
    """The area that two boxes share."""
    return max(0.0, min(a[2], b[2]) - max(a[0], b[0])) * max(0.0, min(a[3], b[3]) - max(a[1], b[1]))


def svg(figure: Figure, title: str, tips: Mapping[str, str] | None = None) -> str:
    """The figure as an inline SVG with a title for screen readers, its colours taken from the page.

    tips: what is shown when one points at an artist, by the id (`gid`) that it was given.
    """
    buffer = io.StringIO()
    figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None})
    text = buffer.getvalue()
    text = text[text.index("<svg") :]
    width, height = (float(n) for n in re.search(r'viewBox="0 0 ([\d.]+) ([\d.]+)"', text).groups())  # type: ignore[union-attr]
    spaces = 'xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink"'
    head = f'<svg class="figure" viewBox="0 0 {width:g} {height:g}" role="img" aria-label="{escape(title)}" {spaces}>'
    text = head + text[text.index(">") + 1 :]
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    for colour, variable in VARIABLES.items():
        text = text.replace(colour, variable)
    # Ids must be unique on the page: several figures stand on it.
    prefix = f"f{zlib.crc32(title.encode()):x}-"
    text = re.sub(r'(id="|url\(#|xlink:href="#)', rf"\g<1>{prefix}", text)
    for gid, tip in (tips or {}).items():  # last: they are not ours, and may hold what looks like an id
        text = text.replace(f'<g id="{prefix}{gid}">', f'<g id="{prefix}{gid}"><title>{escape(tip)}</title>', 1)
    return text


def standalone(figure: str) -> str:
    """A figure as a file of its own, on paper.

    Colours are written out, because picture viewers know no CSS variables; a browser that is set to dark turns them around.
    """
    light = re.findall(r":root \{(.*?)\}", stylesheet(), flags=re.DOTALL)[0]
    for name, colour in re.findall(r"--([\w-]+): (#\w+);", light):
        figure = figure.replace(f"var(--{name})", colour)
    head, _, rest = figure.partition(">")
    dark = "<style>@media(prefers-color-scheme:dark){svg{filter:invert(1) hue-rotate(180deg)}}</style>"
    return f'{head} font-family="sans-serif">{dark}<rect width="100%" height="100%" fill="#fff"/>{rest}'

"""Where a topic's page or picture goes, and the pieces that the pages of all topics share."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from matplotlib.axes import Axes

from lmlab.page.figures import drawing, panels, standalone, svg
from lmlab_derive.shared.html import escape, figure, folded, write

DASHES: Any = (0, (4, 3))  # of a line, as matplotlib takes them


def publish(
    *, html: str | Path | None, svg: str | Path | None, page: Callable[[], str], picture: Callable[[], str]
) -> None:
    """Write the page and the picture that were asked for."""
    if html is not None:
        write(Path(html), page())
    if svg is not None:
        write(Path(svg), standalone(picture()))


def opening(title: str, lead: str, command: str) -> str:
    """The head of a page; `lead` is HTML. command: what makes this page."""
    return f'<h1>{escape(title)}</h1>\n<p class="lead">{lead}</p>\n<p class="soft">Made by <code>{escape(command)}</code></p>\n'


def side_by_side(figures: Sequence[tuple[str, str]]) -> str:
    """Pictures with their captions, as many in a row as there is room for."""
    wide = "grid-template-columns:repeat(auto-fit,minmax(min(100%,24rem),1fr))"  # two in a row of a page's width
    return f'<div class="panels" style="{wide}">{"".join(figure(svg, caption) for svg, caption in figures)}</div>\n'


class Panel(NamedTuple):
    """One picture among several: its title, what draws it, and what a page says below it."""

    title: str
    draw: Callable[[Axes], None]
    caption: str


def figures(drawn: Sequence[Panel]) -> str:
    """Each panel as a picture of its own, for a page of any width."""
    made = []
    for panel in drawn:
        with drawing(3.9, 3.3) as (whole, axes):
            panel.draw(axes)
            axes.set_title(panel.title, fontsize=10)
            made.append((svg(whole, panel.title), panel.caption))
    return side_by_side(made)


def together(title: str, drawn: Sequence[Panel]) -> str:
    """All panels in one picture, two in a row, for a document."""
    rows = -(-len(drawn) // 2)
    with panels(7.6, 2.9 * rows, rows, 2) as (whole, axes):
        for place in axes[len(drawn) :]:
            place.set_axis_off()
        for place, panel in zip(axes, drawn, strict=False):
            panel.draw(place)
            place.set_title(panel.title, fontsize=10)
        return svg(whole, title)


def to_try(questions: Sequence[tuple[str, str]]) -> str:
    """Questions with their answers (HTML) folded away: think first, then look."""
    return "".join(folded(f"<strong>{escape(question)}</strong>", f"<p>{answer}</p>") for question, answer in questions)


def subscripted(text: str) -> str:
    """A text as HTML, in which v_a has its a below the line."""
    return re.sub(r"_(\w)", r"<sub>\1</sub>", escape(text))

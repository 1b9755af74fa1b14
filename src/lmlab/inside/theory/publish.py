"""Where a topic's page or picture goes, and the pieces that the pages of all topics share."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path

from lmlab.page.figures import standalone
from lmlab.page.html import escape, figure, folded, write


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


def to_try(questions: Sequence[tuple[str, str]]) -> str:
    """Questions with their answers (HTML) folded away: think first, then look."""
    return "".join(folded(f"<strong>{escape(question)}</strong>", f"<p>{answer}</p>") for question, answer in questions)


def subscripted(text: str) -> str:
    """A text as HTML, in which v_a has its a below the line."""
    return re.sub(r"_(\w)", r"<sub>\1</sub>", escape(text))

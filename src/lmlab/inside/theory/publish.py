"""Where a topic's page or picture goes, and the pieces that the pages of all topics share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from lmlab.config import Mistake
from lmlab.page import html
from lmlab.page.figures import standalone
from lmlab.page.html import escape

ENDINGS = (".html", ".svg")


def check_out(out: str | Path | None) -> None:
    """A Mistake, before any work is done, for a file that is neither a page nor a picture."""
    if out is not None and Path(out).suffix not in ENDINGS:
        raise Mistake(f"{{out}} is a page or a picture, and ends in .html or .svg; got {str(out)!r}", out=None)


def publish(out: str | Path, page: Callable[[], str], picture: Callable[[], str]) -> Path:
    """Write the page, or the picture alone, as the name of the file says."""
    path = Path(out)
    return html.write(path, page() if path.suffix == ".html" else standalone(picture()))


def opening(title: str, lead: str, command: str) -> str:
    """The head of a page; `lead` is HTML. command: what makes this page."""
    return f'<h1>{escape(title)}</h1>\n<p class="lead">{lead}</p>\n<p class="soft">Made by <code>{escape(command)}</code></p>\n'


def side_by_side(figures: Sequence[tuple[str, str]]) -> str:
    """Pictures with their captions, as many in a row as there is room for."""
    wide = "grid-template-columns:repeat(auto-fit,minmax(min(100%,24rem),1fr))"  # two in a row of a page's width
    return f'<div class="panels" style="{wide}">{"".join(html.figure(svg, caption) for svg, caption in figures)}</div>\n'


def to_try(questions: Sequence[tuple[str, str]]) -> str:
    """Questions with their answers (HTML) folded away: think first, then look."""
    return "".join(html.folded(f"<strong>{escape(question)}</strong>", f"<p>{answer}</p>") for question, answer in questions)

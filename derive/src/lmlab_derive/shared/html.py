"""The shell of a page and the small pieces that all pages share. Whatever is called `html` is already escaped."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape as escape_html
from importlib import resources
from pathlib import Path
from typing import Any, TypeVar

from lmlab_derive.shared.files import refuse_other_endings, replace_only, write_atomically

T = TypeVar("T")

KINDS_OF_OUTPUT = {  # by the option that names a file: what is written, and what the file is called
    "html": ("a page", (".html", ".htm")),
    "svg": ("a picture", (".svg",)),
    "out": ("a page or a picture", (".html", ".svg")),
}

CONTROL_PICTURES = {code: chr(0x2400 + code) for code in range(32) if code not in (9, 10)}
CONTROL_PICTURES |= {0x7F: "\u2421"} | dict.fromkeys(range(0x80, 0xA0), "\ufffd")


def escape(text: str) -> str:
    """Any text, safe inside HTML; control characters, which HTML cannot hold, as their pictures."""
    return escape_html(text).translate(CONTROL_PICTURES)


def stylesheet() -> str:
    """The one stylesheet."""
    return resources.files("lmlab_derive.shared").joinpath("style.css").read_text(encoding="utf-8")


def document(title: str, body: str, *, skip_to: tuple[str, str] | None = None, after: str = "") -> str:
    """A whole page. skip_to: (id, name) of the place to which a keyboard may jump. after: HTML behind the main part."""
    skip = "" if skip_to is None else f'<a class="skip" href="#{skip_to[0]}">Skip to {escape(skip_to[1])}</a>\n'
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>{stylesheet()}</style>\n</head>\n<body>\n{skip}"
        f"<main>\n{body}\n</main>\n{after}</body>\n</html>\n"
    )


def refuse_names(**outputs: str | Path | None) -> None:
    """Before any work is done: a Mistake for a page (html), a picture (svg) or either (out) that is not called like one."""
    for option, path in outputs.items():
        what, endings = KINDS_OF_OUTPUT[option]
        if path is None:
            continue
        refuse_other_endings(Path(path), option, what, endings)


def write(path: Path, text: str) -> Path:
    """Put a page or figure on disk, whole or not at all, over an older one but over nothing else; returns its path."""
    replace_only(path, (".html", ".htm", ".svg"))
    write_atomically(path, text.encode())
    return path


@dataclass(frozen=True)
class Row:
    """One row of a table: the HTML of its cells. Where cells are missing, the last one spans their columns."""

    cells: Sequence[str]
    style: str = ""


def table(
    columns: Sequence[str], rows: Iterable[Row], *, label: str = "", words: Sequence[int] = (0,), named: int = 0
) -> str:
    """A table of numbers, which scrolls on its own where the page is narrow.

    columns: HTML of the headings; none: a table without a head. label: what a screen reader calls it; a table without
    one does not scroll. words: the columns that hold words, which stand to the left. named: the one that names the row.
    """

    def cell(index: int, html: str, row: Row) -> str:
        tag = 'th scope="row"' if index == named else "td"
        rest = len(columns) - index if columns and index == len(row.cells) - 1 else 1
        kind = ' class="words"' if index in words or rest > 1 else ""
        span = f' colspan="{rest}"' if rest > 1 else ""
        return f"<{tag}{kind}{span}>{html}</{tag.partition(' ')[0]}>"

    lines = []
    for row in rows:
        style = f' class="{row.style}"' if row.style else ""
        lines.append(f"<tr{style}>{''.join(cell(i, html, row) for i, html in enumerate(row.cells))}</tr>")
    heads = [f'<th scope="col"{" class=words" if i in words else ""}>{name}</th>' for i, name in enumerate(columns)]
    head = f"<thead><tr>{''.join(heads)}</tr></thead>\n" if heads else ""
    kind = "" if heads else ' class="pairs"'
    found = f"<table{kind}>{head}<tbody>{chr(10).join(lines)}</tbody></table>"
    if not label:
        return found
    return f'<div class="scroll" tabindex="0" role="region" aria-label="{escape(label)}">{found}</div>\n'


def table_of(things: Iterable[T], columns: Sequence[tuple[str, Callable[[T], str]]], **options: Any) -> str:
    """A table with a row for each thing: every column with the HTML of what it says of one. options: those of `table`."""
    rows = [Row([cell(thing) for _, cell in columns]) for thing in things]
    return table([title for title, _ in columns], rows, **options)


def figure(svg: str, caption: str = "") -> str:
    """A picture; `caption` is text."""
    words = f"<figcaption>{escape(caption)}</figcaption>" if caption else ""
    return f'<figure tabindex="0">{svg}{words}</figure>\n'


def formula(math: str) -> str:
    """Mathematics on a line of its own, which scrolls where it is too wide."""
    return f'<div class="formula" tabindex="0">{math}</div>'


def facts(pairs: Mapping[str, str]) -> str:
    """Names and what they are, side by side; both are text."""
    cells = "".join(f"<div><dt>{escape(k)}</dt><dd>{escape(v)}</dd></div>" for k, v in pairs.items())
    return f'<dl class="facts">{cells}</dl>\n'


def card(heading: str, body: str, *, beside: str = "", style: str = "", anchor: str = "", level: int = 3) -> str:
    """A box with a heading (of a level), something small beside it, and a body: all of them HTML."""
    name = f' id="{escape(anchor)}"' if anchor else ""
    small = f"<small>{beside}</small>" if beside else ""
    title = f"<h{level}><span>{heading}</span>{small}</h{level}>"
    return f'<article class="{f"card {style}".strip()}"{name}>{title}{body}</article>\n'


def cards(found: Iterable[str]) -> str:
    """Boxes side by side where there is room."""
    return f'<div class="cards">{"".join(found)}</div>\n'


def folded(summary: str, html: str) -> str:
    """What is shown on demand; the summary is HTML too."""
    return f"<details><summary>{summary}</summary>{html}</details>\n"


def listed(items: Iterable[str]) -> str:
    """A list of texts."""
    return f"<ul>{''.join(f'<li>{escape(item)}</li>' for item in items)}</ul>"


def remark(text: str) -> str:
    """A sentence beside what is shown; nothing where there is nothing to say."""
    return f'<p class="soft">{escape(text)}</p>\n' if text else ""


def badge(word: str, style: str, *, meaning: str = "") -> str:
    """A verdict in its colour, which always says its word too; `meaning` shows when one points at it."""
    title = f' title="{escape(meaning)}"' if meaning else ""
    return f'<b class="badge {style}"{title}>{escape(word)}</b>'

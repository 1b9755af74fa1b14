"""The ledger as pages a teacher can hand out: one HTML file a source and an index, nothing loaded from anywhere."""

from __future__ import annotations

import re
from collections.abc import Sequence
from html import escape as escape_html
from pathlib import Path

from lmlab.config import Mistake
from lmlab.coursework.book import Book
from lmlab.coursework.choosing import books
from lmlab.coursework.claim import MEANINGS, Verdict, readable
from lmlab.coursework.running import Entry, by_source, tally
from lmlab.coursework.shared_tools import NOTE as CONFIDENCE
from lmlab_derive.shared import html
from lmlab_derive.shared.html import Row, escape
from lmlab_derive.shared.mathml import TOKEN, to_mathml

WHAT_HOLDS = {"answered": "Answer", "ill-posed": "Repaired", "conditional": "Precisely"}  # else "Corrected"

NOTE = readable(CONFIDENCE)  # as a claim's evidence has it


def refuse_if_file(folder: Path) -> None:
    """Before any work is done: pages go into a folder."""
    if folder.exists() and not folder.is_dir():
        raise Mistake(
            f"{{html}} names a folder to write pages into; {folder} is a file",
            code="course-page-not-a-folder",
            html=None,
        )


def write(entries: Sequence[Entry], folder: Path) -> list[Path]:
    """Write an index and a page for each source among the entries; returns the files, the index first."""
    refuse_if_file(folder)
    found = by_source(entries)
    chosen = [(book, found[book.source]) for book in books() if book.source in found]
    pages = {"index": _index(chosen)} | {book.source: _source(book, its) for book, its in chosen}
    return [html.write(folder / f"{name}.html", text) for name, text in pages.items()]


def _badge(verdict: Verdict, count: int | None = None) -> str:
    return html.badge(verdict if count is None else f"{count} {verdict}", verdict, meaning=MEANINGS[verdict])


def _index(chosen: Sequence[tuple[Book, Sequence[Entry]]]) -> str:
    everything = [entry for _, found in chosen for entry in found]
    verdicts = tally(everything)
    documents = []
    for book, found in chosen:
        title = f'<a href="{book.source}.html">{escape(book.title)}</a>'
        name = f'<span class="wraps">{title}<br><span class="soft">{escape(book.about)}</span></span>'
        documents.append(Row([name, str(len(found)), *(str(tally(found).get(verdict, "")) for verdict in verdicts)]))
    documents.append(Row(["all", str(len(everything)), *map(str, verdicts.values())], style="first"))
    meanings = [Row([_badge(v), escape(m)]) for v, m in MEANINGS.items() if v != "failed"]
    return html.document(
        "The ledger of claims",
        '<h1>The ledger of claims</h1><p class="lead">Every statement of the course documents, checked by running it.'
        f" {len(everything)} claims.</p>\n{html.table(['document', 'claims', *verdicts], documents, label='Verdicts')}\n"
        f"<h2>What the verdicts mean</h2>\n{html.table([], meanings, words=(0, 1))}",
    )


def _source(book: Book, entries: Sequence[Entry]) -> str:
    return html.document(
        f"Ledger: {book.title}",
        f'<nav><a href="index.html">All documents</a></nav>\n<h1>{escape(book.title)}</h1><p class="lead">'
        f"{escape(book.about)}</p>{_contents(book, entries)}\n{''.join(map(_article, entries))}{_footnote(entries)}",
    )


def _footnote(entries: Sequence[Entry]) -> str:
    """What ± means, once for all claims that have it."""
    needed = any(NOTE in entry.outcome.steps for entry in entries)
    return f'<p class="soft">{prose(NOTE.strip("()"))}</p>' if needed else ""


def _contents(book: Book, entries: Sequence[Entry]) -> str:
    """The claims of the page by verdict, each a link to its place."""
    rows = []
    for verdict, count in tally(entries).items():
        names = [entry.claim.id for entry in entries if entry.outcome.verdict == verdict]
        links = (f'<a href="#{escape(name)}">{escape(name.removeprefix(book.source + "."))}</a>' for name in names)
        rows.append(Row([_badge(verdict, count), ", ".join(links)]))
    return html.table([], rows, words=(0, 1))


def _article(entry: Entry) -> str:
    claim, outcome = entry.claim, entry.outcome
    holds = ""
    if outcome.corrected:
        title = WHAT_HOLDS.get(outcome.verdict, "Corrected")
        holds = f'<dt>{title}</dt><dd class="holds">{prose(outcome.corrected)}</dd>'
    steps = [prose(step) for step in outcome.steps if step != NOTE]
    evidence = steps[0] if len(steps) == 1 else f"<ol>{''.join(f'<li>{step}</li>' for step in steps)}</ol>"
    body = (
        f'<div class="beside"><div><p>{prose(claim.statement)}</p>{html.formula(_formula(claim.latex))}</div>'
        f"<blockquote>{escape(claim.quote)}</blockquote></div>"
        f"<dl>{holds}<dt>Evidence</dt><dd>{evidence}</dd>"
        f"<dt>How it is checked</dt><dd>{prose(claim.method)}</dd></dl>{_derivations(entry)}"
    )
    heading = f"{escape(claim.id)}&ensp;{_badge(outcome.verdict)}"
    style = f"judged {outcome.verdict}"
    return html.card(heading, body, beside=escape(claim.where), style=style, anchor=claim.id, level=2)


def _formula(latex: str) -> str:
    """The formula, cut at its wide spaces, so that on a narrow page the parts can stand one below the other."""
    parts, depth = [""], 0
    for token in TOKEN.findall(latex):
        depth += (token in ("{", r"\left", r"\begin")) - (token in ("}", r"\right", r"\end"))
        if token in (r"\quad", r"\qquad") and depth == 0:
            parts.append("")
        else:
            parts[-1] += token
    return "".join(to_mathml(part.strip()) for part in parts if part.strip())


def _derivations(entry: Entry) -> str:
    """The texts in the derivation language that the check puts to the checker, folded away."""
    texts = [
        text
        for text in entry.claim.tested.values()
        if isinstance(text, str) and ("claim " in text or "derive " in text)
    ]
    if not texts:
        return ""
    blocks = "".join(f'<pre class="code">{escape(text.strip())}</pre>' for text in texts)
    return html.folded("In the derivation language", blocks)


def prose(text: str) -> str:
    """Plain text for a page: `code` marked as such, and outside it x_n, h_{t-1}, e^C and V^(n-1) as they are spoken."""
    parts = re.split(r"`([^`]+)`", text)
    shown = [
        f"<code>{escape(part)}</code>" if i % 2 else _raised(escape_html(part, quote=False))
        for i, part in enumerate(parts)
    ]
    return "".join(shown)


GROUP = r"(?:\{([^{}]*)\}|\(([^()]*)\)|([A-Za-z]{1,2}|[0-9]+|[α-ωΑ-Ω])(?![A-Za-z0-9]))"
BASE = r"(?<![A-Za-z]{2})([^\W\d_][\u0300-\u036f]?)"  # a letter, or the second of two such as hW


def _raised(text: str) -> str:
    """Sub- and superscripts of single letters."""

    def inner(match: re.Match[str], skip: int = 0) -> str:
        return next(group for group in match.groups()[skip:] if group is not None)

    text = re.sub(r"(?<=\w)\^([A-Za-z])_([A-Za-z0-9])", r"<sup>\1<sub>\2</sub></sup>", text)
    text = re.sub(rf"{BASE}_{GROUP}", lambda m: f"{m[1]}<sub>{inner(m, 1)}</sub>", text)
    return re.sub(
        r"(?<=\w)\^(?:\{([^{}]*)\}|\(([^()]*)\)|([A-Za-z0-9α-ωΑ-Ω]+))", lambda m: f"<sup>{inner(m)}</sup>", text
    )

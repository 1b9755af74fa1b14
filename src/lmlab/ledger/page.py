"""The ledger as pages a teacher can hand out: one HTML file a source and an index, nothing loaded from anywhere."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from html import escape
from pathlib import Path

from lmlab.ledger.book import Book
from lmlab.ledger.claim import MEANINGS
from lmlab.ledger.mathml import TOKEN, to_mathml
from lmlab.ledger.running import Entry, books, tally

STYLE = """
:root { color-scheme: light dark;
  --text: #1d2129; --soft: #5b6472; --page: #fbfbf9; --card: #ffffff; --line: #dfe2e6; --code: #f1f2f4;
  --proved: #1a7f37; --supported: #2f6f8f; --refuted: #b42318; --conditional: #8a5a00; --ill-posed: #7a3e9d;
  --answered: #1f5fbf; --failed: #000; }
@media (prefers-color-scheme: dark) { :root {
  --text: #e6e8eb; --soft: #9aa4b2; --page: #14161a; --card: #1c1f25; --line: #333842; --code: #262a32;
  --proved: #57c474; --supported: #74b9d8; --refuted: #ff8a80; --conditional: #e0b04b; --ill-posed: #cf9ff0;
  --answered: #8ab4ff; --failed: #fff; } }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 52rem; padding: 1.2rem 1rem 4rem; background: var(--page); color: var(--text);
  font: 16px/1.55 system-ui, -apple-system, "Segoe UI", Roboto, sans-serif; overflow-wrap: break-word; }
h1 { font-size: 1.5rem; line-height: 1.25; margin: 0.6rem 0; }
h2 { font-size: 1.05rem; margin: 0; }
a { color: var(--answered); }
nav { margin-bottom: 0.6rem; }
.soft { color: var(--soft); }
.tally { display: flex; flex-wrap: wrap; gap: 0.4rem; padding: 0; margin: 1rem 0; list-style: none; }
.verdict { display: inline-block; padding: 0.05rem 0.6rem; border: 1.5px solid currentColor; border-radius: 1rem;
  font-size: 0.85rem; font-weight: 600; white-space: nowrap; }
.proved { color: var(--proved); } .supported { color: var(--supported); } .refuted { color: var(--refuted); }
.conditional { color: var(--conditional); } .ill-posed { color: var(--ill-posed); } .answered { color: var(--answered); }
.failed { color: var(--failed); }
article { background: var(--card); border: 1px solid var(--line); border-radius: 0.6rem; padding: 0.9rem 1rem;
  margin: 0.9rem 0; break-inside: avoid; }
article header { display: flex; flex-wrap: wrap; gap: 0.3rem 0.8rem; align-items: baseline; }
article header .soft { font-size: 0.85rem; margin-left: auto; }
.formula { overflow-x: auto; overflow-y: hidden; padding: 0.35rem 0; margin: 0.3rem 0; max-width: 100%; }
.formula { display: flex; flex-wrap: wrap; justify-content: safe center; align-items: center;
  gap: 0.2rem 1.4em; }
math { font-size: 1.05rem; font-family: "Latin Modern Math", "STIX Two Math", "Cambria Math", "Libertinus Math",
  "DejaVu Math TeX Gyre", math, serif; }
.contents { margin: 0.4rem 0 1.2rem; font-size: 0.9rem; }
.contents td:first-child { padding-right: 1rem; width: 1%; }
@media (max-width: 30rem) { math { font-size: 0.95rem; } .contents td:first-child { padding-right: 0.6rem; } }
p { margin: 0.5rem 0; }
sub, sup { line-height: 0; font-size: 0.75em; }
dl { margin: 0.6rem 0 0; }
dt { font-size: 0.8rem; font-weight: 600; color: var(--soft); margin-top: 0.5rem; }
dd { margin: 0; }
dd.corrected { border-left: 3px solid var(--proved); padding-left: 0.7rem; }
code { font: 0.86em ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; background: var(--code);
  padding: 0.05em 0.3em; border-radius: 0.25rem; overflow-wrap: anywhere; }
pre { background: var(--code); padding: 0.6rem 0.8rem; border-radius: 0.4rem; overflow-x: auto;
  font: 0.82rem/1.45 ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; }
details summary { cursor: pointer; font-size: 0.85rem; color: var(--soft); margin-top: 0.5rem; }
table { border-collapse: collapse; width: 100%; }
td, th { text-align: left; padding: 0.35rem 0.6rem 0.35rem 0; border-bottom: 1px solid var(--line); vertical-align: top; }
td.number, th.number { text-align: right; }
@media print { body { max-width: none; background: white; } article { border-color: #bbb; } nav { display: none; } }
"""


def write(entries: Sequence[Entry], folder: Path) -> list[Path]:
    """Write an index and a page for each source among the entries; returns the files, the index first."""
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"--html names a folder to write pages into; {folder} is a file")
    folder.mkdir(parents=True, exist_ok=True)
    found = [(book, [e for e in entries if e.claim.source == book.source]) for book in books()]
    chosen = [(book, its) for book, its in found if its]
    pages = [(folder / "index.html", _index(chosen))]
    pages += [(folder / f"{book.source}.html", _source(book, its)) for book, its in chosen]
    for path, text in pages:
        _replace(path, text)
    return [path for path, _ in pages]


def _replace(path: Path, text: str) -> None:
    """Write beside and rename, so that a reader never meets half a page."""
    beside = path.with_name(path.name + ".part")
    beside.write_text(text, encoding="utf-8")
    os.replace(beside, path)


def _document(title: str, body: str) -> str:
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n<meta name="viewport" '
        'content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n{body}\n</body>\n</html>\n"
    )


def _badge(verdict: str, count: int | None = None) -> str:
    number = "" if count is None else f"{count} "
    return f'<span class="verdict {verdict}" title="{escape(MEANINGS[verdict])}">{number}{verdict}</span>'  # type: ignore[index]


def _tally(entries: Sequence[Entry]) -> str:
    return '<ul class="tally">' + "".join(f"<li>{_badge(v, n)}</li>" for v, n in tally(entries).items()) + "</ul>"


def _index(chosen: Sequence[tuple[Book, Sequence[Entry]]]) -> str:
    everything = [entry for _, found in chosen for entry in found]
    rows = "".join(
        f'<tr><td><a href="{book.source}.html">{escape(book.title)}</a><br><span '
        f'class="soft">{escape(book.about)}</span></td>'
        f'<td class="number">{len(found)}</td></tr>'
        for book, found in chosen
    )
    meanings = "".join(
        f"<tr><td>{_badge(v)}</td><td>{escape(m)}</td></tr>" for v, m in MEANINGS.items() if v != "failed"
    )
    return _document(
        "The ledger of claims",
        "<h1>The ledger of claims</h1><p>Every statement of the course documents, checked by running it. "
        f"{len(everything)} claims.</p>{_tally(everything)}"
        f'<table><tr><th>document</th><th class="number">claims</th></tr>{rows}</table><h1>What the verdicts '
        f"mean</h1><table>{meanings}</table>",
    )


def _source(book: Book, entries: Sequence[Entry]) -> str:
    articles = "".join(_article(entry) for entry in entries)
    return _document(
        f"Ledger: {book.title}",
        f'<nav><a href="index.html">All documents</a></nav><h1>{escape(book.title)}</h1><p '
        f'class="soft">{escape(book.about)}</p>{_contents(book, entries)}{articles}',
    )


def _contents(book: Book, entries: Sequence[Entry]) -> str:
    """The claims of the page by verdict, each a link to its place."""
    lines = []
    for verdict, count in tally(entries).items():
        names = [entry.claim.id for entry in entries if entry.outcome.verdict == verdict]
        links = ", ".join(
            f'<a href="#{escape(name)}">{escape(name.removeprefix(book.source + "."))}</a>' for name in names
        )
        lines.append(f"<tr><td>{_badge(verdict, count)}</td><td>{links}</td></tr>")
    return f'<table class="contents">{"".join(lines)}</table>'


def _article(entry: Entry) -> str:
    claim, outcome = entry.claim, entry.outcome
    corrected = ""
    if outcome.corrected:
        title = {"answered": "Answer", "ill-posed": "Repaired", "conditional": "Precisely"}.get(
            outcome.verdict, "Corrected"
        )
        corrected = f'<dt>{title}</dt><dd class="corrected">{prose(outcome.corrected)}</dd>'
    return (
        f'<article id="{escape(claim.id)}"><header><h2>{escape(claim.id)}</h2>{_badge(outcome.verdict)}<span '
        f'class="soft">{escape(claim.where)}</span></header>'
        f'<p>{prose(claim.statement)}</p><div class="formula">{_formula(claim.latex)}</div>'
        f"<dl>{corrected}<dt>Evidence</dt><dd>{prose(outcome.evidence)}</dd><dt>How it is "
        f"checked</dt><dd>{prose(claim.method)}</dd></dl>{_derivations(entry)}</article>"
    )


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
    blocks = "".join(f"<pre>{escape(text.strip())}</pre>" for text in texts)
    return f"<details><summary>In the derivation language</summary>{blocks}</details>"


def prose(text: str) -> str:
    """Plain text for a page: `code` marked as such, and outside it x_n, h_{t-1}, e^C and V^(n-1) as they are spoken."""
    parts = re.split(r"`([^`]+)`", text)
    shown = [
        f"<code>{escape(part)}</code>" if i % 2 else _raised(escape(part, quote=False)) for i, part in enumerate(parts)
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

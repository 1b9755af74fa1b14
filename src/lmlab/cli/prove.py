"""`lmlab prove`: run the ledger of claims and show the verdicts with their evidence."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lmlab.cli import options

if TYPE_CHECKING:
    from rich.console import Console

    from lmlab.ledger.running import Entry

DETAILED = 8  # up to so many claims are shown with all their evidence; more as a table
COLOURS = {
    "proved": "green",
    "supported": "cyan",
    "refuted": "red",
    "conditional": "yellow",
    "ill-posed": "magenta",
    "answered": "blue",
    "failed": "bold white on red",
}


def command(
    ids: Annotated[
        list[str] | None,
        typer.Argument(help="Claims, such as lab11.6b, or all that begin so (lab11.6).", show_default="all"),
    ] = None,
    source: Annotated[
        str | None, typer.Option(help="One document: week2, quiz1, assignment2, lab11 or bishop12.")
    ] = None,
    json: options.Json = False,
    html: Annotated[
        Path | None, typer.Option(help="A folder to write pages into, one for each document and an index.")
    ] = None,
    full: Annotated[bool, typer.Option("--full", help="Show the evidence of every claim, however many.")] = False,
) -> None:
    """Check the claims of the course documents by running them: verdict, evidence, and the correction where one is due."""
    code = run_prove(ids or [], source, json=json, html=html, full=full)
    if code:
        raise typer.Exit(code)


def run_prove(
    ids: Sequence[str] = (),
    source: str | None = None,
    *,
    json: bool = False,
    html: Path | None = None,
    full: bool = False,
) -> int:
    """Run claims and print what was found; 0 if every check ran to a verdict, 1 if one broke."""
    from rich.console import Console

    from lmlab.ledger import running as ledger

    chosen = ledger.claims(ids, source)
    if html is not None and html.exists() and not html.is_dir():
        raise ValueError(f"--html names a folder to write pages into; {html} is a file")
    entries = _run(chosen, Console(stderr=True))
    if html is not None:
        from lmlab.ledger.page import write

        pages = write(entries, html)
        Console(stderr=True).print(f"wrote {pages[0]} and {len(pages) - 1} pages beside it", highlight=False)
    if json:
        options.print_json(ledger.to_json(entries))
    else:
        _show(entries, Console(highlight=False), full or len(entries) <= DETAILED)
    return 1 if any(entry.outcome.verdict == "failed" for entry in entries) else 0


def _run(chosen: Sequence, console: Console) -> list[Entry]:
    """Run with a progress line on stderr, which goes away when done."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    from lmlab.ledger import running as ledger

    columns = (
        TextColumn("checking"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.description}"),
    )
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task("", total=len(chosen))
        return ledger.run(chosen, lambda entry: progress.update(task, advance=1, description=entry.claim.id))


def _show(entries: Sequence[Entry], console: Console, detailed: bool) -> None:
    from rich.table import Table
    from rich.text import Text

    from lmlab.ledger.running import tally

    if detailed:
        for entry in entries:
            _detail(entry, console)
    else:
        table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold")
        for title in ("claim", "verdict", "statement, and what holds instead"):
            table.add_column(title, overflow="fold", no_wrap=title != "statement, and what holds instead")
        for entry in entries:
            verdict = entry.outcome.verdict
            text = Text(entry.claim.statement)
            if entry.outcome.corrected:
                text.append(f"\n{entry.outcome.corrected}", style=f"italic {COLOURS[verdict]}")
            table.add_row(entry.claim.id, Text(verdict, style=COLOURS[verdict]), text)
        console.print(table)
    counts = ", ".join(f"[{COLOURS[verdict]}]{count} {verdict}[/]" for verdict, count in tally(entries).items())
    console.print(f"{len(entries)} claims: {counts}; {sum(entry.seconds for entry in entries):.0f} s")


def _detail(entry: Entry, console: Console) -> None:
    """One claim with everything that is known of it."""
    from rich.padding import Padding
    from rich.text import Text

    claim, outcome = entry.claim, entry.outcome
    colour = COLOURS[outcome.verdict]
    console.print(f"[bold]{claim.id}[/bold]  [{colour}]{outcome.verdict}[/]  [dim]{claim.where}[/dim]")
    rows = [("", claim.statement), ("", claim.latex), ("checked", claim.method), ("evidence", outcome.evidence)]
    if outcome.corrected:
        rows.append(("holds", outcome.corrected))
    for title, text in rows:
        line = Text(f"{title}: " if title else "", style="dim").append(
            text, style="not dim" if title != "checked" else "dim"
        )
        console.print(Padding(line, (0, 0, 0, 2)))
    console.print()

"""Terminal output of claims of the course documents: coloured verdicts with their evidence."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from lmlab.page.numbers import counted
from lmlab_derive.command.show_report import VERDICT_COLOURS
from lmlab_derive.shared.console import result_console

if TYPE_CHECKING:
    from lmlab.coursework.running import Entry

COLOURS = VERDICT_COLOURS | {
    "conditional": "yellow",
    "ill-posed": "magenta",
    "answered": "blue",
    "failed": "bold white on red",
}


def print_claims(entries: Sequence[Entry], *, detailed: bool) -> None:
    """Print claims with all their evidence, or as a table, and the number of claims per verdict."""
    from lmlab.coursework.running import tally

    console = result_console()
    if detailed:
        for entry in entries:
            _print_evidence(entry, console)
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
    console.print(f"{counted(len(entries), 'claim')}: {counts}; {sum(entry.seconds for entry in entries):.0f} s")


def _print_evidence(entry: Entry, console: Console) -> None:
    """Print one claim with all its evidence."""
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

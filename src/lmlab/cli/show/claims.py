"""Claims of the ledger and of one's own sheets in the terminal: verdicts in their colours, with what supports them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.console import Console
from rich.markup import escape
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from lmlab.cli.show.console import result_console, say
from lmlab.page.numbers import counted

if TYPE_CHECKING:
    from lmlab.checker.sheets.report import ClaimReport, Report
    from lmlab.ledger.running import Entry

COLOURS = {
    "proved": "green",
    "supported": "cyan",
    "refuted": "red",
    "invalid": "yellow",
    "undecided": "yellow",
    "conditional": "yellow",
    "ill-posed": "magenta",
    "answered": "blue",
    "failed": "bold white on red",
}
INDENT = " " * 13  # of what is said of a claim
MARKS = {"proved": "✓", "supported": "✓", "refuted": "✗", "invalid": "!", "undecided": "?"}


def print_claims(entries: Sequence[Entry], *, detailed: bool) -> None:
    """Claims of the ledger: with all their evidence, or as a table; and how many of each verdict."""
    from lmlab.ledger.running import tally

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
    """One claim with everything that is known of it."""
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


def print_report(name: str, report: Report) -> None:
    """The answers to one sheet; its name where there are several."""
    console = Console(highlight=False, soft_wrap=True)
    if name:
        console.print(f"[bold]{escape(name)}[/bold]")
    for claim in report.claims:
        _print_answer(claim, console)
    held = sum(claim.holds for claim in report.claims)
    if report.claims:
        console.print(f"{held} of {len(report.claims)} hold", style="green" if report.ok else "red")
    else:
        example = "claim sigmoid(-x) == 1 - sigmoid(x)"
        console.print(f"there is no claim to check; write one like: {example}", style="yellow")


def _print_answer(claim: ClaimReport, console: Console) -> None:
    colour = COLOURS[claim.verdict]
    console.print(
        f"[{colour}]{MARKS[claim.verdict]} {claim.verdict:<9}[/{colour}] "
        f"[dim]line {claim.line}[/dim]  {escape(claim.claim)}"
    )
    if claim.read:
        say(console, f"{INDENT}read as {claim.read}")
    say(console, f"{INDENT}{claim.reason}", style="dim")
    if claim.counterexample is not None:
        say(console, f"{INDENT}counterexample: {claim.counterexample}")
    if claim.hint and not claim.holds:
        say(console, f"{INDENT}hint: {claim.hint}", style="cyan")

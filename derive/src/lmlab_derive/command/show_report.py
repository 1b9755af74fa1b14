"""The answers to a sheet in the terminal: verdicts in their colours, with reason, counterexample and hint."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Console
from rich.markup import escape

from lmlab_derive.shared.console import say

if TYPE_CHECKING:
    from lmlab_derive.sheets.report import ClaimReport, Report

VERDICT_COLOURS = {
    "proved": "green",
    "supported": "cyan",
    "refuted": "red",
    "invalid": "yellow",
    "undecided": "yellow",
}
INDENT = " " * 13  # of what is said of a claim
LONGEST = 160  # signs of a claim that are shown
MARKS = {"proved": "✓", "supported": "✓", "refuted": "✗", "invalid": "!", "undecided": "?"}


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


def _short(text: str) -> str:
    """The beginning of a long claim; its wrong step is quoted where there is one."""
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 4]} ..."


def _print_answer(claim: ClaimReport, console: Console) -> None:
    colour = VERDICT_COLOURS[claim.verdict]
    console.print(
        f"[{colour}]{MARKS[claim.verdict]} {claim.verdict:<9}[/{colour}] "
        f"[dim]line {claim.line}[/dim]  {escape(_short(claim.claim))}"
    )
    if claim.read:
        say(console, f"{INDENT}read as {claim.read}")
    say(console, f"{INDENT}{claim.reason}", style="dim")
    if claim.counterexample is not None:
        say(console, f"{INDENT}counterexample: {claim.counterexample}")
    if claim.hint and not claim.holds:
        say(console, f"{INDENT}hint: {claim.hint}", style="cyan")

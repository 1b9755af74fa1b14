"""A measured result in the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Console
from rich.markup import escape

from lmlab.page import numbers

if TYPE_CHECKING:
    from lmlab.measure import Result


def print_result(result: Result) -> None:
    """The number, its interval, its relatives, and every check, for people."""
    console = Console(highlight=False)
    data, scored = result.data, result.scored
    low, high = result.interval.low, result.interval.high
    known = low is not None and high is not None and numbers.finite(low)
    spread = f"  (95% interval {low:.4f} to {high:.4f})" if known else ""
    console.print(f"[bold]{numbers.bits(result.bits_per_byte)} bits per byte[/bold]{spread}")
    where = data["name"] if data["part"] == "whole" else f"the {data['part']} part of {data['name']}"
    console.print(
        f"  {result.model['name']} on {escape(where)}:"
        f" {data['bytes']:,} bytes, {scored.tokens:,} tokens, {scored.unknown_tokens:,} unknown"
    )
    for unit, value in result.perplexity.items():
        if numbers.finite(value):
            name = unit.replace("_", " ")
            console.print(f"  {name}: {value:.2%}" if "share" in unit else f"  perplexity per {name}: {value:.4g}")
    for note in result.notes:
        console.print(f"  note: {escape(note)}", soft_wrap=True)
    for check in result.certificate.checks:
        mark = "[green]holds[/green]" if check.passed else "[bold red]FAILS[/bold red]"
        console.print(f"  {mark}  {check.name}: {escape(check.detail)}", soft_wrap=True)

"""`lmlab eval`: bits per byte of a text under a trained model, with its certificate."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from lmlab.cli import options
from lmlab.page import numbers

if TYPE_CHECKING:
    from lmlab.measure import Result


def command(
    run: options.Run,
    text: Annotated[
        str | None, typer.Argument(help="Another text, scored whole.", show_default="the run's own test part")
    ] = None,
    part: Annotated[str, typer.Option(help="Part of the run's own corpus: train, valid or test.")] = "test",
    seed: options.Seed = 0,
    json: options.Json = False,
) -> None:
    """Measure how well a model predicts a text, in bits per byte, and certify the measurement."""
    from lmlab import face

    result = face.evaluate(run, text, part=part, seed=seed)
    if json:
        options.print_json(result.to_json())
    else:
        _print(result)
    if not result.certificate.passed:
        raise typer.Exit(1)


def _print(result: Result) -> None:
    """The number, its interval, its relatives, and every check, for people."""
    from rich.console import Console
    from rich.markup import escape

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

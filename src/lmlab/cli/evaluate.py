"""`lmlab eval`: bits per byte of a text under a trained model, with its certificate."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated, Any

import typer

from lmlab.cli import options


def command(
    run: Annotated[Path, typer.Argument(help="The folder of a trained model.")],
    text: Annotated[
        str | None, typer.Argument(help="Another text, scored whole. [default: the run's own test part]")
    ] = None,
    part: Annotated[str, typer.Option(help="Part of the run's own corpus: train, valid or test.")] = "test",
    seed: options.Seed = 0,
    json: options.Json = False,
) -> None:
    """Measure how well a model predicts a text, in bits per byte, and certify the measurement."""
    if part not in ("train", "valid", "test"):
        raise ValueError(f"--part is train, valid or test; got {part!r}")
    from lmlab.face import evaluate

    result = evaluate(run, text, part=part, seed=seed)
    if json:
        options.print_json(result.to_json())
    else:
        print_result(result.to_json())
    if not result.certificate.passed:
        raise typer.Exit(1)


def print_result(result: dict[str, Any]) -> None:
    """The number, its interval, its relatives, and every check, for people."""
    from rich.console import Console

    console = Console(highlight=False)
    data, model, perplexity = result["data"], result["model"], result["perplexity"]
    bits = result["bits_per_byte"]
    shown = "infinite" if bits is None or not math.isfinite(bits) else f"{bits:.4f}"
    interval = result["interval"]
    spread = "" if not interval or interval[0] is None else f"  (95% interval {interval[0]:.4f} to {interval[1]:.4f})"
    console.print(f"[bold]{shown} bits per byte[/bold]{spread}")
    console.print(
        f"  {model['name']} on the {data['part']} part of {data['name']}:"
        f" {data['bytes']:,} bytes, {result['tokens']:,} tokens, {result['unknown_tokens']:,} unknown"
    )
    for unit, value in perplexity.items():
        if isinstance(value, int | float):
            console.print(
                f"  perplexity per {unit.replace('_', ' ')}: {value:.4g}"
                if "share" not in unit
                else f"  {unit.replace('_', ' ')}: {value:.2%}"
            )
    for name, held in result["certificate"].items():
        mark = "[green]holds[/green]" if held else "[bold red]FAILS[/bold red]"
        console.print(f"  {mark}  {name}: {result['certificate_details'].get(name, '')}", soft_wrap=True)

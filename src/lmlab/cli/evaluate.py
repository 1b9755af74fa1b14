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
        str | None, typer.Argument(help="Another text, scored whole.", show_default="the run's own test part")
    ] = None,
    part: Annotated[str, typer.Option(help="Part of the run's own corpus: train, valid or test.")] = "test",
    seed: options.Seed = 0,
    json: options.Json = False,
) -> None:
    """Measure how well a model predicts a text, in bits per byte, and certify the measurement."""
    if part not in ("train", "valid", "test"):
        raise ValueError(f"--part is train, valid or test; got {part!r}")
    if text is not None and part != "test":
        raise ValueError(
            f"--part {part} is of the run's own corpus; another text is scored whole: leave one of them out"
        )
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
    from rich.markup import escape

    console = Console(highlight=False)
    data, model, perplexity = result["data"], result["model"], result["perplexity"]
    bits = result["bits_per_byte"]
    shown = "infinite" if bits is None or not math.isfinite(bits) else f"{bits:.4f}"
    interval = result["interval"]
    spread = "" if not interval or interval[0] is None else f"  (95% interval {interval[0]:.4f} to {interval[1]:.4f})"
    console.print(f"[bold]{shown} bits per byte[/bold]{spread}")
    where = data["name"] if data["part"] == "whole" else f"the {data['part']} part of {data['name']}"
    console.print(
        f"  {model['name']} on {escape(where)}:"
        f" {data['bytes']:,} bytes, {result['tokens']:,} tokens, {result['unknown_tokens']:,} unknown"
    )
    for unit, value in perplexity.items():
        if value is not None:
            name = unit.replace("_", " ")
            console.print(f"  {name}: {value:.2%}" if "share" in unit else f"  perplexity per {name}: {value:.4g}")
    for note in result["notes"]:
        console.print(f"  note: {escape(note)}", soft_wrap=True)
    for name, held in result["certificate"].items():
        mark = "[green]holds[/green]" if held else "[bold red]FAILS[/bold red]"
        console.print(f"  {mark}  {name}: {escape(result['certificate_details'][name])}", soft_wrap=True)

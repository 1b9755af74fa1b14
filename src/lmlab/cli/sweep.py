"""`lmlab sweep`: a grid of settings of one model, as a table with intervals."""

from __future__ import annotations

import math
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lmlab.cli import options
from lmlab.models import registry

if TYPE_CHECKING:
    from lmlab.comparison.sweep import Cell, Job


def command(
    model: Annotated[str, typer.Argument(help="One of: " + ", ".join(registry.names()) + ".")],
    text: options.Text = "sotu",
    over: Annotated[list[str], typer.Option(help="An axis, as key=value,value. May be repeated.")] = [],  # noqa: B006
    seeds: Annotated[int, typer.Option(help="Runs per cell, with seeds 0, 1, …")] = 3,
    budget: Annotated[str, typer.Option(help="Of each run: steps or tokens, such as 300steps.")] = "300steps",
    tokenizer: Annotated[str, typer.Option(help="byte, char, words, words:N or bpe:N.")] = "char",
    out: Annotated[
        Path | None,
        typer.Option(help="Folder of the sweep; the same folder again goes on.", show_default="runs/sweep-MODEL-TEXT"),
    ] = None,
    split: options.Split = options.DEFAULT_SPLIT,
    valid: options.Valid = None,
    test: options.Test = None,
    settings: options.Settings = [],  # noqa: B006
    jobs: Annotated[int, typer.Option(help="Processes side by side.")] = 1,
    ray: Annotated[
        str | None, typer.Option(help="Run on the Ray cluster at this address; local starts one here.")
    ] = None,
    json: options.Json = False,
) -> None:
    """Train a grid of settings with several seeds, and say which differences are real.

    The exit code is 1 if a run failed; the others are in the table all the same, and the same command tries it again.

    Example: lmlab sweep gpt mytext.txt --over layers=2,4 --over context=3,5 --seeds 4
    """
    from lmlab.cli.train import check_model_name

    check_model_name(model)
    if not over:
        raise ValueError("name at least one axis, such as --over layers=2,4")
    if seeds < 1 or jobs < 1:
        raise ValueError("--seeds and --jobs are whole numbers from 1 up")
    shares = options.parse_split(split, valid, test)
    from lmlab.comparison import sweep as sweeping
    from lmlab.comparison.seeds import differences
    from lmlab.config import Budget, make, parse_settings
    from lmlab.models.registry import model_class
    from lmlab.text.corpus import read
    from lmlab.text.files import write_atomically
    from lmlab.text.tokenizers import parse_spec

    if Budget.parse(budget).seconds is not None:
        raise ValueError(
            "a sweep needs a budget of steps or tokens, such as 300steps: seconds would differ from run to run"
        )
    points = sweeping.grid(model, over)
    fixed = parse_settings(model_class(model).Config, settings, model)
    if twice := set(fixed) & set(points[0]):
        raise ValueError(f"--set and --over both name {', '.join(sorted(twice))}; leave one of them out")
    for point in points:  # a value that cannot be is refused before anything runs
        make(model_class(model).Config, fixed | point, model)
    parse_spec(tokenizer)
    corpus = read(text, valid=valid, test=test, split=shares)
    folder = out or Path("runs") / f"sweep-{registry.file_name(model)}-{options.text_stem(text)}"
    planned = sweeping.plan(
        model, corpus.spec(), points, fixed=fixed, tokenizer=tokenizer, budget=budget, seeds=seeds, folder=folder
    )
    results = sweeping.sweep(planned, processes=jobs, ray=ray, told=_tell)
    cells = sweeping.collect(points, planned, results)
    found = differences(cells)
    from lmlab.comparison.sweep_figure import draw

    figure = folder / "sweep.svg"
    write_atomically(figure, draw(cells).encode())
    if json:
        options.print_json(_document(model, cells, found, figure))
    else:
        _print(cells, found, seeds)
        print(f"Figure: {figure}")
    failed = sum(len(cell.errors) for cell in cells)
    if failed:
        print(f"lmlab: {failed} of {len(planned)} runs failed; the same command tries them again", file=sys.stderr)
        raise typer.Exit(1)


def _tell(job: Job, result: dict[str, Any]) -> None:
    """A line on stderr for every run that ends."""
    found = f"failed: {result['error']}" if "error" in result else f"perplexity {result['perplexity']:.3f}"
    print(f"{Path(job.out).name}: {found}", file=sys.stderr, flush=True)


def _document(model: str, cells: list[Cell], differences: list[dict[str, Any]], figure: Path) -> dict[str, Any]:
    """Everything as JSON can hold it; null stands for what is infinite or cannot be told from one seed."""
    shown = []
    for cell in cells:
        mean, margin = cell.mean_and_margin()
        one = vars(cell) | {"mean": _number(mean), "margin": _number(margin)}
        shown.append(one | {key: [_number(value) for value in one[key]] for key in ("perplexity", "bits_per_byte")})
    told = [d | {key: _number(d[key]) for key in ("difference", "margin")} for d in differences]
    return {"model": model, "cells": shown, "differences": told, "figure": str(figure)}


def _number(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _print(cells: list[Cell], differences: list[dict[str, Any]], seeds: int) -> None:
    from rich.console import Console
    from rich.table import Table

    from lmlab.comparison.seeds import LEVEL

    console = Console()
    if not console.is_terminal:
        console = Console(width=120)
    many = f"mean and 95% interval over {seeds} seeds" if seeds > 1 else "one seed"
    measured = next((f" of {c.measured['bytes']:,} {c.measured['part']} bytes" for c in cells if c.measured), "")
    table = Table(title=f"perplexity per token{measured}, {many}", title_justify="left")
    keys = list(cells[0].settings)
    for key in keys:
        table.add_column(key)
    for name in ("perplexity", "bits per byte", "# parameters"):
        table.add_column(name, justify="right")
    for cell in cells:
        table.add_row(*(str(cell.settings[key]) for key in keys), *_numbers(cell))
    console.print(table)
    for d in differences:
        console.print(_in_words(d), highlight=False, markup=False)
    if differences:
        console.print(
            f"Intervals of differences are over paired seeds and hold all together at {LEVEL:.0%}.", style="dim"
        )


def _numbers(cell: Cell) -> list[str]:
    """Perplexity, bits per byte and parameters of a cell; or why there are none."""
    if not cell.perplexity:
        return [f"failed: {cell.errors[0]}", "", ""]
    mean, margin = cell.mean_and_margin()
    bits = math.fsum(cell.bits_per_byte) / len(cell.bits_per_byte)
    missing = f" ({len(cell.errors)} failed)" if cell.errors else ""
    return [f"{mean:.3f}{_margin(margin)}{missing}", f"{bits:.4f}", f"{cell.parameters:,}"]


def _in_words(difference: dict[str, Any]) -> str:
    """One difference as a sentence."""
    changed, before, after = difference["setting"], difference["from"], difference["to"]
    rest = ", ".join(f"{k}={v}" for k, v in before.items() if k != changed)
    verdict = "real" if difference["real"] else "not told apart by these seeds"
    return (
        f"{changed} {before[changed]} → {after[changed]}{f' at {rest}' if rest else ''}:"
        f" {difference['difference']:+.3f}{_margin(difference['margin'])}, {verdict}"
    )


def _margin(margin: float) -> str:
    return f" ± {margin:.3f}" if math.isfinite(margin) else ""

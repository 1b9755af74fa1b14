"""`lmlab sweep`: a grid of settings of one model, as a table with intervals."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lmlab.cli import options
from lmlab.models.registry import MODELS

if TYPE_CHECKING:
    from lmlab.compare.sweep import Cell


def command(
    model: Annotated[str, typer.Argument(help="One of: " + ", ".join(MODELS) + ".")],
    text: options.Text = "sotu",
    over: Annotated[list[str], typer.Option(help="An axis, as key=value,value. May be repeated.")] = [],  # noqa: B006
    seeds: Annotated[int, typer.Option(help="Runs per cell, with seeds 0, 1, …")] = 3,
    budget: Annotated[str, typer.Option(help="Of each run: steps or tokens, such as 300steps.")] = "300steps",
    tokenizer: Annotated[str, typer.Option(help="byte, char, words, words:N or bpe:N.")] = "char",
    out: Annotated[Path | None, typer.Option(help="Folder of the sweep; the same folder again goes on.")] = None,
    split: options.Split = "80,10,10",
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

    Example: lmlab sweep gpt mytext.txt --over layers=2,4 --over context=3,5 --seeds 4
    """
    from lmlab.cli.train import check_model_name

    check_model_name(model)
    if not over:
        raise ValueError("name at least one axis, such as --over layers=2,4")
    if seeds < 1 or jobs < 1:
        raise ValueError("--seeds and --jobs are whole numbers from 1 up")
    shares = options.parse_split(split)
    from lmlab.compare import sweep as sweeping
    from lmlab.config import Budget, parse_settings
    from lmlab.models.registry import model_class
    from lmlab.text.corpus import read
    from lmlab.text.files import write_atomically

    if Budget.parse(budget).seconds is not None:
        raise ValueError(
            "a sweep needs a budget of steps or tokens, such as 300steps: seconds would differ from run to run"
        )
    corpus = read(text, valid=valid, test=test, split=shares)
    folder = out or Path("runs") / f"sweep-{model}-{Path(text).stem.split(':')[0]}"
    fixed = parse_settings(model_class(model).Config, settings, model)
    points = sweeping.grid(model, over)
    spec = corpus.spec()
    planned = [
        sweeping.Job(
            model=model,
            corpus=spec,
            settings=fixed | point,
            tokenizer=tokenizer,
            budget=budget,
            seed=seed,
            out=str(folder.resolve() / ("-".join(f"{k}={v}" for k, v in point.items()) + f"-seed{seed}")),
        )
        for point in points
        for seed in range(seeds)
    ]

    def told(job: sweeping.Job, result: dict[str, Any]) -> None:
        found = result.get("error") or f"perplexity {result['perplexity']:.3f}"
        print(f"{Path(job.out).name}: {found}", file=sys.stderr, flush=True)

    results = sweeping.sweep(planned, processes=jobs, ray=ray, told=told)
    cells = sweeping.collect(points, planned, results)
    found = sweeping.differences(cells)
    from lmlab.compare.sweep_figure import draw

    figure = folder / "sweep.svg"
    write_atomically(figure, draw(cells).encode())
    if json:
        options.print_json(
            {
                "model": model,
                "cells": [vars(cell) | dict(zip(("mean", "margin"), _finite(cell), strict=True)) for cell in cells],
                "differences": [d | {"margin": d["margin"] if d["margin"] == d["margin"] else None} for d in found],
                "figure": str(figure),
            }
        )
        return
    _print(cells, found, seeds)
    print(f"Figure: {figure}")


def _finite(cell: Cell) -> list[float | None]:
    return [value if value == value else None for value in cell.mean_and_margin()]


def _print(cells: list[Cell], differences: list[dict[str, Any]], seeds: int) -> None:
    from rich.console import Console
    from rich.table import Table

    console = Console()
    table = Table(
        title=f"perplexity per token, mean and 95% interval over {seeds} seeds (# parameters)", title_justify="left"
    )
    keys = list(cells[0].settings)
    for key in keys:
        table.add_column(key)
    for name in ("perplexity", "bits per byte", "# parameters"):
        table.add_column(name, justify="right")
    for cell in cells:
        mean, margin = cell.mean_and_margin()
        bits = sum(cell.bits_per_byte) / len(cell.bits_per_byte) if cell.bits_per_byte else float("nan")
        shown = f"{mean:.3f}" + (f" ± {margin:.3f}" if margin == margin else "")
        row = [str(cell.settings[key]) for key in keys]
        row += (
            [shown, f"{bits:.4f}", f"{cell.parameters:,}"]
            if cell.perplexity
            else [cell.errors[0] if cell.errors else "", "", ""]
        )
        table.add_row(*row)
    console.print(table)
    for d in differences:
        changed = next(k for k in d["from"] if d["from"][k] != d["to"][k])
        rest = ", ".join(f"{k}={v}" for k, v in d["from"].items() if k != changed)
        verdict = "real" if d["real"] else "not told apart by these seeds"
        spread = f" ± {d['margin']:.3f}" if d["margin"] == d["margin"] else ""
        console.print(
            f"{changed} {d['from'][changed]} → {d['to'][changed]}{f' at {rest}' if rest else ''}:"
            f" {d['difference']:+.3f}{spread}, {verdict}",
            highlight=False,
        )

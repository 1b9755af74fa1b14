"""`lmlab sweep`: trains a grid of settings of one model and prints a table with intervals."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

import lmlab
from lmlab.cli import completion, options
from lmlab.cli.commands import Section
from lmlab.config import parse_settings
from lmlab.hardware.memory import keep_memory
from lmlab.learn.interrupt import exit_code
from lmlab.learn.settings import parse_learning
from lmlab.models import registry

SECTION: Section = "Compare"


def command(
    model: Annotated[
        str,
        typer.Argument(help="One of: " + ", ".join(registry.predicting()) + ".", autocompletion=completion.models),
    ],
    text: options.Text = "sotu",
    over: Annotated[
        list[str],
        typer.Option(
            help="An axis, as key=value,value: a setting of the model or of the training loop, or tokenizer."
            " May be repeated."
        ),
    ] = [],  # noqa: B006
    seeds: Annotated[int, typer.Option(help="Runs per cell, with seeds 0, 1, …; one for a count model.")] = 3,
    budget: Annotated[
        str | None,
        typer.Option(help="Budget of each run in steps or tokens, such as 300steps.", show_default="300steps"),
    ] = None,
    tokenizer: Annotated[
        str | None, typer.Option(help="byte, char, words, words:N or bpe:N.", show_default="char")
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            help="Folder of the sweep; with the same folder it continues.", show_default="runs/sweep-MODEL-TEXT"
        ),
    ] = None,
    split: options.Split = options.DEFAULT_SPLIT,
    split_by: options.SplitBy = "auto",
    documents: options.Documents = "auto",
    valid: options.Valid = None,
    test: options.Test = None,
    settings: options.Settings = [],  # noqa: B006
    learning: options.Learning = [],  # noqa: B006
    jobs: Annotated[int, typer.Option(help="Number of parallel processes.")] = 1,
    ray: Annotated[str | None, typer.Option(help="Run on the Ray cluster at this address; local starts one.")] = None,
    executor: Annotated[
        str | None,
        typer.Option(
            help="Instead of --jobs and --ray: here, processes:N or ray:ADDRESS.", show_default="processes:JOBS"
        ),
    ] = None,
    device: options.Device = "cpu",
    json: options.Json = False,
) -> None:
    """Train a grid of settings with several seeds, and report which differences are significant.

    The exit code is 1 if a run failed. The table still shows the others, and the same command tries the failed run again.

    Example: lmlab sweep gpt mytext.txt --over layers=2,4 --over learning_rate=0.001,0.003 --seeds 4
    """
    keep_memory()
    options.check_language_model(model)
    options.check_text(text, model)
    shares = options.parse_split(split, valid, test)
    from lmlab.cli.show.sweep import print_sweep

    found = lmlab.sweep(
        model,
        text,
        over=over,
        out=out,
        seeds=seeds,
        budget=options.budget_of(model, budget, "300steps"),
        tokenizer=tokenizer,
        split=shares,
        split_by=split_by,
        documents=documents,
        valid=valid,
        test=test,
        settings=parse_settings(registry.model_class(model).Config, settings, model),
        learning=parse_learning(learning),
        jobs=jobs,
        ray=ray,
        executor=executor,
        device=device,
        progress=True,
    )
    options.answer(json, found, print_sweep)
    if found.left:
        print(
            f"lmlab: stopped; {found.left} of {found.runs} runs had no turn: the same command goes on", file=sys.stderr
        )
        raise typer.Exit(exit_code())
    if found.failed:
        print(f"lmlab: {found.failed} of {found.runs} runs failed; the same command tries them again", file=sys.stderr)
        raise typer.Exit(1)

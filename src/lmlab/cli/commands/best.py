"""`lmlab best`: searches for the best model of a text within a time."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import lmlab
from lmlab.cli import options
from lmlab.cli.commands import Section
from lmlab.disk.files import as_typed
from lmlab.hardware.memory import keep_memory

SECTION: Section = "Compare"


def command(
    text: options.Text = "sotu",
    budget: Annotated[
        str | None,
        typer.Option(
            help="Wall-clock time of the whole search, from reading the text on: 90s, 10m, 1h.", show_default="5m"
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            help="Folder of the search, which is the run of the best model; with the same folder it continues.",
            show_default="runs/best-TEXT; -2, -3 … if that holds another",
        ),
    ] = None,
    models: Annotated[
        str | None,
        typer.Option(help="Kinds of models to try, separated by commas.", show_default="ngram,gru,gpt,lstm"),
    ] = None,
    tokenizers: Annotated[
        str | None,
        typer.Option(help="Tokenizers to try, separated by commas.", show_default="what suits the text"),
    ] = None,
    split: options.Split = options.DEFAULT_SPLIT,
    split_by: options.SplitBy = "auto",
    valid: options.Valid = None,
    test: options.Test = None,
    documents: options.Documents = "auto",
    seed: options.Seed = 0,
    device: options.Device = "auto",
    json: options.Json = False,
) -> None:
    """Search for the best model of one text in a given time: kinds, sizes and tokenizers, and the mix of the best.

    Validation chooses; the test part measures the best model once. The folder is a run: use it with any command.

    Example: lmlab best mytext.txt --budget 10m --out runs/best
    """
    keep_memory()
    options.check_text(text)
    parts = options.parse_split(split, valid, test)
    kinds = None if models is None else options.words(models)
    for name in kinds or ():
        options.check_model_name(name)
    from lmlab.cli.show.best import LiveRungs, print_best

    with LiveRungs() as watch:
        found = lmlab.best(
            text,
            out=out,
            budget=budget,
            models=kinds,
            tokenizers=None if tokenizers is None else options.words(tokenizers),
            split=parts,
            split_by=split_by,
            valid=valid,
            test=test,
            documents=documents,
            seed=seed,
            device=device,
            watch=watch,
            command=options.as_typed(),
        )
    if json:
        options.print_json(found.to_json())
    else:
        print_best(found.found)
        print(f"Page: {found.page.resolve()}")
        print(f"Use it: lmlab generate {as_typed(found.folder)}")
    if not found.found.result.certified:
        raise typer.Exit(1)

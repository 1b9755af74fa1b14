"""`lmlab settings`: lists the settings of a model and its training, with their resolved values."""

from __future__ import annotations

from typing import Annotated

import typer

import lmlab
from lmlab.cli import completion, options
from lmlab.cli.commands import Section
from lmlab.models import registry

SECTION: Section = "Train"


def command(
    model: Annotated[
        str,
        typer.Argument(help="One of: " + ", ".join(registry.trainable()) + ".", autocompletion=completion.models),
    ],
    text: Annotated[
        str | None, typer.Argument(help="A text: also show the resolved value of every setting.", show_default="none")
    ] = None,
    tokenizer: options.TokenizerOrNone = None,
    budget: Annotated[
        str | None, typer.Option(help="Training budget: 90s, 3m, 1h, 500steps or 2Mtokens.", show_default="3m")
    ] = None,
    split: options.Split = options.DEFAULT_SPLIT,
    split_by: options.SplitBy = "auto",
    documents: options.Documents = "auto",
    valid: options.Valid = None,
    test: options.Test = None,
    settings: options.Settings = [],  # noqa: B006 (typer copies it)
    learning: options.Learning = [],  # noqa: B006
    seed: options.Seed = 0,
    device: options.Device = "auto",
    precision: options.Precision = "auto",
    json: options.Json = False,
) -> None:
    """List every setting of a model and its training: its meaning, its default, and its resolved value for a text.

    Example: lmlab settings gpt mytext.txt --budget 3m
    """
    options.check_model_name(model)
    options.check_text(text, model)
    shares = options.parse_split(split, valid, test)
    from lmlab.config import parse_settings
    from lmlab.learn.settings import parse_learning
    from lmlab.records import to_json

    found = lmlab.settings(
        model,
        text,
        tokenizer=tokenizer,
        budget=options.budget_of(model, budget, "3m"),
        split=shares,
        split_by=split_by,
        documents=documents,
        valid=valid,
        test=test,
        seed=seed,
        settings=parse_settings(registry.model_class(model).Config, settings, model),
        learning=parse_learning(learning),
        device=device,
        precision=precision,
    )
    if json:
        options.print_json(to_json(found))
    else:
        from lmlab.cli.show.settings import print_settings

        print_settings(found)

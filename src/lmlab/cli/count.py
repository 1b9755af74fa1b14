"""`lmlab count`: what a model is made of and what it multiplies."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from lmlab.cli import options
from lmlab.models import registry


def command(
    model: Annotated[
        str, typer.Argument(help="A run, package.module:Class, or one of: " + ", ".join(registry.names()) + ".")
    ],
    text: Annotated[str | None, typer.Argument(help="For a model that counts: what it is fitted to.")] = None,
    settings: options.Settings = [],  # noqa: B006 (typer copies it)
    vocab: Annotated[int, typer.Option(help="Tokens of the vocabulary.")] = 256,
    length: Annotated[
        int | None, typer.Option(help="Tokens of the sequence whose operations are counted.", show_default="as trained")
    ] = None,
    tokenizer: options.Tokenizer = "char",
    latex: Annotated[bool, typer.Option("--latex", help="Print the formulas as LaTeX.")] = False,
    json: options.Json = False,
) -> None:
    """Parameters and operations of a model, part by part: by formula, by an instance, and by PyTorch's own count.

    The exit code is 1 if these three disagree.

    Example: lmlab count gpt --set layers=12 --set width=768 --set context=1024 --vocab 50257
    """
    is_kind = model in registry.KINDS or not Path(model).is_dir()
    if is_kind:
        options.check_model_name(model)
    from lmlab import face
    from lmlab.cli.show.costs import print_count
    from lmlab.config import parse_settings

    config = registry.model_class(model).Config if is_kind else None
    found = face.count(
        model,
        text,
        settings=parse_settings(config, settings, model) if config else {},
        vocab=vocab,
        length=length,
        tokenizer=tokenizer,
    )
    if json:
        options.print_json(found.to_json())
    else:
        print_count(found, latex=latex)
    if not found.agrees:
        raise typer.Exit(1)

"""`lmlab export`: writes a model in a format that other tools read."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Annotated

import typer

import lmlab
from lmlab.cli import options
from lmlab.cli.commands import Section
from lmlab.config import Mistake, Note

SECTION: Section = "Use a trained model"


def command(
    run: Annotated[Path, typer.Argument(help="The folder of a trained model.")],
    out: Annotated[
        Path, typer.Option("--out", "-o", help="The file to write (- is standard output); with --to hf, a new folder.")
    ],
    to: Annotated[str, typer.Option(help="arpa (n-gram models), hf (a folder for transformers) or gguf.")] = "arpa",
    order: Annotated[
        int | None,
        typer.Option(
            help="Order of the n-grams; another one is fitted to the training text.", show_default="the run's"
        ),
    ] = None,
    force: options.Force = False,
    json: options.Json = False,
) -> None:
    r"""Write a model for other tools: an ARPA file, a Hugging Face folder, or a GGUF file for llama.cpp.

    What is written is read again and compared. In an ARPA file tokens stand unchanged, except that white space within one, as
    in a character model, becomes \x20 and the like.

    Example: lmlab export runs/gpt --to hf -o my-model
    """
    if to == "hf" and str(out) == "-":
        raise Mistake("a folder cannot go to standard output; name it with {out}", code="folder-to-stdout", out=None)
    with options.output(out, json) as (target, told):
        found = lmlab.export(run, out=target, to=to, order=order, force=force)
    if json:
        options.print_json(vars(found))
    elif found.ngrams:
        first, *longer = (f"{count:,} of order {k}" for k, count in enumerate(found.ngrams, start=1))
        orders = ", ".join([f"{first} (special symbols such as <s> included)", *longer])
        if found.note:
            warnings.warn(f"{found.note}: --order 5", Note, stacklevel=1)
        print(f"{out}: {found.bytes:,} bytes, n-grams: {orders}", file=told)
    else:
        print(f"{out}: {found.bytes:,} bytes, a {found.architecture} with the same probabilities", file=told)

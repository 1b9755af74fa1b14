"""`lmlab export`: writes an n-gram model in a format that other tools read."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Annotated

import typer

import lmlab
from lmlab.cli import options
from lmlab.cli.commands import Section
from lmlab.config import Note

SECTION: Section = "Use a trained model"


def command(
    run: Annotated[Path, typer.Argument(help="The folder of a trained n-gram model.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="The ARPA file to write; - is standard output.")],
    order: Annotated[
        int | None,
        typer.Option(
            help="Order of the n-grams; another one is fitted to the training text.", show_default="the run's"
        ),
    ] = None,
    force: options.Force = False,
    json: options.Json = False,
) -> None:
    r"""Write an n-gram model as an ARPA file, which KenLM, SRILM and others read with the same log-probabilities.

    Tokens are written unchanged, except that white space within one, as in a character model, becomes \x20 and the like.

    Example: lmlab export runs/ngram -o model.arpa
    """
    with options.output(out, json) as (target, told):
        found = lmlab.export(run, out=target, order=order, force=force)
    if json:
        options.print_json(vars(found))
    else:
        first, *longer = (f"{count:,} of order {k}" for k, count in enumerate(found.ngrams, start=1))
        orders = ", ".join([f"{first} (special symbols such as <s> included)", *longer])
        if found.note:
            warnings.warn(f"{found.note}: --order 5", Note, stacklevel=1)
        print(f"{out}: {found.bytes:,} bytes, n-grams: {orders}", file=told)

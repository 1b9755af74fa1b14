"""`lmlab combine`: composes two words into one vector and lists its nearest neighbours."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import lmlab
from lmlab.cli import options
from lmlab.cli.commands import Section

SECTION: Section = "Other tasks"


def command(
    run: options.Run,
    words: Annotated[list[str], typer.Argument(help="Two words, or several pairs of words.")],
    number: Annotated[int, typer.Option(min=1, help="Number of neighbours to show.")] = 10,
    out: Annotated[
        Path | None, typer.Option(help="Write a map of the pairs: a picture (.svg) or page (.html).")
    ] = None,
    device: options.Device = "auto",
    json: options.Json = False,
) -> None:
    """Compose two words into one vector: its label, and the nearest pairs of the training text.

    Example: lmlab combine runs/pairs new york
    """
    from lmlab.tasks.word_pairs.show import print_combinations

    found = lmlab.combine(options.opened(run), words, number=number, out=out, device=device)
    options.answer(json, found, print_combinations, out)

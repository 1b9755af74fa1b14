"""`lmlab curves`: draws the loss curves of several runs in one figure."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import lmlab
from lmlab.cli import completion, options
from lmlab.cli.commands import Section

SECTION: Section = "Compare"


def command(
    runs: Annotated[list[Path], typer.Argument(help="The folders of runs.", autocompletion=completion.runs)],
    out: Annotated[Path, typer.Option("--out", "-o", help="The page (.html) or picture (.svg) to write.")] = Path(
        "curves.html"
    ),
    over: Annotated[str, typer.Option(help="Horizontal axis: tokens, steps or seconds.")] = "tokens",
    csv: Annotated[Path | None, typer.Option(help="Also write all numbers to this file.")] = None,
    tensorboard: Annotated[
        Path | None, typer.Option(help="Also write event files for TensorBoard into this folder.")
    ] = None,
    json: options.Json = False,
) -> None:
    """Draw the loss curves of runs in one figure, as a page or a picture, and export their numbers.

    Example: lmlab curves runs/small runs/large --out curves.html
    """
    found = lmlab.curves(*runs, out=out, over=over, csv=csv, tensorboard=tensorboard)
    if json:
        options.print_json(found.to_json())
        return
    for path in found.written:
        print(f"Written: {path}")

"""`lmlab import`: makes a run of a model that other tools wrote."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import lmlab
from lmlab.cli import options
from lmlab.cli.commands import Section
from lmlab.disk.files import as_typed

SECTION: Section = "Use a trained model"


def command(
    source: Annotated[Path, typer.Argument(help="An ARPA file, or a Hugging Face folder.")],
    out: Annotated[Path, typer.Option(help="A new folder for the run.")],
    spaced: Annotated[
        bool,
        typer.Option("--spaced", help="For an ARPA file: lines begin and end with a space, as in the Penn Treebank."),
    ] = False,
    json: options.Json = False,
) -> None:
    """Make a run of a model of other tools: an n-gram model of KenLM or SRILM, or a Transformer of Hugging Face.

    Example: lmlab import model.arpa.gz --out runs/kenlm
    """
    run = lmlab.import_run(source, out=out, spaced=spaced)
    if json:
        options.print_json({"run": str(run.folder), **run.record.to_json()})
    else:
        print(run.record.result.message)
        print(f"Saved in {run.folder}. Next: lmlab eval {as_typed(run.folder)} TEXT")

"""`lmlab mix`: mixes several models that were trained on the same text into one."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import lmlab
from lmlab.cli import completion, options
from lmlab.cli.commands import Section
from lmlab.disk.files import as_typed

if TYPE_CHECKING:
    from lmlab.learn.run import Run

SECTION: Section = "Use a trained model"


def command(
    runs: Annotated[
        list[Path],
        typer.Argument(
            help="Folders of trained models that share a text and a tokenizer.", autocompletion=completion.runs
        ),
    ],
    out: Annotated[Path, typer.Option(help="A new folder for the mix.")],
    adapt: Annotated[bool, typer.Option("--adapt", help="Keep adapting the weights as the mix reads a text.")] = False,
    device: options.Device = "auto",
    json: options.Json = False,
) -> None:
    """Mix trained models into one that usually predicts better than each of them.

    The weights are fitted on the validation part. The new run holds copies of its parts.

    Example: lmlab mix runs/ngram runs/lstm runs/gpt --out runs/mix
    """
    from rich.console import Console

    named = [options.opened(run) for run in runs]
    with Console(stderr=True).status("opening the runs") as status:
        run = lmlab.mix(named, out=out, adapt=adapt, device=device, watch=status.update)
    if json:
        options.print_json({"run": str(run.folder), **run.record.to_json()})
    else:
        print(_summary(run))


def _summary(run: Run) -> str:
    """Return the parts with their weights, and the command to run next."""
    lines = [f"mix: {run.record.result.message}"]
    for part in run.record.inputs.parts:
        lines.append(f"  {part.weight:6.1%}  {part.model}  ({part.run})")
    lines.append(f"Saved in {run.folder}. Next: lmlab eval {as_typed(run.folder)}")
    return "\n".join(lines)

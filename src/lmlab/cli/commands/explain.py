"""`lmlab explain`: inspects a trained model on a text; a topic as first argument runs its own command instead."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import lmlab
from lmlab.cli import completion, options
from lmlab.cli.commands import Section
from lmlab.cli.explaining import WithTopics

SECTION: Section = "Look inside"
COMMAND_CLASS = WithTopics


def command(
    runs: Annotated[
        list[str],
        typer.Argument(
            metavar="RUN [RUN…] [TEXT]",
            help="Trained models, then the text: words in quotes, a file, or - for standard input. Without one, a piece"
            " of the first model's test part.",
            autocompletion=completion.runs,
        ),
    ],
    html: Annotated[Path | None, typer.Option(help="Write an interactive page.")] = None,
    svg: Annotated[Path | None, typer.Option(help="Write a picture: the text, coloured by surprise.")] = None,
    device: options.Device = "auto",
    json: options.Json = False,
) -> None:
    """Inspect a trained model: the bits of every token, the likeliest predictions, and their entropy.

    Example: lmlab explain runs/gpt runs/ngram "What say you, my lord?"
    """
    from lmlab.cli.show.inside import print_explanation

    folders, text = _divided(runs)
    found = lmlab.explain(
        [options.opened(Path(run)) for run in folders],
        text,
        device=device,
        html=html,
        svg=svg,
        command=options.as_typed(),
    )
    options.answer(json, found, print_explanation, html)


def _divided(words: list[str]) -> tuple[list[str], str | None]:
    """Split the arguments into runs and the text, which is the last argument unless that is a folder."""
    is_folder = 0 < len(words[-1]) < 256 and Path(words[-1]).is_dir()
    if is_folder or len(words) == 1:
        return words, None
    return words[:-1], words[-1]

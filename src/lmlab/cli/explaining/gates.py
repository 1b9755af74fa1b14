"""`lmlab explain gates`: what the gates of a recurrent network do while it reads a text."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from lmlab.cli import options


def command(
    run: options.Run,
    text: Annotated[
        str | None, typer.Argument(help="Words in quotes, a file, or -.", show_default="a piece of its own test part")
    ] = None,
    html: Annotated[Path | None, typer.Option(help="Write a page to look around in.")] = None,
    svg: Annotated[Path | None, typer.Option(help="Write a picture.")] = None,
    device: options.Device = "auto",
    json: options.Json = False,
) -> None:
    """What the gates of a gru or an lstm let in, keep and show, how long each unit keeps, and what it follows.

    Example: lmlab explain gates runs/lstm mytext.txt --html gates.html
    """
    from lmlab import face
    from lmlab.cli.show.inside import print_gates

    found = face.explain_gates(options.opened(run), text, device=device, html=html, svg=svg, command=options.as_typed())
    options.answer(json, found, print_gates, html)

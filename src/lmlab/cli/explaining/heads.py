"""`lmlab explain heads`: what a text costs without each attention head."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from lmlab.cli import options


def command(
    run: options.Run,
    text: Annotated[
        str | None,
        typer.Argument(
            help="Words in quotes, a file, or -; for a translator a file of pairs.",
            show_default="a piece of its own test part",
        ),
    ] = None,
    html: Annotated[Path | None, typer.Option(help="Write a page of it.")] = None,
    svg: Annotated[Path | None, typer.Option(help="Write the picture.")] = None,
    device: options.Device = "auto",
    json: options.Json = False,
) -> None:
    """Switch the heads of a model off one at a time: what each is worth, in bits, beside what it does.

    Bits per byte of the text; per masked token for bert; per byte of the translation for a translator.

    Example: lmlab explain heads runs/gpt --html heads.html
    """
    from lmlab import face
    from lmlab.cli.show.inside import print_heads

    found = face.explain_heads(options.opened(run), text, device=device, html=html, svg=svg, command=options.as_typed())
    options.answer(json, found, print_heads)

"""`lmlab explain attention`: what every head of a model looks at while it reads a text."""

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
    to: Annotated[
        str | None, typer.Option(help="Of a translator: the language, such as de.", show_default="its first")
    ] = None,
    target: Annotated[
        str | None, typer.Option(help="Of a translator: the translation.", show_default="what it writes")
    ] = None,
    html: Annotated[Path | None, typer.Option(help="Write a page to look around in.")] = None,
    svg: Annotated[Path | None, typer.Option(help="Write a picture.")] = None,
    device: options.Device = "auto",
    json: options.Json = False,
) -> None:
    """Where the attention heads of a model look, what each seems to do, and a page with every weight.

    Of bert the text may have blanks, [MASK]; of a translator it is a sentence, and its alignments are shown.

    Example: lmlab explain attention runs/gpt "What say you, my lord?" --html heads.html
    """
    from lmlab import face
    from lmlab.cli.show.inside import print_attention

    found = face.explain_attention(
        options.opened(run), text, to=to, target=target, device=device, html=html, svg=svg, command=options.as_typed()
    )
    options.answer(json, found, print_attention, html)

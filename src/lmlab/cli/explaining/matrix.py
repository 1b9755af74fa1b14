"""`lmlab explain matrix`: self-attention as one big matrix."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from lmlab.cli import options


def command(
    run: options.Run,
    text: Annotated[str, typer.Argument(help="A few words in quotes.")],
    layer: Annotated[int, typer.Option(help="From 1.")] = 1,
    head: Annotated[int, typer.Option(help="From 1.")] = 1,
    html: Annotated[Path | None, typer.Option(help="Write a page of it.")] = None,
    svg: Annotated[Path | None, typer.Option(help="Write the picture.")] = None,
    device: options.Device = "auto",
    json: options.Json = False,
) -> None:
    """The one matrix that a head amounts to for a text: blocks a_nm W, beside a dense layer, with the parameters of each.

    Example: lmlab explain matrix runs/gpt "To be" --layer 2 --head 1 --html matrix.html
    """
    from lmlab import face
    from lmlab.cli.show.inside import print_matrix

    opened = options.opened(run)
    found = face.explain_matrix(
        opened, text, layer=layer, head=head, device=device, html=html, svg=svg, command=options.as_typed()
    )
    options.answer(json, found, print_matrix)

"""`lmlab explain positions`: the rotation that takes position n to n + k."""

from __future__ import annotations

from typing import Annotated

import typer

from lmlab.cli import options


def command(
    width: Annotated[int, typer.Option(help="Of the encoding: an even number.")] = 64,
    length: Annotated[int, typer.Option(help="Positions to look at.")] = 128,
    offset: Annotated[int, typer.Option(help="k, in positions.")] = 8,
    seed: options.Seed = 0,
    html: options.Html = None,
    svg: options.Svg = None,
    json: options.Json = False,
) -> None:
    """Positions: the rotation that takes n to n + k, what sines alone cannot do, and what dot products see of distance.

    Example: lmlab explain positions --html positions.html
    """
    from lmlab import face
    from lmlab.cli.show.theory import print_positions

    found = face.explain_positions(
        width=width, length=length, offset=offset, seed=seed, html=html, svg=svg, command=options.as_typed()
    )
    options.answer(json, found, print_positions, html, svg)

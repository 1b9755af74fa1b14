"""`lmlab explain search`: the tree that greedy, beam and exhaustive search walk."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from lmlab.cli import options


def command(
    run: options.Run,
    prompt: Annotated[str, typer.Argument(help="What to continue; it may be empty.")] = "",
    tokens: Annotated[int, typer.Option(min=1, help="How many tokens to add.")] = 5,
    beam: Annotated[int, typer.Option(min=1, help="Continuations that the beam keeps.")] = 3,
    html: Annotated[Path | None, typer.Option(help="Write a page of it.")] = None,
    svg: Annotated[Path | None, typer.Option(help="Write the picture.")] = None,
    device: options.Device = "auto",
    json: options.Json = False,
) -> None:
    """How greedy, beam and exhaustive search continue a prompt, as a tree, and where greedy loses.

    Example: lmlab explain search runs/gpt "My lord" --tokens 6 --html tree.html
    """
    from lmlab import face
    from lmlab.cli.show.inside import print_search

    opened = options.opened(run)
    found = face.explain_search(
        opened, prompt, tokens=tokens, beam=beam, device=device, html=html, svg=svg, command=options.as_typed()
    )
    options.answer(json, found, print_search)

"""`lmlab fill`: fills the blanks of a text with an encoder."""

from __future__ import annotations

from typing import Annotated

import typer

import lmlab
from lmlab.cli import options
from lmlab.cli.commands import Section

SECTION: Section = "Other tasks"


def command(
    run: options.Run,
    texts: Annotated[
        list[str] | None, typer.Argument(help='Texts with blanks, "The [MASK] sat"; - reads lines of standard input.')
    ] = None,
    top: Annotated[int, typer.Option(min=1, help="Candidates for each blank.")] = 5,
    device: options.Device = "auto",
    json: options.Json = False,
) -> None:
    """Fill the blanks of a text, written as [MASK], and list other candidates.

    Example: lmlab fill runs/bert-mytext "The [MASK] sat on the [MASK]."
    """
    from lmlab.tasks.masked.show import print_filled

    opened = options.opened(run)
    wanted = options.given_texts(texts, 'give texts with blanks, such as: lmlab fill RUN "The [MASK] sat"')
    found = lmlab.fill(opened, wanted, top=top, device=device)
    options.answer(json, found, print_filled)

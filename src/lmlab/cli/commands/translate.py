"""`lmlab translate`: translates texts."""

from __future__ import annotations

from typing import Annotated

import typer

import lmlab
from lmlab.cli import options
from lmlab.cli.commands import Section

SECTION: Section = "Other tasks"


def command(
    run: options.Run,
    texts: Annotated[list[str] | None, typer.Argument(help="Texts; - reads lines of standard input.")] = None,
    to: Annotated[
        str | None, typer.Option(help="Target languages, such as fr,de.", show_default="all of the model")
    ] = None,
    beam: Annotated[int, typer.Option(min=1, help="Width of the beam; 1 is greedy search.")] = 5,
    best: Annotated[int, typer.Option(min=1, help="Number of translations per text.")] = 1,
    length_penalty: Annotated[
        float,
        typer.Option(
            help="Exponent of length normalisation, log p / tokens^x: 0 favours short texts, 1 takes the mean."
        ),
    ] = 1.0,
    device: options.Device = "auto",
    json: options.Json = False,
) -> None:
    """Translate texts; each is encoded once for all target languages.

    Example: lmlab translate runs/translator-numbers "half past seven in the morning" --to fr,de
    """
    from lmlab.tasks.translation import show

    opened = options.opened(run)
    wanted = options.given_texts(texts, 'give texts to translate, such as: lmlab translate RUN "a text"')
    languages = None if to is None else [language.strip() for language in to.split(",")]
    found = lmlab.translate(
        opened, wanted, languages, beam=beam, best=best, length_penalty=length_penalty, device=device
    )
    options.answer(json, found, show.print_translations)

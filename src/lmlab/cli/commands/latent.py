"""`lmlab latent`: generates texts from points of a latent space."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import lmlab
from lmlab.cli import options
from lmlab.cli.commands import Section

SECTION: Section = "Other tasks"


def command(
    run: options.Run,
    first: Annotated[str | None, typer.Argument(help="The first sentence.", show_default="none")] = None,
    second: Annotated[
        str | None, typer.Argument(help="The second sentence, to interpolate to.", show_default="none")
    ] = None,
    number: Annotated[int, typer.Option(help="Number of texts.")] = 5,
    tokens: Annotated[int | None, typer.Option(help="Tokens per text.", show_default="a segment")] = None,
    temperature: Annotated[float, typer.Option(help="Sampling temperature: below 1 less random.")] = 1.0,
    greedy: Annotated[
        bool | None,
        typer.Option(
            "--greedy/--draw", help="Take the likeliest token, or sample one.", show_default="greedy between two"
        ),
    ] = None,
    svg: Annotated[Path | None, typer.Option(help="Also write a figure of the bound by number of samples.")] = None,
    seed: options.Seed = 0,
    device: options.Device = "auto",
    json: options.Json = False,
) -> None:
    """Generate texts from a latent variable: sampled, near a sentence, or interpolated between two sentences.

    Example: lmlab latent runs/variational-sotu "We are at peace." "We are at war."
    """
    from lmlab.tasks.latent.show import print_written

    found = lmlab.latent(
        options.opened(run), first, second, number=number, tokens=tokens, temperature=temperature, greedy=greedy,
        svg=svg, seed=seed, device=device,
    )  # fmt: skip
    options.answer(json, found, print_written, svg)

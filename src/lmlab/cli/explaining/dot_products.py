"""`lmlab explain dot-products`: how scores spread with width, and what scaling does to the softmax."""

from __future__ import annotations

from typing import Annotated

import typer

from lmlab.cli import options


def command(
    widths: Annotated[str, typer.Option(help="Of the vectors, with commas between them.")] = "1,4,16,64,256,1024",
    keys: Annotated[int, typer.Option(help="That each query is compared with.")] = 16,
    mean: Annotated[float, typer.Option(help="Of every entry.")] = 0.0,
    sigma: Annotated[float, typer.Option(help="Standard deviation of every entry.")] = 1.0,
    draws: Annotated[int, typer.Option(help="Of a query and its keys.")] = 400,
    seed: options.Seed = 0,
    html: options.Html = None,
    svg: options.Svg = None,
    json: options.Json = False,
) -> None:
    """Dot products: how they spread with width, what 1/√d does to the softmax and its gradient, and how directions part.

    Example: lmlab explain dot-products --html dot-products.html
    """
    from lmlab import face
    from lmlab.cli.show.theory import print_dot_products

    found = face.explain_dot_products(
        widths=options.whole_numbers(widths, "widths"),
        keys=keys,
        mean=mean,
        sigma=sigma,
        draws=draws,
        seed=seed,
        html=html,
        svg=svg,
        command=options.as_typed(),
    )
    options.answer(json, found, print_dot_products, html, svg)

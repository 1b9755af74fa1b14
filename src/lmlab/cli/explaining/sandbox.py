"""`lmlab explain sandbox`: one attention head and two, under keys that vary."""

from __future__ import annotations

from typing import Annotated

import typer

from lmlab.cli import options


def command(
    keys: Annotated[int, typer.Option(help="How many, 2 to 10.")] = 5,
    query_a: Annotated[float, typer.Option(help="How far the query points along key a.")] = 10.0,
    query_b: Annotated[float, typer.Option(help="How far along key b; 0 asks for a alone.")] = 10.0,
    temperature: Annotated[float, typer.Option(help="Scores are divided by it.")] = 1.0,
    noise: Annotated[float, typer.Option(help="Standard deviation of every entry of every key.")] = 0.0,
    stretch: Annotated[float, typer.Option(help="Standard deviation of the length of key a.", show_default="√½")] = 0.5
    ** 0.5,
    overlap: Annotated[float, typer.Option(help="Dot product of the means of keys a and b.")] = 0.0,
    value_a: Annotated[float, typer.Option(help="Where value a lies on a circle, in degrees.")] = 180.0,
    value_b: Annotated[float, typer.Option(help="Where value b lies, in degrees.")] = 0.0,
    samples: Annotated[int, typer.Option(help="Draws of all keys.")] = 1000,
    seed: options.Seed = 0,
    html: options.Html = None,
    svg: options.Svg = None,
    json: options.Json = False,
) -> None:
    """The attention sandbox: copying one value, averaging two, and why one head fails where two do not. A page has sliders.

    Example: lmlab explain sandbox --html sandbox.html
    """
    from lmlab import face
    from lmlab.cli.show.theory import print_sandbox

    found = face.explain_sandbox(
        keys=keys,
        query_a=query_a,
        query_b=query_b,
        temperature=temperature,
        noise=noise,
        stretch=stretch,
        overlap=overlap,
        value_a=value_a,
        value_b=value_b,
        samples=samples,
        seed=seed,
        html=html,
        svg=svg,
        command=options.as_typed(),
    )
    options.answer(json, found, print_sandbox, html, svg)

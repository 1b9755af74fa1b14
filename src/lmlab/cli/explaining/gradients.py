"""`lmlab explain gradients`: what is left of a derivative after many steps back through a recurrent network."""

from __future__ import annotations

from typing import Annotated

import typer

from lmlab.cli import options


def command(
    cells: Annotated[str, typer.Option(help="Of rnn, gru and lstm, with commas between them.")] = "rnn,gru,lstm",
    scales: Annotated[str, typer.Option(help="What recurrent weights are multiplied by.")] = "0.5,1,2.5",
    inits: Annotated[str, typer.Option(help="Of orthogonal, xavier, he and identity.")] = "orthogonal",
    forget_biases: Annotated[str, typer.Option(help="Of the LSTM.")] = "0,3",
    width: Annotated[int, typer.Option(help="Units.")] = 32,
    length: Annotated[int, typer.Option(help="Steps back.")] = 50,
    inputs: Annotated[float, typer.Option(help="Spread of the numbers that are read.")] = 0.5,
    train: Annotated[bool, typer.Option(help="Also train small networks, with and without clipping.")] = True,
    clip: Annotated[float, typer.Option(help="The norm that gradients are clipped to.")] = 1.0,
    steps: Annotated[int, typer.Option(help="Of each training.")] = 150,
    tries: Annotated[int, typer.Option(help="Trainings from each start.")] = 3,
    seed: options.Seed = 0,
    html: options.Html = None,
    svg: options.Svg = None,
    json: options.Json = False,
) -> None:
    """Gradients through time: where they vanish, explode or hold, between the bounds of theory; and what clipping mends.

    Example: lmlab explain gradients --html gradients.html
    """
    from lmlab import face
    from lmlab.cli.show.theory import print_gradients

    found = face.explain_gradients(
        cells=options.words(cells),
        scales=options.numbers(scales, "scales"),
        inits=options.words(inits),
        forget_biases=options.numbers(forget_biases, "forget_biases"),
        width=width,
        length=length,
        inputs=inputs,
        train=train,
        clip=clip,
        steps=steps,
        tries=tries,
        seed=seed,
        html=html,
        svg=svg,
        command=options.as_typed(),
    )
    options.answer(json, found, print_gradients, html, svg)

"""The topics of `lmlab explain` that need no run."""

from __future__ import annotations

from typing import Annotated

import typer

import lmlab
from lmlab.cli import options


def gradients(
    cells: Annotated[str, typer.Option(help="Cells among rnn, gru and lstm, separated by commas.")] = "rnn,gru,lstm",
    scales: Annotated[str, typer.Option(help="Factors of the recurrent weights, separated by commas.")] = "0.5,1,2.5",
    inits: Annotated[
        str, typer.Option(help="Initializations among orthogonal, xavier, he and identity.")
    ] = "orthogonal",
    forget_biases: Annotated[str, typer.Option(help="Forget biases of the LSTM.")] = "0,3",
    width: Annotated[int, typer.Option(help="Number of units.")] = 32,
    length: Annotated[int, typer.Option(help="Number of time steps.")] = 50,
    inputs: Annotated[float, typer.Option(help="Standard deviation of the inputs.")] = 0.5,
    train: Annotated[bool, typer.Option(help="Also train small networks, with and without clipping.")] = True,
    clip: Annotated[float, typer.Option(help="Maximum gradient norm.")] = 1.0,
    steps: Annotated[int, typer.Option(help="Steps of each training.")] = 150,
    tries: Annotated[int, typer.Option(help="Trainings per initialization.")] = 3,
    seed: options.Seed = 0,
    html: options.Html = None,
    svg: options.Svg = None,
    json: options.Json = False,
) -> None:
    """Show gradients through time: where they vanish, explode or persist, with theoretical bounds and the effect of clipping.

    Example: lmlab explain gradients --html gradients.html
    """
    from lmlab.cli.show.theory import print_gradients

    found = lmlab.explain_gradients(
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


def positions(
    width: Annotated[int, typer.Option(help="Width of the encoding: an even number.")] = 64,
    length: Annotated[int, typer.Option(help="Number of positions.")] = 128,
    offset: Annotated[int, typer.Option(help="Offset k, in positions.")] = 8,
    seed: options.Seed = 0,
    html: options.Html = None,
    svg: options.Svg = None,
    json: options.Json = False,
) -> None:
    """Show position encodings: the rotation from n to n + k, the limits of sines alone, and distance in dot products.

    Example: lmlab explain positions --html positions.html
    """
    from lmlab.cli.show.theory import print_positions

    found = lmlab.explain_positions(
        width=width, length=length, offset=offset, seed=seed, html=html, svg=svg, command=options.as_typed()
    )
    options.answer(json, found, print_positions, html, svg)


def dot_products(
    widths: Annotated[str, typer.Option(help="Widths of the vectors, separated by commas.")] = "1,4,16,64,256,1024",
    keys: Annotated[int, typer.Option(help="Number of keys per query.")] = 16,
    mean: Annotated[float, typer.Option(help="Mean of every entry.")] = 0.0,
    sigma: Annotated[float, typer.Option(help="Standard deviation of every entry.")] = 1.0,
    draws: Annotated[int, typer.Option(help="Samples of a query and its keys.")] = 400,
    seed: options.Seed = 0,
    html: options.Html = None,
    svg: options.Svg = None,
    json: options.Json = False,
) -> None:
    """Show dot products by width: their variance, the effect of 1/√d on the softmax and its gradient, and angles.

    Example: lmlab explain dot-products --html dot-products.html
    """
    from lmlab.cli.show.theory import print_dot_products

    found = lmlab.explain_dot_products(
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


def sandbox(
    keys: Annotated[int, typer.Option(help="Number of keys, 2 to 10.")] = 5,
    query_a: Annotated[float, typer.Option(help="Component of the query along key a.")] = 10.0,
    query_b: Annotated[float, typer.Option(help="Component along key b; 0 selects a alone.")] = 10.0,
    temperature: Annotated[float, typer.Option(help="Divisor of the scores.")] = 1.0,
    noise: Annotated[float, typer.Option(help="Standard deviation of every entry of every key.")] = 0.0,
    stretch: Annotated[float, typer.Option(help="Standard deviation of the length of key a.", show_default="√½")] = 0.5
    ** 0.5,
    overlap: Annotated[float, typer.Option(help="Dot product of the means of keys a and b.")] = 0.0,
    value_a: Annotated[float, typer.Option(help="Angle of value a on a circle, in degrees.")] = 180.0,
    value_b: Annotated[float, typer.Option(help="Angle of value b, in degrees.")] = 0.0,
    samples: Annotated[int, typer.Option(help="Number of samples of all keys.")] = 1000,
    seed: options.Seed = 0,
    html: options.Html = None,
    svg: options.Svg = None,
    json: options.Json = False,
) -> None:
    """Show an attention sandbox: copying one value, averaging two, and why one head fails where two succeed; with sliders.

    Example: lmlab explain sandbox --html sandbox.html
    """
    from lmlab.cli.show.theory import print_sandbox

    found = lmlab.explain_sandbox(
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

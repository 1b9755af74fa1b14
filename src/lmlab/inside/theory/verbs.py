"""The topics of `lmlab explain` as Python functions. Each gives its numbers, and with `out` writes its page or its picture."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from lmlab.inside.theory.dot_products import DotProducts
from lmlab.inside.theory.dot_products import dot_products as dot_products_of
from lmlab.inside.theory.positions import Positions
from lmlab.inside.theory.positions import positions as positions_of
from lmlab.inside.theory.sandbox import Sandbox, SandboxSettings
from lmlab.inside.theory.sandbox import sandbox as sandbox_of
from lmlab.inside.theory.through_time import Gradients
from lmlab.inside.theory.through_time import gradients as gradients_of


def explain_gradients(
    *,
    cells: Sequence[str] = ("rnn", "gru", "lstm"),
    scales: Sequence[float] = (0.5, 1.0, 2.5),
    inits: Sequence[str] = ("orthogonal",),
    forget_biases: Sequence[float] = (0.0, 3.0),
    width: int = 32,
    length: int = 50,
    inputs: float = 0.5,
    train: bool = True,
    clip: float = 1.0,
    steps: int = 150,
    tries: int = 3,
    seed: int = 0,
    html: str | Path | None = None,
    svg: str | Path | None = None,
    command: str = "lmlab.explain_gradients()",
) -> Gradients:
    """How much of the last state of a recurrent network still depends on each earlier one, and what that does to training.

    For each of the cells, with recurrent weights of each initialisation (orthogonal, xavier, he, identity) times each of the
    scales, an LSTM also with each of the forget biases: norms of ∂(last state)/∂(earlier state) over `length` steps, between
    the bounds of theory. inputs: the spread of what is read. train: also train small networks (as many tries from each start,
    so many steps) with gradients as they are and clipped to norm `clip`. html, svg: files to write a page and
    a picture to; command: what the page says made it.
    """
    found = gradients_of(
        cells=cells,
        scales=scales,
        inits=inits,
        forget_biases=forget_biases,
        width=width,
        length=length,
        inputs=inputs,
        train=train,
        clip=clip,
        steps=steps,
        tries=tries,
        seed=seed,
    )
    if html is not None or svg is not None:
        from lmlab.inside.theory.gradients_page import page, picture
        from lmlab.inside.theory.publish import publish

        publish(html=html, svg=svg, page=lambda: page(found, command), picture=lambda: picture(found))
    return found


def explain_sandbox(
    *,
    keys: int = 5,
    query_a: float = 10.0,
    query_b: float = 10.0,
    temperature: float = 1.0,
    noise: float = 0.0,
    stretch: float = 0.5**0.5,
    overlap: float = 0.0,
    value_a: float = 180.0,
    value_b: float = 0.0,
    samples: int = 1000,
    seed: int = 0,
    html: str | Path | None = None,
    svg: str | Path | None = None,
    command: str = "lmlab.explain_sandbox()",
) -> Sandbox:
    """One attention head asked for two values, and two heads asked for one each, while the keys vary (assignment2 section 5).

    query_a, query_b: how far the query points along the mean of key a and of key b. temperature: scores are divided by it.
    noise: standard deviation of every entry of every key. stretch: standard deviation of the length of key a. overlap: the
    dot product of the two means. value_a, value_b: where these values lie on the unit circle, in degrees. html, svg: files to
    write a page with sliders and a picture to; command: what the page says made it.
    """
    settings = SandboxSettings(
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
    )
    found = sandbox_of(settings)
    if html is not None or svg is not None:
        from lmlab.inside.theory.publish import publish
        from lmlab.inside.theory.sandbox_page import page, picture

        publish(html=html, svg=svg, page=lambda: page(found, command), picture=lambda: picture(found))
    return found


def explain_positions(
    *,
    width: int = 64,
    length: int = 128,
    offset: int = 8,
    seed: int = 0,
    html: str | Path | None = None,
    svg: str | Path | None = None,
    command: str = "lmlab.explain_positions()",
) -> Positions:
    """The rotation that takes the encoding of any position n to that of n + offset, and what dot products see of distance.

    width: of the encoding, or of a head with rotary positions. length: positions that are looked at. html, svg: files to write
    a page and a picture to; command: what the page says made it.
    """
    found = positions_of(width=width, length=length, offset=offset, seed=seed)
    if html is not None or svg is not None:
        from lmlab.inside.theory.positions_page import page, picture
        from lmlab.inside.theory.publish import publish

        publish(html=html, svg=svg, page=lambda: page(found, command), picture=lambda: picture(found))
    return found


def explain_dot_products(
    *,
    widths: Sequence[int] = (1, 4, 16, 64, 256, 1024),
    keys: int = 16,
    mean: float = 0.0,
    sigma: float = 1.0,
    draws: int = 400,
    seed: int = 0,
    html: str | Path | None = None,
    svg: str | Path | None = None,
    command: str = "lmlab.explain_dot_products()",
) -> DotProducts:
    """How dot products of random vectors spread with their width, and what scaling does to a softmax of them.

    keys: that each query is compared with. mean, sigma: of the entries of queries and keys. html, svg: files to write a page
    and a picture to; command: what the page says made it.
    """
    found = dot_products_of(widths=widths, keys=keys, mean=mean, sigma=sigma, draws=draws, seed=seed)
    if html is not None or svg is not None:
        from lmlab.inside.theory.dot_products_page import page, picture
        from lmlab.inside.theory.publish import publish

        publish(html=html, svg=svg, page=lambda: page(found, command), picture=lambda: picture(found))
    return found

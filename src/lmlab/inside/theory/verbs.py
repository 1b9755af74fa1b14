"""The topics of `lmlab explain` as Python functions. Each gives its numbers, and with `out` writes its page or its picture."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import TypeVar

from lmlab.config import checked_seed
from lmlab.inside.theory.clipping import check_trainings, trainings
from lmlab.inside.theory.dot_products import DotProducts, dot_products
from lmlab.inside.theory.gradients import flows
from lmlab.inside.theory.positions import Positions, positions
from lmlab.inside.theory.sandbox import Sandbox, SandboxSettings, sandbox
from lmlab.inside.theory.through_time import MEMORY, Gradients
from lmlab_derive.shared.html import refuse_names

T = TypeVar("T")


def _published(found: T, topic: str, html: str | Path | None, svg: str | Path | None, command: str) -> T:
    """The numbers of a topic, once its page and its picture are where they were asked for; only then it is drawn."""
    if html is not None or svg is not None:
        from lmlab.inside.theory.publish import publish

        drawn = import_module(f"lmlab.inside.theory.{topic}_page")
        publish(html=html, svg=svg, page=lambda: drawn.page(found, command), picture=lambda: drawn.picture(found))
    return found


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
    refuse_names(html=html, svg=svg)
    seed = checked_seed(seed)
    if train:
        check_trainings(clip, steps, tries)
    through = flows(
        cells=cells,
        scales=scales,
        inits=inits,
        forget_biases=forget_biases,
        width=width,
        length=length,
        inputs=inputs,
        seed=seed,
    )
    runs = trainings(clip=clip, steps=steps, tries=tries, seed=seed, length=MEMORY) if train else []
    found = Gradients(width=width, length=length, inputs=inputs, seed=seed, flows=tuple(through), trainings=tuple(runs))
    return _published(found, "gradients", html, svg, command)


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
    """One attention head asked for two values, and two heads asked for one each, while the keys vary.

    query_a, query_b: how far the query points along the mean of key a and of key b. temperature: scores are divided by it.
    noise: standard deviation of every entry of every key. stretch: standard deviation of the length of key a. overlap: the
    dot product of the two means. value_a, value_b: where these values lie on the unit circle, in degrees. html, svg: files to
    write a page with sliders and a picture to; command: what the page says made it.
    """
    refuse_names(html=html, svg=svg)
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
    return _published(sandbox(settings), "sandbox", html, svg, command)


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
    refuse_names(html=html, svg=svg)
    seed = checked_seed(seed)
    found = positions(width=width, length=length, offset=offset, seed=seed)
    return _published(found, "positions", html, svg, command)


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
    refuse_names(html=html, svg=svg)
    seed = checked_seed(seed)
    found = dot_products(widths=widths, keys=keys, mean=mean, sigma=sigma, draws=draws, seed=seed)
    return _published(found, "dot_products", html, svg, command)

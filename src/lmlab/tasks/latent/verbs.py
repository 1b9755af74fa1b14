"""`lmlab.latent`: texts from places of the latent space: drawn at random, or on the way from one sentence to another."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from lmlab.config import Mistake, checked_seed
from lmlab.learn.run import Run, opened
from lmlab.records import JsonRecord
from lmlab.tasks.latent.generating import read, written
from lmlab.tasks.latent.measure import model_of
from lmlab.tasks.latent.picture import draws_picture
from lmlab_derive.shared.html import refuse_names, write


@dataclass(frozen=True, kw_only=True)
class Written(JsonRecord):
    """A text and the place it was written from. share: of the way from the first sentence to the second; None: drawn."""

    text: str
    z: tuple[float, ...]
    share: float | None = None


def latent(
    run: Run | str | Path,
    first: str | None = None,
    second: str | None = None,
    *,
    number: int = 5,
    tokens: int | None = None,
    temperature: float = 1.0,
    greedy: bool | None = None,
    svg: str | Path | None = None,
    seed: int = 0,
    device: str = "auto",
) -> list[Written]:
    """Texts of a latent-variable model: `number` of them, each from a z of its own.

    Without sentences z is drawn from the prior. With one, it is drawn from what the model takes the sentence to be, q(z | x);
    with two, the z go in equal steps from the middle of the one's q to the middle of the other's.
    tokens: how many to write; a segment if nothing is said, which is also the most that one z is behind.
    greedy: the likeliest token every time, as is done between sentences, so that only z differs; else drawn.
    svg: where to write a picture of the bound by the number of draws, on some of the test part.
    """
    refuse_names(svg=svg)
    seed = checked_seed(seed)
    run = opened(run)
    model = model_of(run, device)
    segment: int = model.config.segment
    if tokens is not None and not 1 <= tokens <= segment:
        raise Mistake(
            f"{{tokens}} is from 1 to {segment}, the segment of this model; got {tokens}",
            code="segment-too-short",
            tokens=None,
        )
    if number < 1:
        raise Mistake(
            f"{{number}} is a whole number from 1 up; got {number}", code="number-of-texts-below-one", number=None
        )
    if not temperature > 0:
        raise Mistake(
            f"{{temperature}} is a number above 0; got {temperature}", code="temperature-not-positive", temperature=None
        )
    if first is None and second is not None:
        raise Mistake("give the first sentence too", code="first-sentence-missing")
    luck = torch.Generator().manual_seed(seed)
    noise_BK = torch.randn(number, model.config.latent, generator=luck)
    shares: list[float | None] = [None] * number
    if first is None:
        z_BK = noise_BK
    elif second is None:
        q = read(model, _ids(run, first, segment))
        z_BK = q.draw(noise_BK.to(q.mean_BK)[:, None])[:, 0].cpu()
    else:
        ends = [read(model, _ids(run, sentence, segment)).mean_BK.cpu() for sentence in (first, second)]
        way = [i / (number - 1) for i in range(number)] if number > 1 else [0.5]
        shares, z_BK = [*way], torch.cat([(1 - share) * ends[0] + share * ends[1] for share in way])
    if greedy is None:
        greedy = second is not None
    drawn = None if greedy else luck
    ids_BT = written(model, z_BK, tokens=tokens or segment, temperature=temperature, luck=drawn)
    if svg is not None:
        write(Path(svg), draws_picture(run, device))
    return [
        Written(text=run.tokenizer.decode(ids.tolist()), z=tuple(z.tolist()), share=share)
        for ids, z, share in zip(ids_BT, z_BK, shares, strict=True)
    ]


def _ids(run: Run, sentence: str, segment: int) -> Tensor:
    ids = torch.from_numpy(run.tokenizer.encode(sentence).ids.astype("int64"))[None]
    if not ids.shape[1]:
        raise Mistake("a sentence is empty; give it some words", code="latent-sentence-empty")
    if ids.shape[1] > segment:
        raise Mistake(
            f"{sentence[:40]!r} has {ids.shape[1]} tokens, and one z is behind {segment}; give a shorter sentence, or train"
            f" with a longer segment",
            code="latent-sentence-too-long",
        )
    return ids

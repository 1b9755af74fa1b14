"""Beam search and exhaustive search: the likeliest continuation of all, nearly or truly.

Both rank finished continuations by log p / tokens^length_penalty (Wu et al. 2016 divide by ((5 + tokens) / 6)^penalty,
which is nearly the same for long texts). A continuation is finished by a stop string or by its length.

Different tokens may spell the same text: each way of dividing it counts as a continuation of its own.

Shapes: B rows side by side, V vocabulary, W width of the beam.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

import torch

from lmlab.config import Mistake
from lmlab.decode.continuation import Continuation

if TYPE_CHECKING:
    from torch import Tensor

    from lmlab.decode.options import Options
    from lmlab.decode.reader import Reader

MOST_STRINGS = 200_000  # continuations that exhaustive search is willing to hold


def beam(reader: Reader, options: Options) -> Iterator[list[Continuation]]:
    """Keep the `beam_width` likeliest extensions, one token after the other.

    Yields, after each token, all continuations that may still be among the `n_best` or lead to them; the last list is
    the result, best first. A continuation that stops leaves the beam with its place, so a beam of width 1 is greedy
    decoding. The search ends early only when nothing that is still open can come among the best.
    """
    return _search(reader, options, options.beam_width)


def exhaustive(reader: Reader, options: Options) -> Iterator[list[Continuation]]:
    """As `beam`, with a beam that leaves nothing out."""
    vocab, length = reader.model.vocab_size, options.max_tokens
    if length * math.log(vocab) > math.log(MOST_STRINGS):
        raise Mistake(
            f"there are {vocab}^{length} continuations, and exhaustive search tries at most {MOST_STRINGS};"
            " lower {max_tokens} or set {method}",
            max_tokens=None,
            method="beam",
        )
    return _search(reader, options, vocab**length)


def _search(reader: Reader, options: Options, width: int) -> Iterator[list[Continuation]]:
    live, finished = [reader.empty(options.stop)], list[Continuation]()
    logp_BV, state = reader.start()
    for left in reversed(range(options.max_tokens)):
        parents, ids = _best_extensions(reader.charged(logp_BV), live, width)
        extended = _extend(reader, logp_BV, live, parents, ids)
        going = [i for i, continuation in enumerate(extended) if continuation.finish is None]
        finished = _ranked([*finished, *(c for c in extended if c.finish is not None)], options)[: options.n_best]
        live = [extended[i] for i in going]
        if not (live and left) or _settled(live, finished, options):
            break
        yield [*live, *finished]
        logp_BV, state = reader.select(logp_BV, state, [parents[i] for i in going])
        logp_BV, state = reader.advance(torch.tensor([ids[i] for i in going], device=logp_BV.device), state)
    for continuation in live:
        continuation.end()
    yield _ranked([*finished, *live], options)[: options.n_best]


def _best_extensions(logp_BV: Tensor, live: list[Continuation], width: int) -> tuple[list[int], list[int]]:
    """Row and token of the likeliest extensions, best first; of equals the better row, then the lower id."""
    so_far_B = torch.tensor([-c.total_nats for c in live], dtype=torch.float64, device=logp_BV.device)
    total_X = (logp_BV.double() + so_far_B[:, None]).flatten()
    least = total_X.topk(min(width, len(total_X))).values[-1]
    candidates = (total_X >= least).nonzero()[:, 0]
    candidates = candidates[torch.isfinite(total_X[candidates])]  # maximum likelihood leaves few tokens possible
    order = total_X[candidates].sort(descending=True, stable=True).indices[:width]
    best = candidates[order].tolist()
    vocab = logp_BV.shape[1]
    return [at // vocab for at in best], [at % vocab for at in best]


def _extend(
    reader: Reader, logp_BV: Tensor, live: list[Continuation], parents: list[int], ids: list[int]
) -> list[Continuation]:
    """Copies of the parents, each with its token."""
    logp = logp_BV[parents, ids].tolist()
    extended = [live[parent].copy() for parent in parents]
    for continuation, id, logp_id in zip(extended, ids, logp, strict=True):
        continuation.add(id, -logp_id, reader.spelled(id))
    return extended


def _ranked(continuations: list[Continuation], options: Options) -> list[Continuation]:
    """Best first; of equals the one found first, which is the likeliest so far."""
    return sorted(continuations, key=lambda c: -c.score(options.length_penalty))


def _settled(live: list[Continuation], finished: list[Continuation], options: Options) -> bool:
    """Whether no open continuation can still come before the last of the `n_best` finished ones.

    More tokens only add nats. Dividing by more tokens helps at most as much as the longest length allows.
    """
    if len(finished) < options.n_best:
        return False
    reach = max(options.max_tokens**options.length_penalty, (len(live[0].ids) + 1) ** options.length_penalty)
    return max(-c.total_nats for c in live) / reach <= finished[-1].score(options.length_penalty)

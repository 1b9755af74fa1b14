"""Beam search and exhaustive search: the likeliest continuation of all, nearly or truly.

Both rank finished continuations by log p / tokens^length_penalty (Wu et al. 2016 divide by ((5 + tokens) / 6)^penalty,
which is nearly the same for long texts). A continuation is finished by a stop string or by its length.

Different tokens may spell the same text: each way of dividing it counts as a continuation of its own.

Shapes: B rows side by side, V vocabulary, W width of the beam.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import torch

from lmlab.config import Mistake
from lmlab.engine.continuation import Continuation

if TYPE_CHECKING:
    from torch import Tensor

    from lmlab.engine.options import Options
    from lmlab.engine.reader import Reader

MOST_STRINGS = 200_000  # continuations that exhaustive search is willing to hold


def beam(reader: Reader, options: Options) -> Iterator[list[Continuation]]:
    """Keep the `beam_width` likeliest extensions, one token after the other.

    Yields, after each token, all continuations that may still be among the `n_best` or lead to them; the last list is
    the result, best first. A continuation that stops leaves the beam with its place, so a beam of width 1 is greedy
    decoding. The search ends early only when nothing that is still open can come among the best.
    """
    return (searches[0].contenders for searches in _together(reader, options, options.beam_width))


def exhaustive(reader: Reader, options: Options) -> Iterator[list[Continuation]]:
    """As `beam`, with a beam that leaves nothing out."""
    vocab, length = reader.model.vocab_size, options.max_tokens
    if length * math.log(vocab) > math.log(MOST_STRINGS):
        raise Mistake(
            f"there are {vocab}^{length} continuations, and exhaustive search tries at most {MOST_STRINGS};"
            " lower {max_tokens} or set {method}",
            code="too-many-continuations",
            max_tokens=None,
            method="beam",
        )
    return (searches[0].contenders for searches in _together(reader, options, vocab**length))


def beam_in_each_row(reader: Reader, options: Options, most: Sequence[int]) -> list[list[Continuation]]:
    """What `beam` finds in every row of the reader, all of them searched side by side. most: tokens of each."""
    (searches,) = deque(_together(reader, options, options.beam_width, most), maxlen=1)
    return [search.contenders for search in searches]


def _together(
    reader: Reader, options: Options, width: int, most: Sequence[int] | None = None
) -> Iterator[list[_Search]]:
    """A search in each row of the reader, a token at a time; their rows go through the model together."""
    limits = [options.max_tokens] if most is None else most
    searches = [_Search(reader, replace(options, max_tokens=limit), width) for limit in limits]
    logp_BV, state = reader.start()
    going = searches
    while going:
        rows, ids, first = list[int](), list[int](), 0
        seen_BV = logp_BV.cpu() if len(searches) > 1 else logp_BV  # many small questions: a GPU would answer each late
        for search in going:
            last = first + len(search.live)
            parents, tokens = search.extend(seen_BV[first:last])
            rows += [first + parent for parent in parents]
            ids += tokens
            first = last
        yield searches
        going = [search for search in going if search.live]
        if going:
            logp_BV, state = reader.select(logp_BV, state, rows)
            logp_BV, state = reader.advance(torch.tensor(ids, device=logp_BV.device), state)


class _Search:
    """One search: continuations that are still open, and the best of those that are finished."""

    def __init__(self, reader: Reader, options: Options, width: int) -> None:
        self.reader, self.options, self.width = reader, options, width
        self.live, self.finished = [reader.empty(options.stop)], list[Continuation]()
        self.left = options.max_tokens

    @property
    def contenders(self) -> list[Continuation]:
        """Those that may be among the best or lead to them; when nothing is open, the best, best first."""
        return [*self.live, *self.finished]

    def extend(self, logp_BV: Tensor) -> tuple[list[int], list[int]]:
        """Add a token, given log p of it after each open continuation: which of them go on, and with what."""
        options, self.left = self.options, self.left - 1
        parents, ids = _best_extensions(self.reader.charged(logp_BV), self.live, self.width)
        extended = _extend(self.reader, logp_BV, self.live, parents, ids)
        going = [i for i, continuation in enumerate(extended) if continuation.finish is None]
        done = [c for c in extended if c.finish is not None]
        self.finished = _ranked([*self.finished, *done], options)[: options.n_best]
        self.live = [extended[i] for i in going]
        if self.left and self.live and not _settled(self.live, self.finished, options):
            return [parents[i] for i in going], [ids[i] for i in going]
        if not self.left:  # else what is open is no continuation yet, and none of it can come among the best
            for continuation in self.live:
                continuation.end()
            self.finished = _ranked([*self.finished, *self.live], options)[: options.n_best]
        self.live = []
        return [], []


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

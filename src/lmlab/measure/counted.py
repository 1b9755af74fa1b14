"""What counts of a text that was read: the tokens inside the stretches of a `Spread`, and the sums over them alone."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from lmlab.measure.interval import tokens_within
from lmlab.measure.scored import Counted, Scored
from lmlab.measure.tally import closed_ids, count_among, is_closed, pieces, spelling_nats_of
from lmlab.text.parts import count_characters

if TYPE_CHECKING:
    from lmlab.measure.spread_sample import Spread
    from lmlab.text.tokenizers import Tokenizer


def count_within(tokenizer: Tokenizer, read: Scored, chosen: Spread) -> Scored:
    """The scores of what was read for a spread, with the sums over what counts; as they are where everything does."""
    if chosen.everything:
        return read
    counts_T = _within(read, chosen)
    counted = Counted(
        chosen=chosen,
        read=read,
        tokens=int(counts_T.sum()),
        bytes=int(np.diff(read.byte_ends, prepend=0)[counts_T].sum()),
        chars=_characters(read, counts_T),
        words=chosen.counted().words,
    )
    return _summed(tokenizer, replace(read, counted=counted), counts_T)


def which_count(scored: Scored) -> np.ndarray:
    """Which of the tokens that were read count (bool)."""
    if scored.counted is None:
        return np.ones(scored.stream.tokens, dtype=bool)
    return _within(scored, scored.counted.chosen)


def _within(read: Scored, chosen: Spread) -> np.ndarray:
    starts_U, stops_U, _ = chosen.bounds()
    token_T, _ = tokens_within(read.byte_ends, starts_U, stops_U)
    counts_T = np.zeros(len(read.byte_ends), dtype=bool)
    counts_T[token_T] = True
    return counts_T


def _characters(read: Scored, counts_T: np.ndarray) -> int:
    """Characters that begin in the tokens that count."""
    text = np.frombuffer(read.part.text().encode(), dtype=np.uint8)
    inside = np.repeat(counts_T, np.diff(read.byte_ends, prepend=0))
    return count_characters(text[inside].tobytes())


def _summed(tokenizer: Tokenizer, scored: Scored, counts_T: np.ndarray) -> Scored:
    """The same scores with the sums over the tokens that count."""
    closed_V = closed_ids(tokenizer)
    total_nats, spelling_nats, closed_nats, known_nats = [], [], [], []
    unknown_tokens = fallback_tokens = impossible = closed_tokens = closed_unknown = 0
    for piece in pieces(scored.stream, tokenizer.unknown_id):
        ids, here = piece.ids[piece.before : len(piece.ids) - piece.after], slice(piece.start, piece.stop)
        counts = counts_T[here]
        nats_T = scored.nats_per_token[here].astype(np.float64)  # spelling included
        total_nats.append(nats_T[counts].sum())
        impossible += int(np.isposinf(nats_T[counts]).sum())
        fallback_tokens += count_among(tokenizer.fallback_ids, ids[counts])
        if closed_V is None:
            continue
        unknown, words = np.flatnonzero(ids == tokenizer.unknown_id), piece.words
        spelled_T = np.zeros(len(ids))
        if tokenizer.spelling is not None and len(words):
            spelled_T[unknown[: len(words)]] = spelling_nats_of(tokenizer.spelling, words)
        closed = closed_V[ids]
        closed[unknown[: len(words)]] = [is_closed(word) for word in words]
        closed &= counts
        spelling_nats.append(spelled_T[counts].sum())
        closed_nats.append((nats_T - spelled_T)[closed].sum())
        known_nats.append(nats_T[closed & (ids != tokenizer.unknown_id)].sum())
        closed_tokens += int(closed.sum())
        closed_unknown += int(closed[unknown].sum())
        unknown_tokens += int(counts[unknown].sum())
    total, spelling = math.fsum(total_nats), math.fsum(spelling_nats)
    return replace(
        scored,
        total_nats=total,
        model_nats=total - spelling,
        spelling_nats=spelling,
        unknown_tokens=unknown_tokens,
        fallback_tokens=fallback_tokens,
        impossible_tokens=impossible,
        closed_tokens=closed_tokens,
        closed_nats=math.fsum(closed_nats),
        closed_unknown=closed_unknown,
        known_nats=math.fsum(known_nats),
    )

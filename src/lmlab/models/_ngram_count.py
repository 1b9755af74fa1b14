"""Counting n-grams of every order up to N by sorting, without a loop over tokens.

An n-gram is named by its rank in the sorted list of all n-grams of its length, and is stored as one 64-bit key:

    key(w_1 .. w_k) = id(w_1 .. w_{k-1}) << bits | w_k

so that the n-grams that share a history lie side by side, sorted by their last token. The history of a token never
reaches across a beginning: it starts with the begin symbol (id V), which is never predicted itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Ids = NDArray[np.int32]


@dataclass(frozen=True, kw_only=True)
class Counts:
    """All n-grams of one order that occur, sorted by key."""

    keys: NDArray[np.int64]
    raw: Ids  # how often each occurs
    suffix: Ids  # the id, one order below, of each n-gram without its first token
    begins: NDArray[np.bool_]  # whether its first token is the begin symbol


def key_bits(vocab_size: int) -> int:
    """How many low bits of a key hold the last token."""
    return max(1, (vocab_size - 1).bit_length())


def with_begins(ids: NDArray, starts: NDArray, vocab_size: int) -> Ids:
    """The tokens as int32 with the begin symbol V before each document."""
    firsts = np.asarray(starts[:-1])
    slots = firsts + np.arange(len(firsts))
    is_token = np.ones(len(ids) + len(firsts), dtype=bool)
    is_token[slots] = False
    tokens = np.empty(len(is_token), dtype=np.int32)
    tokens[slots] = vocab_size
    tokens[is_token] = ids
    return tokens


def count_ngrams(tokens: Ids, restarts_V: NDArray[np.bool_], vocab_size: int, order: int) -> Iterator[Counts]:
    """The n-grams of order 1, 2, .. `order` in `tokens` (see `with_begins`).

    `restarts_V[w]`: token w ends a sentence, so that the history of the next token is the begin symbol alone.
    """
    V, n = vocab_size, len(tokens)
    yield Counts(
        keys=np.arange(V, dtype=np.int64),
        raw=np.bincount(tokens, minlength=V + 1)[:V].astype(np.int32),
        suffix=np.zeros(V, dtype=np.int32),
        begins=np.zeros(V, dtype=bool),
    )
    is_begin = tokens == V
    is_end = np.append(restarts_V, True)[tokens]  # the begin symbol is not the last token of any longer n-gram
    by_token, rank = _ranked(tokens)
    ids = tokens
    history = np.where(is_end, np.int32(V), tokens)
    begins = np.append(np.zeros(V, dtype=bool), True)
    for _ in range(order - 1):
        counts, ids = _extend(tokens, is_begin, history, ids, by_token, rank, begins, key_bits(V))
        yield counts
        begins = counts.begins
        history = np.where(is_end, np.int32(-1), ids)
    assert n < 2**31


def _ranked(tokens: Ids) -> tuple[Ids, Ids]:
    """Positions in the order of their tokens, and the place of each position in that order."""
    position_bits = len(tokens).bit_length()
    packed = (tokens.astype(np.int64) << position_bits) | np.arange(len(tokens))
    packed.sort()  # sorting bare 64-bit numbers is several times faster than an argsort
    by_token = (packed & ((1 << position_bits) - 1)).astype(np.int32)
    rank = np.empty_like(by_token)
    rank[by_token] = np.arange(len(tokens), dtype=np.int32)
    return by_token, rank


def _extend(
    tokens: Ids,
    is_begin: NDArray[np.bool_],
    history: Ids,
    ids_below: Ids,
    by_token: Ids,
    rank: Ids,
    begins_below: NDArray[np.bool_],
    bits: int,
) -> tuple[Counts, Ids]:
    """The n-grams one longer, and the id of the one that ends at each position (-1: none does).

    `history[i]` is the id of the n-gram that ends at i if it can be a history, else -1; `ids_below[i]` its id as such.
    """
    rank_bits = len(tokens).bit_length()
    ends = np.flatnonzero((history[:-1] >= 0) & ~is_begin[1:])
    packed = (history[ends].astype(np.int64) << rank_bits) | rank[1:][ends]
    del ends
    packed.sort()
    position = by_token[packed & ((1 << rank_bits) - 1)]
    packed >>= rank_bits
    packed <<= bits
    packed |= tokens[position]
    is_first = np.empty(len(packed), dtype=bool)
    is_first[:1] = True
    np.not_equal(packed[1:], packed[:-1], out=is_first[1:])
    ids = np.full(len(tokens), -1, dtype=np.int32)
    ids[position] = np.cumsum(is_first, dtype=np.int32) - 1
    firsts = np.flatnonzero(is_first)
    keys = packed[firsts]
    counts = Counts(
        keys=keys,
        raw=np.diff(firsts, append=len(packed)).astype(np.int32),
        suffix=ids_below[position[firsts]],
        begins=begins_below[keys >> bits],
    )
    return counts, ids

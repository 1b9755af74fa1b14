"""Counting n-grams of every order up to N by sorting, without a loop over tokens.

An n-gram is named by its rank among all n-grams of its length, and is stored as one 64-bit key:

    key(w_1 .. w_k) = id(w_1 .. w_{k-1}) << bits | w_k

so that the n-grams that share a history lie side by side, sorted by their last token. The history of a token never
reaches back across a beginning: there it starts with the begin symbol, whose id is V and which is never predicted. V is
larger than any token, so the n-grams that start with it are the last of their order.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Ids = NDArray[np.int32]
MOST_TOKENS = 2**31 - 1  # positions and n-gram ids are 32-bit; two of them must fit a 64-bit key


@dataclass(frozen=True, kw_only=True)
class Counts:
    """The n-grams of one order that occur, sorted by key."""

    keys: NDArray[np.int64]
    counts: Ids  # how often each occurs
    suffix: Ids  # the id, one order below, of each n-gram without its first token
    begins: int  # the n-grams from this id on start with the begin symbol


def key_bits(vocab_size: int) -> int:
    """How many low bits of a key hold the last token."""
    return max(1, (vocab_size - 1).bit_length())


def with_begins(ids: NDArray, starts: NDArray, vocab_size: int) -> Ids:
    """The tokens as int32 with the begin symbol V before each document."""
    firsts = np.asarray(starts[:-1])
    if len(ids) + len(firsts) > MOST_TOKENS:
        raise ValueError(f"an ngram model counts at most {MOST_TOKENS:,} tokens; got {len(ids):,}")
    tokens = np.empty(len(ids) + len(firsts), dtype=np.int32)
    is_token = np.ones(len(tokens), dtype=bool)
    is_token[firsts + np.arange(len(firsts))] = False
    tokens[is_token] = ids
    tokens[~is_token] = vocab_size
    return tokens


def count_ngrams(tokens: Ids, restarts_V: NDArray[np.bool_], vocab_size: int, order: int) -> Iterator[Counts]:
    """The n-grams of order 1, 2, .. `order` in `tokens` (made by `with_begins`).

    `restarts_V[w]`: token w ends a sentence, so that the history of the next token is the begin symbol alone.
    """
    V = vocab_size
    yield Counts(
        keys=np.arange(V, dtype=np.int64),
        counts=np.bincount(tokens, minlength=V + 1)[:V].astype(np.int32),
        suffix=np.zeros(V, dtype=np.int32),
        begins=V,
    )
    if order == 1:
        return
    is_end = np.append(restarts_V, True)[tokens]  # a history of two or more tokens never ends here
    by_token, rank = _ranked(tokens)
    ids, history, begins = tokens, np.where(is_end, np.int32(V), tokens), V
    for _ in range(order - 1):
        counts, ids = _extend(tokens, ids, history, by_token, rank, V, begins)
        begins = counts.begins
        yield counts
        history = np.where(is_end, np.int32(-1), ids)


def _ranked(tokens: Ids) -> tuple[Ids, Ids]:
    """Positions in the order of their tokens, and the place of each position in that order."""
    bits = len(tokens).bit_length()
    packed = tokens.astype(np.int64)
    packed <<= bits
    packed |= np.arange(len(tokens), dtype=np.int64)
    packed.sort()  # sorting bare 64-bit numbers is several times faster than an argsort
    packed &= (1 << bits) - 1
    by_token = packed.astype(np.int32)
    rank = np.empty_like(by_token)
    rank[by_token] = np.arange(len(tokens), dtype=np.int32)
    return by_token, rank


def _extend(
    tokens: Ids, ids_below: Ids, history: Ids, by_token: Ids, rank: Ids, vocab_size: int, begins_below: int
) -> tuple[Counts, Ids]:
    """The n-grams one longer, and the id of the one that ends at each position (-1: none does).

    `ids_below[i]` is the id of the n-gram that ends at i, and `history[i]` the same where it can be a history, else -1.
    """
    rank_bits, bits = len(tokens).bit_length(), key_bits(vocab_size)
    exists = history[:-1] >= 0
    exists &= tokens[1:] != vocab_size
    packed = history[:-1][exists].astype(np.int64)
    packed <<= rank_bits
    packed |= rank[1:][exists]  # stands for the token, and leads back to the position
    packed.sort()
    position = by_token[packed & ((1 << rank_bits) - 1)]
    packed >>= rank_bits
    packed <<= bits
    packed |= tokens[position]
    is_first = np.empty(len(packed), dtype=bool)
    is_first[:1] = True
    np.not_equal(packed[1:], packed[:-1], out=is_first[1:])
    keys = packed[is_first]
    del packed, exists
    ids = np.full(len(tokens), -1, dtype=np.int32)
    ids[position] = np.cumsum(is_first, dtype=np.int32) - np.int32(1)
    suffix = ids_below[position[is_first]]
    counts = np.diff(np.flatnonzero(is_first), append=len(position)).astype(np.int32)
    begins = int(np.searchsorted(keys, begins_below << bits))
    return Counts(keys=keys, counts=counts, suffix=suffix, begins=begins), ids

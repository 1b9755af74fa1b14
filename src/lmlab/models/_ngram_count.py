"""Counting n-grams of every order up to N by sorting, without a loop over tokens.

An n-gram is named by its rank among all n-grams of its length, and is stored as one 64-bit key:

    key(w_1 .. w_k) = id(w_1 .. w_{k-1}) << bits | w_k

so that the n-grams that share a history lie side by side, sorted by their last token. The history of a token never
reaches back across a beginning: there it starts with the begin symbol, whose id is V and which is never predicted. V is
larger than any token, so the n-grams that start with it are the last of their order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from lmlab.config import Mistake

Ids = NDArray[np.int32]
BLOCK = 1 << 18  # entries that one thread works on at once: their temporaries stay in its cache
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


def in_blocks(size: int, work: Callable[[slice], None], block: int = BLOCK) -> None:
    """Call work(slice) for every block of range(size), in the threads torch may use: NumPy leaves them free to run."""
    slices = [slice(start, min(start + block, size)) for start in range(0, size, block)]
    if len(slices) <= 1 or torch.get_num_threads() == 1:
        for part in slices:
            work(part)
        return
    with ThreadPoolExecutor(torch.get_num_threads()) as threads:
        list(threads.map(work, slices))


def with_begins(ids: NDArray[np.unsignedinteger], starts: NDArray[np.int64], vocab_size: int) -> Ids:
    """The tokens as int32 with the begin symbol V before each document."""
    firsts = np.asarray(starts[:-1])
    if len(ids) + len(firsts) > MOST_TOKENS:
        raise Mistake(f"an ngram model counts at most {MOST_TOKENS:,} tokens; got {len(ids):,}")
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
    by_token, rank = _by_token(tokens)
    ids, history, begins = tokens, np.where(is_end, np.int32(V), tokens), V
    for _ in range(order - 1):
        counts, ids = _extend(tokens == V, ids, history, by_token, rank, key_bits(V), begins)
        begins = counts.begins
        yield counts
        history = np.where(is_end, np.int32(-1), ids)


def _by_token(tokens: Ids) -> tuple[NDArray[np.int64], Ids]:
    """All positions in the order of their tokens, as token << 32 | position, and the rank of each position in it."""
    by_token = tokens.astype(np.int64)
    by_token <<= 32
    by_token |= np.arange(len(tokens))
    by_token.sort()  # sorting bare 64-bit numbers is several times faster than an argsort
    rank = np.empty(len(tokens), dtype=np.int32)

    def invert(part: slice) -> None:
        rank[by_token[part].astype(np.int32)] = np.arange(part.start, part.stop)

    in_blocks(len(tokens), invert)
    return by_token, rank


def _extend(
    is_begin: NDArray[np.bool_],
    ids_below: Ids,
    history: Ids,
    by_token: NDArray[np.int64],
    rank: Ids,
    bits: int,
    begins: int,
) -> tuple[Counts, Ids]:
    """The n-grams one longer, and the id of the one that ends at each position (-1: none does).

    `ids_below[i]` is the id of the n-gram that ends at i, and `history[i]` the same where it can be a history, else -1.
    """
    rank_bits = len(rank).bit_length()
    exists = history[:-1] >= 0
    exists &= ~is_begin[1:]
    keys = history[:-1][exists].astype(np.int64)
    keys <<= rank_bits
    keys |= rank[1:][exists]  # the rank stands for the token, and leads back to the position
    keys.sort()
    position = np.empty(len(keys), dtype=np.int32)

    def unpack(part: slice) -> None:
        at = np.take(by_token, keys[part] & ((1 << rank_bits) - 1), mode="clip")
        position[part] = at.astype(np.int32)
        keys[part] = ((keys[part] >> rank_bits) << bits) | (at >> 32)

    in_blocks(len(keys), unpack)
    is_first = np.empty(len(keys), dtype=bool)
    is_first[:1] = True
    np.not_equal(keys[1:], keys[:-1], out=is_first[1:])
    keys = keys[is_first]
    ids = np.full(len(rank), -1, dtype=np.int32)
    rank_of = np.cumsum(is_first, dtype=np.int32)
    rank_of -= 1

    def name(part: slice) -> None:
        ids[position[part]] = rank_of[part]

    in_blocks(len(position), name)
    counts = np.diff(np.flatnonzero(is_first), append=len(position)).astype(np.int32)
    position = position[is_first]
    suffix = np.empty(len(keys), dtype=np.int32)

    def shorten(part: slice) -> None:
        np.take(ids_below, position[part], out=suffix[part], mode="clip")

    in_blocks(len(keys), shorten)
    first_begin = int(np.searchsorted(keys, begins << bits))
    return Counts(keys=keys, counts=counts, suffix=suffix, begins=first_begin), ids

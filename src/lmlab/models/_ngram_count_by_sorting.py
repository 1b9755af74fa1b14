"""Counting n-grams of two tokens and more by sorting, without a loop over tokens: arrays in, arrays out."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch
from numpy.typing import NDArray

from lmlab.models._ngram_blocks import BLOCK, Counts, Ids, in_blocks, key_bits


def count_by_sorting(tokens: Ids, restarts_V: NDArray[np.bool_], vocab_size: int, order: int) -> Iterator[Counts]:
    """The n-grams of order 2, 3, .. `order`, as `count_ngrams` gives them."""
    V = vocab_size
    is_begin = tokens == V
    places = _Places(tokens)
    is_end = np.append(restarts_V, True)[tokens]  # a history of two or more tokens never ends here
    ids, history, begins = tokens, np.where(is_end, np.int32(V), tokens), V
    del tokens
    for length in range(2, order + 1):
        exists = (history[:-1] >= 0) & ~is_begin[1:]
        if length > 2:
            exists &= ~is_end[:-1]
        # the rank stands for the token, and leads back to the position
        keys = _joined(exists, history, places.rank, places.count.bit_length())
        del exists
        counts, ids = _extend(keys, ids, places, key_bits(V), begins, last=length == order)
        begins, history = counts.begins, ids
        yield counts


def sort(keys: NDArray[np.int64]) -> None:
    """Sort in place, in the threads torch may use: each sorts a piece, and a stable sort then only merges the pieces."""
    threads = torch.get_num_threads()
    if threads > 1 and len(keys) > BLOCK:
        in_blocks(len(keys), lambda part: keys[part].sort(), block=-(-len(keys) // threads))
        keys.sort(kind="stable")
    else:
        keys.sort()


class _Places:
    """All positions in the order of their tokens, as token << 32 | position, and the rank of each position in it."""

    def __init__(self, tokens: Ids) -> None:
        by_token = tokens.astype(np.int64)
        by_token <<= 32
        by_token |= np.arange(len(tokens))
        sort(by_token)  # bare 64-bit numbers take a small part of the time of an argsort
        rank = np.empty(len(tokens), dtype=np.int32)

        def invert(part: slice) -> None:
            rank[by_token[part].astype(np.int32)] = np.arange(part.start, part.stop)

        in_blocks(len(tokens), invert)
        self.count, self.by_token, self.rank = len(tokens), by_token, rank

    def forget_ranks(self) -> None:
        """Nobody asks for them any more."""
        self.rank = self.rank[:0].copy()

    def forget(self) -> None:
        """Nobody asks for anything any more."""
        self.forget_ranks()
        self.by_token = self.by_token[:0].copy()


def _name(ids: Ids, position: Ids, is_first: NDArray[np.bool_]) -> None:
    """`ids` at each position: how many kinds came before its own, which the first of each kind begins."""
    blocks = range(0, len(position), BLOCK)
    before = np.cumsum([0] + [np.count_nonzero(is_first[first : first + BLOCK]) for first in blocks])

    def name(part: slice) -> None:
        kinds = np.cumsum(is_first[part], dtype=np.int32)
        ids[position[part]] = kinds + np.int32(before[part.start // BLOCK] - 1)

    in_blocks(len(position), name)


def _run_lengths(is_first: NDArray[np.bool_]) -> Ids:
    """How many entries follow each that is the first of its kind, itself included."""
    starts = np.empty(np.count_nonzero(is_first) + 1, dtype=np.int32)
    done = 0
    for first in range(0, len(is_first), BLOCK):
        found = np.flatnonzero(is_first[first : first + BLOCK])
        starts[done : done + len(found)] = found + first
        done += len(found)
    starts[done] = len(is_first)
    return np.diff(starts)


def _keep(values: NDArray[np.signedinteger], kept: NDArray[np.bool_]) -> None:
    """Drop the other entries, in place: a second array of this size would be the most that counting ever holds."""
    done = 0
    for first in range(0, len(values), BLOCK):
        part = values[first : first + BLOCK][kept[first : first + BLOCK]]
        values[done : done + len(part)] = part
        done += len(part)
    values.resize(done, refcheck=False)


def _joined(exists: NDArray[np.bool_], history: Ids, rank: Ids, rank_bits: int) -> NDArray[np.int64]:
    """history << rank_bits | rank of the next token, where there is such a history."""
    keys = np.empty(np.count_nonzero(exists), dtype=np.int64)
    done = 0
    for first in range(0, len(exists), BLOCK):
        at = np.flatnonzero(exists[first : first + BLOCK]) + first
        part = keys[done : done + len(at)]
        part[:] = history[at]
        part <<= rank_bits
        part |= rank[at + 1]
        done += len(at)
    return keys


def _extend(
    keys: NDArray[np.int64], ids_below: Ids, places: _Places, bits: int, begins: int, *, last: bool
) -> tuple[Counts, Ids]:
    """The n-grams one longer, and the id of the one that ends at each position (-1: none does; none at all for the last).

    keys: what `_joined` made of them, which is used up. `ids_below[i]` is the id of the n-gram that ends at i. What is not
    needed any more is given back at once: the largest arrays decide how much memory it takes to count.
    """
    rank_bits = places.count.bit_length()
    if last:
        places.forget_ranks()
    sort(keys)
    position = np.empty(len(keys), dtype=np.int32)

    def unpack(part: slice) -> None:
        at = np.take(places.by_token, keys[part] & ((1 << rank_bits) - 1), mode="clip")
        position[part] = at.astype(np.int32)
        keys[part] = ((keys[part] >> rank_bits) << bits) | (at >> 32)

    in_blocks(len(keys), unpack)
    if last:
        places.forget()
    is_first = np.empty(len(keys), dtype=bool)
    is_first[:1] = True
    np.not_equal(keys[1:], keys[:-1], out=is_first[1:])
    _keep(keys, is_first)
    ids = np.full(0 if last else places.count, -1, dtype=np.int32)
    if not last:
        _name(ids, position, is_first)
    counts = _run_lengths(is_first)
    _keep(position, is_first)
    suffix = position  # in the memory of the positions, each of which is asked for once

    def shorten(part: slice) -> None:
        suffix[part] = np.take(ids_below, position[part], mode="clip")

    in_blocks(len(keys), shorten)
    first_begin = int(np.searchsorted(keys, begins << bits))
    return Counts(keys=keys, counts=counts, suffix=suffix, begins=first_begin), ids

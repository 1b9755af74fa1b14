"""Counting n-grams of two tokens and more in C (`ngrams.c`): the same n-grams, ids and counts as by sorting."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch
from numpy.typing import NDArray

from lmlab.models._ngram_blocks import BLOCK, Counts, Ids, in_blocks, key_bits
from lmlab.models._ngram_in_c import call

Places = NDArray[np.uint32]


def count_in_c(tokens: Ids, restarts_V: NDArray[np.bool_], vocab_size: int, order: int) -> Iterator[Counts]:
    """The n-grams of order 2, 3, .. `order`, as `count_ngrams` gives them."""
    text = _Text(tokens, restarts_V, vocab_size)
    del tokens
    sizes, places = text.by_history()
    ids: Ids | None = None  # of the n-grams one shorter, by the position where they end; None: the tokens
    begins = vocab_size
    for length in range(2, order + 1):
        stretches = _Stretches(sizes, places)
        text.extend(places, sizes, stretches, longer=length > 2)
        counts, ids = text.name(places, stretches, ids, begins, last=length == order)
        yield counts
        if length < order:
            begins, sizes, places = counts.begins, counts.counts, stretches.moved_together(places)


class _Stretches:
    """Stretches of groups that a thread takes one of: where they begin, and what was found in each."""

    def __init__(self, sizes: Ids, places: Places) -> None:
        if sizes.sum(dtype=np.int64) != len(places):
            raise ValueError("counts were changed before the next order was counted")
        most = len(places) // BLOCK + 1
        self.groups, self.places = np.zeros(most + 1, dtype=np.int64), np.zeros(most + 1, dtype=np.int64)
        count = call("stretches", sizes, len(sizes), BLOCK, self.groups, self.places)
        self.groups[count] = len(sizes)
        self.groups, self.places = self.groups[: count + 1], self.places[:count]
        self.found = np.zeros((count, 2), dtype=np.int64)  # positions and kinds of n-grams

    def __len__(self) -> int:
        return len(self.found)

    def moved_together(self, places: Places) -> Places:
        """The positions that were found, without those between them; in place."""
        done = 0
        for start, size in zip(self.places.tolist(), self.found[:, 0].tolist(), strict=True):
            places[done : done + size] = places[start : start + size]
            done += size
        return places[:done]


class _Text:
    """Tokens, and where their histories restart."""

    def __init__(self, tokens: Ids, restarts_V: NDArray[np.bool_], vocab_size: int) -> None:
        self.tokens, self.V, self.bits = tokens, np.int32(vocab_size), np.int32(key_bits(vocab_size))
        self.restarts_V = np.ascontiguousarray(restarts_V).view(np.uint8)

    def by_history(self) -> tuple[Ids, Places]:
        """How many positions are each history of one token, and all positions in the order of their histories."""
        count = len(self.tokens)
        parts = max(1, min(torch.get_num_threads(), count // max(BLOCK, int(self.V))))  # each takes a row of V
        bounds = [count * part // parts for part in range(parts + 1)]
        found_PV = np.zeros((parts, self.V + 1), dtype=np.int32)

        def look(part: slice) -> None:
            stretch = bounds[part.start], bounds[part.start + 1]
            call("histories", self.tokens, *stretch, self.restarts_V, self.V, found_PV[part.start])

        in_blocks(parts, look, block=1)
        sizes, places = found_PV.sum(axis=0, dtype=np.int32), np.empty(count, dtype=np.uint32)
        next_PV = np.cumsum(found_PV, axis=0, dtype=np.int32)
        next_PV -= found_PV
        next_PV += np.cumsum(sizes, dtype=np.int32) - sizes

        def put(part: slice) -> None:
            stretch = bounds[part.start], bounds[part.start + 1]
            call("by_history", self.tokens, *stretch, self.restarts_V, self.V, next_PV[part.start], places)

        in_blocks(parts, put, block=1)
        return sizes, places

    def extend(self, places: Places, sizes: Ids, stretches: _Stretches, *, longer: bool) -> None:
        """The positions of the n-grams one longer, in each stretch, in place of the shorter ones'."""

        def some(part: slice) -> None:
            first, last = stretches.groups[part.start : part.start + 2].tolist()
            mine, found = places[stretches.places[part.start] :], stretches.found[part.start]
            ours = self.tokens, len(self.tokens), self.restarts_V, self.V, self.bits
            if call("extend", *ours, np.int32(longer), sizes[first:last], last - first, mine, found):
                raise MemoryError

        in_blocks(len(stretches), some, block=1)

    def name(
        self, places: Places, stretches: _Stretches, below: Ids | None, begins: int, *, last: bool
    ) -> tuple[Counts, Ids | None]:
        """The n-grams that were found, and the id of the one that ends at each position, if anybody will ask."""
        kinds = np.append(0, np.cumsum(stretches.found[:, 1]))
        keys = np.empty(kinds[-1], dtype=np.int64)
        counts, suffix = np.empty(kinds[-1], dtype=np.int32), np.empty(kinds[-1], dtype=np.int32)
        ids = None if last else np.empty(len(self.tokens), dtype=np.int32)

        def some(part: slice) -> None:
            mine, size = places[stretches.places[part.start] :], int(stretches.found[part.start, 0])
            ours = self.tokens, self.restarts_V, self.V, self.bits
            call("name", *ours, mine, size, below, ids, int(kinds[part.start]), keys, counts, suffix)

        in_blocks(len(stretches), some, block=1)
        first_begin = int(np.searchsorted(keys, begins << int(self.bits)))
        return Counts(keys=keys, counts=counts, suffix=suffix, begins=first_begin), ids

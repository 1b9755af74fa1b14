"""How often words stand near each other: sparse, symmetric, nearer words counting more.

A pair of words at distance d counts 1/d, up to `window` words apart; words that have no vector are left out beforehand, and no
pair reaches over the end of a document. Counts are of unordered pairs: the matrix X they fill is symmetric, and a word's pair
with itself counts from both sides, as the reference implementation has it (bench/bench_glove.py holds one against the other).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lmlab.config import Mistake

BLOCK = 1 << 24  # pairs that are sorted at once: 128 MB
MOST_COUNTED = 10**11  # words that stand near others, each time that they do: an hour of counting or more
PAIR_BYTES = 128  # that a pair takes in the end, at least, when it is made ready to be learned from


@dataclass(frozen=True)
class Pairs:
    """Unordered pairs of words that occur near each other, in the order of their ids, with their entries of X. P pairs."""

    first_P: np.ndarray
    second_P: np.ndarray  # never smaller than the first
    counts_P: np.ndarray  # float64

    def __len__(self) -> int:
        return len(self.first_P)

    def chosen(self, which: np.ndarray) -> Pairs:
        """Some of them."""
        return Pairs(self.first_P[which], self.second_P[which], self.counts_P[which])

    def both_ways(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """All entries of X that are not zero, as (row, column, value): every pair of two words twice."""
        two = self.first_P != self.second_P
        rows = np.concatenate([self.first_P, self.second_P[two]])
        columns = np.concatenate([self.second_P, self.first_P[two]])
        return rows, columns, np.concatenate([self.counts_P, self.counts_P[two]])


def count_pairs(
    ids_N: np.ndarray, starts_D: np.ndarray, vocab_size: int, window: int, memory_bytes: int | None = None
) -> Pairs:
    """Of documents one after the other, which begin at these places.

    memory_bytes: that there are, if that is known. A Mistake where the window is too large for it, or for anyone's patience.
    """
    sizes_D = np.diff(np.concatenate([[0], starts_D, [len(ids_N)]]))
    asked, window = window, max(1, min(window, int(sizes_D.max()) - 1))  # no two words of a document are farther apart
    if (near := int((sizes_D * np.minimum(sizes_D, window)).sum())) > MOST_COUNTED:
        raise _too_large(asked, f"{near:.1e} times a word stands near another, which takes hours to count")
    most_pairs = None if memory_bytes is None else memory_bytes // PAIR_BYTES
    document_N = np.zeros(len(ids_N), dtype=np.int32)
    inner = starts_D[(starts_D > 0) & (starts_D < len(ids_N))]
    np.add.at(document_N, inner, 1)
    document_N = document_N.cumsum(dtype=np.int32)
    keys_P, counts_P = np.zeros(0, dtype=np.int64), np.zeros(0)
    waiting: list[tuple[np.ndarray, np.ndarray]] = []
    size = max(1, BLOCK // window)
    for start in range(0, len(ids_N), size):
        waiting.append(_counted(ids_N, document_N, start, min(start + size, len(ids_N)), vocab_size, window))
        if sum(len(keys) for keys, _ in waiting) > len(keys_P):  # merging costs no more than counting did
            keys_P, counts_P = _merged([(keys_P, counts_P), *waiting])
            waiting = []
        if most_pairs is not None and len(keys_P) > most_pairs:
            raise _too_large(asked, f"more than {most_pairs:,} pairs of words are near each other, and fill the memory")
    keys_P, counts_P = _merged([(keys_P, counts_P), *waiting]) if waiting else (keys_P, counts_P)
    first_P, second_P = np.divmod(keys_P, vocab_size)
    counts_P = np.where(first_P == second_P, 2 * counts_P, counts_P)
    return Pairs(first_P.astype(np.int32), second_P.astype(np.int32), counts_P)


def _too_large(window: int, why: str) -> Mistake:
    return Mistake(
        f"with a window of {window:,} words {why}; take a smaller one, such as {{window}}",
        code="window-too-large",
        window=10,
    )


def _counted(
    ids_N: np.ndarray, document_N: np.ndarray, start: int, stop: int, vocab_size: int, window: int
) -> tuple[np.ndarray, np.ndarray]:
    """(pair, count) of all words from `start` to `stop` with those before them. A pair is first × V + second."""
    found = []
    for distance in range(1, window + 1):
        begin = min(max(start, distance), stop)
        here, before = slice(begin, stop), slice(begin - distance, stop - distance)
        same = document_N[here] == document_N[before]
        a, b = ids_N[here][same].astype(np.int64), ids_N[before][same].astype(np.int64)
        found.append((np.minimum(a, b) * vocab_size + np.maximum(a, b)) * window + distance - 1)
    keys = np.concatenate(found)
    keys.sort()
    first = _firsts(keys)
    times, keys = np.diff(first, append=len(keys)), keys[first]
    pairs, nearness = keys // window, times / (keys % window + 1)
    first = _firsts(pairs)
    return pairs[first], _sums(nearness, first)


def _merged(found: list[tuple[np.ndarray, np.ndarray]]) -> tuple[np.ndarray, np.ndarray]:
    keys, counts = (np.concatenate(parts) for parts in zip(*found, strict=True))
    order = np.argsort(keys, kind="stable")
    keys, counts = keys[order], counts[order]
    first = _firsts(keys)
    return keys[first], _sums(counts, first)


def _firsts(keys: np.ndarray) -> np.ndarray:
    """Where a new value begins in a sorted array."""
    return np.flatnonzero(np.diff(keys, prepend=-1))


def _sums(values: np.ndarray, first: np.ndarray) -> np.ndarray:
    found: np.ndarray = np.add.reduceat(values, first) if len(first) else np.zeros(0)
    return found

"""Rows of a table that are copies, exact or near, of rows that a model learns from.

A near copy shares most of its words with one training row, in any order of its sentences and in any case. Two steps find it.
First, three words in a row are looked up in all training rows; what is rare in training weighs more, and what stands in very
many rows is left out. The training row that shares the most of this weight is the candidate. Then the words of both rows are
compared: a near copy has at least `LEAST_SHARED` of the longer row's words in common.

Rows of some texts resemble each other without being copies (captions, templates). How many do is measured on the training rows
themselves: each of a sample is looked for among all others. Near copies beyond that share count as copied.

Rows are lower-cased words without punctuation. Not found are rows with fewer than three words that are not the same, and most
rows of fewer than eight words with one of them changed.

Shapes: N words or shingles, Q rows that are looked for, C candidates.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from lmlab.records import JsonRecord, in_json

IN_A_ROW = 3  # words of a shingle
MOST_SHINGLES = 32  # of a row that are looked for, about; more would make no row clearer
MOST_ROWS = 32  # training rows of a shingle that are looked at: the first ones
CANDIDATES = 3  # training rows, at most, whose words are compared with a row's
PAIRS_AT_ONCE = 1 << 20  # of a row and a training row with a shingle in common
LEAST_WEIGHT = 0.25  # of a row's shingles in the training row, for a look at all its words
LEAST_SHARED = 0.8  # words in common, of the longer row
MOST_COPIED = 0.02  # of the rows, above which they do not count as held out
ERRORS = 3.0  # standard errors by which chance may add to the usual share
USUAL_ROWS = 2000  # training rows that are looked for among the others
AT_ONCE = 1 << 18  # characters

_ROOT = 0x9E3779B97F4A7C15  # odd, so that it has an inverse modulo 2^64
_MIX = 0xBF58476D1CE4E5B9  # of SplitMix64 (Steele, Lea & Flood 2014)
_FILTER_BITS = 24
# dashes and quotation marks, Chinese marks, wide ones: U+2000 to U+203F, U+3000 to U+303F, U+FF00 to U+FF3F in UTF-8
_MARKS = ((0xE2, 0x80), (0xE3, 0x80), (0xEF, 0xBC))
_NO_HASH, _NO_ROW = np.zeros(0, dtype=np.uint64), np.zeros(0, dtype=np.int64)


@dataclass(frozen=True, kw_only=True)
class Copied(JsonRecord):
    """How many rows are copies of training rows."""

    rows: int
    exact: int  # the same words in the same order
    near: int  # beside these
    usual: float  # share of the training rows that have a near copy, but no exact one, among the others

    @property
    def number(self) -> int:
        """Copies and near copies."""
        return self.exact + self.near

    @property
    @in_json
    def beyond_usual(self) -> float:
        """The share of rows that are copied: exact copies, and near ones beyond what is usual."""
        if not self.rows:
            return 0.0
        least = ERRORS * math.sqrt(max(self.usual * (1.0 - self.usual), 1.0 / self.rows) / self.rows)
        near = self.near / self.rows - self.usual
        return self.exact / self.rows + (near if near > least else 0.0)

    @property
    @in_json("held_out")
    def is_held_out(self) -> bool:
        """Whether few enough rows are copied for the others to count."""
        return self.beyond_usual <= MOST_COPIED

    def __str__(self) -> str:
        if not self.number:
            return f"none of {self.rows:,} rows is a copy or near copy of a training row"
        usual = f"; {self.usual:.1%} near copies are usual among the training rows" if self.near else ""
        return (
            f"{self.number:,} of {self.rows:,} rows are copies or near copies of training rows"
            f" ({self.number / self.rows:.1%}; {self.exact:,} exact, {self.near:,} near{usual})"
        )


def find_copies(train: Sequence[str], rows: Sequence[str]) -> tuple[np.ndarray, Copied]:
    """Which rows are copies of training rows (bool), and how many."""
    own = np.arange(0, len(train), max(1, -(-len(train) // USUAL_ROWS)))
    queries = [*rows, *(train[i] for i in own.tolist())]
    itself_Q = np.concatenate([np.full(len(rows), -1), own])
    asked = _Asked.of(queries)
    training = _Training.of(train, asked.hash_N)
    exact_Q = _exact(training.whole_R, asked.whole_Q, itself_Q >= 0)
    query_C, row_C = _candidates(training, asked, itself_Q)
    query_C, row_C = query_C[~exact_Q[query_C]], row_C[~exact_Q[query_C]]
    shared_C = _shared([queries[i] for i in query_C.tolist()], [train[i] for i in row_C.tolist()])
    near_Q = np.zeros(len(queries), dtype=bool)
    near_Q[query_C[shared_C >= LEAST_SHARED]] = True
    is_own_Q = itself_Q >= 0
    found = Copied(
        rows=len(rows),
        exact=int(exact_Q[~is_own_Q].sum()),
        near=int(near_Q[~is_own_Q].sum()),
        usual=float(near_Q[is_own_Q].mean()) if len(own) else 0.0,
    )
    return (exact_Q | near_Q)[~is_own_Q], found


@dataclass(frozen=True, eq=False)
class _Asked:
    """The rows that are looked for: a hash of each, and some of its shingles, each once a row."""

    whole_Q: np.ndarray
    hash_N: np.ndarray
    query_N: np.ndarray

    @classmethod
    def of(cls, rows: Sequence[str]) -> _Asked:
        """Of a long row the shingles with the smallest hashes, so that copies keep the same."""
        whole, hashes, numbers = [_NO_HASH], [_NO_HASH], [_NO_ROW]
        for first, some in _chunks(rows):
            words = _words(some)
            whole.append(_whole(some, *words))
            hash_N, row_N = _shingles(*words)
            size_N = np.bincount(row_N, minlength=len(some))[row_N]
            kept_N = hash_N.astype(np.float64) * size_N <= 2.0**64 * MOST_SHINGLES
            hash_N, row_N = hash_N[kept_N], row_N[kept_N]
            order = np.lexsort((hash_N, row_N))
            hash_N, row_N = hash_N[order], row_N[order]
            new_N = np.append(True, (hash_N[1:] != hash_N[:-1]) | (row_N[1:] != row_N[:-1]))[: len(hash_N)]
            hashes.append(hash_N[new_N])
            numbers.append(row_N[new_N] + first)
        return cls(np.concatenate(whole), np.concatenate(hashes), np.concatenate(numbers))


@dataclass(frozen=True, eq=False)
class _Training:
    """The training rows: a hash of each, and which of the shingles that are looked for it has, in the order of these."""

    whole_R: np.ndarray
    shingle_M: np.ndarray  # which of the different hashes that are looked for, sorted
    row_M: np.ndarray

    @classmethod
    def of(cls, rows: Sequence[str], hash_N: np.ndarray) -> _Training:
        known, whole, found = np.unique(hash_N), [_NO_HASH], [_NO_ROW]
        shift, maybe = np.uint64(64 - _FILTER_BITS), np.zeros(1 << _FILTER_BITS, dtype=bool)
        maybe[known >> shift] = True  # most shingles of the training rows are not looked for
        for first, some in _chunks(rows):
            words = _words(some)
            whole.append(_whole(some, *words))
            there_N, row_N = _shingles(*words)
            kept_N = maybe[there_N >> shift]
            there_N, row_N = there_N[kept_N], row_N[kept_N]
            at_N = np.searchsorted(known, there_N)
            same_N = np.take(known, at_N, mode="clip") == there_N if len(known) else kept_N[:0]
            found.append(at_N[same_N] * len(rows) + row_N[same_N] + first)
        key_M = np.sort(np.concatenate(found))
        key_M = key_M[np.append(True, key_M[1:] != key_M[:-1])[: len(key_M)]]
        shingle_M, row_M = np.divmod(key_M, max(1, len(rows)))
        return cls(np.concatenate(whole), shingle_M, row_M)


def _exact(whole_R: np.ndarray, whole_Q: np.ndarray, is_own_Q: np.ndarray) -> np.ndarray:
    """Which queries have the same words in the same order as a training row that is not themselves."""
    known, times = np.unique(whole_R, return_counts=True)
    at_Q = np.searchsorted(known, whole_Q)
    there_Q = np.take(known, at_Q, mode="clip") == whole_Q if len(known) else np.zeros(len(whole_Q), dtype=bool)
    found: np.ndarray = there_Q & (np.take(np.append(times, 0), at_Q, mode="clip") > is_own_Q)
    return found


def _candidates(training: _Training, asked: _Asked, itself_Q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(query, training row) of those that share the most of the query's shingles by weight, and enough of it."""
    rows, queries = len(training.whole_R), len(asked.whole_Q)
    _, shingle_N = np.unique(asked.hash_N, return_inverse=True)
    rows_S = np.bincount(training.shingle_M, minlength=int(shingle_N.max(initial=-1)) + 1)  # with each shingle
    starts_S = np.cumsum(rows_S) - rows_S
    others_N = rows_S[shingle_N] - (itself_Q[asked.query_N] >= 0)  # a row's own shingles say nothing of the others
    weight_N = np.log((rows + 1) / np.maximum(others_N, 1))
    total_Q = np.bincount(asked.query_N, weight_N, minlength=queries)
    times_N = np.minimum(rows_S[shingle_N], MOST_ROWS)
    ends_Q = np.append(0, np.cumsum(np.bincount(asked.query_N, times_N, minlength=queries)).astype(np.int64))
    found = [(_NO_ROW, _NO_ROW)]
    first = 0
    while first < queries:  # of so many queries at once as memory and sorting like
        last = max(first + 1, int(np.searchsorted(ends_Q, ends_Q[first] + PAIRS_AT_ONCE, side="right")) - 1)
        some = slice(*np.searchsorted(asked.query_N, [first, last]))
        times_n, starts_n = times_N[some], starts_S[shingle_N[some]]
        within_P = np.arange(times_n.sum()) - np.repeat(np.cumsum(times_n) - times_n, times_n)
        row_P = training.row_M[within_P + np.repeat(starts_n, times_n)]
        query_P, weight_P = np.repeat(asked.query_N[some], times_n), np.repeat(weight_N[some], times_n)
        other_P = row_P != itself_Q[query_P]
        pair_C, pair_P = np.unique((query_P * rows + row_P)[other_P], return_inverse=True)
        query_C, row_C = np.divmod(pair_C, max(1, rows))
        share_C = np.bincount(pair_P, weight_P[other_P], minlength=len(pair_C)) / total_Q[query_C]
        enough_C = share_C >= LEAST_WEIGHT
        query_C, row_C, share_C = query_C[enough_C], row_C[enough_C], share_C[enough_C]
        order = np.lexsort((-share_C, query_C))
        query_C, row_C = query_C[order], row_C[order]
        best_C = np.arange(len(query_C)) - np.searchsorted(query_C, query_C) < CANDIDATES
        found.append((query_C[best_C], row_C[best_C]))
        first = last
    query, row = zip(*found, strict=True)
    return np.concatenate(query), np.concatenate(row)


def _shared(ours: Sequence[str], others: Sequence[str]) -> np.ndarray:
    """Words in common of each two texts, each as often as both have it, as a share of the longer text's."""
    sides = []
    for texts in (ours, others):
        keys, pairs, sizes = [_NO_HASH], [_NO_ROW], [_NO_ROW]
        for first, some in _chunks(texts):
            hash_N, row_N = _words(some)
            keys.append(_mixed(hash_N + (row_N + first).astype(np.uint64) * np.uint64(_ROOT)))
            pairs.append(row_N + first)
            sizes.append(np.bincount(row_N, minlength=len(some)))
        key_U, first_U, times_U = np.unique(np.concatenate(keys), return_index=True, return_counts=True)
        sides.append((key_U, np.concatenate(pairs)[first_U], times_U, np.concatenate(sizes)))
    (key_U, pair_U, times_U, sizes_C), (other_U, _, others_U, other_sizes_C) = sides
    if not len(key_U) or not len(other_U):
        return np.zeros(len(ours))
    at_U = np.minimum(np.searchsorted(other_U, key_U), len(other_U) - 1)
    both_U = np.where(other_U[at_U] == key_U, np.minimum(times_U, others_U[at_U]), 0)
    found: np.ndarray = np.bincount(pair_U, both_U, minlength=len(ours)) / np.maximum(sizes_C, other_sizes_C).clip(1)
    return found


def _whole(rows: Sequence[str], hash_N: np.ndarray, row_N: np.ndarray) -> np.ndarray:
    """A hash of each row: of its words in their order, or, where it has none, of what is written."""
    place_N = np.arange(len(row_N)) - np.searchsorted(row_N, row_N)
    found = np.zeros(len(rows), dtype=np.uint64)
    np.add.at(found, row_N, _mixed(hash_N + place_N.astype(np.uint64) * np.uint64(_ROOT)))
    for i in np.flatnonzero(np.bincount(row_N, minlength=len(rows)) == 0).tolist():
        found[i] = zlib.crc32(rows[i].strip().encode())
    return found


def _shingles(hash_N: np.ndarray, row_N: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(hash, row) of every `IN_A_ROW` words that follow each other in a row."""
    count = max(0, len(hash_N) - IN_A_ROW + 1)
    found_N = np.zeros(count, dtype=np.uint64)
    for place in range(IN_A_ROW):
        found_N = _mixed(found_N + hash_N[place : place + count])
    within_N = row_N[:count] == row_N[IN_A_ROW - 1 :]
    return found_N[within_N], row_N[:count][within_N]


def _words(rows: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
    """(hash, row) of every word: letters and digits in lower case; of a script without spaces every sign is one.

    Hashes are polynomial: with prefix sums H(i) = Σ_{j<i} b_j·r^j modulo 2^64, the word at [i, k) hashes to (H(k) - H(i))·r^-i.
    """
    encoded = [row.casefold().encode(errors="replace") for row in rows]
    text = np.frombuffer(b" ".join(encoded) + b" ", dtype=np.uint8)
    is_word = _WORD_BYTES[text]
    for first, second in _MARKS:
        marks = np.flatnonzero((text[:-2] == first) & (text[1:-1] == second))
        for place in range(3):
            is_word[marks + place] = False
    begins = is_word & ~np.append(False, is_word[:-1]) | is_word & (text >= 0xE3) & (text <= 0xED)
    ends = is_word & np.append(~is_word[1:] | begins[1:], True)
    start_N, stop_N = np.flatnonzero(begins), np.flatnonzero(ends) + 1
    power, inverse = _powers(1 << len(text).bit_length())
    sums = np.append(np.uint64(0), np.cumsum((text.astype(np.uint64) + np.uint64(1)) * power[: len(text)]))
    row_starts = np.cumsum([0, *(len(one) + 1 for one in encoded)])
    row_N = np.searchsorted(row_starts, start_N, side="right") - 1
    return _mixed((sums[stop_N] - sums[start_N]) * inverse[start_N]), row_N


@lru_cache(maxsize=4)
def _powers(size: int) -> tuple[np.ndarray, np.ndarray]:
    """r^0 … r^(size - 1) modulo 2^64, and their inverses."""
    both = []
    for root in (_ROOT, pow(_ROOT, -1, 1 << 64)):
        powers = np.full(size, root, dtype=np.uint64)
        powers[:1] = 1
        both.append(np.cumprod(powers))
    return both[0], both[1]


def _chunks(rows: Sequence[str]) -> Iterator[tuple[int, Sequence[str]]]:
    """(number of the first, rows) of stretches of about `AT_ONCE` characters."""
    edges, size = [0], 0
    for i, row in enumerate(rows):
        size += len(row)
        if size >= AT_ONCE:
            edges.append(i + 1)
            size = 0
    for first, end in zip(edges, [*edges[1:], len(rows)], strict=True):
        if first < end:
            yield first, rows[first:end]


def _mixed(hash_N: np.ndarray) -> np.ndarray:
    """Every bit of the result depends on every bit of the hash."""
    hash_N = (hash_N ^ (hash_N >> np.uint64(30))) * np.uint64(_MIX)
    return hash_N ^ (hash_N >> np.uint64(31))


def _word_bytes() -> np.ndarray:
    found = np.zeros(256, dtype=bool)
    found[list(b"0123456789abcdefghijklmnopqrstuvwxyz")] = True
    found[0x80:] = True
    return found


_WORD_BYTES = _word_bytes()

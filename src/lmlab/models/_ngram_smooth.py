"""From counts to probabilities: maximum likelihood, add-k and interpolated modified Kneser-Ney.

Whatever the estimator, the result has one form. For each order, every n-gram that occurred has a probability, and every
history a weight for the tokens that never followed it:

    p(w | h) = stored                               if h w occurred
             = weight(h) · base(w)                  if h was followed by tokens, but never by w
             = p(w | h')                            if h never occurred, where h' is h without its first token

and base(w) is p(w | h'), or the uniform distribution for add-k (which gives an h that never occurred 1 / V as well).

The denominator of p(w | h) is c(h ·), the count of h *followed by a token*: the sum of c(h w) over w. The count of h
itself has one more when the text ends in h, where nothing was left to predict; with it the conditionals would sum to
less than one. That is the final token that bishop12 12.13 omits.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lmlab.models._ngram_count import Counts, in_blocks, key_bits

Floats = NDArray[np.float32]
FALLBACK_DISCOUNTS = (0.5, 1.0, 1.5)


@dataclass(frozen=True, kw_only=True)
class Level:
    """The n-grams of one order, and their log-weights as histories of the next order (natural logarithms)."""

    keys: NDArray[np.int64]
    logp: Floats
    weight: Floats  # 0 where no token followed; empty at the highest order


def discounts(counts_of_counts: NDArray[np.int64]) -> tuple[tuple[float, float, float], str]:
    """The discounts D1, D2, D3+ of one order (Chen & Goodman 1999, section 3), and why they are others, if they are.

    counts_of_counts holds n_1 .. n_4, the numbers of n-grams whose (adjusted) count is 1 .. 4:

        Y = n_1 / (n_1 + 2 n_2)        D_c = c - (c + 1) · Y · n_{c+1} / n_c

    Each must lie in (0, c]: a discount of zero would leave nothing for unseen tokens. Where one is undefined or
    outside, all three are FALLBACK_DISCOUNTS.
    """
    n1, n2, n3, n4 = (int(n) for n in counts_of_counts)
    if not (n1 and n2 and n3):
        return FALLBACK_DISCOUNTS, f"undefined, as {n1}, {n2} and {n3} n-grams have counts 1, 2 and 3"
    y = n1 / (n1 + 2 * n2)
    d1, d2, d3 = 1 - 2 * y * n2 / n1, 2 - 3 * y * n3 / n2, 3 - 4 * y * n4 / n3
    if not (0 < d1 <= 1 and 0 < d2 <= 2 and 0 < d3 <= 3):
        return FALLBACK_DISCOUNTS, f"estimated as {d1:.3g}, {d2:.3g} and {d3:.3g}, which is out of range"
    return (d1, d2, d3), ""


def adjust(orders: list[Counts]) -> None:
    """Make raw counts Kneser-Ney's, in place: below the highest order, how many different tokens precede each n-gram.

    An n-gram that starts with the begin symbol has nothing before it: its raw count is the evidence there is.
    """
    for below, above in itertools.pairwise(orders):
        below.counts[: below.begins] = np.bincount(above.suffix, minlength=len(below.counts))[: below.begins]


def kneser_ney(orders: list[Counts], vocab_size: int) -> tuple[list[Level], NDArray[np.int64]]:
    """Interpolated modified Kneser-Ney (Chen & Goodman 1999), and the counts of counts its discounts come from.

        p(w | h) = (c(h w) - D(c(h w))) / c(h ·)  +  γ(h) p(w | h')        γ(h) = Σ_w D(c(h w)) / c(h ·)

    where c are the counts of `adjust`, D(c) is 0, D1, D2 or D3+ as c is 0, 1, 2 or more, and below the empty history
    lies the uniform distribution, 1 / V. The list of orders is emptied on the way, to free their memory.
    """
    adjust(orders)
    n_of_n = np.array([_count_of_counts(counts.counts) for counts in orders])
    levels: list[Level] = []
    p_below = np.full(1, 1 / vocab_size, dtype=np.float32)
    while orders:
        counts = orders.pop(0)
        discount = np.array([0.0, *discounts(n_of_n[len(levels)])[0]], dtype=np.float32)
        runs = _Runs.of(counts.keys, vocab_size, first=not levels)
        p, gamma = _interpolate(counts, runs, discount, p_below)
        _append(levels, counts.keys, np.log(p), runs, np.log(gamma))
        p_below = p
    return levels, n_of_n


def _interpolate(counts: Counts, runs: _Runs, discount: Floats, p_below: Floats) -> tuple[Floats, NDArray[np.float64]]:
    """One order of `kneser_ney`: p of each n-gram, and γ of each history that has followers."""
    c = counts.counts
    spared = np.empty(len(c), dtype=np.float32)

    def spare(part: slice) -> None:
        np.take(discount, np.minimum(c[part], 3), out=spared[part], mode="clip")

    in_blocks(len(c), spare)
    total = runs.sum(c)
    gamma = runs.sum(spared)
    empty = total == 0  # no training token at all: the empty history has nothing to say
    gamma[empty], total[empty] = 1, 1
    gamma /= total
    p = np.empty(len(c), dtype=np.float32)

    def mix(part: slice) -> None:
        run = runs.of_ngrams(part)
        p[part] = (c[part] - spared[part]) / total[run] + gamma[run] * p_below[counts.suffix[part]]

    in_blocks(len(c), mix)
    return p, gamma


def _count_of_counts(counts: NDArray[np.int32]) -> NDArray[np.int64]:
    """n_1 .. n_4."""
    return np.array([np.count_nonzero(counts == c) for c in range(1, 5)])


def relative_frequencies(orders: list[Counts], vocab_size: int, k: float) -> list[Level]:
    """p(w | h) = (c(h w) + k) / (c(h ·) + k V): add-k, or for k = 0 maximum likelihood (bishop12 12.13)."""
    levels: list[Level] = []
    while orders:
        counts = orders.pop(0)
        runs = _Runs.of(counts.keys, vocab_size, first=not levels)
        total = runs.sum(counts.counts) + k * vocab_size
        with np.errstate(divide="ignore"):  # log 0 = -inf is what maximum likelihood says of the unseen
            logp = np.log((counts.counts + k) / total[runs.of_ngrams(slice(0, len(counts.keys)))])
            _append(levels, counts.keys, logp.astype(np.float32), runs, np.log(k * vocab_size / total))
    return levels


@dataclass(frozen=True, kw_only=True)
class _Runs:
    """The n-grams of one order, side by side as they share a history."""

    history: NDArray[np.int64]  # of each run
    starts: NDArray[np.int64]  # where each run starts
    is_start: NDArray[np.bool_]  # of each n-gram

    @classmethod
    def of(cls, keys: NDArray[np.int64], vocab_size: int, first: bool) -> _Runs:
        is_start = np.zeros(len(keys), dtype=bool)
        is_start[:1] = True
        if first:  # unigrams all share the empty history
            return cls(history=np.zeros(1, dtype=np.int64), starts=np.zeros(1, dtype=np.int64), is_start=is_start)
        history = keys >> key_bits(vocab_size)
        np.not_equal(history[1:], history[:-1], out=is_start[1:])
        starts = np.flatnonzero(is_start)
        return cls(history=history[starts], starts=starts, is_start=is_start)

    def sum(self, values: NDArray[np.number]) -> NDArray[np.float64]:
        """The total of each run."""
        if not len(self.starts):
            return np.zeros(0)
        return np.add.reduceat(values, self.starts, dtype=np.float64)

    def of_ngrams(self, part: slice) -> NDArray[np.int64]:
        """The run of each n-gram in this slice."""
        before = int(np.searchsorted(self.starts, part.start))
        return np.cumsum(self.is_start[part]) + (before - 1)


def _append(
    levels: list[Level], keys: NDArray[np.int64], logp: Floats, runs: _Runs, weight: NDArray[np.float64]
) -> None:
    """Add a level, and give the weights of its histories to the level below."""
    if levels:
        below = levels[-1]
        histories = len(below.logp) + (len(levels) == 1)  # the begin symbol is a history, but no unigram
        weights = np.zeros(histories, dtype=np.float32)
        weights[runs.history] = weight
        levels[-1] = Level(keys=below.keys, logp=below.logp, weight=weights)
    levels.append(Level(keys=keys, logp=logp, weight=np.zeros(0, dtype=np.float32)))

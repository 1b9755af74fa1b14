"""From counts to probabilities: maximum likelihood, add-k and interpolated modified Kneser-Ney.

Whatever the estimator, the result has one form. For each order k, every n-gram that occurred has a log-probability, and
every history a log-weight for the tokens it was never followed by:

    p(w | h) = stored                      if h w occurred
             = weight(h) · base(w)         if h occurred, but never before w
             = p(w | h without its first token)   if h never occurred

where base is p(w | h without its first token), or for add-k the uniform distribution.

The denominator of p(w | h) is the count of h *followed by a token*: the sum of the counts of h w over w. Counting h
itself would also count its occurrence at the end of the text, after which nothing was predicted, and the conditionals
would sum to less than one (bishop12 12.13).
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lmlab.models._ngram_count import Counts, key_bits

Floats = NDArray[np.float32]
FALLBACK_DISCOUNTS = (0.5, 1.0, 1.5)


@dataclass(frozen=True, kw_only=True)
class Level:
    """The n-grams of one order: sorted keys, natural log-probabilities, and log-weights as a history."""

    keys: NDArray[np.int64]
    logp: Floats
    weight: Floats  # log-weight of the next order's unseen tokens; 0 for n-grams that no token followed


def discounts(counts_of_counts: NDArray[np.int64]) -> tuple[tuple[float, float, float], str]:
    """The discounts D1, D2, D3+ of one order (Chen & Goodman 1999, equation 26), and why they are not those, if so.

    counts_of_counts holds n_1 .. n_4, the numbers of n-grams with (adjusted) count 1 .. 4:

        Y = n_1 / (n_1 + 2 n_2)        D_c = c - (c + 1) · Y · n_{c+1} / n_c
    """
    n1, n2, n3, n4 = (int(n) for n in counts_of_counts)
    if not (n1 and n2 and n3):
        return FALLBACK_DISCOUNTS, f"counts of counts {n1}, {n2}, {n3} leave them undefined"
    y = n1 / (n1 + 2 * n2)
    d1, d2, d3 = 1 - 2 * y * n2 / n1, 2 - 3 * y * n3 / n2, 3 - 4 * y * n4 / n3
    if not (0 < d1 <= 1 and 0 < d2 <= 2 and 0 < d3 <= 3):
        return FALLBACK_DISCOUNTS, f"the estimates {d1:.3g}, {d2:.3g}, {d3:.3g} are out of range"
    return (d1, d2, d3), ""


def adjusted_counts(orders: list[Counts]) -> list[NDArray[np.int32]]:
    """Kneser-Ney's counts: raw at the highest order; below it, how many different tokens precede each n-gram.

    An n-gram that starts with the begin symbol has nothing before it, so its raw count is the evidence there is.
    """
    adjusted = []
    for below, above in zip(orders, orders[1:], strict=False):
        preceding = np.bincount(above.suffix, minlength=len(below.keys)).astype(np.int32)
        adjusted.append(np.where(below.begins, below.raw, preceding))
    return [*adjusted, orders[-1].raw]


def counts_of_counts(adjusted: Iterable[NDArray[np.int32]]) -> NDArray[np.int64]:
    """n_1 .. n_4 of each order, one row an order."""
    return np.array([np.bincount(np.minimum(c, 5), minlength=6)[1:5] for c in adjusted], dtype=np.int64)


def kneser_ney(orders: list[Counts], vocab_size: int) -> tuple[list[Level], NDArray[np.int64]]:
    """Interpolated modified Kneser-Ney (Chen & Goodman 1999), and the counts of counts its discounts come from.

        p_k(w | h) = (c(h w) - D(c(h w))) / c(h ·)  +  γ(h) p_{k-1}(w | h')        p_0(w) = 1 / V
        γ(h) = (D1 N1(h ·) + D2 N2(h ·) + D3 N3+(h ·)) / c(h ·)

    where D(c) is D1, D2 or D3+ as c is 1, 2 or more, and h' is h without its first token.
    """
    adjusted = adjusted_counts(orders)
    n_of_n = counts_of_counts(adjusted)
    bits = key_bits(vocab_size)
    levels: list[Level] = []
    p_below = np.full(1, 1 / vocab_size)
    histories = 1
    for k, (counts, c) in enumerate(zip(orders, adjusted, strict=True), start=1):
        history = counts.keys >> bits if k > 1 else np.zeros(vocab_size, dtype=np.int64)
        (d1, d2, d3), _ = discounts(n_of_n[k - 1])
        discount = np.array([0, d1, d2, d3])[np.minimum(c, 3)]
        total = np.bincount(history, weights=c, minlength=histories)
        spared = np.bincount(history, weights=discount, minlength=histories)
        gamma = np.divide(spared, total, out=np.ones(histories), where=total > 0)
        held = np.divide(c - discount, total[history], out=np.zeros(len(c)), where=total[history] > 0)
        p = held + gamma[history] * p_below[counts.suffix]
        if levels:
            levels[-1] = _with_weight(levels[-1], np.log(gamma))
        levels.append(_level(counts.keys, np.log(p)))
        p_below, histories = p, len(p) + (k == 1)
    return levels, n_of_n


def maximum_likelihood(orders: list[Counts], vocab_size: int) -> list[Level]:
    """p(w | h) = c(h w) / c(h ·), bishop12 12.13; a token that never followed h has probability zero."""
    return _relative_frequencies(orders, vocab_size, 0.0)


def add_k(orders: list[Counts], vocab_size: int, k: float) -> list[Level]:
    """p(w | h) = (c(h w) + k) / (c(h ·) + k V); 1 / V after a history that never occurred."""
    return _relative_frequencies(orders, vocab_size, k)


def _relative_frequencies(orders: list[Counts], vocab_size: int, k: float) -> list[Level]:
    bits = key_bits(vocab_size)
    levels: list[Level] = []
    histories = 1
    for order, counts in enumerate(orders, start=1):
        history = counts.keys >> bits if order > 1 else np.zeros(vocab_size, dtype=np.int64)
        total = np.bincount(history, weights=counts.raw, minlength=histories) + k * vocab_size
        with np.errstate(divide="ignore", invalid="ignore"):
            logp = np.log((counts.raw + k) / total[history])
            weight = np.log(np.where(total > 0, k * vocab_size / total, 1.0))
        if levels:
            levels[-1] = _with_weight(levels[-1], weight)
        levels.append(_level(counts.keys, logp))
        histories = len(logp) + (order == 1)
    return levels


def _level(keys: NDArray[np.int64], logp: NDArray[np.float64]) -> Level:
    return Level(keys=keys, logp=logp.astype(np.float32), weight=np.zeros(0, dtype=np.float32))


def _with_weight(level: Level, weight: NDArray[np.float64]) -> Level:
    return Level(keys=level.keys, logp=level.logp, weight=weight.astype(np.float32))


def uniform_logp(vocab_size: int) -> float:
    """log(1 / V)."""
    return -math.log(vocab_size)

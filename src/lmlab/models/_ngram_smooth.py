"""From counts to probabilities: maximum likelihood, add-k, absolute discounting, Witten-Bell and modified Kneser-Ney.

Whatever the estimator, the result has one form. For each order, every n-gram that occurred has a probability, and every
history a weight for the tokens that never followed it:

    p(w | h) = stored                               if h w occurred
             = weight(h) · base(w)                  if h was followed by tokens, but never by w
             = p(w | h')                            if h never occurred, where h' is h without its first token

and base(w) is p(w | h'), or the uniform distribution for add-k (which gives an h that never occurred 1 / V as well).

The denominator of p(w | h) is c(h ·), the count of h *followed by a token*: the sum of c(h w) over w. The count of h
itself has one more when the text ends in h, where nothing was left to predict; with it the conditionals would sum to
less than one.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lmlab.models._ngram_blocks import BLOCK, Counts, Ids, in_blocks, in_parts, key_bits
from lmlab.models._ngram_in_c import call, worth_it

Floats = NDArray[np.float32]
FALLBACK_DISCOUNTS = (0.5, 1.0, 1.5)
COUNTED_AT_ONCE = 1 << 23  # n-grams: bounds what is widened to 64 bits at once


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
        preceding = _preceding(above.suffix, len(below.counts))
        below.counts[: below.begins] = preceding[: below.begins]


def _preceding(suffix: Ids, ids: int) -> Ids:
    """How many n-grams have each of the ids below as their suffix."""
    found = np.zeros(ids, dtype=np.int32)
    if worth_it(len(suffix)):

        def look(part: slice) -> None:
            call("preceding", suffix, len(suffix), np.int32(part.start), np.int32(part.stop), found)

        in_parts(ids, look)
        return found
    for first in range(0, len(suffix), COUNTED_AT_ONCE):
        found += np.bincount(suffix[first : first + COUNTED_AT_ONCE], minlength=ids).astype(np.int32)
    return found


def kneser_ney(orders: list[Counts], vocab_size: int, prune: int = 0) -> tuple[list[Level], NDArray[np.int64]]:
    """Interpolated modified Kneser-Ney (Chen & Goodman 1999), and the counts of counts its discounts come from.

        p(w | h) = (c(h w) - D(c(h w))) / c(h ·)  +  γ(h) p(w | h')        γ(h) = Σ_w D(c(h w)) / c(h ·)

    where c are the counts of `adjust`, D(c) is 0, D1, D2 or D3+ as c is 0, 1, 2 or more, and below the empty history
    lies the uniform distribution, 1 / V. The list of orders is emptied on the way, to free their memory.
    """
    pruned = _pruned(orders, prune)
    adjust(orders)
    n_of_n = np.array([_count_of_counts(counts.counts) for counts in orders])
    return _interpolated(orders, vocab_size, [discounts(row)[0] for row in n_of_n], pruned), n_of_n


def absolute_discounting(
    orders: list[Counts], vocab_size: int, prune: int = 0
) -> tuple[list[Level], NDArray[np.int64]]:
    """Interpolated absolute discounting (Ney, Essen & Kneser 1994), and the counts of counts its discounts come from.

        p(w | h) = (c(h w) - D) / c(h ·)  +  γ(h) p(w | h')        D = n_1 / (n_1 + 2 n_2)

    with the counts as they are, and one discount for each order.
    """
    pruned = _pruned(orders, prune)
    n_of_n = np.array([_count_of_counts(counts.counts) for counts in orders])
    spared = [one_discount(row) for row in n_of_n]
    return _interpolated(orders, vocab_size, [(d, d, d) for d in spared], pruned), n_of_n


def one_discount(counts_of_counts: NDArray[np.int64]) -> float:
    """The discount D of absolute discounting; FALLBACK_DISCOUNTS[0] where no n-gram has count 1 or none has count 2."""
    n1, n2 = (int(n) for n in counts_of_counts[:2])
    return n1 / (n1 + 2 * n2) if n1 and n2 else FALLBACK_DISCOUNTS[0]


def witten_bell(orders: list[Counts], vocab_size: int, prune: int = 0) -> list[Level]:
    """Interpolated Witten-Bell (Witten & Bell 1991, method C, in the form of Chen & Goodman 1999).

        p(w | h) = (c(h w) + T(h) p(w | h')) / (c(h ·) + T(h))

    where T(h) is the number of different tokens that follow h.
    """
    return _interpolated(orders, vocab_size, [None] * len(orders), _pruned(orders, prune))


def _pruned(orders: list[Counts], prune: int) -> list[NDArray[np.bool_]]:
    """Which n-grams of each order occur so seldom that they are left out; never a single token."""
    return [counts.counts <= (prune if k else -1) for k, counts in enumerate(orders)] if prune else []


def _interpolated(
    orders: list[Counts],
    vocab_size: int,
    discount: Sequence[tuple[float, float, float] | None],
    pruned: Sequence[NDArray[np.bool_]],
) -> list[Level]:
    """Interpolate each order with the one below, from the uniform distribution on. None: the discounts are Witten-Bell's."""
    levels: list[Level] = []
    p_below = np.full(1, 1 / vocab_size, dtype=np.float32)
    while orders:
        counts, order = orders.pop(0), len(levels)
        spared = discount[order]
        kept = np.array([0.0, *spared], dtype=np.float32) if spared is not None else None
        p_below = _interpolate(levels, counts, vocab_size, kept, p_below, pruned[order] if pruned else None)
    return _without(levels, pruned, vocab_size) if pruned else levels


def _without(levels: list[Level], pruned: Sequence[NDArray[np.bool_]], vocab_size: int) -> list[Level]:
    """The levels without the n-grams that are left out. A history occurs at least as often as what follows it, so it stays."""
    bits, found = key_bits(vocab_size), []
    names = np.arange(vocab_size + 1)  # the new id of each n-gram one shorter; the begin symbol is one
    for k, (level, out) in enumerate(zip(levels, pruned, strict=True)):
        if k == 0:
            found.append(level)
            continue
        stays = ~out
        keys = level.keys[stays]
        keys = names[keys >> bits] << bits | keys & ((1 << bits) - 1)
        weight = level.weight[stays] if len(level.weight) else level.weight
        found.append(Level(keys=keys, logp=level.logp[stays], weight=weight))
        names = np.cumsum(stays) - 1
    return found


def _interpolate(
    levels: list[Level],
    counts: Counts,
    vocab_size: int,
    discount: Floats | None,
    p_below: Floats,
    pruned: NDArray[np.bool_] | None = None,
) -> Floats:
    """Add one order of `_interpolated`; returns p of each of its n-grams.

    An n-gram that is left out is discounted by all of its count, which goes to its history's weight.
    """
    c, p = counts.counts, np.empty(len(counts.counts), dtype=np.float32)
    weight = _weights_below(levels)

    def mix_any(part: slice, runs: _Runs) -> None:
        total, kind = runs.sum(c[part]), np.minimum(c[part], 3)
        if discount is None:
            kinds = runs.sum((c[part] > 0).astype(np.int64))
            total, spared = total + kinds, np.zeros(len(kind))
            gamma = kinds
        else:
            spared = discount[kind].astype(np.float64)
            gamma = np.zeros(len(total))
        if pruned is not None:
            spared = np.where(pruned[part], c[part], spared)
        gamma = gamma + runs.sum(spared)
        empty = total == 0
        gamma[empty], total[empty] = 1, 1
        gamma /= total
        weight[runs.history] = np.log(gamma)
        run = runs.of_ngrams
        p[part] = (c[part] - spared) / total[run] + gamma[run] * p_below[counts.suffix[part]]

    def mix_in_c(part: slice) -> None:
        size = part.stop - part.start
        histories, gammas = np.empty(size, dtype=np.int64), np.empty(size, dtype=np.float64)
        given = counts.keys[part], c[part], counts.suffix[part], size, np.int32(key_bits(vocab_size)), discount, p_below
        runs = call("interpolate", *given, p[part], histories, gammas)
        weight[histories[:runs]] = np.log(gammas[:runs])

    def mix(part: slice, runs: _Runs) -> None:
        assert discount is not None, "Witten-Bell has `mix_any`"
        kind = np.minimum(c[part], 3)
        spared, total = discount[kind], runs.sum(c[part])
        of_1, of_2, of_3 = (runs.sum(kind == n) * float(discount[n]) for n in (1, 2, 3))
        gamma = of_1 + of_2 + of_3  # not added up one by one, so that it does not depend on an order
        empty = total == 0  # no training token at all: the empty history has nothing to say
        gamma[empty], total[empty] = 1, 1
        gamma /= total
        weight[runs.history] = np.log(gamma)
        run = runs.of_ngrams
        p[part] = (c[part] - spared) / total[run] + gamma[run] * p_below[counts.suffix[part]]

    if discount is None or pruned is not None:
        _by_history(counts.keys, vocab_size, mix_any)
    elif worth_it(len(p)):
        _in_whole_histories(counts.keys, vocab_size, mix_in_c)
    else:
        _by_history(counts.keys, vocab_size, mix)
    _append(levels, counts.keys, np.log(p), weight)
    return p


def _count_of_counts(counts: NDArray[np.int32]) -> NDArray[np.int64]:
    """n_1 .. n_4."""
    return np.array([np.count_nonzero(counts == c) for c in range(1, 5)])


def relative_frequencies(orders: list[Counts], vocab_size: int, k: float) -> list[Level]:
    """p(w | h) = (c(h w) + k) / (c(h ·) + k V): add-k, or for k = 0 maximum likelihood."""
    levels: list[Level] = []
    while orders:
        counts = orders.pop(0)
        logp, weight = np.empty(len(counts.keys), dtype=np.float32), _weights_below(levels)

        def share(
            part: slice, runs: _Runs, c: Ids = counts.counts, logp: Floats = logp, weight: Floats = weight
        ) -> None:
            total = runs.sum(c[part]) + k * vocab_size
            with np.errstate(divide="ignore"):  # log 0 = -inf is what maximum likelihood says of the unseen
                logp[part] = np.log((c[part] + k) / total[runs.of_ngrams])
                weight[runs.history] = np.log(k * vocab_size / total)

        _by_history(counts.keys, vocab_size, share)
        _append(levels, counts.keys, logp, weight)
    return levels


@dataclass(frozen=True, kw_only=True)
class _Runs:
    """N-grams of one order, side by side as they share a history."""

    history: NDArray[np.int64]  # of each run; 0 for unigrams, which all share the empty one
    starts: NDArray[np.int64]  # where each run starts
    of_ngrams: NDArray[np.int64]  # the run of each n-gram

    def sum(self, values: NDArray[np.number]) -> NDArray[np.float64]:
        """The total of each run."""
        return np.add.reduceat(values, self.starts, dtype=np.float64)


def _in_whole_histories(keys: NDArray[np.int64], vocab_size: int, work: Callable[[slice], None]) -> None:
    """Call work(slice) for all n-grams in blocks that keep those of one history together, several at a time."""
    bits = key_bits(vocab_size)
    edges = keys[np.arange(0, len(keys), BLOCK)] >> bits << bits
    bounds = np.append(np.unique(np.searchsorted(keys, edges)), len(keys)).tolist()
    in_blocks(len(bounds) - 1, lambda which: work(slice(bounds[which.start], bounds[which.stop])), block=1)


def _by_history(keys: NDArray[np.int64], vocab_size: int, work: Callable[[slice, _Runs], None]) -> None:
    """Call work(slice, runs) likewise."""

    def block(part: slice) -> None:
        history = keys[part] >> key_bits(vocab_size)
        is_start = np.ones(len(history), dtype=bool)
        np.not_equal(history[1:], history[:-1], out=is_start[1:])
        starts = np.flatnonzero(is_start)
        work(part, _Runs(history=history[starts], starts=starts, of_ngrams=np.cumsum(is_start) - 1))

    _in_whole_histories(keys, vocab_size, block)


def _weights_below(levels: list[Level]) -> Floats:
    """Room for the weights of the histories one order below: 0 where no token followed."""
    if not levels:
        return np.zeros(1, dtype=np.float32)  # of the empty history, which nobody asks for
    return np.zeros(
        len(levels[-1].logp) + (len(levels) == 1), dtype=np.float32
    )  # the begin symbol is one, but no unigram


def _append(levels: list[Level], keys: NDArray[np.int64], logp: Floats, weight: Floats) -> None:
    """Add a level, and give the weights of its histories to the level below."""
    if levels:
        levels[-1] = Level(keys=levels[-1].keys, logp=levels[-1].logp, weight=weight)
    levels.append(Level(keys=keys, logp=logp, weight=np.zeros(0, dtype=np.float32)))

"""An interpolated Kneser-Ney n-gram over small alphabets, for many short sequences (words as letters).

Kneser & Ney 1995, in the interpolated form of Chen & Goodman 1999: with c the count of an outcome after a context, and
D the discount of that context's length,

    p(outcome | context) = (max(c - D, 0) + D · types(context) · p(outcome | shorter context)) / total(context)

and 1/K below the empty context. Counts of the longest contexts are numbers of occurrences; counts of shorter ones are
numbers of different symbols before them, except where the context reaches back to the beginning of its sequence.

Letters: K outcomes, m symbols of context, E events (pairs of context and outcome), C contexts.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import final

import numpy as np

DISCOUNT = 0.75  # where no event of a level was counted once, or none twice, to estimate it from


@dataclass(frozen=True)
class _Level:
    """All contexts of one length. Keys are sorted; an id is an index into `context_keys_C`."""

    context_keys_C: np.ndarray  # id of the context one shorter × (K + 1) + the symbol before it
    event_keys_E: np.ndarray  # id of the context × K + outcome
    counts_E: np.ndarray
    totals_C: np.ndarray
    types_C: np.ndarray
    discount: float


@final
class CharNgram:
    """p(outcome | the outcomes before it in its sequence), outcomes 0..K-1."""

    def __init__(
        self, outcomes: np.ndarray, lengths: np.ndarray, weights: np.ndarray, order: int, outcomes_count: int
    ) -> None:
        """Fit to sequences laid end to end.

        lengths: of each sequence; weights: how often each sequence occurs; order: n, at least 1.
        """
        self.order = order
        self.outcomes_count = outcomes_count
        self._levels: list[_Level] = []
        if len(outcomes) == 0:
            return
        weight_of = np.repeat(weights, lengths).astype(np.float64)
        contexts, keys, reaches_begin = self._contexts(outcomes, lengths)
        below: tuple[np.ndarray, np.ndarray] | None = None
        for m in range(order - 1, -1, -1):
            level, below = self._level(m, outcomes, weight_of, contexts[m], keys[m], reaches_begin[m], below)
            self._levels.insert(0, level)

    def _older(self, outcomes: np.ndarray, lengths: np.ndarray) -> Iterator[np.ndarray]:
        """For m = 1, 2, ...: the symbol m places before each outcome; K at the beginning, -1 before that."""
        place = np.arange(len(outcomes)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        for m in range(1, self.order):
            older = np.full(len(outcomes), -1, dtype=np.int64)
            inside = place >= m
            older[inside] = outcomes[np.flatnonzero(inside) - m]
            older[place == m - 1] = self.outcomes_count
            yield older

    def _contexts(self, outcomes: np.ndarray, lengths: np.ndarray) -> tuple[list[np.ndarray], ...]:
        """For each m: the context id of each outcome (-1: no room), the keys, and which contexts reach the start."""
        ids, keys = [np.zeros(len(outcomes), dtype=np.int64)], [np.zeros(1, dtype=np.int64)]
        reaches = [np.zeros(len(outcomes), dtype=bool)]
        for older in self._older(outcomes, lengths):
            valid = older >= 0
            found, inverse = np.unique(ids[-1][valid] * (self.outcomes_count + 1) + older[valid], return_inverse=True)
            id = np.full(len(outcomes), -1, dtype=np.int64)
            id[valid] = inverse
            ids.append(id)
            keys.append(found)
            reaches.append(older == self.outcomes_count)
        return ids, keys, reaches

    def _level(
        self,
        m: int,
        outcomes: np.ndarray,
        weight_of: np.ndarray,
        contexts: np.ndarray,
        context_keys_C: np.ndarray,
        reaches_begin: np.ndarray,
        below: tuple[np.ndarray, np.ndarray] | None,
    ) -> tuple[_Level, tuple[np.ndarray, np.ndarray]]:
        """Count one context length; `below` are the events of the longer contexts, as keys of this length."""
        counted = contexts >= 0 if m == self.order - 1 else reaches_begin
        keys = contexts[counted] * self.outcomes_count + outcomes[counted]
        weights = weight_of[counted]
        if below is not None:
            keys, weights = np.concatenate([keys, below[0]]), np.concatenate([weights, below[1]])
        event_keys_E, inverse = np.unique(keys, return_inverse=True)
        counts_E = np.bincount(inverse, weights=weights)
        context_E = event_keys_E // self.outcomes_count
        once, twice = (counts_E == 1).sum(), (counts_E == 2).sum()
        level = _Level(
            context_keys_C,
            event_keys_E,
            counts_E,
            np.bincount(context_E, weights=counts_E, minlength=len(context_keys_C)),
            np.bincount(context_E, minlength=len(context_keys_C)).astype(np.float64),
            float(once / (once + 2 * twice)) if once and twice else DISCOUNT,
        )
        shorter_E = context_keys_C[context_E] // (self.outcomes_count + 1)
        return level, (shorter_E * self.outcomes_count + event_keys_E % self.outcomes_count, np.ones(len(event_keys_E)))

    def probabilities(self, outcomes: np.ndarray, lengths: np.ndarray) -> np.ndarray:
        """p of every outcome of these sequences, laid end to end, given those before it in its sequence."""
        p = np.full(len(outcomes), 1.0 / self.outcomes_count)
        if len(outcomes) == 0:
            return p
        id = np.zeros(len(outcomes), dtype=np.int64)
        older_of = self._older(outcomes, lengths)
        for m, level in enumerate(self._levels):
            if m:
                older = next(older_of)
                id = np.where((id >= 0) & (older >= 0), id * (self.outcomes_count + 1) + older, -1)
                id = _index(level.context_keys_C, id)
            here = np.flatnonzero(id >= 0)
            event = _index(level.event_keys_E, id[here] * self.outcomes_count + outcomes[here])
            seen = np.where(event >= 0, level.counts_E[event] - level.discount, 0.0)
            c = id[here]
            p[here] = (seen + level.discount * level.types_C[c] * p[here]) / level.totals_C[c]
        return p

    def distribution(self, history: Sequence[int]) -> np.ndarray:
        """p of each of the K outcomes after this history, which begins where its sequence begins."""
        p_K = np.full(self.outcomes_count, 1.0 / self.outcomes_count)
        back = [*reversed(history), self.outcomes_count]
        id = 0
        for m, level in enumerate(self._levels):
            if m:
                if m > len(back):
                    break
                id = int(_index(level.context_keys_C, np.array([id * (self.outcomes_count + 1) + back[m - 1]]))[0])
            if id < 0:
                break
            first, last = np.searchsorted(
                level.event_keys_E, [id * self.outcomes_count, (id + 1) * self.outcomes_count]
            )
            p_K *= level.discount * level.types_C[id] / level.totals_C[id]
            outcome = level.event_keys_E[first:last] - id * self.outcomes_count
            p_K[outcome] += (level.counts_E[first:last] - level.discount) / level.totals_C[id]
        return p_K


def _index(sorted_keys: np.ndarray, keys: np.ndarray) -> np.ndarray:
    """Where each key stands among the sorted ones; -1 where it does not."""
    if len(sorted_keys) == 0:  # no word is long enough for contexts of this length
        return np.full(len(keys), -1)
    at = np.searchsorted(sorted_keys, keys)
    at[at == len(sorted_keys)] = 0
    return np.where(sorted_keys[at] == keys, at, -1)

"""Looking n-grams up: which histories of a token are known, and what they say about it.

A history is named by its id (see `_ngram_count`), or by UNSEEN (it never occurred) or ABSENT (the text, or the sentence,
has not that many tokens yet).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lmlab.models._ngram_count import key_bits
from lmlab.models._ngram_smooth import Level, uniform_logp

UNSEEN, ABSENT = -1, -2
Longs = NDArray[np.int64]


@dataclass(frozen=True, kw_only=True)
class Tables:
    """The estimated model: one level per order, and how to read it."""

    levels: list[Level]
    restarts_V: NDArray[np.bool_]  # tokens after which the history is the begin symbol alone
    vocab_size: int
    to_uniform: bool  # the base of a longer history is uniform (add-k) instead of the next shorter history

    @property
    def order(self) -> int:
        """The length of the longest n-grams."""
        return len(self.levels)

    def begin(self, rows: int) -> Longs:
        """The histories before the first token, B×(order - 1): column m - 1 holds the id of the last m tokens."""
        history_BN = np.full((rows, self.order - 1), ABSENT, dtype=np.int64)
        history_BN[:, :1] = self.vocab_size
        return history_BN

    def step(self, history_BN: Longs, tokens_B: Longs) -> Longs:
        """The histories one token later."""
        after_BN = np.full_like(history_BN, ABSENT)
        ends_B = self.restarts_V[tokens_B]
        after_BN[:, :1] = np.where(ends_B, self.vocab_size, tokens_B)[:, None]
        for m in range(1, history_BN.shape[1]):
            before_B = history_BN[:, m - 1]
            ids_B = np.where(before_B == ABSENT, ABSENT, self._find(m, before_B, tokens_B))
            after_BN[:, m] = np.where(ends_B, ABSENT, ids_B)
        return after_BN

    def distribution(self, history_BN: Longs) -> NDArray[np.float32]:
        """log p of every token after these histories, B×V."""
        logp_BV = np.repeat(self.levels[0].logp[None].astype(np.float64), len(history_BN), axis=0)
        bits = key_bits(self.vocab_size)
        for m, (below, level) in enumerate(zip(self.levels, self.levels[1:], strict=False)):
            history_B = history_BN[:, m]
            if self.to_uniform:
                logp_BV[history_B != ABSENT] = uniform_logp(self.vocab_size)
            rows = np.flatnonzero(history_B >= 0)
            logp_BV[rows] += below.weight[history_B[rows]][:, None]
            first = np.searchsorted(level.keys, history_B[rows] << bits)
            last = np.searchsorted(level.keys, (history_B[rows] + 1) << bits)
            for row, lo, hi in zip(rows, first, last, strict=True):
                logp_BV[row, level.keys[lo:hi] & ((1 << bits) - 1)] = level.logp[lo:hi]
        return logp_BV.astype(np.float32)

    def score(self, tokens: Longs) -> NDArray[np.float32]:
        """-log p of each token; the begin symbol stands before each new text, and costs nothing itself."""
        V = self.vocab_size
        is_begin = tokens == V
        is_end = np.append(self.restarts_V, True)[tokens]
        logp = np.append(self.levels[0].logp, np.float32(0)).astype(np.float64)[tokens]
        history = np.where(is_end, V, tokens)
        for m, (below, level) in enumerate(zip(self.levels, self.levels[1:], strict=False), start=1):
            at = np.flatnonzero((history[:-1] != ABSENT) & ~is_begin[1:]) + 1
            if self.to_uniform:
                logp[at] = uniform_logp(V)
            before = history[at - 1]
            ids = self._find(m, before, tokens[at])
            known = before >= 0
            logp[at[known]] += below.weight[before[known]]
            found = ids >= 0
            logp[at[found]] = level.logp[ids[found]]
            history = np.full(len(tokens), ABSENT, dtype=np.int64)
            history[at] = np.where(is_end[at], ABSENT, ids)
        return -logp.astype(np.float32)

    def _find(self, m: int, history: Longs, tokens: Longs) -> Longs:
        """The ids of the n-grams of length m + 1 (history, token); UNSEEN where there is none."""
        keys = self.levels[m].keys
        if not len(keys):
            return np.full(len(history), UNSEEN, dtype=np.int64)
        wanted = (history << key_bits(self.vocab_size)) | tokens
        at = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
        return np.where((history >= 0) & (keys[at] == wanted), at, UNSEEN)

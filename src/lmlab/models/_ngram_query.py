"""Asking an estimated n-gram model: what does it say about each token of a text, or about every token next?

A history is named by its id (see `_ngram_count`), or it is UNSEEN (it never occurred in training), or ABSENT (the text
or the sentence has not that many tokens yet).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from lmlab.models._natural_log import natural_log
from lmlab.models._ngram_blocks import in_blocks, key_bits
from lmlab.models._ngram_smooth import Level

UNSEEN, ABSENT = -1, -2
BLOCK_BITS = 20  # tokens scored at once, as a power of two: the more, the more of them are the same
LEAST_WEIGHT = -20.0  # as a feature, where maximum likelihood leaves nothing for what is new
LEAST_BITS = 14  # fewer than this many are not worth a thread
Longs = NDArray[np.int64]


@dataclass(frozen=True, kw_only=True)
class Tables:
    """An estimated model: one level per order, and how to read them."""

    levels: list[Level]
    restarts_V: NDArray[np.bool_]  # the tokens after which the history is the begin symbol alone
    vocab_size: int
    to_uniform: bool  # the base of every history is uniform (add-k), not its shorter history

    @property
    def order(self) -> int:
        """The length of the longest n-grams."""
        return len(self.levels)

    def begin(self, rows: int) -> Longs:
        """The histories before the first token, B×(order - 1): column m - 1 is about the last m tokens."""
        history_BN = np.full((rows, self.order - 1), ABSENT, dtype=np.int64)
        history_BN[:, :1] = self.vocab_size
        return history_BN

    def after(self, history_BN: Longs, tokens_BT: Longs) -> Longs:
        """The histories after these tokens, at least one. All are looked up together, length by length."""
        if tokens_BT.shape == (1, 1):
            return np.array([self._after_one_token(history_BN[0].tolist(), int(tokens_BT[0, 0]))], dtype=np.int64)
        reach = history_BN.shape[1]
        after_BN = np.empty_like(history_BN)
        tokens_BT = tokens_BT[:, -reach:]  # older ones cannot matter
        ends_BT = self.restarts_V[tokens_BT]
        ids_BT = np.where(ends_BT, self.vocab_size, tokens_BT)  # of the last m tokens, after each
        for m in range(1, reach):
            after_BN[:, m - 1] = ids_BT[:, -1]
            tokens_BT, ends_BT = tokens_BT[:, m - reach :], ends_BT[:, m - reach :]  # earlier ones matter no more
            before_BT = np.concatenate([history_BN[:, m - 1 : m], ids_BT[:, :-1]], axis=1)[:, m - reach :]
            ids_BT = np.where(ends_BT | (before_BT == ABSENT), ABSENT, self._ids(m, before_BT, tokens_BT))
        after_BN[:, reach - 1 :] = ids_BT[:, -1:]
        return after_BN

    def _after_one_token(self, history_N: list[int], token: int) -> list[int]:
        """As `after`, number by number, which for a single token of a single text is several times as fast."""
        if self.restarts_V[token]:
            return [self.vocab_size, *[ABSENT] * (len(history_N) - 1)][: len(history_N)]
        bits, after_N = key_bits(self.vocab_size), [token]
        for m, history in enumerate(history_N[:-1], start=1):
            after = history
            if history >= 0:
                keys, wanted = self.levels[m].keys, history << bits | token
                at = int(keys.searchsorted(wanted))
                after = at if at < len(keys) and keys[at] == wanted else UNSEEN
            after_N.append(after)
        return after_N[: len(history_N)]

    def distribution(self, history_BN: Longs) -> NDArray[np.float32]:
        """log p of every token after these histories, B×V."""
        if len(history_BN) == 1:
            return self._after_one(history_BN[0])[None]
        bits = key_bits(self.vocab_size)
        logp_BV = np.repeat(self.levels[0].logp[None].astype(np.float64), len(history_BN), axis=0)
        for m in range(1, self.order):
            below, level, history_B = self.levels[m - 1], self.levels[m], history_BN[:, m - 1]
            if self.to_uniform:
                logp_BV[history_B != ABSENT] = -natural_log(self.vocab_size)
            rows = np.flatnonzero(history_B >= 0)
            known = history_B[rows]
            weight_B = np.zeros(len(history_B))
            weight_B[rows] = below.weight[known]
            logp_BV += weight_B[:, None]
            first = np.searchsorted(level.keys, known << bits)
            followers = np.searchsorted(level.keys, (known + 1) << bits) - first
            at = np.arange(followers.sum()) + np.repeat(first - (np.cumsum(followers) - followers), followers)
            logp_BV[np.repeat(rows, followers), level.keys[at] & ((1 << bits) - 1)] = level.logp[at]
        return logp_BV.astype(np.float32)

    def _after_one(self, history_N: Longs) -> NDArray[np.float32]:
        """As `distribution`, number by number, which for a single history is twice as fast."""
        bits = key_bits(self.vocab_size)
        logp_V = self.levels[0].logp.astype(np.float64)
        for m, history in enumerate(history_N.tolist(), start=1):
            if self.to_uniform and history != ABSENT:
                logp_V[:] = -natural_log(self.vocab_size)
            if history >= 0:
                level = self.levels[m]
                first, end = level.keys.searchsorted((history << bits, (history + 1) << bits))
                logp_V += self.levels[m - 1].weight[history]
                logp_V[level.keys[first:end] & ((1 << bits) - 1)] = level.logp[first:end]
        return logp_V.astype(np.float32)

    def _ids(self, m: int, history: Longs, tokens: Longs) -> Longs:
        """The ids of the (m + 1)-grams (history, token); UNSEEN where there is none."""
        wanted = (history << key_bits(self.vocab_size)) | tokens  # negative, so never a key, where there is no history
        is_found, ids = _find(self.levels[m].keys, wanted)
        return np.where(is_found, ids, UNSEEN)

    def orders(self, tokens: Longs) -> Longs:
        """For each token of a text: how long the longest n-gram is that ends with it and was counted, at least 1."""
        history_1N, orders = self.begin(1), np.ones(len(tokens), dtype=np.int64)
        for t, token in enumerate(tokens):
            for m in range(1, self.order):
                if history_1N[0, m - 1] >= 0 and self._ids(m, history_1N[:, m - 1], token)[0] >= 0:
                    orders[t] = m + 1
            history_1N = self.after(history_1N, tokens[None, t : t + 1])
        return orders

    def confidence(self, history_BN: Longs) -> NDArray[np.float32]:
        """How sure these histories are, B×2: the length of the longest that was seen, and its log-weight for what is new."""
        features_B2 = np.zeros((len(history_BN), 2), dtype=np.float32)
        for m in range(1, self.order):
            rows = np.flatnonzero(history_BN[:, m - 1] >= 0)
            features_B2[rows] = self._confidence(m, history_BN[rows, m - 1])
        return features_B2

    def _confidence(self, m: int, known: NDArray[np.integer]) -> NDArray[np.float32]:
        weight = self.levels[m - 1].weight[known]
        return np.stack([np.full_like(weight, m), np.maximum(weight, LEAST_WEIGHT)], axis=1)

    def score(self, tokens: NDArray[np.int32], features_T2: NDArray[np.float32] | None = None) -> NDArray[np.float32]:
        """-log p of each token. The begin symbol V stands before each text, and its own entry means nothing.

        features_T2: zeros, to be filled with what `confidence` says of the history of each token.
        """
        key_sizes = [len(level.keys).bit_length() + key_bits(self.vocab_size) for level in self.levels]
        most = 1 << min(BLOCK_BITS, 62 - max(key_sizes))
        size = min(most, max(1 << LEAST_BITS, 1 + len(tokens) // torch.get_num_threads()))
        nats = np.empty(len(tokens), dtype=np.float32)

        def score_block(part: slice) -> None:
            seen_from = max(0, part.start - (self.order - 1))
            seen_T2 = None if features_T2 is None else np.zeros((part.stop - seen_from, 2), dtype=np.float32)
            nats[part] = -self._logp(tokens[seen_from : part.stop], seen_T2)[part.start - seen_from :]
            if features_T2 is not None and seen_T2 is not None:
                features_T2[part] = seen_T2[part.start - seen_from :]

        in_blocks(len(tokens), score_block, block=size)
        return nats

    def _logp(self, tokens: NDArray[np.int32], features_T2: NDArray[np.float32] | None) -> NDArray[np.float64]:
        """log p of each token given the tokens before it in this block.

        Each n-gram is looked up once, however often it is there, in the order of the tables, so that memory is read in
        order; and only what was found at one length is asked for at the next.
        """
        V, bits = self.vocab_size, key_bits(self.vocab_size)
        place_bits = len(tokens).bit_length()
        is_end = np.append(self.restarts_V, True)[tokens]
        is_predicted = np.append(tokens != V, False)  # and nothing is behind the block
        goes_on = is_predicted[1:] & ~is_end
        logp = np.append(self.levels[0].logp, np.float32(0)).astype(np.float64)[tokens]
        at = np.flatnonzero(is_predicted[1:])
        history = np.where(is_end, np.int64(V), tokens)[at]
        at += 1
        for m in range(1, self.order):
            if self.to_uniform:
                logp[1:][_as_long(is_end, m)[:-1]] = -natural_log(V)
            if features_T2 is not None:
                features_T2[at] = self._confidence(m, history)
            history <<= bits
            history |= tokens[at]
            keys, firsts, times, at = _once(history, at, place_bits)
            is_found, ids = _find(self.levels[m].keys, keys)
            here = logp[at[firsts]] + self.levels[m - 1].weight[keys >> bits]
            here[is_found] = self.levels[m].logp[ids[is_found]]
            logp[at] = np.repeat(here, times)
            history = np.repeat(np.where(is_found, ids, UNSEEN), times)
            known = goes_on[at]
            known &= history >= 0
            at, history = at[known], history[known]
            at += 1
        return logp


def _once(keys: Longs, places: Longs, place_bits: int) -> tuple[Longs, Longs, Longs, Longs]:
    """Each key once, and the places sorted by their keys: where those of each key begin, and how many they are.

    Sorted as bare 64-bit numbers, which is several times faster than an argsort; `keys` is written over.
    """
    keys <<= place_bits
    keys |= places
    keys.sort()
    places = keys & ((1 << place_bits) - 1)
    keys >>= place_bits
    is_new = np.ones(len(keys), dtype=bool)
    np.not_equal(keys[1:], keys[:-1], out=is_new[1:])
    firsts = np.flatnonzero(is_new)
    return keys[firsts], firsts, np.diff(firsts, append=len(keys)), places


def _find(keys: Longs, wanted: Longs) -> tuple[NDArray[np.bool_], Longs]:
    """Which of these are among the keys, and where they would be."""
    at = np.searchsorted(keys, wanted)
    return np.take(keys, at, mode="clip") == wanted if len(keys) else np.zeros(at.shape, dtype=bool), at


def _as_long(is_end: NDArray[np.bool_], m: int) -> NDArray[np.bool_]:
    """After which tokens of a block there is a history of m: as many since the last begin or restart, that one included."""
    places = np.arange(len(is_end))
    since = places - np.maximum.accumulate(np.where(is_end, places, 0))
    return since >= m - 1

"""Scored again, by copies: with another future, in other company, and in other chunks.

Shapes: B rows, T tokens.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from lmlab.measure.agreement import FEWEST_TOKENS, NATS_TOLERANCE, SHAKEN, disagreement, steady
from lmlab.measure.route import steps_of
from lmlab.measure.score import largest_difference, score_rows
from lmlab.measure.walk import CopyMaker, after_chunks

if TYPE_CHECKING:
    from lmlab.interface import ContextPolicy, LanguageModel
    from lmlab.measure.scored import Scored
    from lmlab.text.stream import TokenStream

FUTURE = 24  # tokens that are other than they were
SHORT = 64  # tokens at most before the cut in most rows
GROUPS, GROUP_ROWS = 3, 4
DEEP_SHARE = 0.02  # of the text's tokens, in each of the two rows that are as long as that allows
BATCH_SHARE = 0.004  # of the text's tokens, in each of the rows that are scored alone and together
DEEP_STEPS, BATCH_STEPS = 0.03, 0.01  # the same for models of unbounded history, of what scoring reads token by token


@dataclass(frozen=True)
class Found:
    """Nats by which scores differ, how many scores that is, and how deep in a row the deepest lies."""

    difference: float
    scores: int
    deepest: int


class Rescorer:
    """Scores rows of a measured text with a copy that has not seen them."""

    def __init__(self, copies: CopyMaker, stream: TokenStream, generator: np.random.Generator) -> None:
        self.copies, self.stream, self.generator = copies, stream, generator
        self.model: LanguageModel = copies.new()
        self.lengths_D = np.diff(stream.starts)
        self.longest = int(self.lengths_D.max())
        # what a recurrent net takes for a row does not depend on how many lie beside it
        self.steps = math.inf if self.model.policy.window is not None else steps_of(self.lengths_D)

    def causal(self, scored: Scored, ordinary_T: np.ndarray) -> Found:
        """Other tokens after some place, or none: what came before must cost the same.

        ordinary_T: which recorded scores are the model's alone.
        """
        difference, scores, deepest = 0.0, 0, 0
        for cuts in self._cuts(self.model.policy):
            cut_B = np.repeat([cut for _, cut in cuts], [rows for rows, _ in cuts])
            starts = [start for rows, cut in cuts for start in self._beginnings(rows, cut + 1)]
            true_BT = np.stack([self._row(start, int(cut_B.max()) + FUTURE) for start in starts])
            both_BT = np.concatenate([true_BT, self._otherwise(true_BT, cut_B)])
            nats_BT, other_BT = np.split(score_rows(self.model, both_BT), 2)
            for cut in np.unique(cut_B).tolist():
                ended_BT = score_rows(self.model, both_BT[:, :cut])[
                    : len(true_BT)
                ]  # as many rows: the future alone changes
                for rows, again_BT in ((cut_B == cut, other_BT[:, :cut]), (cut_B > 0, ended_BT)):
                    here = self._disagreement(nats_BT[rows, :cut], again_BT[rows], true_BT[rows, :cut])
                    difference, scores = max(difference, here), scores + int(rows.sum()) * cut
                deepest = max(deepest, cut)
        for start, cut, tokens_T, nats_T in self._other_futures(self._deep()):
            ordinary = ordinary_T[start : start + cut]
            again = nats_T[None, :cut][:, ordinary]
            here = disagreement(scored.nats_per_token[start : start + cut][ordinary], again[0])
            if here > NATS_TOLERANCE:  # whose fault is it? the future's alone counts here
                nats = score_rows(self.model, self._row(start, cut + FUTURE)[None])[:, :cut][:, ordinary]
                here = self._disagreement(nats, again, tokens_T[None, :cut], ordinary)
            difference, scores, deepest = max(difference, here), scores + again.size, max(deepest, cut)
        return Found(difference, scores, deepest)

    def batching(self, scored: Scored, ordinary_T: np.ndarray) -> Found:
        """Rows alone, and all of them backwards and twice; and whole documents alone, against what was recorded."""
        share = min(BATCH_SHARE * self.stream.tokens, BATCH_STEPS * self.steps)
        length = int(np.clip(share, min(SHORT, self.stream.tokens), 1 << 14))
        starts = self.generator.integers(self.stream.tokens - length + 1, size=3)
        rows_BT = np.stack([self._row(int(start), length) for start in starts])
        alone_BT = np.concatenate([score_rows(self.model, row_T[None]) for row_T in rows_BT])
        order = [2, 1, 0, 0, 1, 2]
        together_BT = score_rows(self.model, rows_BT[order])
        difference = self._disagreement(alone_BT[order], together_BT, rows_BT[order])
        scores = together_BT.size
        short = np.flatnonzero((self.lengths_D > 0) & (self.lengths_D <= length))
        for document in self.generator.permutation(short)[:2]:
            start, stop = (int(edge) for edge in self.stream.starts[document : document + 2])
            tokens_1T, ordinary = self._row(start, stop - start)[None], ordinary_T[start:stop]
            again = score_rows(self.model, tokens_1T)[:, ordinary]
            recorded = scored.nats_per_token[start:stop][ordinary][None]
            difference = max(difference, self._disagreement(recorded, again, tokens_1T, ordinary))
            scores += again.size
        return Found(difference, scores, length)

    def chunking(self) -> Found:
        """Distributions after one chunk and after several: a single token first; chunks of any size, a single token last."""
        window = self.model.policy.window or SHORT
        most = min(int(np.clip(window + 8, SHORT, max(SHORT, DEEP_SHARE * self.stream.tokens))), self.stream.tokens)
        found, chaotic = self._chunks(most)
        return self._chunks(min(most, FEWEST_TOKENS))[0] if chaotic else found

    def _chunks(self, length: int) -> tuple[Found, bool]:
        """What chunks of so many tokens in all show, and whether a chaotic model keeps that from meaning anything."""
        starts = self.generator.integers(self.stream.tokens - length + 1, size=2)
        rows_BT = np.stack([self._row(int(start), length) for start in starts])
        whole_BV = after_chunks(self.model, rows_BT, [length])
        cuts = np.unique(self.generator.integers(1, max(length, 2), size=3)).tolist()
        divided = [[end for end in ends if 0 < end < length] for ends in ([1], sorted({*cuts, length - 1}))]
        chunked = [after_chunks(self.model, rows_BT, [*ends, length]) for ends in divided]
        difference = max(largest_difference(whole_BV, logp_BV) for logp_BV in chunked)
        shaken = self.copies.shaken() if difference > NATS_TOLERANCE else None
        moved = 0.0 if shaken is None else largest_difference(whole_BV, after_chunks(shaken, rows_BT, [length]))
        return Found(difference, whole_BV.size, length), moved > SHAKEN

    def _disagreement(
        self, a: np.ndarray, b: np.ndarray, tokens_BT: np.ndarray, columns: np.ndarray | None = None
    ) -> float:
        """Of scores of these tokens (or columns of them); only where they differ is it asked whether the model is chaotic."""
        found = disagreement(a, b)
        shaken = self.copies.shaken() if found > NATS_TOLERANCE else None
        if shaken is None:
            return found
        places_BT = np.broadcast_to(np.arange(tokens_BT.shape[1]), tokens_BT.shape)
        nats_BT, shaken_BT = score_rows(self.model, tokens_BT), score_rows(shaken, tokens_BT)
        by_itself = steady(nats_BT, shaken_BT, places_BT)
        return disagreement(a, b, by_itself if columns is None else by_itself[:, columns])

    def _cuts(self, policy: ContextPolicy) -> list[list[tuple[int, int]]]:
        """(rows, place) at which the future is changed: several near the beginning, scored together; one beyond the window."""
        most = min(SHORT, self.longest - 1)
        found = [[(GROUP_ROWS, int(cut)) for cut in self.generator.integers(1, most + 1, size=GROUPS)]] if most else []
        if policy.window is not None and policy.stride is not None and policy.window > SHORT:
            beyond = policy.window + int(self.generator.integers(policy.stride + 1))
            found += [[(1, beyond)]] if beyond < min(self.longest, DEEP_SHARE * self.stream.tokens) else []
        return found

    def _deep(self) -> list[tuple[int, int]]:
        """(start of a document, place) of two rows that are as long as they may be."""
        most = int(min(DEEP_SHARE * self.stream.tokens, DEEP_STEPS * self.steps))
        found = []
        for start in self._beginnings(2, min(SHORT, self.longest)):
            length = int(self.lengths_D[np.flatnonzero(self.stream.starts[:-1] == start)[-1]])
            cut = min(length - 1, most)
            found += [(start, cut)] if cut > SHORT else []
        return found

    def _other_futures(self, rows: list[tuple[int, int]]) -> list[tuple[int, int, np.ndarray, np.ndarray]]:
        """(start, place, tokens, their nats) of rows with other tokens from a place on, all of one length.

        They are scored side by side: what a recurrent net takes for a long row, it hardly takes again for another beside it.
        """
        if not rows:
            return []
        true_BT = np.stack([self._row(start, max(cut for _, cut in rows) + FUTURE) for start, _ in rows])
        cut_B = np.array([cut for _, cut in rows])
        tokens_BT = self._otherwise(true_BT, cut_B)
        nats_BT = score_rows(self.model, tokens_BT)
        return [(start, cut, tokens_BT[i], nats_BT[i]) for i, (start, cut) in enumerate(rows)]

    def _beginnings(self, count: int, length: int) -> list[int]:
        """Where documents of at least so many tokens begin, drawn by chance, the longer the likelier."""
        enough = np.flatnonzero(self.lengths_D >= length)
        weights = self.lengths_D[enough] / self.lengths_D[enough].sum()
        return [int(self.stream.starts[d]) for d in self.generator.choice(enough, size=count, p=weights)]

    def _row(self, start: int, length: int) -> np.ndarray:
        """So many tokens of the stream from `start` on; where it ends, they go on from its beginning."""
        return self._tokens(np.arange(start, start + length))

    def _tokens(self, at: np.ndarray) -> np.ndarray:
        return np.take(self.stream.ids, at, mode="wrap").astype(np.int64)

    def _otherwise(self, true_BT: np.ndarray, cut_B: np.ndarray) -> np.ndarray:
        """The same rows up to these places, and other tokens from there on, each of them."""
        V = self.model.vocab_size
        if V == 1:
            return true_BT
        other_BT = (true_BT + self.generator.integers(1, V, size=true_BT.shape)) % V
        return np.where(np.arange(true_BT.shape[1]) < cut_B[:, None], true_BT, other_BT)

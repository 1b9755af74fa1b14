"""How well word vectors say how often pairs of words occur that they have not learned from, beside what frequencies alone say.

Intervals are over words: all pairs of a word are drawn together, since they share what is wrong with its vector.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch

from lmlab.config import Mistake
from lmlab.hardware.choice import choose_device
from lmlab.learn.run import Run
from lmlab.learn.run_advice import weights_warning
from lmlab.measure.near_copies import held_out
from lmlab.measure.row_intervals import of_quotient
from lmlab.models.glove import GloVe
from lmlab.results import Figure, OtherResult
from lmlab.tasks.word_vectors.counting import Pairs
from lmlab.tasks.word_vectors.data import Entries, pairs_of
from lmlab.tasks.word_vectors.learner import parts_of
from lmlab.text.corpus import read

ROUNDS = 10  # of fitting the biases; more change nothing that is shown


@dataclass(frozen=True, kw_only=True)
class PairScores:
    """Of one model on pairs of words."""

    objective: Figure  # half the weighted squared error of log X, for each pair
    explained: Figure  # share of the weighted variance of log X


@dataclass(frozen=True, kw_only=True)
class VectorsResult(OtherResult):
    """What `lmlab eval` says of word vectors."""

    words: int  # that have vectors
    pairs: int  # that were measured
    scores: PairScores
    frequencies: PairScores  # of b_i + b_j alone, fitted to the pairs that were learned from
    gain: Figure  # share explained above that of the frequencies, paired


def evaluate(
    run: Run, data: str | Path | None = None, *, part: str = "test", seed: int = 0, device: str = "auto"
) -> VectorsResult:
    """The objective and the share of log X that is explained, on pairs that were held out, with frequencies alone beside it.

    data: another text; all its pairs of known words are measured, up to one constant, since it is longer or shorter.
    """
    model = run.saved
    assert isinstance(model, GloVe)
    parts, notes = parts_of(run), [warning] if (warning := weights_warning(run)) else []
    if data is None:
        name, pairs = run.corpus.name, parts[part]
    else:
        other = read(data, split=(100, 0, 0))
        name, pairs = other.name, pairs_of(other.train, run.tokenizer, model.config.window)
        known = held_out(run.learned_from, other.train)
        if known.verdict != "held out":
            notes.append(f"{known.verdict}: {known.detail}")
    if not len(pairs):
        empty = f"no pair of {name} is in the {part} part" if data is None else f"{name} has no pair of known words"
        raise Mistake(f"{empty}; choose another {{part}}, or name a text", code="part-empty", part=None)
    learned, measured = Entries.of(parts["train"], model.config), Entries.of(pairs, model.config)
    biases_V = frequency_biases(learned, model.vocab_size)
    errors_P = _predicted(model, measured, device) - measured.logs_P
    plain_P = biases_V[measured.words_P] + biases_V[measured.contexts_P] - measured.logs_P
    if data is not None:
        errors_P, plain_P = (e_P - np.average(e_P, weights=measured.weights_P) for e_P in (errors_P, plain_P))
    found = _result(run, name, part if data is None else "whole", pairs, measured, errors_P, plain_P)
    return replace(found, notes=tuple(notes))


def _result(
    run: Run,
    name: str,
    part: str,
    pairs: Pairs,
    measured: Entries,
    errors_P: np.ndarray,
    plain_P: np.ndarray,
) -> VectorsResult:
    sums = _SumsOfWords.of(measured)
    own, plain = sums.squares(errors_P), sums.squares(plain_P)

    def scores(squares_W: np.ndarray) -> PairScores:
        return PairScores(
            objective=of_quotient(squares_W / 2, sums.pairs_W, least=0.0),
            explained=of_quotient(sums.spread_W - squares_W, sums.spread_W, most=1.0),
        )

    return VectorsResult(
        model=run.record.model.name,
        data=name,
        part=part,
        words=run.tokenizer.vocab_size - 1,
        pairs=len(pairs),
        scores=scores(own),
        frequencies=scores(plain),
        gain=of_quotient(plain - own, sums.spread_W),
    )


@dataclass(frozen=True)
class _SumsOfWords:
    """What is summed over the pairs of each word that has any. W words."""

    word_P: np.ndarray  # numbered from 0
    weights_P: np.ndarray
    pairs_W: np.ndarray
    spread_W: np.ndarray  # weighted squared distance of log X from its mean over all pairs

    @classmethod
    def of(cls, entries: Entries) -> _SumsOfWords:
        _, word_P = np.unique(entries.words_P, return_inverse=True)
        weights_P = entries.weights_P.astype(np.float64)
        mean = np.average(entries.logs_P, weights=weights_P)
        spread_W = np.bincount(word_P, weights_P * (entries.logs_P - mean) ** 2)
        return cls(word_P, weights_P, np.bincount(word_P), spread_W)

    def squares(self, errors_P: np.ndarray) -> np.ndarray:
        """Weighted squared errors of each word's pairs."""
        return np.bincount(self.word_P, self.weights_P * errors_P.astype(np.float64) ** 2)


def frequency_biases(entries: Entries, vocab_size: int) -> np.ndarray:
    """The b of log X_ij ≈ b_i + b_j with the least weighted squared error: what the frequencies of words alone tell."""
    weights_V = np.bincount(entries.words_P, entries.weights_P, minlength=vocab_size)
    biases_V = np.zeros(vocab_size)
    for _ in range(ROUNDS):  # half the step of each word alone: with a full one, words and contexts would swing
        rest_P = entries.weights_P * (entries.logs_P - biases_V[entries.words_P] - biases_V[entries.contexts_P])
        sums_V = np.bincount(entries.words_P, rest_P, minlength=vocab_size)
        biases_V += 0.5 * np.divide(sums_V, weights_V, out=np.zeros(vocab_size), where=weights_V > 0)
    return biases_V


@torch.no_grad()
def _predicted(model: GloVe, entries: Entries, device: str) -> np.ndarray:
    place = choose_device(device)
    model = model.to(place).eval()
    found = [model.predicted(b.words_B.to(place), b.contexts_B.to(place)).cpu().numpy() for b in entries.batches()]
    return np.concatenate(found)

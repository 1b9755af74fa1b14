"""How well a combiner does what it was trained for on pairs that were held out, beside addition and a linear map."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from lmlab.config import Mistake
from lmlab.hardware.choice import choose_device
from lmlab.learn.run import Run
from lmlab.learn.run_advice import weights_warning
from lmlab.measure.row_intervals import of_quotient
from lmlab.models.autoencoder import Autoencoder
from lmlab.results import Figure, OtherResult
from lmlab.tasks.classification.scores import bits, gain, of_share
from lmlab.tasks.word_pairs.data import Material, data_of_run, has_vector, of_text
from lmlab.tasks.word_pairs.labelled_pairs import (
    Listed,
    Neighbouring,
    WordPairs,
    is_table,
    keys_of,
    occurs,
    read_table,
)
from lmlab.tasks.word_pairs.learner import batches
from lmlab.tasks.word_pairs.simpler_ways import Simple
from lmlab.text.corpus import read

FITTED_ON = 50_000  # pairs of the training part that the simpler ways are fitted to


@dataclass(frozen=True, kw_only=True)
class CombinerScores:
    """Of one way to combine two words."""

    explained: Figure  # share of the variance of the word vectors that is brought back
    accuracy: Figure  # of the labels
    bits: Figure  # that the right label costs


@dataclass(frozen=True, kw_only=True)
class Gain:
    """How far ahead of a simpler way, paired."""

    explained: Figure
    accuracy: Figure


@dataclass(frozen=True, kw_only=True)
class CombiningResult(OtherResult):
    """What `lmlab eval` says of a combiner."""

    pairs: int
    classes: tuple[str, ...]
    parent: int  # numbers of a parent
    scores: CombinerScores
    addition: CombinerScores
    linear: CombinerScores  # the best linear map to a parent of the same width
    over_addition: Gain
    over_linear: Gain


@dataclass(frozen=True)
class _Outcome:
    """Of each pair: the squared error of what is brought back, the probabilities of the labels."""

    squares_N: np.ndarray
    p_NK: np.ndarray


def evaluate(
    run: Run, data: str | Path | None = None, *, part: str = "test", seed: int = 0, device: str = "auto"
) -> CombiningResult:
    """Reconstruction and labels of held-out pairs, with addition and a linear map of the same width beside it.

    data: another text (real pairs and exchanged ones), or another table with the same labels.
    """
    model = run.saved
    assert isinstance(model, Autoencoder)
    material = data_of_run(run).material
    name, pairs = str(run.record.inputs.corpus["name"]), material.part(part, seed)
    notes: tuple[str, ...] = (warning,) if (warning := weights_warning(run)) else ()
    if data is not None:
        has_V = has_vector(model.embedding_VX.detach().cpu().numpy())
        if is_table(data) != ("classes" in run.record.inputs.corpus):
            raise Mistake(
                "a combiner of a text is measured on a text, one of a table of pairs on a table of pairs",
                code="combiner-on-other-data",
            )
        name = Path(data).name
        if is_table(data):
            pairs = read_table(data).pairs(run.tokenizer, has_V, material.classes)
            notes += _learned_too(pairs, material, run.tokenizer.vocab_size)
        else:
            assert isinstance(material.train, Neighbouring), "a combiner of a text learned from its pairs"
            other, learned_keys = read(data, split=(100, 0, 0)).train, material.train.known
            pairs = of_text(other, run.tokenizer, has_V, learned_keys, seed)
    if not len(pairs):
        raise Mistake(
            f"the {part} part of {name} has no pairs; choose another {{part}}, or name other data",
            code="part-without-pairs",
            part=None,
        )
    learned = material.train.draw(np.random.default_rng([seed, 4]), FITTED_ON)
    place = choose_device(device)
    own = _of_model(model.to(place).eval(), pairs, place)
    x_NX2, learned_NX2 = _vectors(model, pairs), _vectors(model, learned)
    labels, parent = len(material.classes), model.config.parent
    ways = {
        way: _of_simple(Simple.fit(way, learned_NX2, learned.labels_B, parent, labels), x_NX2)
        for way in ("addition", "linear")
    }
    spread_N = ((x_NX2 - x_NX2.mean(0)) ** 2).sum(1)
    return CombiningResult(
        model=run.record.model.name,
        data=name,
        part=part if data is None else "whole",
        pairs=len(pairs),
        classes=material.classes,
        parent=parent,
        scores=_scores(own, spread_N, pairs.labels_B),
        addition=_scores(ways["addition"], spread_N, pairs.labels_B),
        linear=_scores(ways["linear"], spread_N, pairs.labels_B),
        over_addition=_gain(own, ways["addition"], spread_N, pairs.labels_B),
        over_linear=_gain(own, ways["linear"], spread_N, pairs.labels_B),
        notes=notes,
    )


def _learned_too(pairs: WordPairs, material: Material, vocab_size: int) -> tuple[str, ...]:
    """How many pairs of another table are no held-out ones; nothing where all are."""
    assert isinstance(material.train, Listed), "a combiner of a table learned from its rows"
    learned = np.unique(keys_of(material.train.pairs.words_B2, vocab_size))
    number = int(occurs(pairs.words_B2, learned, vocab_size).sum())
    return (f"{number:,} of these {len(pairs):,} pairs were learned from, and are not held out",) if number else ()


@torch.no_grad()
def _of_model(model: Autoencoder, pairs: WordPairs, place: torch.device) -> _Outcome:
    squares, p = [], []
    for batch in batches(pairs):
        words_B2 = batch.words_B2.to(place)
        p_BP = model.parents(words_B2)
        squares.append((model.decoder(p_BP) - model.inputs(words_B2)).square().sum(1).cpu().numpy())
        p.append(torch.softmax(model.output(p_BP).float(), dim=1).cpu().numpy())
    return _Outcome(np.concatenate(squares).astype(np.float64), np.concatenate(p))


def _of_simple(way: Simple, x_NX2: np.ndarray) -> _Outcome:
    return _Outcome(((way.brought_back(x_NX2) - x_NX2) ** 2).sum(1), way.probabilities(x_NX2))


@torch.no_grad()
def _vectors(model: Autoencoder, pairs: WordPairs) -> np.ndarray:
    words_B2 = torch.from_numpy(pairs.words_B2.astype(np.int64)).to(model.embedding_VX.device)
    found: np.ndarray = model.inputs(words_B2).double().cpu().numpy()
    return found


def _scores(found: _Outcome, spread_N: np.ndarray, labels_N: np.ndarray) -> CombinerScores:
    return CombinerScores(
        explained=of_quotient(spread_N - found.squares_N, spread_N, most=1.0),
        accuracy=of_share(int((found.p_NK.argmax(1) == labels_N).sum()), len(labels_N)),
        bits=bits(found.p_NK, labels_N),
    )


def _gain(one: _Outcome, other: _Outcome, spread_N: np.ndarray, labels_N: np.ndarray) -> Gain:
    return Gain(
        explained=of_quotient(other.squares_N - one.squares_N, spread_N),
        accuracy=gain(one.p_NK.argmax(1) == labels_N, other.p_NK.argmax(1) == labels_N),
    )

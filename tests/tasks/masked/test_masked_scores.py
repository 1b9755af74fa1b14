"""Masked loss beside counting, and the pseudo-log-likelihood, against the model asked one token at a time."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
import torch

import lmlab
from lmlab.config import Mistake
from lmlab.learn.fit import stream_folder
from lmlab.learn.run import Run
from lmlab.models.bert import BERT
from lmlab.tasks.masked.measure import MaskedResult, pseudo_units
from lmlab.text.stream import tokenize
from mistakes import mistake


def measured(run: Run, text: Path | None = None, part: str | None = None) -> MaskedResult:
    found = lmlab.evaluate(run, text, part=part)
    assert isinstance(found, MaskedResult)
    return found


def test_blanks_cost_less_than_counting_says_and_the_difference_has_an_interval(encoder: Run) -> None:
    found = measured(encoder)
    assert found.masked_tokens == pytest.approx(0.15 * found.read_tokens, rel=0.01)
    assert found.unigram.estimate - found.masked.estimate == pytest.approx(found.saved.estimate)
    assert found.saved.low is not None
    assert found.saved.low > 0
    assert found.masked.low <= found.masked.estimate <= found.masked.high  # type: ignore[operator]
    document = found.to_json()
    assert "pseudo_bits_per_byte" in document
    assert "bits_per_byte" not in document


def test_the_unigram_is_what_the_training_part_counts(encoder: Run) -> None:
    found = measured(encoder)
    stream = tokenize(encoder.corpus.train, encoder.tokenizer, stream_folder())
    p_V = np.bincount(stream.ids, minlength=encoder.tokenizer.vocab_size) / stream.tokens
    entropy = -sum(p * math.log2(p) for p in p_V if p)
    assert found.unigram.estimate == pytest.approx(entropy, abs=0.25)  # of some masked tokens of another part


@torch.no_grad()
def test_the_pseudo_likelihood_is_the_model_asked_for_each_token_in_turn(encoder: Run) -> None:
    model, tokens = encoder.saved, encoder.tokenizer
    assert isinstance(model, BERT)
    model.to("cpu")
    stream = tokenize(encoder.corpus.test, tokens, stream_folder())
    units, number = pseudo_units(model, tokens, stream, np.random.default_rng(0))
    again, windows = 0.0, 0
    for start in range(0, stream.tokens, model.longest_window):
        ids = [int(i) for i in stream.ids[start : start + model.longest_window]]
        windows += 1
        for place, token in enumerate(ids):
            shown = [model.symbols.begin, *ids, model.symbols.end]
            shown[place + 1] = model.symbols.mask
            again -= float(model.guesses(torch.tensor([shown]), torch.tensor([place + 1]))[0, token])
        if windows == len(units.document_U):
            break
    if units.share == 1.0:
        assert number == stream.tokens
        assert units.nats_KU.sum() == pytest.approx(again, rel=1e-4)
        assert units.bytes_KU.sum() == encoder.corpus.test.bytes
    else:  # other windows: the same model on the same kind of text
        assert units.nats_KU.sum() / number == pytest.approx(again / (windows * model.longest_window), rel=0.3)


def test_text_it_was_trained_on_is_said_to_be_that(encoder: Run, text: Path) -> None:
    assert measured(encoder, part="train").held_out.verdict != "held out"
    with pytest.raises(Mistake, match="leave one out"):
        measured(encoder, text, part="test")


def test_an_encoder_is_no_language_model_and_is_not_ranked(encoder: Run, text: Path, tmp_path: Path) -> None:
    for use in (lmlab.score, lmlab.generate):
        with pytest.raises(Mistake, match="no language model"):
            use(encoder, "The cat")  # type: ignore[operator]
    with mistake("model-of-another-role"):
        lmlab.compare(text, models=["bert", "ngram"], out=tmp_path / "out", budget="5s")

"""Every kind of model against a source whose entropy is known exactly."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import lmlab

SOURCE = "markov:order=2,alphabet=4,length=400000,seed=1"

# Settings with enough context for a chain of order two, and no more than that where more would only blur it.
MODELS: dict[str, dict[str, Any]] = {
    "ngram": {"order": 3},
    "feedforward": {"context": 2},
    "attention": {"context": 2},
    "rnn": {},
    "gru": {},
    "lstm": {},
    "rnn-attention": {},
    "gpt": {"layers": 2, "width": 64, "context": 32},
}
STEPS = {"attention": 1600}  # which is still 0.023 bits above the entropy after 800


@pytest.mark.slow
@pytest.mark.parametrize("model", MODELS)
def test_a_model_with_enough_context_reaches_the_entropy_and_never_beats_it(model: str, tmp_path: Path) -> None:
    budget = f"{STEPS.get(model, 800)}steps"
    run = lmlab.train(model, SOURCE, out=tmp_path / model, tokenizer="byte", budget=budget, settings=MODELS[model])
    result = lmlab.evaluate(run)
    entropy = run.corpus.entropy_bits_per_symbol
    assert result.certificate.failures == []
    assert result.bits_per_byte < entropy + 0.02
    assert result.interval.high > entropy

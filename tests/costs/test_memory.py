"""What a training step is predicted to need is what a real one requests of torch's allocator."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from lmlab.costs.memory import Step, measure, predict, remembered
from lmlab.formulas import Shape
from lmlab.models.registry import KINDS, Way, model_class

GPT = [(1, 32, 65), (2, 64, 300), (3, 96, 65), (2, 128, 3000)]  # layers, width, vocabulary
RECURRENT = [(1, 32, 65), (1, 64, 300), (2, 96, 65), (2, 128, 3000)]


def gpt(layers: int, width: int, vocab: int, **more: Any) -> Step:
    cls = model_class("gpt")
    sizes: dict[str, Any] = {"layers": layers, "width": width, "heads": width // 32, "context": 64, "stride": 32}
    config = cls.Config(**sizes, tie=vocab > 2048, dropout=0.1)
    return Step(model=cls, config=config, vocab_size=vocab, shape=Shape(8, 64), **more)


def recurrent(name: str, layers: int, width: int, vocab: int) -> Step:
    cls, tie = model_class(name), vocab > 2048
    config = cls.Config(layers=layers, width=width, embedding_width=width if tie else 24, tie=tie, dropout=0.1)
    return Step(model=cls, config=config, vocab_size=vocab, shape=Shape(16, 32))


@pytest.mark.parametrize(
    "step",
    [gpt(*size) for size in GPT] + [recurrent(name, *size) for name in ("lstm", "gru", "rnn") for size in RECURRENT],
    ids=lambda s: s.model.name,
)
def test_the_predicted_peak_is_the_measured_one(step: Step) -> None:
    predicted, measured = predict(step), measure(step)
    assert predicted.peak == pytest.approx(measured, rel=0.1)
    assert predicted.weights == 4 * step.model(step.config, step.vocab_size).parameters_count
    assert predicted.peak >= predicted.weights + predicted.optimizer + predicted.activations


def test_a_gru_is_predicted_where_nothing_can_be_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LMLAB_C_KERNELS", "off")
    for step in (recurrent("gru", 2, 96, 65), recurrent("rnn", 1, 24, 65)):
        assert predict(step).peak == pytest.approx(measure(step), rel=0.1)


@pytest.mark.slow
def test_rougher_products_are_predicted_too() -> None:
    step = gpt(2, 64, 65, dtype=torch.bfloat16)
    assert predict(step).peak == pytest.approx(measure(step), rel=0.1)


def test_adamw_alone_keeps_two_moments_of_every_weight() -> None:
    found = predict(gpt(2, 64, 65, muon=False))
    assert found.optimizer == 2 * found.weights
    assert predict(gpt(2, 64, 65)).optimizer < found.optimizer


@pytest.mark.parametrize("name", [kind.name for kind in KINDS.values() if kind.way is Way.LEARNS])
def test_every_language_model_that_learns_can_be_predicted(name: str) -> None:
    from lmlab.config import Budget, TextFacts
    from lmlab.interface import NeuralLanguageModel

    cls = model_class(name)
    if not issubclass(cls, NeuralLanguageModel):
        pytest.skip("no language model")
    facts = TextFacts(train_tokens=1000, train_bytes=1000, vocab_size=40)
    config = cls.resolve(cls.Config(), facts, Budget(steps=1))
    step = Step(model=cls, config=config, vocab_size=40, shape=Shape(2, 5))
    assert predict(step).peak > predict(step).weights > 0


def test_a_cache_grows_with_context_and_a_recurrent_state_does_not() -> None:
    step = gpt(2, 64, 65)
    window = 8 * 63  # ids of the window, to begin the next one with
    assert remembered(step) == 4 * 2 * 2 * 64 * 64 + window  # two layers of keys and values, 64 places, width 64
    cell = recurrent("lstm", 2, 96, 65)
    assert remembered(cell) == 4 * 2 * 2 * 96  # h and c of two layers

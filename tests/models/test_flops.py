"""What a training step costs, by each model's formula and by the dispatcher's count of a real forward and backward pass."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from lmlab.costs.dispatcher import counted_as_run
from lmlab.interface import CarriedLanguageModel, Loss, NeuralLanguageModel, Windows
from lmlab.models.registry import KINDS, Role, Way, model_class

VOCAB, ROWS, LENGTH = 24, 4, 64
SMALL: dict[str, list[dict[str, Any]]] = {
    "bigram": [{"embedding_width": 12, "width": 20}],
    "feedforward": [{"context": 3, "embedding_width": 12, "width": 20}],
    "attention": [
        {"context": 4, "embedding_width": 12, "key_width": 6, "value_width": 10, "width": 20, "positions": "none"},
        {"context": 4, "embedding_width": 12, "key_width": 6, "value_width": 10, "width": 20, "positions": "learned"},
    ],
    "rnn": [{"layers": 1, "width": 20, "embedding_width": 12, "tie": False}],
    "gru": [{"layers": 2, "width": 20, "embedding_width": 12, "tie": False}],
    "lstm": [{"layers": 2, "width": 20, "embedding_width": 20, "tie": True}],
    "rnn-attention": [
        {"width": 20, "embedding_width": 12, "score_width": 6, "memory": 8, "tie": False, "score_function": rule}
        for rule in ("dot", "additive")
    ],
    "gpt": [
        {"layers": 2, "width": 32, "heads": 2, "context": LENGTH, "tie": False},
        {"layers": 1, "width": 32, "heads": 4, "context": LENGTH, "tie": True, "activation": "gelu"},
        {
            "layers": 2,
            "width": 32,
            "heads": 4,
            "context": LENGTH,
            "tie": True,
            "norm": "rms",
            "activation": "swiglu",
            "kv_heads": 2,
            "window": 9,
            "biases": "all",
        },
    ],
}
CASES = [
    (kind.name, settings)
    for kind in KINDS.values()
    if kind.way is Way.LEARNS and kind.role is Role.LANGUAGE_MODEL
    for settings in SMALL.get(kind.name, [{}])
]


def build(name: str, settings: dict[str, Any]) -> NeuralLanguageModel:
    from lmlab.config import Budget, TextFacts

    cls = model_class(name)
    facts = TextFacts(train_tokens=20 * LENGTH, train_bytes=20 * LENGTH, vocab_size=VOCAB)
    model: NeuralLanguageModel = cls(cls.resolve(cls.Config(**settings, dropout=0.0), facts, Budget(steps=1)), VOCAB)
    return model.train()


def counted(model: NeuralLanguageModel) -> float:
    """Operations of one step per token; where a state is carried, of a stretch in the middle of a text."""
    length = model.batch_shape[1]
    tokens_BT = torch.randint(VOCAB, (ROWS, 2 * length), generator=torch.Generator().manual_seed(0))
    carry = None
    if isinstance(model, CarriedLanguageModel):
        carry = model.loss_carried(tokens_BT[:, :length], None)[1]

    def loss() -> Loss:
        if isinstance(model, CarriedLanguageModel):
            return model.loss_carried(tokens_BT[:, length:], carry)[0]
        return model.loss(Windows(tokens_BT[:, length:]))

    return counted_as_run(lambda: loss().total).both / (ROWS * length)


@pytest.mark.parametrize(("name", "settings"), CASES, ids=str)
def test_the_formula_is_what_a_real_step_multiplies(
    name: str, settings: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    model = build(name, settings)
    if name == "bigram":  # as if every word were another one: what is worked out once for all of them counts for each
        monkeypatch.setattr("lmlab.models.bigram.TABLE_ELEMENTS", 0)
        monkeypatch.setattr(torch.Tensor, "unique", lambda ids_N, return_inverse: (ids_N, torch.arange(len(ids_N))))
    # The kernel of the additive score makes W₁ s and W₂ m once more in the backward pass, to keep nothing of them.
    again = 2 * 2 * settings["score_width"] * settings["width"] if "additive" in settings.values() else 0
    assert model.training_flops_per_token == pytest.approx(counted(model) - again, rel=0.03)

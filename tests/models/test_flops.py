"""What a training step costs, by each model's formula and by the dispatcher's count of a real forward and backward pass."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from lmlab.interface import CarriedLanguageModel, NeuralLanguageModel, Windows
from lmlab.models.registry import KINDS, Way, model_class

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
    ],
}
CASES = [
    (kind.name, settings)
    for kind in KINDS.values()
    if kind.way is Way.LEARNS
    for settings in SMALL.get(kind.name, [{}])
]


def causal_attention(q_shape: Any, k_shape: Any, v_shape: Any, *_: Any, out_shape: Any = None, **__: Any) -> int:
    """Scores and averages, of which the mask leaves half."""
    rows, heads, queries, width = q_shape
    return rows * heads * queries * k_shape[2] * (width + v_shape[3])


def causal_attention_back(grad_shape: Any, q_shape: Any, k_shape: Any, v_shape: Any, *_: Any, **__: Any) -> int:
    """Twice the products of the forward pass (scores that are made again are not counted)."""
    return 2 * causal_attention(q_shape, k_shape, v_shape)


def fused_lstm(x_shape: Any, w_shape: Any, u_shape: Any, *_: Any, **__: Any) -> int:
    """Of mkldnn's kernel: both matrices of all gates, for every row and step."""
    return 2 * math.prod(x_shape[:2]) * (math.prod(w_shape) + math.prod(u_shape))


def fused_lstm_back(x_shape: Any, w_shape: Any, u_shape: Any, *_: Any, **__: Any) -> int:
    return 2 * fused_lstm(x_shape, w_shape, u_shape)


def matrix_vector(a_shape: Any, *_: Any, **__: Any) -> int:
    return 2 * math.prod(a_shape)


def added_products(sum_shape: Any, a_shape: Any, b_shape: Any, *_: Any, **__: Any) -> int:
    """Of a batch of products that are added in place."""
    return 2 * math.prod(a_shape) * b_shape[-1]


LACKING = {
    torch.ops.aten.baddbmm_: added_products,
    torch.ops.aten._scaled_dot_product_flash_attention_for_cpu: causal_attention,
    torch.ops.aten._scaled_dot_product_flash_attention_for_cpu_backward: causal_attention_back,
    torch.ops.aten.mkldnn_rnn_layer: fused_lstm,
    torch.ops.aten.mkldnn_rnn_layer_backward: fused_lstm_back,
    torch.ops.aten.mv: matrix_vector,
}


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
    with FlopCounterMode(display=False, custom_mapping=LACKING) as counter:
        if isinstance(model, CarriedLanguageModel):
            loss = model.loss_carried(tokens_BT[:, length:], carry)[0]
        else:
            loss = model.loss(Windows(tokens_BT[:, length:]))
        loss.total.backward()
    return counter.get_total_flops() / loss.count


@pytest.mark.parametrize(("name", "settings"), CASES, ids=str)
def test_the_formula_is_what_a_real_step_multiplies(
    name: str, settings: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    model = build(name, settings)
    if name == "bigram":  # as if every word were another one: what is worked out once for all of them counts for each
        monkeypatch.setattr("lmlab.models.bigram.TABLE_ELEMENTS", 0)
        monkeypatch.setattr(torch.Tensor, "unique", lambda ids_N, return_inverse: (ids_N, torch.arange(len(ids_N))))
    assert model.training_flops_per_token == pytest.approx(counted(model), rel=0.03)

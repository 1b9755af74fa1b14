"""The feed-forward model, its parameter count and its equations."""

from __future__ import annotations

import pytest
import torch

from lmlab.models.feedforward import FeedForward, FeedForwardConfig


def build(vocab: int, context: int, d: int, d_h: int, activation: str = "tanh") -> FeedForward:
    torch.manual_seed(0)
    config = FeedForwardConfig(context=context, embedding_width=d, width=d_h, dropout=0.0, activation=activation)  # type: ignore[arg-type]
    model = FeedForward(config, vocab).eval()
    with torch.no_grad():
        model.output_VH.normal_()
        model.bias_H.normal_()
    return model


@pytest.mark.parametrize(("vocab", "n", "d", "d_h"), [(65, 9, 32, 512), (1000, 2, 50, 30), (3, 5, 1, 1)])
def test_the_parameter_count_is_that_of_the_formula_and_d_for_the_begin_symbol(
    vocab: int, n: int, d: int, d_h: int
) -> None:
    model = build(vocab, n - 1, d, d_h)
    assert model.parameters_count == vocab * (d + d_h) + ((n - 1) * d + 1) * d_h + d


def test_a_prediction_is_its_equation() -> None:
    vocab, context = 7, 3
    model = build(vocab, context, 4, 5)
    tokens = [6, 2, 0, 5, 1]
    history = [vocab] * context + tokens
    expected = []
    for t, token in enumerate(tokens):
        e = torch.cat([model.embedding_VD[w] for w in history[t : t + context]])
        p = torch.softmax(model.output_VH @ torch.tanh(model.weight_HX @ e + model.bias_H), dim=0)
        expected.append(-p[token].log())
    torch.testing.assert_close(model.score(torch.tensor([tokens]))[0], torch.stack(expected).detach())


def test_the_activation_is_a_choice() -> None:
    tokens_BT = torch.tensor([[1, 2, 3, 0]])
    scores = [build(5, 2, 4, 6, kind).score(tokens_BT) for kind in ("gelu", "relu", "tanh", "sigmoid", "none")]
    assert all((a - b).abs().max() > 1e-3 for i, a in enumerate(scores) for b in scores[:i])

"""The model whose last word attends over the window, its parameter counts and its equations."""

from __future__ import annotations

import math

import pytest
import torch

from lmlab.models.attention import Attention, AttentionConfig


def build(vocab: int, context: int, d: int, d_k: int, d_v: int, d_h: int, positions: str = "none") -> Attention:
    torch.manual_seed(0)
    config = AttentionConfig(
        context=context,
        embedding_width=d,
        key_width=d_k,
        value_width=d_v,
        width=d_h,
        positions=positions,  # type: ignore[arg-type]
        activation="tanh",
        dropout=0.0,
    )
    model = Attention(config, vocab).eval()
    with torch.no_grad():
        model.output_VH.normal_()
        model.query_KD.normal_()  # it begins at zero, which would hide mistakes in the scores
    return model


SIZES = [(65, 9, 64, 48, 32, 512), (1000, 2, 50, 30, 20, 10), (3, 5, 1, 1, 1, 1)]


@pytest.mark.parametrize(("vocab", "n", "d", "d_k", "d_v", "d_h"), SIZES)
def test_parameter_counts_are_those_of_the_formulas_and_d_for_the_begin_symbol(
    vocab: int, n: int, d: int, d_k: int, d_v: int, d_h: int
) -> None:
    model = build(vocab, n - 1, d, d_k, d_v, d_h)
    in_the_head = sum(p.numel() for p in (model.query_KD, model.key_KD, model.value_XD))
    assert in_the_head == 2 * d_k * d + d_v * d
    assert model.parameters_count == vocab * (d + d_h) + 2 * d_k * d + d_v * d + (d_v + 1) * d_h + d
    fixed = build(vocab, n - 1, d, d_k, d_v, d_h, "sinusoidal")
    assert fixed.parameters_count == model.parameters_count
    placed = build(vocab, n - 1, d, d_k, d_v, d_h, "learned")
    assert placed.parameters_count == model.parameters_count + (n - 1) * d


@pytest.mark.parametrize("positions", ["none", "sinusoidal", "learned"])
def test_a_prediction_is_its_equations(positions: str) -> None:
    vocab, context, d_k = 7, 3, 4
    model = build(vocab, context, 5, d_k, 6, 8, positions)
    tokens = [6, 2, 0, 5, 1]
    history = [vocab] * context + tokens
    expected = []
    for t, token in enumerate(tokens):
        e = model.embedding_VD[torch.tensor(history[t : t + context])]
        if model.place_CD is not None:
            e = e + model.place_CD
        scores = torch.stack([(model.query_KD @ e[-1]) @ (model.key_KD @ e_i) / math.sqrt(d_k) for e_i in e])
        a = sum(w * (model.value_XD @ e_i) for w, e_i in zip(torch.softmax(scores, 0), e, strict=True))
        h = torch.tanh(model.weight_HX @ a + model.bias_H)
        expected.append(-torch.log_softmax(model.output_VH @ h, 0)[token])
    torch.testing.assert_close(model.score(torch.tensor([tokens]))[0], torch.stack(expected).detach())


def test_as_printed_the_order_before_the_last_word_makes_no_difference_and_with_places_it_does() -> None:
    one, other = torch.tensor([[1, 2, 3, 4]]), torch.tensor([[3, 1, 2, 4]])
    for positions, blind in (("none", True), ("sinusoidal", False), ("learned", False)):
        model = build(6, 4, 5, 4, 6, 8, positions)
        distributions = [model.advance(words, model.begin(1)[1])[0] for words in (one, other)]
        assert torch.allclose(*distributions, atol=1e-5) == blind


def test_the_weights_are_a_distribution_over_the_window() -> None:
    model = build(6, 4, 5, 4, 6, 8)
    _, alpha_BTC = model.attend(torch.randint(6, (2, 9), generator=torch.Generator().manual_seed(0)))
    assert alpha_BTC.shape == (2, 6, 4)
    torch.testing.assert_close(alpha_BTC.sum(-1), torch.ones(2, 6))


def test_training_starts_from_the_plain_average_of_the_window() -> None:
    config = AttentionConfig(context=4, embedding_width=5, key_width=4, value_width=6, width=8, dropout=0.0)
    _, alpha_BTC = Attention(config, 6).attend(torch.tensor([[1, 2, 3, 4, 5]]))
    torch.testing.assert_close(alpha_BTC, torch.full_like(alpha_BTC, 0.25))

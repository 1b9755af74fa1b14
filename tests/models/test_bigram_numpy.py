"""The hand-written backward pass of the neural bigram model, against finite differences and against autograd."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch

from lmlab.interface import Windows
from lmlab.models.bigram import Bigram, BigramConfig
from lmlab.models.bigram_numpy import Weights, backward, forward, log_softmax, sigmoid

N, X, H, V = 4, 3, 5, 6


@pytest.fixture
def case() -> tuple[np.ndarray, np.ndarray, Weights]:
    random = np.random.default_rng(1)
    weights = Weights(
        w1_XH=random.normal(size=(X, H)),
        b1_H=random.normal(size=H),
        w2_HV=random.normal(size=(H, V)),
        b2_V=random.normal(size=V),
    )
    return random.normal(size=(N, X)), random.integers(0, V, N), weights


def test_every_gradient_is_the_finite_difference(case: tuple[np.ndarray, np.ndarray, Weights]) -> None:
    x_NX, targets_N, weights = case
    _, gradients, dx_NX = backward(x_NX, targets_N, weights)
    pairs = [(getattr(weights, f.name), getattr(gradients, f.name)) for f in dataclasses.fields(Weights)]
    for array, gradient in [*pairs, (x_NX, dx_NX)]:
        assert gradient.shape == array.shape
        for place in np.ndindex(array.shape):
            kept, step = array[place], 1e-5
            array[place] = kept + step
            above, *_ = backward(x_NX, targets_N, weights)
            array[place] = kept - step
            below, *_ = backward(x_NX, targets_N, weights)
            array[place] = kept
            assert gradient[place] == pytest.approx((above - below) / (2 * step), rel=1e-6, abs=1e-8)


def test_forward_and_backward_agree_with_the_torch_model_and_autograd(
    case: tuple[np.ndarray, np.ndarray, Weights],
) -> None:
    _, _, weights = case
    config = BigramConfig(embedding_width=X, width=H, dropout=0.0)
    model = Bigram(config, V).double().eval()
    model.compute_dtype = torch.float64
    with torch.no_grad():
        model.input_XH.copy_(torch.from_numpy(weights.w1_XH))
        model.bias_H.copy_(torch.from_numpy(weights.b1_H))
        model.output_VH.copy_(torch.from_numpy(weights.w2_HV.T))
        model.bias_V.copy_(torch.from_numpy(weights.b2_V))
    tokens_T = torch.tensor([0, 3, 3, 5, 1, 0, 2, 4, 0, 3])
    total = model.loss(Windows(tokens_T[None])).total
    total.backward()
    previous_T = np.array([V, *tokens_T.tolist()[:-1]])  # the begin symbol stands before the first
    vectors_WX = model.table.own_embedding_OX.detach().numpy()
    nats, gradients, dx_TX = backward(vectors_WX[previous_T], tokens_T.numpy(), weights)
    dvectors_WX = np.zeros_like(vectors_WX)
    np.add.at(dvectors_WX, previous_T, dx_TX)
    assert total.item() == pytest.approx(nats, rel=1e-12)
    grads = {name: p.grad.numpy() for name, p in model.named_parameters() if p.grad is not None}
    np.testing.assert_allclose(grads["input_XH"], gradients.w1_XH, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(grads["bias_H"], gradients.b1_H, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(grads["output_VH"], gradients.w2_HV.T, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(grads["bias_V"], gradients.b2_V, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(grads["table.own_embedding_OX"], dvectors_WX, rtol=1e-9, atol=1e-12)


def test_predictions_are_distributions(case: tuple[np.ndarray, np.ndarray, Weights]) -> None:
    x_NX, _, weights = case
    h_NH, logp_NV = forward(x_NX, weights)
    assert ((h_NH > 0) & (h_NH < 1)).all()
    np.testing.assert_allclose(np.exp(logp_NV).sum(1), 1)


def test_extreme_inputs_neither_overflow_nor_vanish() -> None:
    np.testing.assert_array_equal(sigmoid(np.array([-1e4, 0.0, 1e4])), [0.0, 0.5, 1.0])
    np.testing.assert_allclose(log_softmax(np.array([[1e4, 0.0, -1e4]])), [[0.0, -1e4, -2e4]])

"""The neural bigram model in NumPy, its backward pass by hand.

    z = x W₁ + b₁,   h = σ(z),   u = h W₂ + b₂,   ŷ = softmax(u),   J = CE(y, ŷ) = -Σ y_i log ŷ_i

Shapes, one row an example: N examples, X = D_x, H = D_h, V = D_y. Everything is float64.
The gradients, each tested against finite differences and against autograd:

    ∂J/∂u  = ŷ - y
    ∂J/∂h  = (∂J/∂u) W₂ᵀ
    ∂J/∂z  = (∂J/∂h) ∘ h ∘ (1 - h)
    ∂J/∂x  = (∂J/∂z) W₁ᵀ
    ∂J/∂W₂ = hᵀ (∂J/∂u),  ∂J/∂b₂ = Σ_n ∂J/∂u,  ∂J/∂W₁ = xᵀ (∂J/∂z),  ∂J/∂b₁ = Σ_n ∂J/∂z
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, kw_only=True)
class Weights:
    """W₁, b₁, W₂, b₂, or the gradients of a cost by each of them."""

    w1_XH: np.ndarray
    b1_H: np.ndarray
    w2_HV: np.ndarray
    b2_V: np.ndarray


def forward(x_NX: np.ndarray, weights: Weights) -> tuple[np.ndarray, np.ndarray]:
    """(h, log ŷ) for each example. Logs, since ŷ itself rounds to zero where u is far below its largest entry."""
    h_NH = sigmoid(x_NX @ weights.w1_XH + weights.b1_H)
    return h_NH, log_softmax(h_NH @ weights.w2_HV + weights.b2_V)


def backward(x_NX: np.ndarray, targets_N: np.ndarray, weights: Weights) -> tuple[float, Weights, np.ndarray]:
    """Total nats of the targets, and their gradients by the weights and by x (N×X)."""
    h_NH, logp_NV = forward(x_NX, weights)
    examples = np.arange(len(targets_N))
    total_nats = float(-logp_NV[examples, targets_N].sum())
    du_NV = np.exp(logp_NV)
    du_NV[examples, targets_N] -= 1
    dz_NH = (du_NV @ weights.w2_HV.T) * h_NH * (1 - h_NH)
    gradients = Weights(w1_XH=x_NX.T @ dz_NH, b1_H=dz_NH.sum(0), w2_HV=h_NH.T @ du_NV, b2_V=du_NV.sum(0))
    return total_nats, gradients, dz_NH @ weights.w1_XH.T


def sigmoid(z: np.ndarray) -> np.ndarray:
    """1 / (1 + exp(-z)), by way of tanh: exp overflows far below zero, tanh nowhere."""
    return 0.5 * (1 + np.tanh(0.5 * z))


def log_softmax(u_NV: np.ndarray) -> np.ndarray:
    """log softmax of each row; the largest entry is taken off first, which changes nothing but keeps exp in range."""
    shifted_NV = u_NV - u_NV.max(axis=1, keepdims=True)
    return shifted_NV - np.log(np.exp(shifted_NV).sum(axis=1, keepdims=True))

"""The gradients of the autoencoder by hand, in NumPy, for one batch of pairs. Everything is float64.

    J₁ = ½ ‖x' - x‖²,  x' = W₂ p + b₂,  p = ReLU(h),  h = W₁ x + b₁;    J₂ = CE(y, softmax(ŷ)),  ŷ = W₃ p + b₃

Each is tested against autograd:

    δ₁ = ∂J₁/∂p  = W₂ᵀ (x' - x)
    δ₂ = ∂J₁/∂h  = δ₁ ∘ 1{h > 0}
    ∂J₁/∂W₁      = δ₂ xᵀ

The whole gradient has J₂'s share too, W₃ᵀ (softmax(ŷ) - y), which joins δ₁ before it passes the ReLU. Rows are pairs here, so
products stand the other way round. Shapes: N pairs, X2 = 2 D_x, P = D_p, K labels; weights as `torch.nn.Linear` keeps them.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np


def gradients(x_NX2: np.ndarray, labels_N: np.ndarray, weights: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """∂J/∂W₁, … by the names of the weights ("w1", "b1", …), and "delta1" and "delta2", which are of J₁ alone."""
    w1_PX2, w2_X2P, w3_KP = weights["w1"], weights["w2"], weights["w3"]
    h_NP = x_NX2 @ w1_PX2.T + weights["b1"]
    p_NP = np.maximum(h_NP, 0)
    off_NX2 = p_NP @ w2_X2P.T + weights["b2"] - x_NX2
    logits_NK = p_NP @ w3_KP.T + weights["b3"]
    yhat_NK = np.exp(logits_NK - logits_NK.max(1, keepdims=True))
    yhat_NK /= yhat_NK.sum(1, keepdims=True)
    wrong_NK = yhat_NK - np.eye(len(w3_KP))[labels_N]
    delta1_NP = off_NX2 @ w2_X2P
    delta2_NP = delta1_NP * (h_NP > 0)
    back_NP = delta2_NP + (wrong_NK @ w3_KP) * (h_NP > 0)
    return {
        "delta1": delta1_NP,
        "delta2": delta2_NP,
        "w1": back_NP.T @ x_NX2,
        "b1": back_NP.sum(0),
        "w2": off_NX2.T @ p_NP,
        "b2": off_NX2.sum(0),
        "w3": wrong_NK.T @ p_NP,
        "b3": wrong_NK.sum(0),
    }

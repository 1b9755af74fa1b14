"""Attention weights written out, which a fused kernel never does, and the kernel's own, got out of it by a trick.

Shapes: B rows, H heads, T queries, D width of a head, C keys in reach of a query.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F


@dataclass(frozen=True, kw_only=True, eq=False)
class Looks:
    """What the heads of one layer looked at while a text was read.

    Row t is of the prediction of token t, for which token t - 1 was the last that was read, and asks. Column c of that row
    is about token first_T[t] + c; up to begins_T[t] it is the begin symbol that stands there. A row sums to 1, or to 0
    where there was nothing to look at.
    """

    name: str
    weights_HTC: Tensor
    first_T: Tensor
    begins_T: Tensor
    difference: float  # the largest, between these weights and what the fast kernel made of its own


@dataclass(frozen=True, kw_only=True, eq=False)
class Unfolded:
    """What one head did with N inputs: weights_NN of value_DD times x_ND, which the kernel gave as y_ND."""

    x_ND: Tensor
    weights_NN: Tensor
    value_DD: Tensor
    y_ND: Tensor


def causal_weights(q_BHTD: Tensor, k_BHTD: Tensor) -> Tensor:
    """softmax(Q Kᵀ / √D + mask), B×H×T×T: every query with itself and what is before it."""
    length = q_BHTD.shape[2]
    hidden_TT = torch.ones(length, length, dtype=torch.bool, device=q_BHTD.device).triu(1)
    scores_BHTT = q_BHTD @ k_BHTD.mT * q_BHTD.shape[-1] ** -0.5
    return scores_BHTT.masked_fill(hidden_TT, -torch.inf).softmax(-1)


def kernel_weights(q_BHTD: Tensor, k_BHTD: Tensor) -> Tensor:
    """The weights that the fused kernel used: averages of values that are 1 at one key and 0 at the others.

    As many keys at a time as a head is wide, so that it is the same kernel that the model calls.
    """
    length, width = q_BHTD.shape[2:]
    found = []
    for first in range(0, length, width):
        one_TD = torch.eye(length, device=q_BHTD.device)[:, first : first + width]
        v_BHTD = F.pad(one_TD, (0, width - one_TD.shape[1])).expand_as(q_BHTD).contiguous()
        found.append(F.scaled_dot_product_attention(q_BHTD, k_BHTD, v_BHTD, is_causal=True))
    return torch.cat(found, dim=-1)[..., :length]

"""The two-layer network with a squared ReLU, its backward pass written out. Its plain twin is in `layers/blocks.py`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor


def squared_relu(x_BTI: Tensor, up_HI: Tensor, down_OH: Tensor) -> Tensor:
    """max(x upᵀ, 0)² downᵀ; all three in one precision."""
    apply: Callable[..., Tensor] = _SquaredReLUNetwork.apply
    return apply(x_BTI.flatten(0, -2), up_HI, down_OH).view(*x_BTI.shape[:-1], -1)


class _SquaredReLUNetwork(torch.autograd.Function):
    """Written out because the elementwise part is memory traffic, and by hand most of it is saved.

    With p = max(x upᵀ, 0) and y = p² downᵀ:  d down = dyᵀ p²,  dh = p ∘ (dy 2 down),  d up = dhᵀ x,  dx = dh up.
    Doubling `down` rather than dh is exact and touches far fewer numbers.
    """

    @staticmethod
    def forward(ctx: Any, x_NI: Tensor, up_HI: Tensor, down_OH: Tensor) -> Tensor:
        positive_NH = torch.mm(x_NI, up_HI.t()).relu_()
        squared_NH = positive_NH.square()
        ctx.save_for_backward(x_NI, up_HI, down_OH, positive_NH, squared_NH)
        return torch.mm(squared_NH, down_OH.t())

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> tuple[Tensor, Tensor, Tensor]:
        x_NI, up_HI, down_OH, positive_NH, squared_NH = ctx.saved_tensors
        grad_NO = grads[0]
        hidden_NH = torch.mm(grad_NO, down_OH * 2).mul_(positive_NH)
        return torch.mm(hidden_NH, up_HI), torch.mm(hidden_NH.t(), x_NI), torch.mm(grad_NO.t(), squared_NH)

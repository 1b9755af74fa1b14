"""The two-layer network with a squared ReLU, its backward pass written out. Its plain twin is in `layers/blocks.py`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from lmlab.layers.fast import products
from lmlab.layers.fast.once import only_once


def squared_relu(x_BTI: Tensor, up_HI: Tensor, down_OH: Tensor) -> Tensor:
    """max(x upᵀ, 0)² downᵀ; all three in one precision."""
    apply: Callable[..., Tensor] = _SquaredReLUNetwork.apply
    return apply(x_BTI.flatten(0, -2), up_HI, down_OH).view(*x_BTI.shape[:-1], len(down_OH))


class _SquaredReLUNetwork(torch.autograd.Function):
    """Written out because the elementwise part is memory traffic, and by hand most of it is saved.

    With p = max(x upᵀ, 0) and y = p² downᵀ:  d down = dyᵀ p²,  dh = 2 p ∘ (dy down),  d up = dhᵀ x,  dx = dh up.
    `down` is doubled rather than dh: exact, and far fewer numbers.
    """

    @staticmethod
    def forward(ctx: Any, x_NI: Tensor, up_HI: Tensor, down_OH: Tensor) -> Tensor:
        positive_NH = torch.mm(x_NI, up_HI.t())
        squared_NH = positive_NH.relu_().square()
        ctx.save_for_backward(x_NI, up_HI, down_OH, positive_NH, squared_NH)
        return torch.mm(squared_NH, down_OH.t())

    @staticmethod
    @only_once
    def backward(ctx: Any, *grads: Any) -> tuple[Tensor, Tensor, Tensor]:
        x_NI, up_HI, down_OH, positive_NH, squared_NH = ctx.saved_tensors
        grad_NO = grads[0]
        hidden_NH = torch.mm(grad_NO, down_OH * 2).mul_(positive_NH)
        return torch.mm(hidden_NH, up_HI), torch.mm(hidden_NH.t(), x_NI), torch.mm(grad_NO.t(), squared_NH)


def squared_relu_on_gpu(x_BTI: Tensor, up_HI: Tensor, down_OH: Tensor) -> Tensor:
    """As `squared_relu`, with what lies between the products done by the products themselves."""
    apply: Callable[..., Tensor] = _SquaredReLUOnGPU.apply
    return apply(x_BTI.flatten(0, -2), up_HI, down_OH).view(*x_BTI.shape[:-1], len(down_OH))


class _SquaredReLUOnGPU(torch.autograd.Function):
    """As `_SquaredReLUNetwork`, but only p² is kept, and never rounded in between: dh = 2 √p² ∘ (dy down)."""

    @staticmethod
    def forward(ctx: Any, x_NI: Tensor, up_HI: Tensor, down_OH: Tensor) -> Tensor:
        squared_NH = products.squares(x_NI, up_HI)
        ctx.save_for_backward(x_NI, up_HI, down_OH, squared_NH)
        return torch.mm(squared_NH, down_OH.t())

    @staticmethod
    @only_once
    def backward(ctx: Any, *grads: Any) -> tuple[Tensor, Tensor, Tensor]:
        x_NI, up_HI, down_OH, squared_NH = ctx.saved_tensors
        grad_NO = grads[0]
        hidden_NH = products.grown(grad_NO, down_OH, squared_NH)
        return torch.mm(hidden_NH, up_HI), torch.mm(hidden_NH.t(), x_NI), torch.mm(grad_NO.t(), squared_NH)

"""The two-layer network with a squared ReLU, its backward pass written out. Its plain twin is in `layers/blocks.py`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from lmlab.layers.fast import passes
from lmlab.layers.fast.once import only_once
from lmlab.layers.fast.triton_here import has_copy_engine

FILLED = 256  # tiles of 128 places × 256 hidden units: fewer leave much of a large GPU idle, and the library cuts finer
ALIGNED = 8  # numbers of bf16: the engine that copies tiles takes only rows that begin at multiples of 16 bytes


def squared_relu(x_BTI: Tensor, up_HI: Tensor, down_OH: Tensor) -> Tensor:
    """max(x upᵀ, 0)² downᵀ; all three in one precision."""
    in_c = len(up_HI) % passes.TOGETHER == 0 and passes.learning_here(x_BTI)
    apply: Callable[..., Tensor] = _SquaredReLUNetwork.apply
    return apply(x_BTI.flatten(0, -2), up_HI, down_OH, in_c).view(*x_BTI.shape[:-1], len(down_OH))


class _SquaredReLUNetwork(torch.autograd.Function):
    """Written out because the elementwise part is memory traffic, and by hand most of it is saved.

    With p = max(x upᵀ, 0) and y = p² downᵀ:  d down = dyᵀ p²,  dh = 2 p ∘ (dy down),  d up = dhᵀ x,  dx = dh up.
    in_c: p and p² are made in one pass over memory. Without, `down` is doubled rather than dh: exact, and far fewer numbers.
    """

    @staticmethod
    def forward(ctx: Any, x_NI: Tensor, up_HI: Tensor, down_OH: Tensor, in_c: bool) -> Tensor:
        positive_NH = torch.mm(x_NI, up_HI.t())
        squared_NH = passes.squares(positive_NH) if in_c else positive_NH.relu_().square()
        ctx.save_for_backward(x_NI, up_HI, down_OH, positive_NH, squared_NH)
        ctx.in_c = in_c
        return torch.mm(squared_NH, down_OH.t())

    @staticmethod
    @only_once
    def backward(ctx: Any, *grads: Any) -> tuple[Tensor, Tensor, Tensor, None]:
        x_NI, up_HI, down_OH, positive_NH, squared_NH = ctx.saved_tensors
        grad_NO = grads[0]
        if ctx.in_c:
            hidden_NH = torch.mm(grad_NO, down_OH)
            passes.squares_back_(hidden_NH, positive_NH)
        else:
            hidden_NH = torch.mm(grad_NO, down_OH * 2).mul_(positive_NH)
        return torch.mm(hidden_NH, up_HI), torch.mm(hidden_NH.t(), x_NI), torch.mm(grad_NO.t(), squared_NH), None


def fills_a_gpu(x_BTI: Tensor, up_HI: Tensor) -> bool:
    """Whether `squared_relu_on_gpu` can do it, and there is enough to do."""
    tiles = x_BTI.numel() // x_BTI.shape[-1] // 128 * (len(up_HI) // 256)
    fits = x_BTI.shape[-1] % ALIGNED == 0 and len(up_HI) % ALIGNED == 0
    return fits and tiles >= FILLED and x_BTI.dtype == torch.bfloat16 and x_BTI.is_cuda and has_copy_engine()


def squared_relu_on_gpu(x_BTI: Tensor, up_HI: Tensor, down_OH: Tensor) -> Tensor:
    """As `squared_relu`, with what lies between the products done by the products themselves."""
    apply: Callable[..., Tensor] = _SquaredReLUOnGPU.apply
    return apply(x_BTI.flatten(0, -2), up_HI, down_OH).view(*x_BTI.shape[:-1], len(down_OH))


class _SquaredReLUOnGPU(torch.autograd.Function):
    """As `_SquaredReLUNetwork`, but only p² is kept, and never rounded in between: dh = 2 √p² ∘ (dy down)."""

    @staticmethod
    def forward(ctx: Any, x_NI: Tensor, up_HI: Tensor, down_OH: Tensor) -> Tensor:
        squared_NH = _squares(x_NI, up_HI)
        ctx.save_for_backward(x_NI, up_HI, down_OH, squared_NH)
        return torch.mm(squared_NH, down_OH.t())

    @staticmethod
    @only_once
    def backward(ctx: Any, *grads: Any) -> tuple[Tensor, Tensor, Tensor]:
        x_NI, up_HI, down_OH, squared_NH = ctx.saved_tensors
        grad_NO = grads[0]
        hidden_NH = _grown(grad_NO, down_OH, squared_NH)
        return torch.mm(hidden_NH, up_HI), torch.mm(hidden_NH.t(), x_NI), torch.mm(grad_NO.t(), squared_NH)


@torch.library.custom_op("lmlab::squares", mutates_args=())
def _squares(x: Tensor, up: Tensor) -> Tensor:
    from lmlab.layers.fast._network_triton import squares

    return squares(x.contiguous(), up.contiguous())


@_squares.register_fake
def _(x: Tensor, up: Tensor) -> Tensor:
    return x.new_empty(x.shape[0], up.shape[0])


@torch.library.custom_op("lmlab::grown", mutates_args=())
def _grown(grad: Tensor, down: Tensor, squared: Tensor) -> Tensor:
    from lmlab.layers.fast._network_triton import grown

    return grown(grad.contiguous(), down.contiguous(), squared)


@_grown.register_fake
def _(grad: Tensor, down: Tensor, squared: Tensor) -> Tensor:
    return torch.empty_like(squared)

"""A stream and its norm, in steps that are compiled for a GPU: what comes back by the two is joined in one kernel.

Its plain twin is `normed` in `layers/blocks.py`, beside which the stream goes on as it is. Compiled, the backward pass of that
reads and writes no more, but a row at a time, which leaves a fifth of the memory's speed unused. Shapes: N rows, D width.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from lmlab.layers import fast
from lmlab.layers.fast.once import only_once
from lmlab.layers.fast.triton_here import HAS_TRITON

PROGRAMS = (
    1024  # each takes every so many-th row: the same on every GPU, since their number decides how sums are rounded
)
WIDEST = 4096  # a program holds a whole row


def can_join(x: Tensor, dtype: torch.dtype) -> bool:
    """Whether `stream_and_normed` is for this stream and this precision of its norm."""
    compiled = fast.enabled and torch.compiler.is_compiling() and torch.is_grad_enabled()
    return compiled and HAS_TRITON and x.is_cuda and x.dtype == dtype and x.shape[-1] <= WIDEST


def stream_and_normed(x: Tensor, weight_D: Tensor) -> tuple[Tensor, Tensor]:
    """The stream as it is, to be gone on with, and its layer norm without a bias in the stream's precision."""
    apply: Callable[..., tuple[Tensor, Tensor]] = _StreamAndNormed.apply
    return apply(x, weight_D)


class _StreamAndNormed(torch.autograd.Function):
    """With y the normed row, σ its deviation, g = grad ∘ weight: dx = d stream + (g - mean g - y mean(g ∘ y)) / σ."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight_D: Tensor) -> tuple[Tensor, Tensor]:
        ctx.save_for_backward(x, weight_D)
        normed = F.layer_norm(x.float(), (x.shape[-1],), weight_D).to(x.dtype)
        return (
            x.clone(),
            normed,
        )  # the compiler leaves the copy out; without it the outputs would share memory with the input

    @staticmethod
    @only_once
    def backward(ctx: Any, *grads: Any) -> tuple[Tensor, Tensor]:
        x, weight_D = ctx.saved_tensors
        grad, parts_PD = _joined(grads[1], grads[0], x, weight_D)
        return grad, parts_PD.sum(0)


@torch.library.custom_op("lmlab::norm_joined", mutates_args=())
def _joined(grad: Tensor, stream: Tensor, x: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
    from lmlab.layers.fast._norm_triton import launch

    grad_ND, stream_ND, x_ND = (t.contiguous().view(-1, x.shape[-1]) for t in (grad, stream, x))
    found, parts = launch(grad_ND, stream_ND, x_ND, weight, PROGRAMS)
    return found.view(x.shape), parts


@_joined.register_fake
def _(grad: Tensor, stream: Tensor, x: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
    parts = x.new_empty(PROGRAMS, x.shape[-1], dtype=torch.float32)
    return torch.empty_like(x, memory_format=torch.contiguous_format), parts

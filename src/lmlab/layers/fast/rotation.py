"""Queries, keys and values on a GPU: turned by their positions where they are made, their gradients turned back and joined.

The plain twin of both is `split_heads` in `layers/attention.py`, and what torch makes of its derivative: three tensors are
filled with zeros, added, and then turned. Shapes as there, and I the width of the stream.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from lmlab.layers import fast
from lmlab.layers.fast import products
from lmlab.layers.fast.once import only_once
from lmlab.layers.positions import Rotation

TILE = 256  # outputs that are finished together: whole heads, and either turned or not


def can_turn(x_BTI: Tensor, weight_OI: Tensor, heads: int) -> bool:
    """Whether `turned_heads` can make queries, keys and values of this stream, and is for steps of learning from it."""
    outputs = len(weight_OI)
    head = outputs // 3 // heads
    whole = head >= 16 and TILE % head == 0 and 2 * outputs % (3 * TILE) == 0
    return whole and fast.enabled and torch.is_grad_enabled() and products.fills_a_gpu(x_BTI, outputs)


def turned_heads(x_BTI: Tensor, weight_OI: Tensor, rotation: Rotation, heads: int) -> tuple[Tensor, Tensor, Tensor]:
    """Queries, keys and values of a stream, each B×H×T×D: the same as `split_heads` of the product, rounded once."""
    apply: Callable[..., tuple[Tensor, Tensor, Tensor]] = _TurnedHeads.apply
    return apply(x_BTI, weight_OI, *rotation, heads)


class _TurnedHeads(torch.autograd.Function):
    """With dy joined and turned back: d weight = dyᵀ x, dx = dy weight."""

    @staticmethod
    def forward(
        ctx: Any, x_BTI: Tensor, weight_OI: Tensor, cos_TD: Tensor, sin_TD: Tensor, heads: int
    ) -> tuple[Tensor, Tensor, Tensor]:
        ctx.save_for_backward(x_BTI, weight_OI, cos_TD, sin_TD)
        made_NO = products.turned(x_BTI.flatten(0, 1), weight_OI, cos_TD, sin_TD)
        q, k, v = made_NO.view(*x_BTI.shape[:2], 3, heads, -1).permute(2, 0, 3, 1, 4).unbind(0)
        return q, k, v

    @staticmethod
    @only_once
    def backward(ctx: Any, *grads: Any) -> tuple[Tensor, Tensor, None, None, None]:
        x_BTI, weight_OI, cos_TD, sin_TD = ctx.saved_tensors
        grad_NO = joined(*grads, cos_TD, sin_TD).view(-1, len(weight_OI))
        grad_x_NI = torch.mm(grad_NO, weight_OI)
        return grad_x_NI.view(x_BTI.shape), torch.mm(grad_NO.t(), x_BTI.flatten(0, 1)), None, None, None


@torch.library.custom_op("lmlab::joined", mutates_args=())
def joined(q: Tensor, k: Tensor, v: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """From three of B×H×T×D and the tables of the positions to B×T×3×H×D.

    With y = x ∘ cos + swap(x) ∘ sin, where swap exchanges the halves of a head: dx = dy ∘ cos + swap(dy ∘ sin).
    """
    from lmlab.layers.fast._rotation_triton import launch

    return launch(q, k, v, cos, sin)


@joined.register_fake
def _(q: Tensor, k: Tensor, v: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    rows, heads, length, width = q.shape
    return q.new_empty(rows, length, 3, heads, width)

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

LEAST, MOST = 16, 128  # width of a head: of less no thread has both halves, of more the registers do not suffice


def can_turn(x_BTI: Tensor, weight_OI: Tensor, heads: int) -> bool:
    """Whether `turned_heads` can make queries, keys and values of this stream, and is for steps of learning from it.

    A tile has whole heads, and turns all of them or none.
    """
    outputs, tile = len(weight_OI), products.TILE[1]
    head = outputs // 3 // heads
    whole = LEAST <= head <= MOST and tile % head == 0 and 2 * outputs % (3 * tile) == 0
    return whole and fast.enabled and torch.is_grad_enabled() and products.fills_a_gpu(x_BTI, weight_OI)


def turned_heads(x_BTI: Tensor, weight_OI: Tensor, rotation: Rotation, heads: int) -> tuple[Tensor, Tensor, Tensor]:
    """Queries, keys and values of a stream, each B×H×T×D: the same as `split_heads` of the product, rounded once."""
    assert weight_OI.shape[1] == x_BTI.shape[2], "the copy engine would make up what is missing"
    assert all(table_TD.shape == (x_BTI.shape[1], len(weight_OI) // 3 // heads) for table_TD in rotation)
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
        made_BT3HD = made_NO.view(*x_BTI.shape[:2], 3, heads, len(weight_OI) // 3 // heads)
        q, k, v = made_BT3HD.permute(2, 0, 3, 1, 4).unbind(0)
        return q, k, v

    @staticmethod
    @only_once
    def backward(ctx: Any, *grads: Any) -> tuple[Tensor | None, Tensor | None, None, None, None]:
        x_BTI, weight_OI, cos_TD, sin_TD = ctx.saved_tensors
        grad_NO = joined(*grads, cos_TD, sin_TD).flatten(2).flatten(0, 1)
        grad_x = torch.mm(grad_NO, weight_OI).view(x_BTI.shape) if ctx.needs_input_grad[0] else None
        grad_weight = torch.mm(grad_NO.t(), x_BTI.flatten(0, 1)) if ctx.needs_input_grad[1] else None
        return grad_x, grad_weight, None, None, None


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

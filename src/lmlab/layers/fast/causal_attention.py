"""Causal attention for steps of learning on a GPU, from queries and keys that are turned to gradients that are turned back.

Twins: `causal_self_attention` in `layers/attention.py`, and `projected_self_attention` there, which begins with the stream.
With S = Q Kᵀ / √D where a key is not later than the query, A = softmax S, O = A V and δ = Σ_d dO ∘ O:

dV = Aᵀ dO, dS = A ∘ (dO Vᵀ - δ), dQ = dS K / √D, dK = dSᵀ Q / √D.

A is made again from Q, K and the sums of its exponentials. The library's backward pass adds up dQ in float32 from all keys, in
whatever order they come, and then rounds, turns and joins what it found; each of these is one more pass over memory.

Shapes: as in `layers/attention.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from lmlab.layers import fast
from lmlab.layers.fast import products
from lmlab.layers.fast.once import only_once
from lmlab.layers.fast.triton_here import is_hopper, marked_constant, version
from lmlab.layers.positions import Rotation

WIDTHS = 32, 64  # of a head: with 128 the library is as fast
TRITON = 3, 5  # older ones fail to make the kernel of the queries' gradients
TOGETHER = 64  # a length is a multiple of it
LONGEST = 2048  # beyond it the library is faster with heads of 64


@marked_constant
def can_be_made() -> bool:
    """Whether triton makes these kernels, and this GPU is of the kind they were timed on."""
    return is_hopper() and version() >= TRITON


def can_attend(x: Tensor, length: int, width: int) -> bool:
    """Whether this is for texts of this length and heads of this width, in the precision of x and where it lies."""
    fits = width in WIDTHS and length % TOGETHER == 0 and 0 < length <= LONGEST and x.numel() > 0
    learning = fast.enabled and torch.is_grad_enabled() and x.requires_grad
    return fits and learning and x.dtype == torch.bfloat16 and x.is_cuda and can_be_made()


def attended(qkv_BT3HD: Tensor, turned_BT3HD: Tensor, rotation: Rotation) -> Tensor:
    """`causal_self_attention` of queries, keys and values that were also turned, without a way back from there."""
    length, width = qkv_BT3HD.shape[1], qkv_BT3HD.shape[-1]
    assert all(table_TD.shape == (length, width) for table_TD in rotation)
    apply: Callable[..., Tensor] = _Attended.apply
    return apply(qkv_BT3HD, turned_BT3HD, *rotation)


def attended_stream(x_BTI: Tensor, weight_OI: Tensor, rotation: Rotation, heads: int) -> Tensor:
    """`projected_self_attention`, where `rotation.can_turn` of this folder is true too."""
    assert weight_OI.shape[1] == x_BTI.shape[2], "the copy engine would make up what is missing"
    assert all(table_TD.shape == (x_BTI.shape[1], len(weight_OI) // 3 // heads) for table_TD in rotation)
    apply: Callable[..., Tensor] = _AttendedStream.apply
    return apply(x_BTI, weight_OI, *rotation, heads)


class _Attended(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, _: Tensor, turned_BT3HD: Tensor, cos_TD: Tensor, sin_TD: Tensor) -> Tensor:
        out_BTHD, sums_BHT = attend(turned_BT3HD)
        ctx.save_for_backward(turned_BT3HD, out_BTHD, sums_BHT, cos_TD, sin_TD)
        return out_BTHD.flatten(2)

    @staticmethod
    @only_once
    def backward(ctx: Any, *grads: Any) -> tuple[Tensor, None, None, None]:
        turned_BT3HD, out_BTHD, *rest = ctx.saved_tensors
        return _back(turned_BT3HD, out_BTHD, grads[0], *rest), None, None, None


class _AttendedStream(torch.autograd.Function):
    """With dy what comes back to queries, keys and values: d weight = dyᵀ x, dx = dy weight."""

    @staticmethod
    def forward(ctx: Any, x_BTI: Tensor, weight_OI: Tensor, cos_TD: Tensor, sin_TD: Tensor, heads: int) -> Tensor:
        made_NO = products.turned(x_BTI.flatten(0, 1), weight_OI, cos_TD, sin_TD)
        made_BT3HD = made_NO.view(*x_BTI.shape[:2], 3, heads, len(weight_OI) // 3 // heads)
        out_BTHD, sums_BHT = attend(made_BT3HD)
        ctx.save_for_backward(x_BTI, weight_OI, made_BT3HD, out_BTHD, sums_BHT, cos_TD, sin_TD)
        return out_BTHD.flatten(2)

    @staticmethod
    @only_once
    def backward(ctx: Any, *grads: Any) -> tuple[Tensor | None, Tensor | None, None, None, None]:
        x_BTI, weight_OI, made_BT3HD, out_BTHD, *rest = ctx.saved_tensors
        grad_NO = _back(made_BT3HD, out_BTHD, grads[0], *rest).flatten(2).flatten(0, 1)
        grad_x = torch.mm(grad_NO, weight_OI).view(x_BTI.shape) if ctx.needs_input_grad[0] else None
        grad_weight = torch.mm(grad_NO.t(), x_BTI.flatten(0, 1)) if ctx.needs_input_grad[1] else None
        return grad_x, grad_weight, None, None, None


@torch.library.custom_op("lmlab::attend", mutates_args=())
def attend(turned: Tensor) -> tuple[Tensor, Tensor]:
    """What every query finds, B×T×H×D, and what the backward pass has to know of its scores, B×H×T."""
    from lmlab.layers.fast._attention_triton import launch_forward

    return launch_forward(products.in_rows(turned))


@attend.register_fake
def _(turned: Tensor) -> tuple[Tensor, Tensor]:
    rows, length, _, heads, width = turned.shape
    sums = turned.new_empty(rows, heads, length, dtype=torch.float32)
    return turned.new_empty(rows, length, heads, width), sums


@torch.library.custom_op("lmlab::attend_back", mutates_args=())
def _back(turned: Tensor, out: Tensor, grad: Tensor, sums: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """What comes back to queries, keys and values before they were turned, B×T×3×H×D.

    Tables as `rotary_tables` makes them: of cos the first half of each row is read, of sin the second.
    """
    from lmlab.layers.fast._attention_triton import launch_backward

    given = products.in_rows(grad).view(out.shape)
    return launch_backward(products.in_rows(turned), out, sums, given, cos.contiguous(), sin.contiguous())


@_back.register_fake
def _(turned: Tensor, out: Tensor, grad: Tensor, sums: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    return torch.empty_like(turned, memory_format=torch.contiguous_format)

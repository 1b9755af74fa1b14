"""Causal multi-head self-attention, softmax(Q Kᵀ / √d + mask) V per head (lab11 problem 5b, with scale and mask).

Two ways to compute the same thing. PyTorch's fused kernel serves GPUs and everything without gradients. For training on a
CPU the backward pass of that kernel is several times slower than plain matrix products (bench/bench_training.py measures
both), so there the products and their derivatives are written out below.

Shapes: B rows, T positions (S when they are keys), H heads, D width of a head, R = D/2 pairs of a rotation. Queries, keys
and values come packed, as one matrix product makes them: qkv_BT3HD.
"""

from __future__ import annotations

import functools
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

Rotation = tuple[Tensor, Tensor]  # cos_TR, sin_TR


def causal_self_attention(qkv_BT3HD: Tensor, rotation: Rotation | None) -> Tensor:
    """Every position attends to itself and those before it. Returns B×T×(H·D)."""
    rows, length = qkv_BT3HD.shape[:2]
    if qkv_BT3HD.device.type == "cpu" and torch.is_grad_enabled() and qkv_BT3HD.requires_grad:
        cos_TR, sin_TR = (None, None) if rotation is None else (r.to(qkv_BT3HD.dtype) for r in rotation)
        out: Tensor = _MatrixProductAttention.apply(qkv_BT3HD, cos_TR, sin_TR)
        return out
    q_BHTD, k_BHTD, v_BHTD = split_heads(qkv_BT3HD, rotation)
    out = F.scaled_dot_product_attention(q_BHTD, k_BHTD, v_BHTD, is_causal=True)
    return out.transpose(1, 2).reshape(rows, length, -1)


def split_heads(qkv_BT3HD: Tensor, rotation: Rotation | None) -> tuple[Tensor, Tensor, Tensor]:
    """Queries, keys and values, each B×H×T×D; queries and keys turned by their positions where `rotation` is given."""
    q_BHTD, k_BHTD, v_BHTD = qkv_BT3HD.permute(2, 0, 3, 1, 4).unbind(0)
    if rotation is None:
        return q_BHTD, k_BHTD, v_BHTD
    cos_TR, sin_TR = (r.to(qkv_BT3HD.dtype) for r in rotation)
    return _rotated(q_BHTD, cos_TR, sin_TR), _rotated(k_BHTD, cos_TR, sin_TR), v_BHTD


def _rotated(x_BHTD: Tensor, cos_TR: Tensor, sin_TR: Tensor) -> Tensor:
    """Turn each pair (x_i, x_{i+R}) of position t by the angle of pair i at t."""
    first, second = x_BHTD.chunk(2, dim=-1)
    return torch.cat([first * cos_TR - second * sin_TR, second * cos_TR + first * sin_TR], dim=-1)


def _rotate_into(out: Tensor, x: Tensor, cos_TR: Tensor, sin_TR: Tensor) -> None:
    """`_rotated` without temporaries: memory traffic is what this costs on a CPU."""
    pairs = x.shape[-1] // 2
    first, second = x[..., :pairs], x[..., pairs:]
    torch.mul(first, cos_TR, out=out[..., :pairs]).addcmul_(second, sin_TR, value=-1)
    torch.mul(second, cos_TR, out=out[..., pairs:]).addcmul_(first, sin_TR)


@functools.lru_cache(maxsize=8)
def _causal_mask(length: int, dtype: torch.dtype) -> Tensor:
    """0 where a query may look, -inf where it may not."""
    return torch.full((length, length), -torch.inf, dtype=dtype).triu(1)


class _MatrixProductAttention(torch.autograd.Function):
    """Keeps the weights A of the forward pass: dV = Aᵀ dO, dA = dO Vᵀ, dS = A ∘ (dA - Σ_s A ∘ dA), dQ = dS K, dK = dSᵀ Q."""

    @staticmethod
    def forward(ctx: Any, qkv_BT3HD: Tensor, cos_TR: Tensor | None, sin_TR: Tensor | None) -> Tensor:
        rows, length, _, heads, width = qkv_BT3HD.shape
        qk = qkv_BT3HD.new_empty(2, rows, heads, length, width)
        source = qkv_BT3HD[:, :, :2].permute(2, 0, 3, 1, 4)
        if cos_TR is None or sin_TR is None:
            qk.copy_(source)
        else:
            _rotate_into(qk, source, cos_TR, sin_TR)
        q, k = qk.view(2, rows * heads, length, width)
        v = qkv_BT3HD[:, :, 2].transpose(1, 2).reshape(rows * heads, length, width)
        scores = torch.baddbmm(_causal_mask(length, qk.dtype), q, k.transpose(1, 2), alpha=width**-0.5)
        weights = torch.softmax(scores, dim=-1)
        ctx.save_for_backward(q, k, v, weights, cos_TR, sin_TR)
        ctx.rows = rows
        return torch.bmm(weights, v).view(rows, heads, length, width).transpose(1, 2).reshape(rows, length, -1)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> tuple[Tensor, None, None]:
        q, k, v, weights, cos_TR, sin_TR = ctx.saved_tensors
        length, width = q.shape[1:]
        heads = q.shape[0] // ctx.rows
        grad = grads[0].view(ctx.rows, length, heads, width).transpose(1, 2).reshape(q.shape)
        out = q.new_empty(ctx.rows, length, 3, heads, width)
        out[:, :, 2] = torch.bmm(weights.transpose(1, 2), grad).view(ctx.rows, heads, length, width).transpose(1, 2)
        grad_weights = torch.bmm(grad, v.transpose(1, 2))
        grad_scores = torch.ops.aten._softmax_backward_data(grad_weights, weights, -1, weights.dtype)
        grad_qk = q.new_empty(2, *q.shape)
        torch.bmm(grad_scores, k, out=grad_qk[0])
        torch.bmm(grad_scores.transpose(1, 2), q, out=grad_qk[1])
        grad_qk = grad_qk.view(2, ctx.rows, heads, length, width)
        target = out[:, :, :2].permute(2, 0, 3, 1, 4)
        scale = width**-0.5
        if cos_TR is None:
            torch.mul(grad_qk, scale, out=target)
        else:  # the derivative of a rotation is the rotation back
            _rotate_into(target, grad_qk, cos_TR * scale, sin_TR * -scale)
        return out, None, None

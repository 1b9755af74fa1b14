"""Causal multi-head self-attention, softmax(Q Kᵀ / √d + mask) V per head (lab11 problem 5b, with scale and mask).

Two ways to compute the same thing. PyTorch's fused kernel serves nearly everything. Its backward pass in bf16 on a CPU,
though, is several times slower than plain matrix products on units made for them, so for that one case, which is the one
that trains on a laptop or a small server, the products and their derivatives are written out below.

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
    learning = torch.is_grad_enabled() and qkv_BT3HD.requires_grad
    if learning and qkv_BT3HD.device.type == "cpu" and qkv_BT3HD.dtype == torch.bfloat16:
        cos, sin = (None, None) if rotation is None else (_for_queries_and_keys(r, qkv_BT3HD) for r in rotation)
        out: Tensor = _MatrixProductAttention.apply(qkv_BT3HD, cos, sin)
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


def _for_queries_and_keys(table_TR: Tensor, qkv_BT3HD: Tensor) -> Tensor:
    """The table for keys, and the same times 1/√D for queries, 2×1×1×T×R: scaling then costs nothing of its own."""
    scale = qkv_BT3HD.shape[-1] ** -0.5
    return torch.stack([table_TR * scale, table_TR])[:, None, None].to(qkv_BT3HD.dtype)


def _rotate_into(out: Tensor, x: Tensor, cos: Tensor, sin: Tensor, back: bool = False) -> None:
    """`_rotated` (or the rotation back) without temporaries: memory traffic is what this costs on a CPU."""
    pairs, sign = x.shape[-1] // 2, -1 if back else 1
    first, second = x[..., :pairs], x[..., pairs:]
    torch.mul(first, cos, out=out[..., :pairs]).addcmul_(second, sin, value=-sign)
    torch.mul(second, cos, out=out[..., pairs:]).addcmul_(first, sin, value=sign)


@functools.lru_cache(maxsize=16)
def _causal_mask(length: int, dtype: torch.dtype) -> Tensor:
    """0 where a query may look, -inf where it may not, for queries and keys at the same positions."""
    return torch.full((length, length), -torch.inf, dtype=dtype).triu(1)


BLOCK = 256  # queries at a time: keys that come after all of them are not multiplied at all


class _MatrixProductAttention(torch.autograd.Function):
    """Keeps the weights A of the forward pass. With S = Q Kᵀ / √D, where the scale is part of Q:

    dV = Aᵀ dO, dA = dO Vᵀ, dS = A ∘ (dA - Σ_s A ∘ dA), dQ = dS K, dK = dSᵀ Q.
    """

    @staticmethod
    def forward(ctx: Any, qkv_BT3HD: Tensor, cos: Tensor | None, sin: Tensor | None) -> Tensor:
        rows, length, _, heads, width = qkv_BT3HD.shape
        qkv = qkv_BT3HD.new_empty(3, rows, heads, length, width)
        source = qkv_BT3HD.permute(2, 0, 3, 1, 4)
        if cos is None or sin is None:
            qkv.copy_(source)
            qkv[0] *= width**-0.5
        else:
            _rotate_into(qkv[:2], source[:2], cos, sin)
            qkv[2].copy_(source[2])
        q, k, v = qkv.view(3, rows * heads, length, width)
        out, weights = torch.empty_like(q), []
        for start in range(0, length, BLOCK):
            end = min(start + BLOCK, length)
            # Contiguous copies: with strided operands the products leave the fast path.
            queries, keys, values = q[:, start:end].contiguous(), k[:, :end].contiguous(), v[:, :end].contiguous()
            scores = torch.bmm(queries, keys.transpose(1, 2))
            scores[:, :, start:] += _causal_mask(end - start, q.dtype)
            weights.append(torch.softmax(scores, dim=-1))
            out[:, start:end] = torch.bmm(weights[-1], values)
        ctx.save_for_backward(q, k, v, cos, sin, *weights)
        ctx.rows = rows
        return out.view(rows, heads, length, width).transpose(1, 2).reshape(rows, length, -1)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> tuple[Tensor, None, None]:
        q, k, v, cos, sin, *weights = ctx.saved_tensors
        length, width = q.shape[1:]
        heads = q.shape[0] // ctx.rows
        grad = grads[0].view(ctx.rows, length, heads, width).transpose(1, 2).reshape(q.shape)
        grad_qkv = q.new_empty(3, *q.shape)
        starts = range(0, length, BLOCK)
        for start, weight in zip(reversed(starts), reversed(weights), strict=True):
            end = min(start + BLOCK, length)
            here, queries = grad[:, start:end].contiguous(), q[:, start:end].contiguous()
            keys, values = k[:, :end].contiguous(), v[:, :end].contiguous()
            grad_weight = torch.bmm(here, values.transpose(1, 2))
            grad_scores = torch.ops.aten._softmax_backward_data(grad_weight, weight, -1, weight.dtype)
            grad_qkv[0, :, start:end] = torch.bmm(grad_scores, keys)
            grad_keys, grad_values = torch.bmm(grad_scores.mT, queries), torch.bmm(weight.mT, here)
            if end == length:  # the last block, which sees all keys, comes first
                grad_qkv[1], grad_qkv[2] = grad_keys, grad_values
            else:
                grad_qkv[1, :, :end] += grad_keys
                grad_qkv[2, :, :end] += grad_values
        grad_qkv = grad_qkv.view(3, ctx.rows, heads, length, width)
        out = q.new_empty(ctx.rows, length, 3, heads, width)
        target = out.permute(2, 0, 3, 1, 4)
        if cos is None:
            target.copy_(grad_qkv)
            target[0] *= width**-0.5
        else:  # the derivative of a rotation is the rotation back
            _rotate_into(target[:2], grad_qkv[:2], cos, sin, back=True)
            target[2].copy_(grad_qkv[2])
        return out, None, None

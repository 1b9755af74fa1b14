"""Attention as matrix products with their derivatives written out: for training in bf16 on a CPU.

Its plain twins are the calls of torch's kernel in `layers/attention.py`. Shapes: B rows, T positions, H heads, D width of a
head.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from lmlab.layers.fast.once import only_once
from lmlab.layers.positions import Rotation


def attention_by_products(
    qkv_BT3HD: Tensor, rotation: Rotation | None, *, causal: bool = True, text_BT: Tensor | None = None
) -> Tensor:
    """Every position attends to itself and those before it, or to all that hold text (all, if None). Returns B×T×(H·D)."""
    cos, sin = (None, None) if rotation is None else _for_queries_and_keys(rotation, qkv_BT3HD)
    apply: Callable[..., Tensor] = _MatrixProductAttention.apply
    return apply(qkv_BT3HD, cos, sin, causal, text_BT)


def _swapped(x: Tensor) -> Tensor:
    """The two halves of each head, exchanged."""
    return x.roll(x.shape[-1] // 2, -1)


def _for_queries_and_keys(rotation: Rotation, like_BT3HD: Tensor) -> Rotation:
    """The tables, 2×1×1×T×D. For queries they are multiplied by 1/√D: scaling the scores then costs nothing of its own."""
    scale_2 = torch.tensor([like_BT3HD.shape[-1] ** -0.5, 1.0]).view(2, 1, 1, 1, 1)
    cos, sin = ((table_TD * scale_2).to(like_BT3HD.dtype) for table_TD in rotation)
    return cos, sin


def _rotate(x: Tensor, cos: Tensor, sin: Tensor, back: bool = False) -> None:
    """Turn (or turn back) in place."""
    swapped = _swapped(x)
    x.mul_(cos).addcmul_(swapped, sin, value=-1 if back else 1)


@functools.lru_cache(maxsize=64)
def causal_mask(start: int, end: int, dtype: torch.dtype) -> Tensor:
    """0 where a query may look, -inf where it may not, for queries from `start` on and keys from 0 on."""
    return torch.full((end - start, end), -torch.inf, dtype=dtype).triu(start + 1)


def _hidden(text_BT: Tensor, heads: int, dtype: torch.dtype) -> Tensor:
    """0 where there is text, -inf where there is none, for every head of every row: (B·H)×1×T."""
    hidden_BT = torch.zeros(text_BT.shape, dtype=dtype).masked_fill_(~text_BT, -torch.inf)
    return hidden_BT.repeat_interleave(heads, 0)[:, None]


_PRIVATE_SOFTMAX: Any = getattr(torch.ops.aten, "_softmax_backward_data", None)


def _softmax_back(weights: Tensor, grad: Tensor) -> None:
    """dS = A ∘ (dA - Σ_s A ∘ dA), in place of dA; in one pass over memory where this torch has the kernel for it."""
    if _PRIVATE_SOFTMAX is not None:
        _PRIVATE_SOFTMAX.out(grad, weights, -1, weights.dtype, grad_input=grad)
    else:
        grad.sub_((weights * grad).sum(-1, keepdim=True)).mul_(weights)


BLOCK = 256  # queries at a time: keys that come after all of them are not multiplied at all


class _MatrixProductAttention(torch.autograd.Function):
    """Keeps the weights A of the forward pass. With S = Q Kᵀ / √D, where the scale is part of Q:

    dV = Aᵀ dO, dA = dO Vᵀ, dS = A ∘ (dA - Σ_s A ∘ dA), dQ = dS K, dK = dSᵀ Q.
    """

    @staticmethod
    def forward(
        ctx: Any, qkv_BT3HD: Tensor, cos: Tensor | None, sin: Tensor | None, causal: bool, text_BT: Tensor | None
    ) -> Tensor:
        rows, length, _, heads, width = qkv_BT3HD.shape
        qkv = qkv_BT3HD.new_empty(3, rows, heads, length, width)
        qkv.copy_(qkv_BT3HD.permute(2, 0, 3, 1, 4))
        if cos is None or sin is None:
            qkv[0] *= width**-0.5
        else:
            _rotate(qkv[:2], cos, sin)
        q, k, v = qkv.view(3, rows * heads, length, width)
        out_BTHD, weights = qkv_BT3HD.new_empty(rows, length, heads, width), []
        hidden = None if text_BT is None else _hidden(text_BT, heads, q.dtype)
        for start in range(0, length, BLOCK):
            end = min(start + BLOCK, length)
            seen = end if causal else length
            # Contiguous copies: with strided operands the products leave the fast path.
            queries, keys, values = q[:, start:end].contiguous(), k[:, :seen].contiguous(), v[:, :seen].contiguous()
            mask = causal_mask(start, end, q.dtype) if causal else hidden
            if mask is None:
                scores = torch.bmm(queries, keys.transpose(1, 2))
            else:
                scores = torch.baddbmm(mask.expand(len(q), end - start, -1), queries, keys.transpose(1, 2))
            weights.append(torch.softmax(scores, dim=-1, out=scores))
            attended = torch.bmm(scores, values).view(rows, heads, end - start, width)
            out_BTHD[:, start:end] = attended.transpose(1, 2)
        ctx.save_for_backward(q, k, v, cos, sin, *weights)
        ctx.rows, ctx.causal = rows, causal
        return out_BTHD.flatten(2)

    @staticmethod
    @only_once
    def backward(ctx: Any, *grads: Any) -> tuple[Tensor, None, None, None, None]:
        q, k, v, cos, sin, *weights = ctx.saved_tensors
        length, width = q.shape[1:]
        heads = q.shape[0] // ctx.rows
        grad = grads[0].view(ctx.rows, length, heads, width).transpose(1, 2).reshape(q.shape)
        grad_qkv = q.new_empty(3, *q.shape)
        starts = range(0, length, BLOCK)
        for start, weight in zip(reversed(starts), reversed(weights), strict=True):
            end = min(start + BLOCK, length)
            seen = end if ctx.causal else length
            here, queries = grad[:, start:end].contiguous(), q[:, start:end].contiguous()
            keys, values = k[:, :seen].contiguous(), v[:, :seen].contiguous()
            grad_scores = torch.bmm(here, values.transpose(1, 2))
            _softmax_back(weight, grad_scores)
            torch.bmm(grad_scores, keys, out=grad_qkv[0, :, start:end])
            if end == length:  # the last block, which sees all keys, comes first
                torch.bmm(grad_scores.mT, queries, out=grad_qkv[1])
                torch.bmm(weight.mT, here, out=grad_qkv[2])
            else:
                grad_qkv[1, :, :seen] += torch.bmm(grad_scores.mT, queries)
                grad_qkv[2, :, :seen] += torch.bmm(weight.mT, here)
        grad_qkv = grad_qkv.view(3, ctx.rows, heads, length, width)
        if cos is None:
            grad_qkv[0] *= width**-0.5
        else:  # the derivative of a rotation is the rotation back
            _rotate(grad_qkv[:2], cos, sin, back=True)
        return grad_qkv.permute(1, 3, 0, 2, 4).contiguous(), None, None, None, None

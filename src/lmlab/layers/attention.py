"""Multi-head attention, softmax(Q Kᵀ / √d + mask) V per head (Vaswani 2017).

PyTorch's fused kernel serves most. Training on a CPU, though, takes it longer than a kernel in C wherever the two were raced
(`layers/fast/attention_in_c.py`, `RACE`); where there is no compiler, in bf16, matrix products on units made for them are still
several times faster (`layers/fast/attention.py`).

Shapes: B rows, T positions (S when they are keys), H heads, D width of a head, I of the stream, O outputs. Queries, keys and
values come packed, as one matrix product makes them: qkv_BT3HD.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from lmlab.hardware.races import Race, Work
from lmlab.layers import fast
from lmlab.layers.composition import visible
from lmlab.layers.fast.attention import attention_by_products
from lmlab.layers.fast.attention_in_c import SOURCE, attention_in_c, fits
from lmlab.layers.fast.rotation import can_turn, joined, turned_heads
from lmlab.layers.fast.triton_here import HAS_TRITON
from lmlab.layers.positions import Rotation, rotary_tables


def projected_self_attention(x_BTI: Tensor, weight_OI: Tensor, heads: int, rotation: Rotation | None) -> Tensor:
    """`causal_self_attention` of the queries, keys and values that the weights, in the precision of x, make of x."""
    if rotation is not None and can_turn(x_BTI, weight_OI, heads):
        return _to_itself_and_before(*turned_heads(x_BTI, weight_OI, rotation, heads))
    return causal_self_attention(packed(x_BTI, weight_OI, heads), rotation)


def packed(x_BTI: Tensor, weight_OI: Tensor, heads: int) -> Tensor:
    """Queries, keys and values by one matrix product, B×T×3×H×D."""
    return F.linear(x_BTI, weight_OI).view(*x_BTI.shape[:2], 3, heads, len(weight_OI) // 3 // heads)


def causal_self_attention(qkv_BT3HD: Tensor, rotation: Rotation | None) -> Tensor:
    """Every position attends to itself and those before it. Returns B×T×(H·D)."""
    if _in_c(qkv_BT3HD):
        return attention_in_c(qkv_BT3HD, rotation)
    if _by_products(qkv_BT3HD):
        return attention_by_products(qkv_BT3HD, rotation)
    if fast.enabled and HAS_TRITON and rotation is not None and qkv_BT3HD.is_cuda and torch.is_grad_enabled():
        q_BHTD, k_BHTD, v_BHTD = split_to_learn(qkv_BT3HD, rotation)
    else:
        q_BHTD, k_BHTD, v_BHTD = split_heads(qkv_BT3HD, rotation)
    return _to_itself_and_before(q_BHTD, k_BHTD, v_BHTD)


def _to_itself_and_before(q_BHTD: Tensor, k_BHTD: Tensor, v_BHTD: Tensor) -> Tensor:
    return F.scaled_dot_product_attention(q_BHTD, k_BHTD, v_BHTD, is_causal=True).transpose(1, 2).flatten(2)


def self_attention(qkv_BT3HD: Tensor, text_BT: Tensor | None) -> Tensor:
    """Every position attends to all of its row that hold text (None: to all; each row has some). Returns B×T×(H·D)."""
    if _in_c(qkv_BT3HD):
        return attention_in_c(qkv_BT3HD, None, causal=False, text_BT=text_BT)
    if _by_products(qkv_BT3HD):
        return attention_by_products(qkv_BT3HD, None, causal=False, text_BT=text_BT)
    q_BHTD, k_BHTD, v_BHTD = split_heads(qkv_BT3HD, None)
    seen_B11S = None if text_BT is None else text_BT[:, None, None]
    return F.scaled_dot_product_attention(q_BHTD, k_BHTD, v_BHTD, attn_mask=seen_B11S).transpose(1, 2).flatten(2)


def _in_c(qkv_BT3HD: Tensor) -> bool:
    """Whether this is learned from on a CPU, and there is a kernel in C that is faster at it here."""
    learning = torch.is_grad_enabled() and qkv_BT3HD.requires_grad and not torch.compiler.is_compiling()
    return fast.enabled and learning and fits(qkv_BT3HD) and RACE.taken(qkv_BT3HD.dtype)


def _ways_to_learn(dtype: torch.dtype) -> tuple[Work, Work]:
    """In C, and as it would be done otherwise: four windows of a small model, forward and backward."""
    rows, length, heads, width = 4, 256, 6, 32
    generator = torch.Generator().manual_seed(0)
    qkv_BT3HD = torch.randn(rows, length, 3, heads, width, generator=generator).to(dtype).requires_grad_()
    rotation, grad_BTE = rotary_tables(length, width), torch.ones(rows, length, heads * width, dtype=dtype)

    def plain(qkv_BT3HD: Tensor, rotation: Rotation) -> Tensor:
        if dtype == torch.bfloat16:
            return attention_by_products(qkv_BT3HD, rotation)
        return _to_itself_and_before(*split_heads(qkv_BT3HD, rotation))

    def learned_from(attend: Callable[[Tensor, Rotation], Tensor]) -> Work:
        return lambda: torch.autograd.grad(attend(qkv_BT3HD, rotation), qkv_BT3HD, grad_BTE)

    return learned_from(attention_in_c), learned_from(plain)


RACE = Race("attention in training", SOURCE, _ways_to_learn)


def _by_products(qkv_BT3HD: Tensor) -> bool:
    """Whether this is the case that torch's kernel is slowest in."""
    learning = torch.is_grad_enabled() and qkv_BT3HD.requires_grad
    return fast.enabled and learning and qkv_BT3HD.device.type == "cpu" and qkv_BT3HD.dtype == torch.bfloat16


def cross_attention(q_BTHD: Tensor, kv_BS2HD: Tensor, there_BS: Tensor) -> Tensor:
    """Every query attends to all keys that are there: those of padding are not. Returns B×T×(H·D)."""
    q_BHTD = q_BTHD.transpose(1, 2)
    k_BHSD, v_BHSD = kv_BS2HD.permute(2, 0, 3, 1, 4).unbind(0)
    out = F.scaled_dot_product_attention(q_BHTD, k_BHSD, v_BHSD, attn_mask=there_BS[:, None, None])
    return out.transpose(1, 2).flatten(2)


def split_groups(
    made_BTX: Tensor, heads: int, kv_heads: int, rotation: Rotation | None
) -> tuple[Tensor, Tensor, Tensor]:
    """Queries B×H×T×D, keys and values B×K×T×D, packed in this order; queries and keys are turned by their positions."""
    made_BTND = made_BTX.unflatten(-1, (heads + 2 * kv_heads, -1))
    turning_BTND, v_BTKD = made_BTND.split([heads + kv_heads, kv_heads], 2)
    if rotation is not None:
        turning_BTND = _by_position(turning_BTND, rotation)
    q_BTHD, k_BTKD = turning_BTND.split([heads, kv_heads], 2)
    return q_BTHD.transpose(1, 2), k_BTKD.transpose(1, 2), v_BTKD.transpose(1, 2)


def for_each_head(kv_BKSD: Tensor, heads: int) -> Tensor:
    """Keys or values for every head of queries, B×H×S×D: neighbouring heads share them."""
    shared = heads // kv_BKSD.shape[1]
    return kv_BKSD if shared == 1 else kv_BKSD.repeat_interleave(shared, 1)


def attended_before(q_BHTD: Tensor, k_BKSD: Tensor, v_BKSD: Tensor, *, window: int | None) -> Tensor:
    """What the last T of S positions find in themselves and those before them, within a window. Returns B×T×(H·D)."""
    heads, queries, keys = q_BHTD.shape[1], q_BHTD.shape[2], k_BKSD.shape[2]
    if window is not None and queries == 1:  # a cache: the positions outside the window are not read
        k_BKSD, v_BKSD, keys = k_BKSD[:, :, -window:], v_BKSD[:, :, -window:], min(keys, window)
    k_BHSD, v_BHSD = for_each_head(k_BKSD, heads), for_each_head(v_BKSD, heads)
    if queries == 1 or (queries == keys and (window is None or window >= keys)):  # no mask needed: the fast kernels
        found = F.scaled_dot_product_attention(q_BHTD, k_BHSD, v_BHSD, is_causal=queries > 1)
    else:
        seen_TS = visible(queries, keys, window, q_BHTD.device)
        found = F.scaled_dot_product_attention(q_BHTD, k_BHSD, v_BHSD, attn_mask=seen_TS)
    return found.transpose(1, 2).flatten(2)


def split_heads(qkv_BT3HD: Tensor, rotation: Rotation | None) -> tuple[Tensor, Tensor, Tensor]:
    """`split_groups` where there are as many heads of keys and values as of queries."""
    heads = qkv_BT3HD.shape[3]
    return split_groups(qkv_BT3HD.flatten(2), heads, heads, rotation)


def _by_position(x_BTND: Tensor, rotation: Rotation) -> Tensor:
    """As much of every head as the tables are wide is turned."""
    cos, sin = (table_TD[:, None].to(x_BTND.dtype) for table_TD in rotation)
    width = cos.shape[-1]
    if width < x_BTND.shape[-1]:
        return torch.cat([_by_position(x_BTND[..., :width], rotation), x_BTND[..., width:]], -1)
    if torch.compiler.is_compiling():  # the same, as the compiler joins it into one pass forward and one backward
        first, second = x_BTND.chunk(2, -1)
        return x_BTND * cos + torch.cat([second, first], -1) * sin
    return torch.addcmul(x_BTND * cos, x_BTND.roll(width // 2, -1), sin)


def split_to_learn(qkv_BT3HD: Tensor, rotation: Rotation) -> tuple[Tensor, Tensor, Tensor]:
    """As `split_heads`, on a GPU, with a derivative by hand."""
    apply: Callable[..., tuple[Tensor, Tensor, Tensor]] = _Split.apply
    return apply(qkv_BT3HD, *rotation)


class _Split(torch.autograd.Function):
    """`split_heads`, whose gradients one kernel joins."""

    @staticmethod
    def forward(ctx: Any, qkv_BT3HD: Tensor, cos_TD: Tensor, sin_TD: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        ctx.save_for_backward(cos_TD, sin_TD)
        return split_heads(qkv_BT3HD, (cos_TD, sin_TD))

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> tuple[Tensor, None, None]:
        return joined(*grads, *ctx.saved_tensors), None, None

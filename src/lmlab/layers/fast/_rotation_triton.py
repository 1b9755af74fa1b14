"""The kernel of `rotation.py`, apart from it because triton is not everywhere."""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

WARPS = 1


def launch(q_BHTD: Tensor, k_BHTD: Tensor, v_BHTD: Tensor, cos_TD: Tensor, sin_TD: Tensor) -> Tensor:
    """Gradients by queries and keys, turned back, and by values, as one B×T×3×H×D."""
    rows, heads, length, width = q_BHTD.shape
    assert width % 2 == 0
    out_BT3HD = torch.empty(rows, length, 3, heads, width, dtype=q_BHTD.dtype, device=q_BHTD.device)
    parts = [part if part.stride(-1) == 1 else part.contiguous() for part in (q_BHTD, k_BHTD, v_BHTD)]
    strides = [stride for part in parts for stride in part.stride()[:3]]
    blocks = triton.next_power_of_2(heads), triton.next_power_of_2(width // 2)
    _joined[(rows * length,)](
        *parts, cos_TD, sin_TD, out_BT3HD, length, heads, width, *strides, *blocks, num_warps=WARPS
    )
    return out_BT3HD


@triton.jit
def _joined(  # type: ignore[no-untyped-def]
    q,
    k,
    v,
    cos,
    sin,
    out,
    length,
    heads,
    width: tl.constexpr,
    q_row,
    q_head,
    q_place,
    k_row,
    k_head,
    k_place,
    v_row,
    v_head,
    v_place,
    block_heads: tl.constexpr,
    block_half: tl.constexpr,
):
    """A program is one place of one row."""
    row, place = (tl.program_id(0) // length).to(tl.int64), tl.program_id(0) % length
    h, d = tl.arange(0, block_heads)[:, None], tl.arange(0, block_half)[None, :]
    half: tl.constexpr = width // 2
    there = (h < heads) & (d < half)
    table = place * width + d
    cos_1, cos_2 = tl.load(cos + table, mask=d < half), tl.load(cos + half + table, mask=d < half)
    sin_1, sin_2 = tl.load(sin + table, mask=d < half), tl.load(sin + half + table, mask=d < half)
    mine = out + tl.program_id(0).to(tl.int64) * 3 * heads * width + h * width + d
    _turn(q + row * q_row + place * q_place + h * q_head + d, mine, half, there, cos_1, cos_2, sin_1, sin_2)
    _turn(
        k + row * k_row + place * k_place + h * k_head + d,
        mine + heads * width,
        half,
        there,
        cos_1,
        cos_2,
        sin_1,
        sin_2,
    )
    given = v + row * v_row + place * v_place + h * v_head + d
    mine += 2 * heads * width
    tl.store(mine, tl.load(given, mask=there), mask=there)
    tl.store(mine + half, tl.load(given + half, mask=there), mask=there)


@triton.jit
def _turn(given, mine, half: tl.constexpr, there, cos_1, cos_2, sin_1, sin_2):  # type: ignore[no-untyped-def]
    first = tl.load(given, mask=there, other=0.0).to(tl.float32)
    second = tl.load(given + half, mask=there, other=0.0).to(tl.float32)
    tl.store(mine, (first * cos_1 + second * sin_2).to(mine.dtype.element_ty), mask=there)
    tl.store(mine + half, (second * cos_2 + first * sin_1).to(mine.dtype.element_ty), mask=there)

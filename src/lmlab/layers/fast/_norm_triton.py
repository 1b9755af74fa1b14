"""The kernel of `norms.py`, apart from it because triton is not everywhere."""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

WARPS, STAGES = 2, 3  # rows are fetched while those before them are worked on
EPSILON = tl.constexpr(1e-5)


def launch(grad_ND: Tensor, stream_ND: Tensor, x_ND: Tensor, weight_D: Tensor, programs: int) -> tuple[Tensor, Tensor]:
    """What comes back to the stream, N×D, and to the weight, as parts that are still to be added up, programs×D."""
    rows, width = x_ND.shape
    out_ND = torch.empty_like(x_ND)
    parts_PD = torch.empty(programs, width, dtype=torch.float32, device=x_ND.device)
    given = grad_ND, stream_ND, x_ND, weight_D
    block = triton.next_power_of_2(width)
    _back[(programs,)](*given, out_ND, parts_PD, rows, width, block, programs, STAGES, num_warps=WARPS)
    return out_ND, parts_PD


@triton.jit
def _back(  # type: ignore[no-untyped-def]
    grad,
    stream,
    x,
    weight,
    out,
    parts,
    rows,
    width: tl.constexpr,
    block: tl.constexpr,
    programs: tl.constexpr,
    stages: tl.constexpr,
):
    """A program takes every so many-th row, always the same ones: sums have one order."""
    d = tl.arange(0, block)
    there = d < width
    w = tl.load(weight + d, mask=there, other=0.0).to(tl.float32)
    total = tl.zeros((block,), tl.float32)
    for row in tl.range(tl.program_id(0), rows, programs, num_stages=stages):
        at = row.to(tl.int64) * width + d
        here = tl.load(x + at, mask=there, other=0.0).to(tl.float32)
        given = tl.load(grad + at, mask=there, other=0.0).to(tl.float32)
        passed = tl.load(stream + at, mask=there, other=0.0).to(tl.float32)
        away = tl.where(there, here - tl.sum(here, 0) / width, 0.0)
        spread = 1.0 / tl.sqrt(tl.sum(away * away, 0) / width + EPSILON)
        y = away * spread
        total += given * y
        g = given * w
        level, slope = tl.sum(g, 0) / width, tl.sum(g * y, 0) / width
        tl.store(out + at, (passed + (g - level - y * slope) * spread).to(out.dtype.element_ty), mask=there)
    tl.store(parts + tl.program_id(0) * width + d, total, mask=there)

"""The kernels of `muon.py`, apart from it because triton is not everywhere.

Matrices may be transposed: tiles are turned on the chip.
"""

from __future__ import annotations

import triton
import triton.language as tl
from torch import Tensor

TILE = 64


def launch_nesterov(momentum_MN: Tensor, grad_MN: Tensor, out_MN: Tensor, momentum: float) -> None:
    """m = m + (g - m) (1 - momentum); out = m + (g - m) (1 - momentum)."""
    rows, columns = momentum_MN.shape
    grid = triton.cdiv(rows, TILE), triton.cdiv(columns, TILE)
    _nesterov[grid](
        momentum_MN, grad_MN, out_MN, rows, columns, *grad_MN.stride(), *out_MN.stride(), 1 - momentum, TILE
    )


def launch_move(p_MN: Tensor, update_MN: Tensor, keep: Tensor, by: Tensor) -> None:
    """p = keep p + by update."""
    rows, columns = p_MN.shape
    grid = triton.cdiv(rows, TILE), triton.cdiv(columns, TILE)
    _move[grid](p_MN, update_MN, keep, by, rows, columns, *update_MN.stride(), TILE)


@triton.jit
def _nesterov(  # type: ignore[no-untyped-def]
    momentum, grad, out, rows, columns, grad_row, grad_column, out_row, out_column, share, tile: tl.constexpr
):
    i = tl.program_id(0) * tile + tl.arange(0, tile)[:, None]
    j = tl.program_id(1) * tile + tl.arange(0, tile)[None, :]
    there = (i < rows) & (j < columns)
    place = momentum + i * columns + j
    g = tl.load(grad + i * grad_row + j * grad_column, mask=there)
    m = tl.load(place, mask=there)
    m += (g - m) * share
    tl.store(place, m, mask=there)
    m += (g - m) * share
    tl.store(out + i * out_row + j * out_column, m.to(out.dtype.element_ty), mask=there)


@triton.jit
def _move(  # type: ignore[no-untyped-def]
    p, update, keep, by, rows, columns, update_row, update_column, tile: tl.constexpr
):
    i = tl.program_id(0) * tile + tl.arange(0, tile)[:, None]
    j = tl.program_id(1) * tile + tl.arange(0, tile)[None, :]
    there = (i < rows) & (j < columns)
    place = p + i * columns + j
    u = tl.load(update + i * update_row + j * update_column, mask=there).to(tl.float32)
    tl.store(place, tl.load(place, mask=there) * tl.load(keep) + u * tl.load(by), mask=there)

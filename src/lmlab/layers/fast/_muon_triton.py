"""The kernels of `muon.py`, apart from it because triton is not everywhere.

All matrices of one shape are one launch: each of them alone is over before a large GPU is filled. Matrices may be transposed:
tiles are turned on the chip.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import triton
import triton.language as tl
from torch import Tensor

TILE = 64
MOST = 32  # matrices of a launch: each is an argument, and more take long to compile


def launch_nesterov(momenta: Sequence[Tensor], grads: Sequence[Tensor], out_KMN: Tensor, momentum: float) -> None:
    """m = m + (g - m) (1 - momentum); out = m + (g - m) (1 - momentum). m, g: M×N each, one after the other."""
    _, rows, columns = out_KMN.shape
    for some, its_momenta, its_grads in _together(out_KMN, momenta, grads):
        _nesterov[_grid(some)](
            its_momenta, its_grads, some, rows, columns, *some.stride(), 1 - momentum, len(some), TILE
        )


def launch_move(parameters: Sequence[Tensor], update_KMN: Tensor, keep: Tensor, by: Tensor) -> None:
    """p = keep p + by update."""
    _, rows, columns = update_KMN.shape
    for some, its_parameters in _together(update_KMN, parameters):
        _move[_grid(some)](its_parameters, some, keep, by, rows, columns, *some.stride(), len(some), TILE)


def _grid(matrices_KMN: Tensor) -> tuple[int, int, int]:
    count, rows, columns = matrices_KMN.shape
    return triton.cdiv(rows, TILE), triton.cdiv(columns, TILE), count


def _together(stack_KMN: Tensor, *lists: Sequence[Tensor]) -> Iterator[tuple[Any, ...]]:
    """What goes into each launch: a piece of the stack, and tuples of the matrices that belong to it."""
    for start in range(0, len(stack_KMN), MOST):
        piece = slice(start, start + MOST)
        yield stack_KMN[piece], *(tuple(matrices[piece]) for matrices in lists)


@triton.jit
def _nesterov(  # type: ignore[no-untyped-def]
    momenta,
    grads,
    out,
    rows,
    columns,
    out_each,
    out_row,
    out_column,
    share,
    count: tl.constexpr,
    tile: tl.constexpr,
):
    i, j, there, which = _tile_of(rows, columns, tile)
    place = _chosen(momenta, which, count) + i * columns + j
    g = tl.load(_chosen(grads, which, count) + i * columns + j, mask=there)
    m = tl.load(place, mask=there)
    m += (g - m) * share
    tl.store(place, m, mask=there)
    m += (g - m) * share
    tl.store(out + which * out_each + i * out_row + j * out_column, m.to(out.dtype.element_ty), mask=there)


@triton.jit
def _move(  # type: ignore[no-untyped-def]
    parameters,
    update,
    keep,
    by,
    rows,
    columns,
    update_each,
    update_row,
    update_column,
    count: tl.constexpr,
    tile: tl.constexpr,
):
    i, j, there, which = _tile_of(rows, columns, tile)
    place = _chosen(parameters, which, count) + i * columns + j
    u = tl.load(update + which * update_each + i * update_row + j * update_column, mask=there).to(tl.float32)
    tl.store(place, tl.load(place, mask=there) * tl.load(keep) + u * tl.load(by), mask=there)


@triton.jit
def _tile_of(rows, columns, tile: tl.constexpr):  # type: ignore[no-untyped-def]
    """Rows and columns of this program's tile, which of them are there, and of which matrix."""
    i = tl.program_id(0) * tile + tl.arange(0, tile)[:, None]
    j = tl.program_id(1) * tile + tl.arange(0, tile)[None, :]
    return i, j, (i < rows) & (j < columns), tl.program_id(2).to(tl.int64)


@triton.jit
def _chosen(matrices, which, count: tl.constexpr):  # type: ignore[no-untyped-def]
    """Where this one begins."""
    begin = matrices[0]
    for k in tl.static_range(1, count):
        begin = tl.where(which == k, matrices[k], begin)
    return begin

"""Products with symmetric results for Muon's iteration on a GPU, apart from `muon.py` because triton is not everywhere.

Half of a symmetric matrix is the mirror of the other half: only the tiles on and above the diagonal are multiplied, and what
the iteration does with a product next is done before it leaves the chip. Tiles come through the copy engine that GPUs have
since Hopper, and every program takes one tile after the other.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor
from triton.tools.tensor_descriptor import TensorDescriptor

TOGETHER = 64  # numbers of the inner dimension that are fetched together
STAGES, WARPS = 4, 8


def gram(x_KMN: Tensor, scale_K: Tensor | None, tile: int) -> Tensor:
    """(s x)(s x)ᵀ of each, K×M×M in the precision of x. tile: rows and columns of one; M is a multiple of it."""
    return _launch(x_KMN, None, (1.0, 0.0, 0.0), scale_K, tile)


def polynomial(gram_KMM: Tensor, coefficients: tuple[float, float, float], scale_K: Tensor | None, tile: int) -> Tensor:
    """s (a + b G + c G²) of each symmetric G."""
    a, b, c = coefficients
    return _launch(gram_KMM, gram_KMM, (c, b, a), scale_K, tile)


def _launch(
    x_KMN: Tensor, added_KMM: Tensor | None, factors: tuple[float, float, float], scale_K: Tensor | None, tile: int
) -> Tensor:
    count, rows, columns = x_KMN.shape
    out_KMM = torch.empty(count, rows, rows, dtype=x_KMN.dtype, device=x_KMN.device)
    out = TensorDescriptor.from_tensor(out_KMM.view(-1, rows), [tile, tile])
    added = out if added_KMM is None else TensorDescriptor.from_tensor(added_KMM.view(-1, rows), [tile, tile])
    across = rows // tile
    work = count * across * (across + 1) // 2
    programs = min(torch.cuda.get_device_properties(x_KMN.device).multi_processor_count, work)
    _symmetric[(programs,)](
        TensorDescriptor.from_tensor(x_KMN.view(-1, columns), [tile, TOGETHER]),
        added,
        out,
        x_KMN if scale_K is None else scale_K,
        rows,
        columns,
        *factors,
        added_KMM is not None,
        scale_K is not None,
        across,
        work,
        programs,
        tile,
        TOGETHER,
        num_warps=WARPS,
        num_stages=STAGES,
    )
    return out_KMM


@triton.jit
def _symmetric(  # type: ignore[no-untyped-def]
    x,
    added,
    out,
    scales,
    rows,
    columns,
    of_product,
    of_added,
    on_diagonal,
    adds: tl.constexpr,
    scaled: tl.constexpr,
    across: tl.constexpr,
    work: tl.constexpr,
    programs: tl.constexpr,
    tile: tl.constexpr,
    together: tl.constexpr,
):
    half: tl.constexpr = across * (across + 1) // 2
    for item in range(tl.program_id(0), work, programs):
        which, left = item // half, item % half
        row = 0
        for above in tl.static_range(across - 1):  # rows of tiles before this one: across, across - 1, ... tiles each
            row += (left >= (above + 1) * across - above * (above + 1) // 2).to(tl.int32)
        column = left - row * across + row * (row - 1) // 2 + row
        first = which * rows
        total = tl.zeros((tile, tile), tl.float32)
        for step in range(tl.cdiv(columns, together)):
            some = x.load([first + row * tile, step * together])
            total = tl.dot(some, x.load([first + column * tile, step * together]).T, total)
        if adds:
            total = of_product * total + of_added * added.load([first + row * tile, column * tile]).to(tl.float32)
            if row == column:
                total += tl.where(tl.arange(0, tile)[:, None] == tl.arange(0, tile)[None, :], on_diagonal, 0.0)
        if scaled:
            scale = tl.load(scales + which)
            total *= scale
            if not adds:
                total *= scale
        rounded = total.to(out.dtype)
        out.store([first + row * tile, column * tile], rounded)
        if row != column:
            out.store([first + column * tile, row * tile], rounded.T)

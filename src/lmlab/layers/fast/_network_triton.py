"""The kernels of `networks.py` on a GPU, apart from it because triton is not everywhere.

A matrix product whose results are squared, or multiplied, before they leave the chip: what the library does in two kernels and
two more passes over memory. Tiles come through the copy engine that GPUs have since Hopper, and a program takes one tile after
the other, so that it fetches for the next while it writes the last.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor
from triton.tools.tensor_descriptor import TensorDescriptor

PLACES, HIDDEN, INPUTS = 128, 256, 64  # of a tile, and inputs that are fetched together
STAGES, WARPS = 3, 8


def squares(x_NI: Tensor, up_HI: Tensor) -> Tensor:
    """max(x upᵀ, 0)², N×H."""
    out_NH = torch.empty(len(x_NI), len(up_HI), dtype=x_NI.dtype, device=x_NI.device)
    _launch(x_NI, up_HI, [HIDDEN, INPUTS], None, out_NH)
    return out_NH


def grown(grad_NO: Tensor, down_OH: Tensor, squared_NH: Tensor) -> Tensor:
    """2 √squared ∘ (grad down), N×H: what reaches the first layer's outputs of a gradient by the second's."""
    out_NH = torch.empty_like(squared_NH)
    _launch(grad_NO, down_OH, [INPUTS, HIDDEN], squared_NH, out_NH)
    return out_NH


def _launch(x: Tensor, weight: Tensor, weight_block: list[int], squared: Tensor | None, out: Tensor) -> None:
    programs = torch.cuda.get_device_properties(x.device).multi_processor_count
    (places, inputs), hidden = x.shape, out.shape[1]
    _network[(min(programs, triton.cdiv(places, PLACES) * triton.cdiv(hidden, HIDDEN)),)](
        TensorDescriptor.from_tensor(x, [PLACES, INPUTS]),
        TensorDescriptor.from_tensor(weight, weight_block),
        TensorDescriptor.from_tensor(out if squared is None else squared, [PLACES, HIDDEN // 2]),
        TensorDescriptor.from_tensor(out, [PLACES, HIDDEN // 2]),
        places,
        hidden,
        inputs,
        squared is None,
        PLACES,
        HIDDEN,
        INPUTS,
        programs,
        num_warps=WARPS,
        num_stages=STAGES,
    )


@triton.jit
def _network(  # type: ignore[no-untyped-def]
    x,
    weight,
    squared,
    out,
    places,
    hidden,
    inputs,
    forward: tl.constexpr,
    tile_places: tl.constexpr,
    tile_hidden: tl.constexpr,
    tile_inputs: tl.constexpr,
    programs: tl.constexpr,
):
    across = tl.cdiv(hidden, tile_hidden)
    tiles = tl.cdiv(places, tile_places) * across
    written = tl.program_id(0) - programs  # counted by itself, so that fetching need not wait for writing
    for tile in tl.range(tl.program_id(0), tiles, programs, flatten=True):
        place, unit = (tile // across) * tile_places, (tile % across) * tile_hidden
        total = tl.zeros((tile_places, tile_hidden), tl.float32)
        for step in range(tl.cdiv(inputs, tile_inputs)):
            some = x.load([place, step * tile_inputs])
            if forward:
                total = tl.dot(some, weight.load([unit, step * tile_inputs]).T, total)
            else:
                total = tl.dot(some, weight.load([step * tile_inputs, unit]), total)
        written += programs
        place, unit = (written // across) * tile_places, (written % across) * tile_hidden
        # In two halves: what is read and written now takes room from the tiles that are fetched.
        left, right = tl.split(tl.permute(tl.reshape(total, (tile_places, 2, tile_hidden // 2)), (0, 2, 1)))
        _finish(left, squared, out, place, unit, forward)
        _finish(right, squared, out, place, unit + tile_hidden // 2, forward)


@triton.jit
def _finish(total, squared, out, place, unit, forward: tl.constexpr):  # type: ignore[no-untyped-def]
    if forward:
        total = tl.maximum(total, 0.0)
        total = total * total
    else:
        total = total * (2.0 * tl.sqrt(squared.load([place, unit]).to(tl.float32)))
    out.store([place, unit], total.to(out.dtype))

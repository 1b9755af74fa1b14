"""Matrix products whose results are finished before they leave the chip, for GPUs of the Hopper kind; see `products.py`.

In gluon, triton's language of one level below: here warps have trades. One fetches tiles by the copy engine, as far ahead as
there is room; two groups of four multiply, each half of the places of a tile. They need not keep step: while one finishes and
writes its results, the other has the matrix units for itself, as long as what is fetched lasts. Every program takes one tile
after the other.
"""

from __future__ import annotations

import torch
from torch import Tensor
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.hopper import (
    fence_async_shared,
    mbarrier,
    tma,
    warpgroup_mma,
    warpgroup_mma_wait,
)
from triton.experimental.gluon.nvidia.hopper import TensorDescriptor

REGISTERS = 168  # of a thread, on average: 240 of those that multiply
# Inputs that are fetched together, and how many such pieces, two or more, there is room for, beside what is finished.
IN_ROWS, IN_COLUMNS = (64, 3), (32, 6)  # by how the weights lie; timed

SQUARE, GROW, TURN = gl.constexpr(0), gl.constexpr(1), gl.constexpr(2)  # how a product ends
# The copy engine by its older and its newer names.
_fetch = getattr(tma, "async_load", None) or tma.async_copy_global_to_shared
_write = getattr(tma, "async_store", None) or tma.async_copy_shared_to_global


def squares(x_NI: Tensor, up_HI: Tensor, tile: tuple[int, int]) -> Tensor:
    """max(x upᵀ, 0)², N×H. tile: places and outputs that are finished together, here as below."""
    out_NH = x_NI.new_empty(len(x_NI), len(up_HI))
    _launch(x_NI, up_HI, out_NH, SQUARE, tile)
    return out_NH


def grown(grad_NO: Tensor, down_OH: Tensor, squared_NH: Tensor, tile: tuple[int, int]) -> Tensor:
    """2 √squared ∘ (grad down), N×H."""
    out_NH = torch.empty_like(squared_NH)
    _launch(grad_NO, down_OH, out_NH, GROW, tile, squared_NH=squared_NH)
    return out_NH


def turned(x_NI: Tensor, weight_OI: Tensor, cos_TD: Tensor, sin_TD: Tensor, tile: tuple[int, int]) -> Tensor:
    """x weightᵀ, N×O, of which the first two thirds are heads of width D that are turned by their position, N modulo T."""
    out_NO = x_NI.new_empty(len(x_NI), len(weight_OI))
    _launch(x_NI, weight_OI, out_NO, TURN, tile, tables=(cos_TD, sin_TD))
    return out_NO


def _launch(
    x: Tensor,
    weight: Tensor,
    out: Tensor,
    end: gl.constexpr,
    tile: tuple[int, int],
    squared_NH: Tensor | None = None,
    tables: tuple[Tensor, Tensor] | None = None,
) -> None:
    assert x.shape[1] == weight.shape[0 if end == GROW else 1]
    (places, outputs), (inputs, stages) = tile, IN_COLUMNS if end == GROW else IN_ROWS
    half = places // 2  # of a group of warps
    cos, sin = (out, out) if tables is None else tables
    programs = torch.cuda.get_device_properties(x.device).multi_processor_count
    _product[(programs,)](
        _tiles(x, places, inputs),
        _tiles(weight, inputs, outputs) if end == GROW else _tiles(weight, outputs, inputs),
        _tiles(out if squared_NH is None else squared_NH, half, outputs),
        _tiles(out, half, outputs),
        cos,
        sin,
        len(x),
        out.shape[1],
        x.shape[1],
        1 if tables is None else len(cos),
        0 if tables is None else cos.shape[1] // 2,
        programs,
        places,
        outputs,
        inputs,
        stages,
        end,
        num_warps=4,
        maxnreg=REGISTERS,
    )


def _tiles(matrix: Tensor, rows: int, columns: int) -> TensorDescriptor:
    return TensorDescriptor.from_tensor(
        matrix, [rows, columns], gl.NVMMASharedLayout.get_default_for([rows, columns], gl.bfloat16)
    )


@gluon.jit
def _product(  # type: ignore[no-untyped-def]
    x,
    weight,
    squared,
    out,
    cos,
    sin,
    places,
    outputs,
    inputs,
    length,
    half_head: gl.constexpr,
    programs,
    tile_places: gl.constexpr,
    tile_outputs: gl.constexpr,
    tile_inputs: gl.constexpr,
    stages: gl.constexpr,
    end: gl.constexpr,
):
    pieces = (
        gl.allocate_shared_memory(gl.bfloat16, [stages, tile_places, tile_inputs], x.layout),
        gl.allocate_shared_memory(gl.bfloat16, [stages] + weight.block_type.shape, weight.layout),  # noqa: RUF005
        gl.allocate_shared_memory(gl.bfloat16, [2, tile_places // 2, tile_outputs], out.layout),
    )
    fetched = gl.allocate_shared_memory(gl.int64, [stages, 1], mbarrier.MBarrierLayout())
    used = gl.allocate_shared_memory(gl.int64, [stages, 1], mbarrier.MBarrierLayout())
    beside = gl.allocate_shared_memory(gl.int64, [2, 1], mbarrier.MBarrierLayout())
    written = gl.allocate_shared_memory(gl.int64, [2, 1], mbarrier.MBarrierLayout())
    for i in gl.static_range(stages):
        mbarrier.init(fetched.index(i), count=1)
        mbarrier.init(used.index(i), count=2)
    for i in gl.static_range(2):
        mbarrier.init(beside.index(i), count=1)
        mbarrier.init(written.index(i), count=1)
    matrices, signals = (x, weight, squared, out), (fetched, used, beside, written)
    across = gl.cdiv(outputs, tile_outputs)
    tiles = gl.cdiv(places, tile_places) * across
    sizes = (tiles, across, gl.cdiv(inputs, tile_inputs), programs, length, outputs // 3 * 2)
    gl.warp_specialize(
        [
            (_multiply_first, (matrices, pieces, signals, sizes, cos, sin, half_head, end)),
            (_multiply_second, (matrices, pieces, signals, sizes, cos, sin, half_head, end)),
            (_bring, (matrices, pieces, signals, sizes, cos, sin, half_head, end)),
        ],
        [4, 1],  # warps of the second and the third trade
        [240, 24],  # registers of their threads; the first's get as many as the second's
    )


@gluon.jit
def _bring(matrices, pieces, signals, sizes, cos, sin, half_head: gl.constexpr, end: gl.constexpr):  # type: ignore[no-untyped-def]
    x, weight, squared, _ = matrices
    xs, weights, halves = pieces
    fetched, used, beside, written = signals
    tiles, across, steps, programs, _, _ = sizes
    stages: gl.constexpr = xs.shape[0]
    places: gl.constexpr = xs.shape[1]
    inputs: gl.constexpr = xs.shape[2]
    outputs: gl.constexpr = halves.shape[2]
    number = 0
    for tile in range(gl.program_id(0), tiles, programs):
        place, unit = (tile // across) * places, (tile % across) * outputs
        for step in range(steps):
            i = number % stages
            mbarrier.wait(used.index(i), (number // stages & 1) ^ 1)
            mbarrier.expect(fetched.index(i), x.block_type.nbytes + weight.block_type.nbytes)
            _fetch(x, [place, step * inputs], fetched.index(i), xs.index(i))
            if end == GROW:
                _fetch(weight, [step * inputs, unit], fetched.index(i), weights.index(i))
            else:
                _fetch(weight, [unit, step * inputs], fetched.index(i), weights.index(i))
            number += 1
        if end == GROW:
            for half in gl.static_range(2):
                mbarrier.wait(written.index(half), (tile // programs & 1) ^ 1)
                mbarrier.expect(beside.index(half), squared.block_type.nbytes)
                _fetch(squared, [place + half * (places // 2), unit], beside.index(half), halves.index(half))


@gluon.jit
def _multiply_first(matrices, pieces, signals, sizes, cos, sin, half_head: gl.constexpr, end: gl.constexpr):  # type: ignore[no-untyped-def]
    _multiply(0, matrices, pieces, signals, sizes, cos, sin, half_head, end)


@gluon.jit
def _multiply_second(matrices, pieces, signals, sizes, cos, sin, half_head: gl.constexpr, end: gl.constexpr):  # type: ignore[no-untyped-def]
    _multiply(1, matrices, pieces, signals, sizes, cos, sin, half_head, end)


@gluon.jit
def _multiply(  # type: ignore[no-untyped-def]
    group: gl.constexpr, matrices, pieces, signals, sizes, cos, sin, half_head: gl.constexpr, end: gl.constexpr
):
    xs, weights, halves = pieces
    fetched, used, beside, written = signals
    tiles, across, steps, programs, length, to_turn = sizes
    stages: gl.constexpr = xs.shape[0]
    places: gl.constexpr = halves.shape[1]
    outputs: gl.constexpr = halves.shape[2]
    layout: gl.constexpr = gl.NVMMADistributedLayout([3, 0], warps_per_cta=[4, 1], instr_shape=[16, outputs, 16])
    mine = halves.index(group)
    number = 0
    for tile in range(gl.program_id(0), tiles, programs):
        place, unit = (tile // across * 2 + group) * places, (tile % across) * outputs
        total = gl.zeros((places, outputs), gl.float32, layout)
        for step in range(steps):
            i = number % stages
            mbarrier.wait(fetched.index(i), number // stages & 1)
            weight = weights.index(i)
            if end != GROW:
                weight = weight.permute((1, 0))
            x = xs.index(i).slice(group * places, places, 0)
            total = warpgroup_mma(x, weight, total, use_acc=step > 0, is_async=True)
            total = warpgroup_mma_wait(1, deps=(total,))  # all but the last: the pieces before may be overwritten
            mbarrier.arrive(used.index((number + stages - 1) % stages), count=1, pred=step > 0)
            number += 1
        total = warpgroup_mma_wait(0, deps=(total,))
        mbarrier.arrive(used.index((number + stages - 1) % stages), count=1)
        if end == GROW:
            mbarrier.wait(beside.index(group), tile // programs & 1)
            total = total * (2.0 * gl.sqrt(mine.load(layout).to(gl.float32)))
        else:
            if end == TURN:
                total = _turn(total, cos, sin, place, unit < to_turn, length, half_head)
            else:
                total = gl.where(total < 0.0, 0.0, total)  # the maximum would hide what is no number
                total = total * total
            tma.store_wait(0)
        mine.store(total.to(gl.bfloat16))
        fence_async_shared()
        _write(matrices[3], [place, unit], mine)
        if end == GROW:
            tma.store_wait(0)
            mbarrier.arrive(written.index(group), count=1)
    tma.store_wait(0)


@gluon.jit
def _turn(x, cos, sin, place, turns, length, half: gl.constexpr):  # type: ignore[no-untyped-def]
    """(a cos - b sin, b cos + a sin) of the halves a and b of each head, which one thread holds both of."""
    places: gl.constexpr = x.shape[0]
    heads: gl.constexpr = x.shape[1] // (2 * half)
    a, b = gl.split(x.reshape((places, heads, 2, half)).permute((0, 1, 3, 2)))
    table: gl.constexpr = gl.SliceLayout(1, a.type.layout)
    position = (place + gl.arange(0, places, gl.SliceLayout(1, table))) % length
    at = position[:, None] * (2 * half) + gl.arange(0, half, gl.SliceLayout(0, table))[None, :]
    c = gl.load(cos + at, mask=turns, other=1.0)[:, None, :]
    s = gl.load(sin + half + at, mask=turns, other=0.0)[:, None, :]
    both = gl.join(a * c - b * s, b * c + a * s).permute((0, 1, 3, 2)).reshape((places, 2 * half * heads))
    return gl.convert_layout(both, x.type.layout, assert_trivial=True)

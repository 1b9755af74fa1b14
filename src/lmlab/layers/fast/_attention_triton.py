"""The kernels of `causal_attention.py`, which has the equations, apart from it because triton is not everywhere.

A program has some queries, or some keys, of one head, and goes through all that they meet. No two write to the same place, so
nothing waits for another, sums have one order, and what is found can be turned back and laid beside the rest where it is.
Exponents are to base two: factors of log2 e are in the scores' scale and in what is kept of their sums.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor
from triton.tools.tensor_descriptor import TensorDescriptor

LOG2_E = tl.constexpr(1.4426950408889634)
# Few warps: there is room for several programs, and one multiplies while another takes exponentials.
WARPS, STAGES = 4, 3
# Queries and keys that are multiplied together in the forward pass, for the queries' gradients, and for the keys'; timed.
FORWARD, OF_QUERIES, OF_KEYS = (64, 64), (64, 32), (32, 64)
REGISTERS = 128  # of a thread, for the keys' gradients: with more there is room for fewer programs


def launch_forward(qkv_BT3HD: Tensor) -> tuple[Tensor, Tensor]:
    """What every query finds, B×T×H×D, and log2 of the sum of its exponentials, B×H×T."""
    rows, length, _, heads, width = qkv_BT3HD.shape
    out_BTHD = qkv_BT3HD.new_empty(rows, length, heads, width)
    sums_BHT = qkv_BT3HD.new_empty(rows, heads, length, dtype=torch.float32)
    queries, keys = FORWARD
    _forward[(rows * heads * (length // queries),)](
        _tiles(qkv_BT3HD, queries),
        _tiles(qkv_BT3HD, keys),
        _tiles(out_BTHD, queries),
        sums_BHT,
        length,
        heads,
        width**-0.5 * LOG2_E.value,
        width,
        queries,
        keys,
        STAGES,
        num_warps=WARPS,
    )
    return out_BTHD, sums_BHT


def launch_backward(
    qkv_BT3HD: Tensor, out_BTHD: Tensor, sums_BHT: Tensor, grad_BTHD: Tensor, cos_TD: Tensor, sin_TD: Tensor
) -> Tensor:
    """What comes back to queries, keys and values before they were turned, B×T×3×H×D."""
    rows, length, _, heads, width = qkv_BT3HD.shape
    back_BT3HD, deltas_BHT = torch.empty_like(qkv_BT3HD), torch.empty_like(sums_BHT)
    shared = sums_BHT, deltas_BHT, cos_TD, sin_TD, back_BT3HD, length, heads, width**-0.5, width
    queries, keys = OF_QUERIES
    _of_queries[(rows * heads * (length // queries),)](
        _tiles(qkv_BT3HD, queries),
        _tiles(qkv_BT3HD, keys),
        _tiles(out_BTHD, queries),
        _tiles(grad_BTHD, queries),
        *shared,
        queries,
        keys,
        STAGES,
        num_warps=WARPS,
    )
    queries, keys = OF_KEYS
    _of_keys[(rows * heads * (length // keys),)](
        _tiles(qkv_BT3HD, queries),
        _tiles(qkv_BT3HD, keys),
        _tiles(grad_BTHD, queries),
        *shared,
        queries,
        keys,
        STAGES,
        num_warps=WARPS,
        maxnreg=REGISTERS,
    )
    return back_BT3HD


def _tiles(parts: Tensor, places: int) -> TensorDescriptor:
    """Of a tensor that has rows and places first, and heads and their width last: some places of one head."""
    return TensorDescriptor.from_tensor(parts.flatten(0, 1).flatten(1), [places, parts.shape[-1]])


@triton.jit
def _forward(  # type: ignore[no-untyped-def]
    q,
    kv,
    out,
    sums,
    length,
    heads,
    scale,
    width: tl.constexpr,
    queries: tl.constexpr,
    keys: tl.constexpr,
    stages: tl.constexpr,
):
    """Sums and averages as if the highest score so far were the highest of all, and shrunk when there is a higher one."""
    pair, at = _longest_first(length, queries)
    first, mine, across = pair // heads * length, pair % heads * width, heads * width
    m = at + tl.arange(0, queries)
    query = q.load([first + at, mine])
    highest = tl.full((queries,), -1e30, tl.float32)
    total, found = tl.zeros((queries,), tl.float32), tl.zeros((queries, width), tl.float32)
    for there in tl.range(0, at + queries, keys, num_stages=stages):
        key, value = kv.load([first + there, across + mine]), kv.load([first + there, 2 * across + mine])
        s = tl.dot(query, key.T)
        if there + keys > at:
            s = tl.where(m[:, None] >= there + tl.arange(0, keys)[None, :], s, float("-inf"))
        higher = tl.maximum(highest, tl.max(s, 1) * scale)
        weight = tl.exp2(s * scale - higher[:, None])
        shrunk = tl.exp2(highest - higher)
        total = total * shrunk + tl.sum(weight, 1)
        found = tl.dot(weight.to(value.dtype), value, found * shrunk[:, None])
        highest = higher
    tl.store(sums + pair * length + m, highest + tl.log2(total))
    out.store([first + at, mine], (found / total[:, None]).to(out.dtype))


@triton.jit
def _of_queries(  # type: ignore[no-untyped-def]
    q,
    kv,
    out,
    grad,
    sums,
    deltas,
    cos,
    sin,
    back,
    length,
    heads,
    scale,
    width: tl.constexpr,
    queries: tl.constexpr,
    keys: tl.constexpr,
    stages: tl.constexpr,
):
    """Leaves δ for `_of_keys`."""
    pair, at = _longest_first(length, queries)
    first, mine, across = pair // heads * length, pair % heads * width, heads * width
    m = at + tl.arange(0, queries)
    query, given = q.load([first + at, mine]), grad.load([first + at, mine])
    delta = tl.sum(out.load([first + at, mine]).to(tl.float32) * given.to(tl.float32), 1)
    tl.store(deltas + pair * length + m, delta)
    log_sum = tl.load(sums + pair * length + m)
    total = tl.zeros((queries, width), tl.float32)
    for there in tl.range(0, at + queries, keys, num_stages=stages):
        key, value = kv.load([first + there, across + mine]), kv.load([first + there, 2 * across + mine])
        s, d_weight = tl.dot(query, key.T), tl.dot(given, value.T)
        ds = tl.exp2(s * (scale * LOG2_E) - log_sum[:, None]) * (d_weight - delta[:, None])
        if there + keys > at:
            ds = tl.where(m[:, None] >= there + tl.arange(0, keys)[None, :], ds, 0.0)
        total = tl.dot(ds.to(key.dtype), key, total)
    _turn_back(total * scale, cos, sin, m, back + (first + m).to(tl.int64) * (3 * across) + mine, width)


@triton.jit
def _of_keys(  # type: ignore[no-untyped-def]
    q,
    kv,
    grad,
    sums,
    deltas,
    cos,
    sin,
    back,
    length,
    heads,
    scale,
    width: tl.constexpr,
    queries: tl.constexpr,
    keys: tl.constexpr,
    stages: tl.constexpr,
):
    """And of values. Scores stand the other way round, keys × queries: so they come out as what is multiplied next."""
    blocks = length // keys
    pair, at = tl.program_id(0) // blocks, tl.program_id(0) % blocks * keys
    first, mine, across = pair // heads * length, pair % heads * width, heads * width
    n = at + tl.arange(0, keys)
    key, value = kv.load([first + at, across + mine]), kv.load([first + at, 2 * across + mine])
    to_key, to_value = tl.zeros((keys, width), tl.float32), tl.zeros((keys, width), tl.float32)
    for there in tl.range(at, length, queries, num_stages=stages):
        m = there + tl.arange(0, queries)
        query, given = q.load([first + there, mine]), grad.load([first + there, mine])
        log_sum, delta = tl.load(sums + pair * length + m), tl.load(deltas + pair * length + m)
        s, d_weight = tl.dot(key, query.T), tl.dot(value, given.T)
        weight = tl.exp2(s * (scale * LOG2_E) - log_sum[None, :])
        weight = tl.where(m[None, :] >= n[:, None], weight, 0.0)  # where it is needed alone takes more registers
        to_value = tl.dot(weight.to(given.dtype), given, to_value)
        to_key = tl.dot((weight * (d_weight - delta[None, :])).to(query.dtype), query, to_key)
    place = back + (first + n).to(tl.int64) * (3 * across) + across + mine
    _turn_back(to_key * scale, cos, sin, n, place, width)
    tl.store((place + across)[:, None] + tl.arange(0, width)[None, :], to_value.to(back.dtype.element_ty))


@triton.jit
def _longest_first(length, queries: tl.constexpr):  # type: ignore[no-untyped-def]
    """Which head of which row this program is for, and its first query: the last ones, who see most, begin."""
    blocks = length // queries
    return tl.program_id(0) // blocks, (blocks - 1 - tl.program_id(0) % blocks) * queries


@triton.jit
def _turn_back(x, cos, sin, at, place, width: tl.constexpr):  # type: ignore[no-untyped-def]
    """Stores (a cos + b sin, b cos - a sin) of the halves a and b of each head."""
    half: tl.constexpr = width // 2
    a, b = tl.split(x.reshape((x.shape[0], 2, half)).permute((0, 2, 1)))
    d = tl.arange(0, half)[None, :]
    c, s = tl.load(cos + at[:, None] * width + d), tl.load(sin + half + at[:, None] * width + d)
    tl.store(place[:, None] + d, (a * c + b * s).to(place.dtype.element_ty))
    tl.store(place[:, None] + half + d, (b * c - a * s).to(place.dtype.element_ty))

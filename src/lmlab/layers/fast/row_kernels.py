"""What lies between the products of a decoding step, as kernels in triton; their twins are in `layers/fast/many_rows.py`.

Shapes as there. All sums are float32, whatever is loaded and stored.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from lmlab.layers.fast.one_row import Weights
from lmlab.layers.positions import Rotation

FILLED = 264  # programs, two for each processor of a large GPU
# Keys that a program looks at together, and its warps: where programs are many they must fit side by side.
FEW_PROGRAMS, MANY_PROGRAMS = (128, 8), (32, 2)
NARROW, MOST_TOGETHER = 1024, 4096  # inputs of a product, and those that a program takes at once


def add_norm(stream_BD: Tensor, change_BD: Tensor | None, weight_D: Tensor, dtype: torch.dtype) -> Tensor:
    """As `plain_add_norm`."""
    rows, width = stream_BD.shape
    out_BD = torch.empty(rows, width, dtype=dtype, device=stream_BD.device)
    change = stream_BD if change_BD is None else change_BD
    block = triton.next_power_of_2(width)
    _add_norm[(rows,)](stream_BD, change, weight_D, out_BD, width, change_BD is not None, block)
    return out_BD


def project(
    x_BK: Tensor,
    weight_NK: Tensor,
    *,
    norm_K: Tensor | None = None,
    gelu: bool | None = None,
    onto_BN: Tensor | None = None,
    dtype: torch.dtype,
) -> Tensor:
    """As `plain_project`: for few rows, each of which reads the weights again, from the cache."""
    rows, (outputs, inputs) = len(x_BK), weight_NK.shape
    out_BN = torch.empty(rows, outputs, dtype=dtype, device=x_BK.device) if onto_BN is None else onto_BN
    # Enough programs for all of the chip, each with all its weights on their way at once.
    block = min(triton.next_power_of_2(inputs), MOST_TOGETHER)
    together = 16 if outputs > 1 << 14 else 8 if outputs > 2048 and inputs <= NARROW else 4
    _project[(triton.cdiv(outputs, together), rows)](
        x_BK,
        weight_NK,
        x_BK if norm_K is None else norm_K,
        out_BN,
        outputs,
        inputs,
        norm_K is not None,
        "" if gelu is None else ("gelu" if gelu else "relu2"),
        onto_BN is not None,
        together,
        block,
        num_warps=8 if together * block > 1 << 13 else 4,
    )
    return out_BN


def log_softmax(logits_BV: Tensor) -> Tensor:
    """As torch.log_softmax over the last dimension, float32: for few rows of a large vocabulary."""
    rows, vocab = logits_BV.shape
    out_BV = torch.empty_like(logits_BV)
    _log_softmax[(rows,)](logits_BV, out_BV, vocab, min(triton.next_power_of_2(vocab), 8192), num_warps=32)
    return out_BV


def activate(x: Tensor, gelu: bool) -> Tensor:
    """As `plain_activate`, in place."""
    count = x.numel()
    _activate[(triton.cdiv(count, 1024),)](x, count, gelu, 1024)
    return x


def attend(qkv_B3HD: Tensor, position_B: Tensor, cache_2BHCD: Tensor, rotation_CD: Rotation | None) -> Tensor:
    """As `plain_attend`."""
    rows, _, heads, width = qkv_B3HD.shape
    out_BD = torch.empty(rows, heads * width, dtype=qkv_B3HD.dtype, device=qkv_B3HD.device)
    cos, sin = (qkv_B3HD, qkv_B3HD) if rotation_CD is None else rotation_CD
    keys, warps = MANY_PROGRAMS if rows * heads >= FILLED else FEW_PROGRAMS
    _attend[(rows, heads)](
        qkv_B3HD,
        position_B,
        cos,
        sin,
        cache_2BHCD[0],
        cache_2BHCD[1],
        out_BD,
        width**-0.5,
        heads,
        cache_2BHCD.shape[3],
        width,
        triton.next_power_of_2(width),
        rotation_CD is not None,
        keys,
        num_warps=warps,
    )
    return out_BD


def enter(token_B: Tensor, position_B: Tensor, now_B: Tensor, tokens_BC: Tensor, weights: Weights) -> Tensor:
    """As `plain_enter`."""
    rows, (_, width) = len(token_B), weights.embedding_VD.shape
    stream_BD = torch.empty(rows, width, device=token_B.device)
    places, block = weights.position_CD, triton.next_power_of_2(width)
    _enter[(rows,)](
        token_B,
        position_B,
        now_B,
        tokens_BC,
        weights.embedding_VD,
        weights.embedding_VD if places is None else places,
        stream_BD,
        weights.scale,
        width,
        weights.context,
        places is not None,
        block,
    )
    return stream_BD


@triton.jit
def _add_norm(stream, change, weight, out, width, adds: tl.constexpr, block: tl.constexpr):  # type: ignore[no-untyped-def]
    at = tl.arange(0, block)
    there = at < width
    place = tl.program_id(0) * width + at
    x = tl.load(stream + place, mask=there, other=0.0)
    if adds:
        x += tl.load(change + place, mask=there, other=0.0).to(tl.float32)
        tl.store(stream + place, x, mask=there)
    x = tl.where(there, x - tl.sum(x, 0) / width, 0.0)
    x = x / tl.sqrt(tl.sum(x * x, 0) / width + 1e-5)
    x = x * tl.load(weight + at, mask=there, other=0.0)
    tl.store(out + place, x.to(out.dtype.element_ty), mask=there)


@triton.jit
def _attend(  # type: ignore[no-untyped-def]
    qkv,
    position,
    cos,
    sin,
    key_cache,
    value_cache,
    out,
    scale,
    heads,
    context,
    width: tl.constexpr,
    block: tl.constexpr,
    rotary: tl.constexpr,
    keys_at_once: tl.constexpr,
):
    """A program is one head of one row. Its own key and value are entered, and never read back from memory.

    Keys and values are asked for before anything is done with those that came before them: the first ones even before it is
    known how many there are.
    """
    row, head = tl.program_id(0), tl.program_id(1)
    d, t = tl.arange(0, block), tl.arange(0, keys_at_once)
    there = d < width
    first = (row * heads + head).to(tl.int64) * context * width
    place = first + t[:, None] * width + d[None, :]
    inside = (t[:, None] < context) & there[None, :]
    keys = tl.load(key_cache + place, mask=inside, other=0.0)
    values = tl.load(value_cache + place, mask=inside, other=0.0)
    now = tl.load(position + row)
    mine = qkv + (row * 3 * heads + head) * width
    q = tl.load(mine + d, mask=there, other=0.0).to(tl.float32)
    k = tl.load(mine + heads * width + d, mask=there, other=0.0).to(tl.float32)
    v = tl.load(mine + 2 * heads * width + d, mask=there, other=0.0).to(tl.float32)
    if rotary:
        swapped = (d + width // 2) % width
        c = tl.load(cos + now * width + d, mask=there, other=0.0)
        s = tl.load(sin + now * width + d, mask=there, other=0.0)
        q = q * c + tl.load(mine + swapped, mask=there, other=0.0).to(tl.float32) * s
        k = k * c + tl.load(mine + heads * width + swapped, mask=there, other=0.0).to(tl.float32) * s
    q = q * scale
    # Of every so many-th key the highest score, the sum and the average are kept apart: warps need not wait for each other.
    top = tl.full((keys_at_once,), -1e30, tl.float32)
    total = tl.zeros((keys_at_once,), tl.float32)
    found = tl.zeros((keys_at_once, block), tl.float32)
    for start in range(0, now, keys_at_once):
        place += keys_at_once * width
        wanted = (start + keys_at_once + t[:, None] < now) & there[None, :]
        next_keys = tl.load(key_cache + place, mask=wanted, other=0.0)
        next_values = tl.load(value_cache + place, mask=wanted, other=0.0)
        seen = start + t < now
        score = tl.where(seen, tl.sum(keys.to(tl.float32) * q[None, :], 1), -1e30)
        higher = tl.maximum(top, score)
        shrink = tl.exp(top - higher)
        p = tl.where(seen, tl.exp(score - higher), 0.0)
        total = total * shrink + p
        found = found * shrink[:, None] + p[:, None] * values.to(tl.float32)
        top, keys, values = higher, next_keys, next_values
    kept_k, kept_v = k.to(key_cache.dtype.element_ty), v.to(value_cache.dtype.element_ty)
    tl.store(key_cache + first + now * width + d, kept_k, mask=there)
    tl.store(value_cache + first + now * width + d, kept_v, mask=there)
    own = tl.sum(q * kept_k.to(tl.float32), 0)
    highest = tl.maximum(tl.max(top, 0), own)
    share, mine_too = tl.exp(top - highest), tl.exp(own - highest)
    whole = tl.sum(total * share, 0) + mine_too
    average = (tl.sum(found * share[:, None], 0) + mine_too * kept_v.to(tl.float32)) / whole
    tl.store(out + (row * heads + head) * width + d, average.to(out.dtype.element_ty), mask=there)


@triton.jit
def _enter(  # type: ignore[no-untyped-def]
    token,
    position,
    now,
    tokens,
    embedding,
    places,
    stream,
    scale,
    width,
    context,
    has_places: tl.constexpr,
    block: tl.constexpr,
):
    row = tl.program_id(0)
    d = tl.arange(0, block)
    there = d < width
    id, at = tl.load(token + row), tl.load(position + row)
    x = tl.load(embedding + id * width + d, mask=there, other=0.0) * scale
    if has_places:
        x += tl.load(places + at * width + d, mask=there, other=0.0)
    tl.store(stream + row * width + d, x, mask=there)
    tl.store(tokens + row * context + at - 1, id)
    tl.store(now + row, at)
    tl.debug_barrier()  # all have read where the row stands
    tl.store(position + row, tl.minimum(at + 1, context - 1))


@triton.jit
def _project(  # type: ignore[no-untyped-def]
    x,
    weight,
    norm,
    out,
    outputs,
    inputs,
    norms: tl.constexpr,
    activation: tl.constexpr,
    adds: tl.constexpr,
    rows_at_once: tl.constexpr,
    block: tl.constexpr,
):
    """A program is some outputs of one row. With a norm, all inputs are in one block."""
    row = tl.program_id(1)
    n = tl.program_id(0) * rows_at_once + tl.arange(0, rows_at_once)
    total = tl.zeros((rows_at_once,), tl.float32)
    for start in range(0, inputs, block):
        k = start + tl.arange(0, block)
        there = k < inputs
        part = tl.load(x + row * inputs + k, mask=there, other=0.0).to(tl.float32)
        place = n[:, None].to(tl.int64) * inputs + k[None, :]
        w = tl.load(weight + place, mask=(n[:, None] < outputs) & there[None, :], other=0.0).to(tl.float32)
        if norms:
            part = tl.where(there, part - tl.sum(part, 0) / inputs, 0.0)
            part = part / tl.sqrt(tl.sum(part * part, 0) / inputs + 1e-5)
            part = part * tl.load(norm + k, mask=there, other=0.0)
        total += tl.sum(w * part[None, :], 1)
    place = out + row * outputs + n
    if activation == "relu2":
        total = tl.maximum(total, 0.0)
        total = total * total
    if activation == "gelu":
        inner = 0.7978845608028654 * (total + 0.044715 * total * total * total)
        total = total / (1.0 + tl.exp(-2.0 * inner))
    if adds:
        total += tl.load(place, mask=n < outputs, other=0.0)
    tl.store(place, total.to(out.dtype.element_ty), mask=n < outputs)


@triton.jit
def _log_softmax(logits, out, vocab, block: tl.constexpr):  # type: ignore[no-untyped-def]
    row = tl.program_id(0).to(tl.int64) * vocab
    at = tl.arange(0, block)
    highest = tl.full((block,), -1e30, tl.float32)
    total = tl.zeros((block,), tl.float32)
    for start in range(0, vocab, block):
        x = tl.load(logits + row + start + at, mask=start + at < vocab, other=float("-inf"))
        higher = tl.maximum(highest, x)
        total = total * tl.exp(highest - higher) + tl.exp(x - higher)
        highest = higher
    top = tl.max(highest, 0)
    log_sum = top + tl.log(tl.sum(total * tl.exp(highest - top), 0))
    for start in range(0, vocab, block):
        there = start + at < vocab
        tl.store(out + row + start + at, tl.load(logits + row + start + at, mask=there) - log_sum, mask=there)


@triton.jit
def _activate(x, count, gelu: tl.constexpr, block: tl.constexpr):  # type: ignore[no-untyped-def]
    at = tl.program_id(0) * block + tl.arange(0, block)
    value = tl.load(x + at, mask=at < count, other=0.0).to(tl.float32)
    if gelu:
        inner = 0.7978845608028654 * (value + 0.044715 * value * value * value)
        value = value / (1.0 + tl.exp(-2.0 * inner))
    else:
        value = tl.maximum(value, 0.0)
        value = value * value
    tl.store(x + at, value.to(x.dtype.element_ty), mask=at < count)

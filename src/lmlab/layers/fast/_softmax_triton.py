"""The kernel of `softmax_kernel.py`, apart from it because triton is not everywhere."""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor


def launch(logits_nV: Tensor, target_n: Tensor, weight_n: Tensor | None, block: int, warps: int = 8) -> Tensor:
    """Nats of each target; the logits become their derivatives, both times the weights."""
    assert logits_nV.is_contiguous()
    rows, vocab = logits_nV.shape
    nats_n = torch.empty(rows, dtype=torch.float32, device=logits_nV.device)
    weights = nats_n if weight_n is None else weight_n
    block = min(block, triton.next_power_of_2(vocab))
    _residuals[(rows,)](logits_nV, target_n, weights, nats_n, vocab, weight_n is not None, block, num_warps=warps)
    return nats_n


@triton.jit
def _residuals(  # type: ignore[no-untyped-def]
    logits, target, weight, nats, vocab, weighs: tl.constexpr, block: tl.constexpr
):
    row = tl.program_id(0).to(tl.int64)
    mine = logits + row * vocab
    at = tl.arange(0, block)
    word = tl.load(target + row)
    # Every lane keeps a maximum and a sum of its own. The lowest number is finite, so that no difference is undefined.
    highest = tl.full((block,), -1e30, tl.float32)
    total = tl.zeros((block,), tl.float32)
    for start in range(0, vocab, block):
        x = tl.load(mine + start + at, mask=start + at < vocab, other=float("-inf")).to(tl.float32)
        higher = x > highest
        e = tl.exp(-tl.abs(x - highest))
        total = tl.where(higher, total * e + 1.0, total + e)
        highest = tl.where(higher, x, highest)
    top = tl.max(highest, 0)
    log_sum = top + tl.log(tl.sum(total * tl.exp(highest - top), 0))
    scale = 1.0
    if weighs:
        scale = tl.load(weight + row)
    tl.store(nats + row, (log_sum - tl.load(mine + word).to(tl.float32)) * scale)
    tl.debug_barrier()
    for start in range(0, vocab, block):
        there = start + at < vocab
        x = tl.load(mine + start + at, mask=there, other=float("-inf")).to(tl.float32)
        delta = (tl.exp(x - log_sum) - tl.where(start + at == word, 1.0, 0.0)) * scale
        tl.store(mine + start + at, delta.to(logits.dtype.element_ty), mask=there)

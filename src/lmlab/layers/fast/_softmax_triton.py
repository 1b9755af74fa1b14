"""The kernel of `softmax_kernel.py`, apart from it because triton is not everywhere."""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

LOG2_E = tl.constexpr(1.4426950408889634)
EIGHT = tl.constexpr(8)  # words that a thread fetches at once, and reduces by itself


def launch(
    logits_nV: Tensor, target_n: Tensor, weight_n: Tensor | None, block: int, warps: int, *, derivatives: bool
) -> Tensor:
    """Nats of each target; the logits become their derivatives, where those are wanted; both times the weights."""
    assert logits_nV.is_contiguous()
    rows, vocab = logits_nV.shape
    nats_n = torch.empty(rows, dtype=torch.float32, device=logits_nV.device)
    weights = nats_n if weight_n is None else weight_n
    block = max(EIGHT.value, min(block, triton.next_power_of_2(vocab)))
    how = weight_n is not None, derivatives, block
    _residuals[(rows,)](logits_nV, target_n, weights, nats_n, vocab, *how, num_warps=warps)
    return nats_n


@triton.jit
def _residuals(  # type: ignore[no-untyped-def]
    logits, target, weight, nats, vocab, weighs: tl.constexpr, derivatives: tl.constexpr, block: tl.constexpr
):
    row = tl.program_id(0).to(tl.int64)
    mine = logits + row * vocab
    lanes: tl.constexpr = block // EIGHT
    at = tl.arange(0, lanes)[:, None] * EIGHT + tl.arange(0, EIGHT)[None, :]
    # Every lane keeps a maximum and a sum of its own. The lowest number is finite, so that no difference is undefined.
    highest = tl.full((lanes,), -1e30, tl.float32)
    total = tl.zeros((lanes,), tl.float32)
    for start in range(0, vocab, block):
        # What is read here is read once more below: the rows that are worked on together fit in the cache.
        x = tl.load(mine + start + at, mask=start + at < vocab, other=float("-inf"), eviction_policy="evict_last")
        x = x.to(tl.float32) * LOG2_E
        higher = tl.maximum(highest, tl.max(x, 1))
        total = total * tl.exp2(highest - higher) + tl.sum(tl.exp2(x - higher[:, None]), 1)
        highest = higher
    top = tl.max(highest, 0)
    log_sum = top + tl.log2(tl.sum(total * tl.exp2(highest - top), 0))
    word = tl.load(target + row)
    of_word = tl.load(mine + word).to(tl.float32) * LOG2_E - log_sum  # log2 of its probability
    scale = 1.0
    if weighs:
        scale = tl.load(weight + row)
    tl.store(nats + row, of_word * (-scale / LOG2_E))
    if derivatives:
        tl.debug_barrier()
        for start in range(0, vocab, block):
            there = start + at < vocab
            x = tl.load(mine + start + at, mask=there, other=float("-inf"), eviction_policy="evict_first")
            p = tl.exp2(x.to(tl.float32) * LOG2_E - log_sum)
            if weighs:
                p = p * scale
            tl.store(mine + start + at, p.to(logits.dtype.element_ty), mask=there)
        tl.debug_barrier()
        tl.store(mine + word, ((tl.exp2(of_word) - 1.0) * scale).to(logits.dtype.element_ty))

"""Gradients by queries, keys and values, turned back by their positions and joined in one kernel.

Its plain twin is what torch makes of `split_heads` in `layers/attention.py`: three tensors are filled with zeros, added,
and then turned. Shapes as there.
"""

from __future__ import annotations

import torch
from torch import Tensor


@torch.library.custom_op("lmlab::joined", mutates_args=())
def joined(q: Tensor, k: Tensor, v: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """From three of B×H×T×D and the tables of the positions to B×T×3×H×D.

    With y = x ∘ cos + swap(x) ∘ sin, where swap exchanges the halves of a head: dx = dy ∘ cos + swap(dy ∘ sin).
    """
    from lmlab.layers.fast._rotation_triton import launch

    return launch(q, k, v, cos, sin)


@joined.register_fake
def _(q: Tensor, k: Tensor, v: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    rows, heads, length, width = q.shape
    return q.new_empty(rows, length, 3, heads, width)

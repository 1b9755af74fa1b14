"""The softmax of a large vocabulary and its derivative, where the logits stand: the twin of `residuals` in `cross_entropy.py`.

Written out in torch, and compiled too, that is a pass for the sum and another for the derivative; here a row is still in the
cache when it is read again. The compiler and recordings see one operation. Shapes: n positions, V vocabulary.
"""

from __future__ import annotations

import torch
from torch import Tensor

# Words that a program looks at together, and by how many threads: few programs, so that their rows stay in the cache.
BLOCK, WARPS = 8192, 32


def made_residuals(logits_nV: Tensor, target_n: Tensor, weight_n: Tensor | None) -> tuple[Tensor, Tensor]:
    """As `residuals`; the derivatives take the logits' place."""
    nats_n = _in_place(logits_nV, target_n, weight_n)
    return nats_n, logits_nV


def nats_where_they_stand(logits_nV: Tensor, target_n: Tensor) -> Tensor:
    """Nats of each target in float32, whatever the logits' precision: nothing is copied to widen it. Without gradients."""
    from lmlab.layers.fast._softmax_triton import launch

    return launch(logits_nV, target_n, None, BLOCK, WARPS, derivatives=False)


@torch.library.custom_op(
    "lmlab::softmax_residuals",
    mutates_args=("logits",),
    schema="(Tensor(a!) logits, Tensor target, Tensor? weight) -> Tensor",
)
def _in_place(logits: Tensor, target: Tensor, weight: Tensor | None) -> Tensor:
    from lmlab.layers.fast._softmax_triton import launch

    return launch(logits, target, weight, BLOCK, WARPS, derivatives=True)


@_in_place.register_fake
def _shape(logits: Tensor, target: Tensor, weight: Tensor | None) -> Tensor:
    return logits.new_empty(logits.shape[0], dtype=torch.float32)

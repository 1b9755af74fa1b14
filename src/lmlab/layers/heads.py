"""From hidden vectors to nats: the output layer that every neural model shares.

Shapes: N positions, B rows, D width, V vocabulary. A head is a weight_VD and perhaps a bias_V; the logits are
h W^T + b and p = softmax(logits).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

from lmlab.formulas import HEAD, Part, Shape, Size, linear
from lmlab.layers import fast
from lmlab.layers.fast.cross_entropy import (
    CHUNK_ELEMENTS,
    chunked_cross_entropy,
    gpu_elements,
    summed_cross_entropy,
    widened,
)
from lmlab.layers.fast.softmax_kernel import nats_where_they_stand
from lmlab.layers.fast.triton_here import HAS_TRITON

PLAIN_ELEMENTS = 1 << 27  # logits on a GPU that torch's own cross-entropy may hold in float32, half a GiB
FEATURES = 2  # of `confidence_of`
Head = Callable[[Tensor, Tensor, Tensor | None, Tensor], Tensor]
"""`nats_alone`, `nats_and_confidence` or `nats_at`: numbers of every target, N×F."""


def cross_entropy_nats(hidden_ND: Tensor, weight_VD: Tensor, bias_V: Tensor | None, targets_N: Tensor) -> Tensor:
    """Nats of each target, -log softmax(hidden W^T + b)[target]: N numbers, float32 (float64 for float64 input).

    Differentiable in hidden, weight and bias. A large vocabulary costs no N×V memory: positions are worked off in
    chunks. `hidden` decides the precision of the matrix products (weight and bias follow it, and so does an active
    autocast); the softmax and the sums over chunks are always at least float32. To leave positions out, leave them out
    of `hidden`: that is cheaper than multiplying their nats by zero.
    """
    dtype = hidden_ND.dtype
    if torch.is_autocast_enabled(hidden_ND.device.type):
        dtype = torch.get_autocast_dtype(hidden_ND.device.type)
    hidden_ND, weight_VD = hidden_ND.to(dtype), weight_VD.to(dtype)
    bias_V = None if bias_V is None else bias_V.to(dtype)
    with torch.autocast(hidden_ND.device.type, enabled=False):
        if fast.enabled and hidden_ND.shape[0] * weight_VD.shape[0] > CHUNK_ELEMENTS:
            return chunked_cross_entropy(hidden_ND, weight_VD, bias_V, targets_N)
        return F.cross_entropy(widened(F.linear(hidden_ND, weight_VD, bias_V)), targets_N, reduction="none")


def head_part(vocab_size: Size, width: Size, shape: Shape, *, bias: bool = False, tied: bool = False) -> Part:
    """The output layer; tied: its matrix is the embedding, and counted there."""
    whole = linear(shape.places, width, vocab_size, bias=bias)
    shared = vocab_size * width if tied else 0
    return Part(HEAD, whole.weights - shared, whole.multiplied, whole.work)


def summed_nats(
    hidden_ND: Tensor, weight_VD: Tensor, bias_V: Tensor | None, targets_N: Tensor, keep_N: Tensor | None
) -> Tensor:
    """Nats of all targets that are kept, together (float32). Differentiable in hidden, weight and bias.

    On a GPU those that are not kept are computed too and count nothing: the same kernels then serve every batch.
    """
    if hidden_ND.device.type != "cuda":
        if keep_N is not None:
            hidden_ND, targets_N = hidden_ND[keep_N], targets_N[keep_N]
        return cross_entropy_nats(hidden_ND, weight_VD, bias_V, targets_N).sum()
    dtype, weights_N = hidden_ND.dtype, None if keep_N is None else keep_N.float()
    weight_VD, bias_V = weight_VD.to(dtype), None if bias_V is None else bias_V.to(dtype)
    learning, many = torch.is_grad_enabled(), hidden_ND.shape[0] * weight_VD.shape[0] > PLAIN_ELEMENTS
    if fast.enabled and learning and many:
        return summed_cross_entropy(hidden_ND, weight_VD, bias_V, targets_N, weights_N, gpu_elements())
    kernel = fast.enabled and HAS_TRITON and not learning and many and dtype != torch.float64
    way = nats_where_they_stand if kernel else plain_nats
    rows = len(hidden_ND) if learning else PLAIN_ELEMENTS // len(weight_VD)
    nats_N = nats_by_pieces(hidden_ND, weight_VD, bias_V, targets_N, max(1, rows), way)
    return (nats_N if weights_N is None else nats_N * weights_N).sum()


def plain_nats(logits_nV: Tensor, target_n: Tensor) -> Tensor:
    """Nats of each target."""
    return F.cross_entropy(widened(logits_nV), target_n, reduction="none")


def nats_by_pieces(
    hidden_ND: Tensor,
    weight_VD: Tensor,
    bias_V: Tensor | None,
    targets_N: Tensor,
    rows: int,
    way: Callable[[Tensor, Tensor], Tensor] = plain_nats,
) -> Tensor:
    """Nats of each target, so many rows at a time: all logits of a batch in float32 may be more than a GPU has room for."""
    pieces = zip(hidden_ND.split(rows), targets_N.split(rows), strict=True)
    return torch.cat([way(F.linear(h, weight_VD, bias_V), t) for h, t in pieces])


def nats_alone(hidden_ND: Tensor, weight_VD: Tensor, bias_V: Tensor | None, targets_N: Tensor) -> Tensor:
    """`cross_entropy_nats` as a column, N×1."""
    return cross_entropy_nats(hidden_ND, weight_VD, bias_V, targets_N)[:, None]


def nats_and_confidence(hidden_ND: Tensor, weight_VD: Tensor, bias_V: Tensor | None, targets_N: Tensor) -> Tensor:
    """The nats of each target and, beside them, `confidence_of` its distribution, N×3; positions are worked off in chunks."""
    rows = max(1, CHUNK_ELEMENTS // weight_VD.shape[0])
    found_N3 = hidden_ND.new_empty(len(hidden_ND), 1 + FEATURES)
    for first in range(0, len(hidden_ND), rows):
        part = slice(first, first + rows)
        logp_nV = log_probabilities(hidden_ND[part], weight_VD, bias_V)
        found_N3[part, 0] = -logp_nV.gather(1, targets_N[part, None])[:, 0]
        found_N3[part, 1:] = confidence_of(logp_nV)
    return found_N3


def nats_at(factors: Sequence[float]) -> Head:
    """A head: the nats of each target if all logits were so many times as large, N×K; positions are worked off in chunks."""

    def head(hidden_ND: Tensor, weight_VD: Tensor, bias_V: Tensor | None, targets_N: Tensor) -> Tensor:
        rows = max(1, CHUNK_ELEMENTS // weight_VD.shape[0])
        found_NK = hidden_ND.new_empty(len(hidden_ND), len(factors))
        for first in range(0, len(hidden_ND), rows):
            part = slice(first, first + rows)
            logits_nV = widened(F.linear(hidden_ND[part], weight_VD, bias_V))
            for k, factor in enumerate(factors):
                found_NK[part, k] = F.cross_entropy(logits_nV * factor, targets_N[part], reduction="none")
        return found_NK

    return head


def confidence_of(logp_BV: Tensor) -> Tensor:
    """How sure a softmax is, B×2: what it expects the token to cost (its entropy), and log p of its favourite."""
    return torch.stack([-(logp_BV.exp() * logp_BV).sum(-1), logp_BV.amax(-1)], dim=-1)


def log_probabilities(hidden_BD: Tensor, weight_VD: Tensor, bias_V: Tensor | None) -> Tensor:
    """Natural-log probabilities of every token, B×V, float32 (float64 for float64 input). Differentiable."""
    return F.log_softmax(widened(F.linear(hidden_BD, weight_VD, bias_V)), dim=-1)

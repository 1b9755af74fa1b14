"""The cross-entropy of a linear head over a large vocabulary, without ever holding all its logits.

Its plain twin is the last line of `cross_entropy_nats` in `layers/heads.py`. Shapes: N positions, n of them in a chunk,
D width, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from lmlab.layers.fast.once import only_once
from lmlab.layers.fast.softmax_kernel import made_residuals
from lmlab.layers.fast.triton_here import HAS_TRITON, marked_constant

CHUNK_ELEMENTS = 1 << 21
"""Most logits alive at once: 8 MiB of float32, since more falls out of the caches. What fits takes the plain path."""

CHUNK_ROWS = 256
"""But never fewer positions than this in a chunk, since each chunk runs over the whole V×D gradient once."""

CHUNK_ROWS_WITHOUT_GRADIENTS = 64
"""On a CPU where there is none: products of fewer rows are slow. A GPU would rather be asked less often."""

GPU_SHARE = 16
"""The part of a GPU's memory that logits may take: small products leave most of it idle, and each more adds up a gradient."""


@marked_constant
def gpu_elements() -> int:
    """Most logits alive at once on the GPU that is used, in bf16."""
    return torch.cuda.get_device_properties(torch.cuda.current_device()).total_memory // GPU_SHARE // 2


def chunked_cross_entropy(hidden_ND: Tensor, weight_VD: Tensor, bias_V: Tensor | None, targets_N: Tensor) -> Tensor:
    """Nats of each target; differentiable in hidden, weight and bias."""
    # The function of autograd cannot tell: it is told which weights could have gradients, not whether any are wanted.
    if not torch.is_grad_enabled():
        return _nats_and_gradients(hidden_ND, weight_VD, bias_V, targets_N, None, (False, False, False))[0]
    apply: Callable[..., Tensor] = _ChunkedCrossEntropy.apply
    return apply(hidden_ND, weight_VD, bias_V, targets_N)


def widened(x: Tensor) -> Tensor:
    """At least float32: eight bits of mantissa cannot hold a log-probability."""
    return x if x.dtype == torch.float64 else x.float()


class _ChunkedCrossEntropy(torch.autograd.Function):
    """Cross-entropy of a linear head, a chunk of positions at a time.

    With theta the logits, d nats_n / d theta = p - onehot(target), so
    d/d hidden = (p - y) W, d/d W = (p - y)^T hidden, d/d b = p - y.

    The nats of a batch are nearly always summed, which makes the incoming gradient the same number for all positions.
    So the gradients of the plain sum are made in `forward`, while the logits of a chunk are at hand, and only scaled in
    `backward`. Any other incoming gradient is answered exactly too, by computing the logits once more.
    """

    @staticmethod
    def forward(ctx: Any, hidden_ND: Tensor, weight_VD: Tensor, bias_V: Tensor | None, targets_N: Tensor) -> Tensor:
        """Nats of each target; keeps the gradients of their sum when any will be asked for."""
        wanted = tuple(ctx.needs_input_grad[:3])
        nats_N, *sums = _nats_and_gradients(hidden_ND, weight_VD, bias_V, targets_N, None, wanted)
        if any(wanted):
            ctx.save_for_backward(hidden_ND, weight_VD, bias_V, targets_N, *sums)
        return nats_N

    @staticmethod
    @only_once
    def backward(ctx: Any, grad_N: Tensor) -> tuple[Tensor | None, ...]:
        """Scale the kept gradients, or compute them afresh when the positions weigh differently."""
        hidden_ND, weight_VD, bias_V, targets_N, *sums = ctx.saved_tensors
        if grad_N.numel() and bool((grad_N == grad_N[0]).all()):
            scale = grad_N[0]
            scaled = [None if g is None else (g * scale).to(g.dtype) for g in sums]
            return (*scaled, None)
        wanted = tuple(ctx.needs_input_grad[:3])
        _, *grads = _nats_and_gradients(hidden_ND, weight_VD, bias_V, targets_N, grad_N, wanted)
        return (*grads, None)


def _nats_and_gradients(
    hidden_ND: Tensor,
    weight_VD: Tensor,
    bias_V: Tensor | None,
    targets_N: Tensor,
    scale_N: Tensor | None,
    wanted: tuple[bool, bool, bool],
) -> tuple[Tensor, Tensor | None, Tensor | None, Tensor | None]:
    """Nats of each target, and the gradients of sum(scale * nats) by hidden, weight and bias where wanted."""
    positions, vocab = hidden_ND.shape[0], weight_VD.shape[0]
    few = not any(wanted) and hidden_ND.device.type == "cpu"
    rows = max(CHUNK_ROWS_WITHOUT_GRADIENTS if few else CHUNK_ROWS, CHUNK_ELEMENTS // vocab)
    wide = torch.float64 if hidden_ND.dtype == torch.float64 else torch.float32
    nats_N = hidden_ND.new_empty(positions, dtype=wide)
    grad_hidden_ND = torch.empty_like(hidden_ND) if wanted[0] else None
    grad_weight_VD = torch.zeros_like(weight_VD, dtype=wide) if wanted[1] else None
    grad_bias_V = torch.zeros_like(bias_V, dtype=wide) if wanted[2] and bias_V is not None else None
    for start in range(0, positions, rows):
        chunk = slice(start, start + rows)
        target_n1 = targets_N[chunk, None]
        logp_nV = F.log_softmax(widened(F.linear(hidden_ND[chunk], weight_VD, bias_V)), dim=-1)
        nats_N[chunk] = -logp_nV.gather(1, target_n1)[:, 0]
        if not any(wanted):
            continue
        delta_nV = logp_nV.exp_()
        delta_nV.scatter_add_(1, target_n1, torch.full_like(target_n1, -1, dtype=wide))
        if scale_N is not None:
            delta_nV *= scale_N[chunk, None]
        if grad_bias_V is not None:
            grad_bias_V += delta_nV.sum(0)
        delta_nV = delta_nV.to(hidden_ND.dtype)
        if grad_hidden_ND is not None:
            torch.mm(delta_nV, weight_VD, out=grad_hidden_ND[chunk])
        if grad_weight_VD is not None:
            _add_product(grad_weight_VD, delta_nV.T, hidden_ND[chunk])
    return (
        nats_N,
        grad_hidden_ND,
        None if grad_weight_VD is None else grad_weight_VD.to(weight_VD.dtype),
        None if grad_bias_V is None or bias_V is None else grad_bias_V.to(bias_V.dtype),
    )


def _add_product(sum_VD: Tensor, left_Vn: Tensor, right_nD: Tensor) -> None:
    """sum += left @ right, in one kernel where the precisions agree."""
    if sum_VD.dtype == left_Vn.dtype:
        sum_VD.addmm_(left_Vn, right_nD)
    else:
        sum_VD += left_Vn @ right_nD


def summed_cross_entropy(
    hidden_ND: Tensor, weight_VD: Tensor, bias_V: Tensor | None, targets_N: Tensor, weights_N: Tensor | None, most: int
) -> Tensor:
    """Nats of all targets together, each times its weight; differentiable in hidden, weight and bias. For GPUs.

    most: logits alive at once.
    """
    apply: Callable[..., Tensor] = _SummedCrossEntropy.apply
    return apply(hidden_ND, weight_VD, bias_V, targets_N, weights_N, most)


def residuals(logits_nV: Tensor, target_n: Tensor, weight_n: Tensor | None) -> tuple[Tensor, Tensor]:
    """Nats of each target, and their derivatives by the logits, in the logits' precision; both times the weights."""
    wide_nV = logits_nV.float()
    logp_nV = wide_nV - wide_nV.logsumexp(-1, keepdim=True)
    nats_n = -logp_nV.gather(1, target_n[:, None])[:, 0]
    words_V = torch.arange(logits_nV.shape[1], device=logits_nV.device)
    delta_nV = logp_nV.exp() - (words_V == target_n[:, None]).float()
    if weight_n is not None:
        nats_n, delta_nV = nats_n * weight_n, delta_nV * weight_n[:, None]
    return nats_n, delta_nV.to(logits_nV.dtype)


class _SummedCrossEntropy(torch.autograd.Function):
    """As `_ChunkedCrossEntropy`, but of the sum, which has one number for an incoming gradient: nothing depends on values.

    So the step it is part of can be recorded or compiled; compiled, the softmax and its derivative are one kernel.
    """

    @staticmethod
    def forward(
        ctx: Any,
        hidden_ND: Tensor,
        weight_VD: Tensor,
        bias_V: Tensor | None,
        targets_N: Tensor,
        weights_N: Tensor | None,
        most: int,
    ) -> Tensor:
        """The sum; keeps its gradients."""
        positions, vocab = hidden_ND.shape[0], weight_VD.shape[0]
        chunks = -(-positions * vocab // most)
        rows = -(-positions // chunks // CHUNK_ROWS) * CHUNK_ROWS  # nearly the same in all, so that none is small
        total = torch.zeros((), dtype=torch.float32, device=hidden_ND.device)
        grad_hidden: list[Tensor] = []
        grad_weight_VD: Tensor | None = None
        grad_bias_V = None if bias_V is None else torch.zeros_like(bias_V, dtype=torch.float32)
        for start in range(0, positions, rows):
            chunk = slice(start, start + rows)
            logits_nV = F.linear(hidden_ND[chunk], weight_VD, bias_V)
            weights_n = None if weights_N is None else weights_N[chunk]
            if HAS_TRITON and logits_nV.is_cuda:
                nats_n, delta_nV = made_residuals(logits_nV, targets_N[chunk], weights_n)
            else:
                nats_n, delta_nV = residuals(logits_nV, targets_N[chunk], weights_n)
            total = total + nats_n.sum()
            if grad_bias_V is not None:
                grad_bias_V = grad_bias_V + delta_nV.sum(0, dtype=torch.float32)
            grad_hidden.append(delta_nV @ weight_VD)
            product_VD = delta_nV.T @ hidden_ND[chunk]
            grad_weight_VD = product_VD if grad_weight_VD is None else grad_weight_VD.float() + product_VD
        grad_hidden_ND = grad_hidden[0] if len(grad_hidden) == 1 else torch.cat(grad_hidden)
        ctx.save_for_backward(grad_hidden_ND, grad_weight_VD, grad_bias_V)
        ctx.dtype = weight_VD.dtype
        return total

    @staticmethod
    @only_once
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        """Scale the kept gradients."""
        grad_hidden_ND, grad_weight_VD, grad_bias_V = ctx.saved_tensors
        bias = None if grad_bias_V is None else (grad_bias_V * grad).to(ctx.dtype)
        return (grad_hidden_ND * grad).to(ctx.dtype), (grad_weight_VD * grad).to(ctx.dtype), bias, None, None, None

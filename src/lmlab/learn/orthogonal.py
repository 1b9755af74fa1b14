"""The nearest orthogonal matrix for Muon: U Vᵀ of M = U Σ Vᵀ, by odd polynomials of M, using matrix products alone.

A round replaces every singular value s by s (a + b s² + c s⁴). Its coefficients bring all values between the smallest and
largest possible one as close to 1 as a quintic can. The next round starts from the range that this one leaves. Such greedy
rounds are optimal (Amsel, Persson, Musco and Gower, 2025), except for the margin that rounding needs.

Four rounds amplify small values nearly as much as five of the widely used quintic (3.4445, -4.7750, 2.0315): 430 times against
480, in a fifth fewer products. Large values end further from 1, between 0.43 and 1.57 instead of 0.68 and 1.21, and steps are
somewhat longer. docs/notes/muon.md shows the consequences.
"""

from __future__ import annotations

from functools import cache, reduce

import numpy as np
import torch
from torch import Tensor

from lmlab.layers import fast
from lmlab.layers.fast import muon

ROUNDS = 4
# The smallest singular value, relative to the norm of its matrix, that the rounds bring near 1. Smaller ones grow by a similar
# factor.
LEAST = 0.001
# Margin above the largest expected value, because rounding in bf16 may exceed it, by half of this margin if all entries of a
# matrix are equal. Values beyond the margin would grow in each round.
ROOM = 1.02
LONG = 2  # ratio of length to width from which rounds on the Gram matrix need fewer FLOPs
ALIKE = 0.999  # ratio of smallest to largest value above which the interval is treated as a single value
MOST_EXCHANGES = 100  # four usually suffice

Quintic = tuple[float, float, float]


def orthogonalize(matrices_KMN: Tensor, dtype: torch.dtype = torch.float32) -> Tensor:
    """Return U Vᵀ of each matrix M = U Σ Vᵀ, approximately.

    Args:
        matrices_KMN: K matrices of one shape.
        dtype: the precision of the rounds, which may be below that of training, because only the direction matters.
    """
    x = matrices_KMN.to(dtype)
    tall = x.shape[-2] > x.shape[-1]
    if tall:
        x = x.mT.contiguous()
    if fast.enabled and muon.has_kernels_for(x):
        x = muon.orthogonalized(x, rounds())
    else:
        x = x / (x.norm(dim=(-2, -1), keepdim=True) + muon.TINY)
        by_gram = x.shape[-1] >= LONG * x.shape[-2] and fast.enabled and _in_full_float32(x)
        x = _through_gram(x) if by_gram else _round_by_round(x)
    return (x.mT if tall else x).to(matrices_KMN.dtype)


def orthogonalizing_flops(rows: int, columns: int) -> int:
    """Return the FLOPs of `orthogonalize` for one matrix in float32 on a CPU. Elsewhere long matrices need somewhat more."""
    narrow, wide = sorted((rows, columns))
    cube, gram = 2 * narrow**3, 2 * narrow**2 * wide
    if wide >= LONG * narrow:  # squares of all Gram matrices, two products to the next, product of all rounds
        return 2 * gram + (ROUNDS + 2 * (ROUNDS - 1) + ROUNDS - 1) * cube
    return ROUNDS * (2 * gram + cube)


def _round_by_round(x_KMN: Tensor) -> Tensor:
    for a, b, c in rounds():
        gram_KMM = x_KMN @ x_KMN.mT
        x_KMN = torch.baddbmm(x_KMN, torch.baddbmm(gram_KMM, gram_KMM, gram_KMM, beta=b, alpha=c), x_KMN, beta=a)
    return x_KMN


def _through_gram(x_KMN: Tensor) -> Tensor:
    """Apply all rounds to long matrices with fewer FLOPs: only the first and last product involve the whole matrix.

    A round multiplies X by P = a + b G + c G² with G = X Xᵀ, which changes G to P G P. All these matrices commute.
    """
    gram_KMM, made = x_KMN @ x_KMN.mT, list[Tensor]()
    for a, b, c in rounds():
        if made:
            gram_KMM = made[-1] @ gram_KMM @ made[-1]
        made.append(torch.baddbmm(gram_KMM, gram_KMM, gram_KMM, beta=b, alpha=c))
        made[-1].diagonal(dim1=-2, dim2=-1).add_(a)
    return reduce(torch.bmm, made) @ x_KMN


def _in_full_float32(x: Tensor) -> bool:
    """Whether products of `x` are computed in full float32 on a CPU.

    Eigenvalues of G are squares, so tiny ones would become negative by rounding in bf16 or TF32. Four rounds would amplify the
    error about 430² times.
    """
    rounded = torch.is_autocast_enabled(x.device.type) or torch.get_float32_matmul_precision() != "highest"
    return x.dtype == torch.float32 and x.device.type == "cpu" and not rounded


@cache
def rounds(least: float = LEAST, count: int = ROUNDS, room: float = ROOM) -> tuple[Quintic, ...]:
    """Return the coefficients (a, b, c) of each round for singular values between `least` and 1.

    They are rounded, so that they are the same on every machine.
    """
    found, largest = [], 1.0
    for _ in range(count):
        largest *= room
        a, b, c = (round(number, 8) for number in best_quintic(least, largest))
        found.append((a, b, c))
        least = least * (a + b * least**2 + c * least**4)
        largest = 2 - least  # as far above 1 as the smallest is below
    return tuple(found)


def best_quintic(least: float, largest: float) -> Quintic:
    """Return the coefficients (a, b, c) of the x (a + b x² + c x⁴) closest to 1 on an interval, by the Remez exchange
    algorithm.

    The maximum error of the best quintic is attained four times with alternating sign: at both ends and at two turning points.
    The computation uses NumPy, because a step may be traced with tensors that have no values.
    """
    if least > ALIKE * largest:  # the four extrema nearly coincide
        middle = (least + largest) / 2
        return 15 / 8 / middle, -10 / 8 / middle**3, 3 / 8 / middle**5
    turns = least + np.array([0.25, 0.75]) * (largest - least)
    for _ in range(MOST_EXCHANGES):
        x = np.array([least, *turns, largest])
        a, b, c, _ = np.linalg.solve(np.stack((x, x**3, x**5, [1, -1, 1, -1]), 1), np.ones(4))
        root = np.sqrt(9 * b * b - 20 * a * c)  # the turning points: a + 3 b x² + 5 c x⁴ = 0
        before, turns = turns, np.sqrt((-3 * b + np.array([-root, root])) / (10 * c))
        if np.allclose(turns, before, rtol=1e-7, atol=0):
            break
    return float(a), float(b), float(c)

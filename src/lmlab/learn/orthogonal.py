"""The nearest orthogonal matrix, as Muon takes it: U Vᵀ of M = U Σ Vᵀ, by odd polynomials of M, in products alone.

A round replaces every singular value s by s (a + b s² + c s⁴). Its three numbers are those that bring all values between the
least and the largest that can be there as near to one as a quintic can; the next round starts from what this one leaves. Such
greedy rounds are the best there are (Amsel, Persson, Musco and Gower, 2025), but for the room that rounding needs.

Four of them lift small values nearly as far as five of the quintic in wide use (3.4445, -4.7750, 2.0315) do, 430 times and
480, in a fifth fewer products. Large ones end less near to one, between 0.43 and 1.57 where those five end between 0.68 and
1.21, and steps are somewhat longer: docs/notes/muon.md says what comes of it.
"""

from __future__ import annotations

from functools import cache, reduce

import numpy as np
import torch
from torch import Tensor

from lmlab.layers import fast
from lmlab.layers.fast import muon

ROUNDS = 4
# The least singular value, in lengths of its matrix, that the rounds bring near one. Those below grow about as many times.
LEAST = 0.001
# How much larger than the largest value that should be there a round allows it to be: in bf16 it may be rounded up, by half of
# this where all of a matrix is one value. It must not be exceeded: beyond, each round makes more of the excess.
ROOM = 1.02
LONG = 2  # times as long as wide: from there on rounds of the Gram matrix alone are fewer operations
ALIKE = 0.999  # least and largest values whose quintic is that of one value: 1, with no slope and no bend there
MOST_EXCHANGES = 100  # four do

Quintic = tuple[float, float, float]


def orthogonalize(matrices_KMN: Tensor, dtype: torch.dtype = torch.float32) -> Tensor:
    """U Vᵀ of each M = U Σ Vᵀ, approximately.

    `dtype` is the precision of the rounds, whatever that of training: the result is a direction, not a quantity.
    """
    x = matrices_KMN.to(dtype)
    tall = x.shape[-2] > x.shape[-1]
    if tall:
        x = x.mT.contiguous()
    if fast.enabled and muon.has_kernels_for(x):
        x = muon.orthogonalized(x, rounds())
    else:
        x = x / (x.norm(dim=(-2, -1), keepdim=True) + muon.TINY)
        by_gram = x.shape[-1] >= LONG * x.shape[-2] and fast.enabled and _in_all_of_float32(x)
        x = _through_gram(x) if by_gram else _round_by_round(x)
    return (x.mT if tall else x).to(matrices_KMN.dtype)


def orthogonalizing_flops(rows: int, columns: int) -> int:
    """Operations of `orthogonalize` for one matrix, in all of float32 on a CPU; elsewhere long ones take somewhat more."""
    narrow, wide = sorted((rows, columns))
    cube, gram = 2 * narrow**3, 2 * narrow**2 * wide
    if wide >= LONG * narrow:  # the square of every Gram matrix, two products to the next, and all rounds in one
        return 2 * gram + (ROUNDS + 2 * (ROUNDS - 1) + ROUNDS - 1) * cube
    return ROUNDS * (2 * gram + cube)


def _round_by_round(x_KMN: Tensor) -> Tensor:
    for a, b, c in rounds():
        gram_KMM = x_KMN @ x_KMN.mT
        x_KMN = torch.baddbmm(x_KMN, torch.baddbmm(gram_KMM, gram_KMM, gram_KMM, beta=b, alpha=c), x_KMN, beta=a)
    return x_KMN


def _through_gram(x_KMN: Tensor) -> Tensor:
    """The same of long matrices in fewer operations: no round but the first and the last has to see the whole matrix.

    What a round multiplies by, P = a + b G + c G² of G = X Xᵀ, takes G to P G P; all of these commute.
    """
    gram_KMM, made = x_KMN @ x_KMN.mT, list[Tensor]()
    for a, b, c in rounds():
        if made:
            gram_KMM = made[-1] @ gram_KMM @ made[-1]
        made.append(torch.baddbmm(gram_KMM, gram_KMM, gram_KMM, beta=b, alpha=c))
        made[-1].diagonal(dim1=-2, dim2=-1).add_(a)
    return reduce(torch.bmm, made) @ x_KMN


def _in_all_of_float32(x: Tensor) -> bool:
    """Whether products of it are rounded no further. In bf16 or TF32 eigenvalues of G that are next to nothing, as they are
    squares, would come out below it, and four rounds make some 430² times as much of that: nothing brings them back.
    """
    rounded = torch.is_autocast_enabled(x.device.type) or torch.get_float32_matmul_precision() != "highest"
    return x.dtype == torch.float32 and x.device.type == "cpu" and not rounded


@cache
def rounds(least: float = LEAST, count: int = ROUNDS, room: float = ROOM) -> tuple[Quintic, ...]:
    """a, b, c of each round, for values between least and one; rounded, so that they are the same on every machine."""
    found, largest = [], 1.0
    for _ in range(count):
        largest *= room
        a, b, c = (round(number, 8) for number in best_quintic(least, largest))
        found.append((a, b, c))
        least = least * (a + b * least**2 + c * least**4)
        largest = 2 - least  # as far above one as the least lies below
    return tuple(found)


def best_quintic(least: float, largest: float) -> Quintic:
    """a, b, c of the x (a + b x² + c x⁴) that stays nearest to one between two numbers, by Remez's exchange.

    Where none is nearer, the distance is taken four times in turn, below and above: at both ends and at two turning points.
    In NumPy: a step may be gone through with tensors that have no numbers.
    """
    if least > ALIKE * largest:  # the four places cannot be told apart, and all but touch
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

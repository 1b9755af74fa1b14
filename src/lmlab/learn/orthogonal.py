"""The nearest orthogonal matrix, as Muon takes it: U Vᵀ of M = U Σ Vᵀ, by odd polynomials of M, in products alone.

A round replaces every singular value s by s (a + b s² + c s⁴). Its three numbers are those that bring all values between the
least and the largest that can be there as near to one as a quintic can; the next round starts from what this one leaves. Such
greedy rounds are the best there are: no others bring them nearer in as many (Amsel, Persson, Musco and Gower, 2025). Four do
what five of one and the same quintic did that is in wide use, 3.4445, -4.7750, 2.0315 (tests/learn/test_orthogonal.py).
"""

from __future__ import annotations

from functools import cache

import torch
from torch import Tensor

from lmlab.layers import fast
from lmlab.layers.fast import muon

ROUNDS = 4
# The least singular value, in lengths of its matrix, that the rounds bring near one. Those below grow as many times.
LEAST = 0.001
# How much larger than the largest value that should be there a round allows it to be: in bf16 it may be rounded up.
ROOM = 1.02

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
        for a, b, c in rounds():
            gram = x @ x.mT
            x = torch.baddbmm(x, torch.baddbmm(gram, gram, gram, beta=b, alpha=c), x, beta=a)
    return (x.mT if tall else x).to(matrices_KMN.dtype)


@cache
def rounds(least: float = LEAST, count: int = ROUNDS, room: float = ROOM) -> tuple[Quintic, ...]:
    """a, b, c of each round, for values between least and one; rounded, so that they are the same on every machine."""
    found, largest = [], 1.0
    for _ in range(count):
        largest *= room
        a, b, c = (round(number, 5) for number in best_quintic(least, largest))
        found.append((a, b, c))
        least = least * (a + b * least**2 + c * least**4)
        largest = 2 - least  # as far above one as the least lies below
    return tuple(found)


def best_quintic(least: float, largest: float) -> Quintic:
    """a, b, c of the x (a + b x² + c x⁴) that stays nearest to one between two numbers, by Remez's exchange.

    Where none is nearer, the distance is taken four times in turn, below and above: at both ends and at two turning points.
    """
    turns = torch.tensor([0.25, 0.75], dtype=torch.float64) * (largest - least) + least
    signs = torch.tensor([1.0, -1.0, 1.0, -1.0], dtype=torch.float64)
    ends = torch.tensor([least, largest], dtype=torch.float64)
    while True:
        x = torch.cat((ends[:1], turns, ends[1:]))
        a, b, c, _ = torch.linalg.solve(torch.stack((x, x**3, x**5, signs), 1), torch.ones_like(x)).unbind()
        root = (9 * b * b - 20 * a * c).sqrt()  # the turning points: a + 3 b x² + 5 c x⁴ = 0
        found = ((-3 * b + torch.stack((-root, root))) / (10 * c)).sqrt()
        if torch.allclose(found, turns, rtol=1e-10, atol=0):
            return float(a), float(b), float(c)
        turns = found

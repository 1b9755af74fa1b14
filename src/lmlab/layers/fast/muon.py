"""Muon on a GPU: what lies before and after its iteration, each in one pass over memory, and the iteration of large matrices.

The twins are in `learn/optimizer.py` and `learn/orthogonal.py`.

Shapes: K matrices of M×N, side by side; P parameters, each of one or several of them.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from lmlab.layers.fast.triton_here import HAS_TRITON, has_copy_engine

TINY = 1e-7  # beside a matrix's length
TILE = 128  # rows of the tiles that the iteration's own kernels take
LEAST_ROWS = 512  # of matrices that have them: below, they save less than making them takes


def has_kernels() -> bool:
    """Whether `nesterov` and `move` can be made here: by a triton that takes several matrices as one argument."""
    if not HAS_TRITON:
        return False
    from triton import language

    return hasattr(language, "tuple")


def nesterov(
    momenta: Sequence[Tensor], grads: Sequence[Tensor], momentum: float, shape: tuple[int, int], out_KMN: Tensor
) -> None:
    """The momenta go on, and the directions they then give stand in out, in its precision; wide, never tall."""
    from lmlab.layers.fast._muon_triton import launch_nesterov

    out = out_KMN if shape[0] <= shape[1] else out_KMN.mT
    launch_nesterov(_matrices(momenta, shape), _matrices([g.contiguous() for g in grads], shape), out, momentum)


def has_kernels_for(matrices_KMN: Tensor) -> bool:
    """Whether `orthogonalized` can take these wide matrices, and is worth it."""
    rows, columns = matrices_KMN.shape[1:]
    fits = rows >= LEAST_ROWS and rows % TILE == 0 and columns % 8 == 0
    return fits and matrices_KMN.is_cuda and matrices_KMN.dtype == torch.bfloat16 and has_copy_engine()


def orthogonalized(matrices_KMN: Tensor, rounds: Sequence[tuple[float, float, float]]) -> Tensor:
    """As `orthogonalize`, with the factor of each matrix itself put on the diagonal of what multiplies it.

    The first round's matrices are divided by their lengths on the way, so that nothing is read only for that.
    """
    from lmlab.layers.fast._symmetric_triton import gram, polynomial

    x_KMN, scale_K = (
        matrices_KMN,
        (torch.linalg.vector_norm(matrices_KMN, dim=(1, 2), dtype=torch.float32) + TINY) ** -1,
    )
    for number, coefficients in enumerate(rounds):
        scale = None if number else scale_K
        x_KMN = polynomial(gram(x_KMN, scale, TILE), coefficients, scale, TILE) @ x_KMN
    return x_KMN


def move(parameters: Sequence[Tensor], shape: tuple[int, int], update_KMN: Tensor, keep: Tensor, by: Tensor) -> None:
    """p = keep p + by update, in place. keep, by: single numbers on the device."""
    from lmlab.layers.fast._muon_triton import launch_move

    update = update_KMN if shape[0] <= shape[1] else update_KMN.mT
    launch_move(_matrices(parameters, shape), update, keep, by)


def _matrices(parameters: Sequence[Tensor], shape: tuple[int, int]) -> list[Tensor]:
    """Of all parameters, one after the other."""
    return [matrix for p in parameters for matrix in p.detach().view(-1, *shape)]

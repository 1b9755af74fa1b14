"""Muon on a GPU: what lies before and after its iteration, each in one pass over memory, and the iteration of large matrices.

The twins are in `learn/optimizer.py`.

Shapes: K matrices of M×N, side by side; P parameters, each of one or several of them.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from lmlab.layers.fast.triton_here import has_copy_engine

TINY = 1e-7  # beside a matrix's length
TILE = 128  # rows of the tiles that the iteration's own kernels take
LEAST_ROWS = 512  # of matrices that have them: below, they save less than making them takes


def nesterov(
    momenta: Sequence[Tensor], grads: Sequence[Tensor], momentum: float, shape: tuple[int, int], out_KMN: Tensor
) -> None:
    """The momenta go on, and the directions they then give stand in out, in its precision; wide, never tall."""
    from lmlab.layers.fast._muon_triton import launch_nesterov

    rows, columns = shape
    for m, grad, out in zip(momenta, grads, _pieces(momenta, out_KMN), strict=True):
        if rows > columns:
            for one, its_grad, its_out in zip(m.view(-1, *shape), grad.reshape(-1, *shape), out, strict=True):
                launch_nesterov(one, its_grad, its_out.mT, momentum)
        else:  # one below the other they are one matrix
            launch_nesterov(m, grad, out.view(-1, columns), momentum)


def has_kernels_for(matrices_KMN: Tensor) -> bool:
    """Whether `orthogonalized` can take these wide matrices, and is worth it."""
    rows, columns = matrices_KMN.shape[1:]
    fits = rows >= LEAST_ROWS and rows % TILE == 0 and columns % 8 == 0
    return fits and matrices_KMN.is_cuda and matrices_KMN.dtype == torch.bfloat16 and has_copy_engine()


def orthogonalized(matrices_KMN: Tensor, coefficients: tuple[float, float, float], iterations: int) -> Tensor:
    """As `orthogonalize`, with the factor of each matrix itself put on the diagonal of what multiplies it.

    The first round's matrices are divided by their lengths on the way, so that nothing is read only for that.
    """
    from lmlab.layers.fast._symmetric_triton import gram, polynomial

    x_KMN, scale_K = (
        matrices_KMN,
        (torch.linalg.vector_norm(matrices_KMN, dim=(1, 2), dtype=torch.float32) + TINY) ** -1,
    )
    for iteration in range(iterations):
        scale = None if iteration else scale_K
        x_KMN = polynomial(gram(x_KMN, scale, TILE), coefficients, scale, TILE) @ x_KMN
    return x_KMN


def move(parameters: Sequence[Tensor], update_KMN: Tensor, keep: Tensor, by: Tensor) -> None:
    """p = keep p + by update, in place. keep, by: single numbers on the device."""
    from lmlab.layers.fast._muon_triton import launch_move

    columns = parameters[0].shape[1]
    for p, update in zip(parameters, _pieces(parameters, update_KMN), strict=True):
        if update_KMN.shape[2] == columns:
            launch_move(p, update.view(-1, columns), keep, by)
        else:
            for one, its_update in zip(p.view(len(update), -1, columns), update, strict=True):
                launch_move(one, its_update.mT, keep, by)


def _pieces(parameters: Sequence[Tensor], stack_KMN: Tensor) -> tuple[Tensor, ...]:
    """The matrices of each parameter."""
    return stack_KMN.split([p.numel() // stack_KMN[0].numel() for p in parameters])

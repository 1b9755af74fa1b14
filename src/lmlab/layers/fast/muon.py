"""What lies before and after Muon's iteration, each in one pass over memory; the twins are in `learn/optimizer.py`. For GPUs.

Shapes: K matrices of M×N, side by side; P parameters, each of one or several of them.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence

import torch
from torch import Tensor

HAS_TRITON = importlib.util.find_spec("triton") is not None


def nesterov(
    momenta: Sequence[Tensor], grads: Sequence[Tensor], momentum: float, shape: tuple[int, int], dtype: torch.dtype
) -> Tensor:
    """The momenta go on, and the directions they then give, K×M×N in the precision of the iteration; wide, never tall."""
    from lmlab.layers.fast._muon_triton import launch_nesterov

    rows, columns = shape
    tall = rows > columns
    count = sum(m.numel() for m in momenta) // (rows * columns)
    out_KMN = torch.empty(count, *sorted(shape), dtype=dtype, device=momenta[0].device)
    for m, grad, out in zip(momenta, grads, _pieces(momenta, out_KMN), strict=True):
        if tall:
            for one, its_grad, its_out in zip(m.view(-1, *shape), grad.reshape(-1, *shape), out, strict=True):
                launch_nesterov(one, its_grad, its_out.mT, momentum)
        else:  # one below the other they are one matrix
            launch_nesterov(m, grad, out.view(-1, columns), momentum)
    return out_KMN


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

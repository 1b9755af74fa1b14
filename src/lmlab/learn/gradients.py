"""Sums of the gradients and losses of micro-batches over all processes, for the optimizer."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import reduce

import torch
from torch import Tensor

from lmlab.interface import Loss
from lmlab.learn.world import World


def forget_gradients(parameters: Collection[Tensor]) -> None:
    """Free the gradients. The next backward pass reuses their memory, and no gradient has to be set to zero."""
    for p in parameters:
        p.grad = None


def zero_loss(loss: Loss) -> Loss:
    """Return zero times a loss and each of its components."""
    return Loss(total=0.0 * loss.total, count=0, parts={name: 0.0 * part for name, part in loss.parts.items()})


def summed_loss(losses: Sequence[Loss], count: int) -> Loss:
    """Return the sum of the losses of several micro-batches as one loss.

    Args:
        losses: the losses of the micro-batches.
        count: the number of items that the micro-batches of all processes predict.
    """
    totals = [loss.total.detach() for loss in losses]
    parts = {name: reduce(torch.add, [loss.parts[name].detach() for loss in losses]) for name in losses[0].parts}
    return Loss(total=reduce(torch.add, totals), count=count, parts=parts)


def sum_over_processes(parameters: Collection[Tensor], loss: Loss, world: World) -> None:
    """Replace all gradients, and the total and components of a loss, by their sums over all processes.

    Every process then holds the gradient of the whole batch for every whole matrix. Clipping, moments and Muon, which needs
    whole matrices, are therefore the same computation in one process and in many.
    """
    learned = [p for p in parameters if p.grad is not None]
    tables = [p for p in learned if _gradient(p).is_sparse]
    read = [_rows_read(p) for p in tables]
    for p in tables:
        p.grad = _gradient(p).to_dense()
    world.sum([loss.total, *loss.parts.values(), *map(_gradient, learned), *read])
    for p, read_V in zip(tables, read, strict=True):
        rows_R = read_V.nonzero()[:, 0]
        grad_RX = _gradient(p)[rows_R]
        with torch.sparse.check_sparse_tensor_invariants(False):  # torch warns if the check is unspecified
            p.grad = torch.sparse_coo_tensor(rows_R[None], grad_RX, p.shape, is_coalesced=True)


def join_rows(parameters: Collection[Tensor]) -> None:
    """Sum the rows that several micro-batches read of an embedding table, because the optimizer expects each row once."""
    for p in parameters:
        if p.grad is not None and p.grad.is_sparse:
            p.grad = p.grad.coalesce()


def _gradient(p: Tensor) -> Tensor:
    assert p.grad is not None
    return p.grad


def _rows_read(p: Tensor) -> Tensor:
    """Return a vector with 1 for every row of a table in its sparse gradient, else 0."""
    return p.new_zeros(len(p)).index_fill_(0, _gradient(p).coalesce().indices()[0], 1.0)

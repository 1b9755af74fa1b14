"""Gradients and losses of micro-batches, added up over all processes before the optimizer sees them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import reduce

import torch
from torch import Tensor

from lmlab.interface import Loss
from lmlab.learn.world import World


def forget_gradients(parameters: Collection[Tensor]) -> None:
    """Free the gradients: the next backward pass writes where this one wrote, and nothing has to be set to zero."""
    for p in parameters:
        p.grad = None


def nothing_of(loss: Loss) -> Loss:
    """Return zero times a loss, part by part."""
    return Loss(total=0.0 * loss.total, count=0, parts={name: 0.0 * part for name, part in loss.parts.items()})


def summed_loss(losses: Sequence[Loss], count: int) -> Loss:
    """Return the loss of several micro-batches as that of one. count: of what they predict together."""
    totals = [loss.total.detach() for loss in losses]
    parts = {name: reduce(torch.add, [loss.parts[name].detach() for loss in losses]) for name in losses[0].parts}
    return Loss(total=reduce(torch.add, totals), count=count, parts=parts)


def sum_over_processes(parameters: Collection[Tensor], loss: Loss, world: World) -> None:
    """Replace all gradients, and the total and parts of a loss, by their sums over all processes.

    Every process then holds the gradient of the whole batch for every whole matrix. So clipping, moments and Muon, which looks
    at whole matrices, are the same computation in one process and in many.
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
        with torch.sparse.check_sparse_tensor_invariants(False):  # torch warns where nobody says whether to check
            p.grad = torch.sparse_coo_tensor(rows_R[None], grad_RX, p.shape, is_coalesced=True)


def join_rows(parameters: Collection[Tensor]) -> None:
    """Add up the rows that several micro-batches read of a table: the optimizer takes each row once."""
    for p in parameters:
        if p.grad is not None and p.grad.is_sparse:
            p.grad = p.grad.coalesce()


def _gradient(p: Tensor) -> Tensor:
    assert p.grad is not None
    return p.grad


def _rows_read(p: Tensor) -> Tensor:
    """Return 1 for every row of a table that its sparse gradient has, else 0."""
    return p.new_zeros(len(p)).index_fill_(0, _gradient(p).coalesce().indices()[0], 1.0)

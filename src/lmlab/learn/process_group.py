"""The world of a process group of torch.distributed: the processes that a launcher such as torchrun has started.

Gradients on a GPU are summed by NCCL, everything else by gloo, which waits for no device.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TypeVar

import torch
import torch.distributed as dist
from torch import Tensor

from lmlab.config import Mistake
from lmlab.learn.world import World

T = TypeVar("T")

TOGETHER = 2**20  # numbers: tensors of one type are summed in pieces of at least so many, each of which costs a message


class ProcessGroup(World):
    """The default process group of torch.distributed, seen from this process."""

    def __init__(self) -> None:
        self.rank, self.size = dist.get_rank(), dist.get_world_size()

    @torch.no_grad()
    def sum(self, tensors: Iterable[Tensor]) -> None:
        """Replace each tensor by its sum over all processes."""
        with _saying_who_is_missing():
            for some in _gathered(tensors):
                flat = torch.cat([tensor.reshape(-1) for tensor in some])
                dist.all_reduce(flat)
                for tensor, total in zip(some, flat.split([tensor.numel() for tensor in some]), strict=True):
                    tensor.copy_(total.view_as(tensor))

    def sum_numbers(self, *numbers: float) -> tuple[float, ...]:
        """Return the sum of each number over all processes."""
        together = torch.tensor(numbers, dtype=torch.float64)
        with _saying_who_is_missing():
            dist.all_reduce(together)
        return tuple(together.tolist())

    def broadcast(self, value: T) -> T:
        """Return the writer's value."""
        box = [value]
        with _saying_who_is_missing():
            dist.broadcast_object_list(box)
        return box[0]


@contextmanager
def connected() -> Iterator[World]:
    """Connect the processes that a launcher started, and yield their world."""
    has_nccl = torch.cuda.is_available() and dist.is_nccl_available()
    with _saying_who_is_missing():
        dist.init_process_group("cpu:gloo,cuda:nccl" if has_nccl else "gloo")
    try:
        yield ProcessGroup()
    finally:
        dist.destroy_process_group()


def _gathered(tensors: Iterable[Tensor]) -> Iterator[list[Tensor]]:
    """Group tensors of one type and device, so that few messages are sent."""
    some: list[Tensor] = []
    for tensor in tensors:
        is_other = some and (tensor.dtype, tensor.device) != (some[0].dtype, some[0].device)
        if is_other or sum(t.numel() for t in some) >= TOGETHER:
            yield some
            some = []
        some.append(tensor)
    if some:
        yield some


@contextmanager
def _saying_who_is_missing() -> Iterator[None]:
    """Turn the connection error that an ended process causes in the others into a Mistake."""
    try:
        yield
    except RuntimeError as error:  # of torch.distributed, whose own classes derive from it
        raise Mistake(
            f"another process of this training has ended, and says why itself ({str(error).splitlines()[0][:80]})",
            code="process-ended",
        ) from None

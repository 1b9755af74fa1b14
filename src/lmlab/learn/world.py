"""The processes that train one model together (data parallelism).

Every process holds the whole model and draws whole batches. It computes gradients on its own micro-batches
(`micro_batches.py`). Gradients and losses are summed over all processes, and each process then takes the same step. One
process, the writer, writes the files, reads the clock and decides; its decisions are broadcast.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar, cast

if TYPE_CHECKING:
    from torch import Tensor

T = TypeVar("T")

LAUNCHED = ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")  # the environment that a launcher gives a process


class World(ABC):
    """The processes of one training run, as seen from one of them.

    All processes call `sum`, `sum_numbers` and `broadcast` equally often and in the same order: each call waits for the
    others.
    """

    rank: int  # number of this process, from 0
    size: int  # number of processes

    @property
    def is_writer(self) -> bool:
        """Whether this process writes files and decides."""
        return self.rank == 0

    @abstractmethod
    def sum(self, tensors: Iterable[Tensor]) -> None:
        """Replace each tensor by its sum over all processes. Number, order and shapes of the tensors are equal in all
        processes.
        """

    @abstractmethod
    def sum_numbers(self, *numbers: float) -> tuple[float, ...]:
        """Return the sum of each number over all processes, without waiting for a device."""

    @abstractmethod
    def broadcast(self, value: T) -> T:
        """Return the writer's value: a number, a string, None, a frozen record, or a tuple of these."""

    def decided(self, choose: Callable[[], T]) -> T:
        """Call `choose` in the writer alone and return its result in every process."""
        return self.broadcast(choose() if self.is_writer else cast(T, None))

    def share(self, tensors: Iterable[Tensor]) -> None:
        """Replace each tensor by the writer's, by a sum to which the other processes add zeros."""
        if self.size > 1:
            everywhere = [tensor.detach() for tensor in tensors]
            if not self.is_writer:
                for tensor in everywhere:
                    tensor.zero_()
            self.sum(everywhere)


@dataclass(frozen=True)
class SingleProcess(World):
    """A world of one process: sums and broadcasts return their input."""

    rank: int = 0
    size: int = 1

    def sum(self, tensors: Iterable[Tensor]) -> None:
        """Leave the tensors unchanged, and do not consume an iterator."""

    def sum_numbers(self, *numbers: float) -> tuple[float, ...]:
        """Return the numbers unchanged."""
        return numbers

    def broadcast(self, value: T) -> T:
        """Return the value unchanged."""
        return value


SINGLE_PROCESS = SingleProcess()


def is_launched() -> bool:
    """Return whether a launcher such as torchrun started this process beside others."""
    return all(os.environ.get(name) for name in LAUNCHED) and os.environ["WORLD_SIZE"] != "1"

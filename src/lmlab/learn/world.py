"""The processes that train one model together: how many there are, who writes and decides, and what they add up.

Every process holds the whole model and draws whole batches. It learns from its own micro-batches (`micro_batches.py`),
gradients and losses are added up over all processes, and each process then takes the same step. One process, the writer, has
the files, the clock and the last word; what it decides is broadcast.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeVar

from torch import Tensor

T = TypeVar("T")


class World(ABC):
    """The processes of a training, seen from one of them.

    All of them call `sum`, `sum_numbers` and `broadcast` equally often and in the same order: each call waits for the others.
    """

    rank: int  # of this process, from 0
    size: int  # how many processes there are

    @property
    def is_writer(self) -> bool:
        """Whether this process writes files and decides."""
        return self.rank == 0

    @abstractmethod
    def sum(self, tensors: Iterable[Tensor]) -> None:
        """Replace each tensor by its sum over all processes; shapes and their order are the same everywhere."""

    @abstractmethod
    def sum_numbers(self, *numbers: float) -> tuple[float, ...]:
        """Return the sum of each number over all processes, without waiting for a device."""

    @abstractmethod
    def broadcast(self, value: T) -> T:
        """Return the writer's value: a number, a text, None, or a tuple of these."""


@dataclass(frozen=True)
class Alone(World):
    """One process: sums are what they are, and its own word is the last."""

    rank: int = 0
    size: int = 1

    def sum(self, tensors: Iterable[Tensor]) -> None:
        """Leave the tensors as they are; an iterator is not even begun."""

    def sum_numbers(self, *numbers: float) -> tuple[float, ...]:
        """Return the numbers."""
        return numbers

    def broadcast(self, value: T) -> T:
        """Return the value."""
        return value


ALONE = Alone()

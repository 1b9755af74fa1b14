"""A world of several processes inside one: threads that take turns."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import torch
from torch import Tensor

from lmlab.learn.world import World

T = TypeVar("T")
PATIENCE_S = 60.0  # a test of threads that wait for each other for ever would never end


class OutOfStep(AssertionError):
    """The processes of a world do not do the same things in the same order."""


class Meeting:
    """Where the threads of a world meet. One runs at a time, so each has torch's generators to itself between two meetings."""

    def __init__(self, size: int) -> None:
        self.size, self.running = size, threading.Condition()
        self.given: dict[int, tuple[str, Any]] = {}
        self.last: list[tuple[str, Any]] = []  # what was given at the last meeting, by rank
        self.held, self.left = 0, False  # how many meetings there were; whether a thread is done

    def meet(self, rank: int, what: str, value: Any) -> list[Any]:
        """Give a value, wait for all others, and return what each gave, by rank."""
        before = self.held
        self.given[rank] = what, value
        if len(self.given) == self.size:
            self.last, self.given = [self.given[one] for one in range(self.size)], {}
            self.held += 1
            self.running.notify_all()
        self.running.wait_for(lambda: self.held > before or self.left, PATIENCE_S)
        if self.held == before:
            raise OutOfStep(f"process {rank} waits with {what}, and another has ended")
        names, values = zip(*self.last, strict=True)
        if len(set(names)) > 1:
            raise OutOfStep(f"the processes do different things: {names}")
        return list(values)

    def leave(self) -> None:
        """Wait for nobody any more, and let nobody wait for this thread."""
        self.left = True
        self.running.notify_all()


class ThreadWorld(World):
    """One of several threads that pass for processes."""

    def __init__(self, rank: int, meeting: Meeting) -> None:
        self.rank, self.size, self.meeting = rank, meeting.size, meeting

    def sum(self, tensors: Iterable[Tensor]) -> None:
        mine = list(tensors)
        shapes = ", ".join(str(tuple(t.shape)) for t in mine)
        everybodys = self.meeting.meet(self.rank, f"sum of {shapes}", [t.clone() for t in mine])
        for place, tensor in enumerate(mine):
            tensor.copy_(torch.stack([theirs[place] for theirs in everybodys]).sum(0))

    def sum_numbers(self, *numbers: float) -> tuple[float, ...]:
        everybodys = self.meeting.meet(self.rank, f"sum of {len(numbers)} numbers", numbers)
        return tuple(sum(column) for column in zip(*everybodys, strict=True))

    def broadcast(self, value: T) -> T:
        found: T = self.meeting.meet(self.rank, "broadcast", value)[0]
        return found


def together(size: int, work: Callable[[World], T]) -> list[T]:
    """Do the same work in a world of several threads; return what came of it, by rank."""
    meeting, found, wrong = Meeting(size), dict[int, T](), list[BaseException]()

    def run(rank: int) -> None:
        with meeting.running:
            try:
                found[rank] = work(ThreadWorld(rank, meeting))
            except BaseException as error:
                wrong.append(error)
            meeting.leave()

    threads = [threading.Thread(target=run, args=(rank,), name=f"process {rank}") for rank in range(size)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(2 * PATIENCE_S)
    if wrong:
        raise next((error for error in wrong if not isinstance(error, OutOfStep)), wrong[0])
    return [found[rank] for rank in range(size)]

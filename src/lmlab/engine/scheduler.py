"""Which requests wait and which run, as plain data: the scheduler knows no model and no state."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, final

if TYPE_CHECKING:
    from lmlab.engine.request import Request

SHARE = 8  # while others wait, requests are admitted together: not before one row in so many is free


@final
class Scheduler:
    """Requests wait in order of arrival and run when one of at most `max_rows` rows is free."""

    def __init__(self, max_rows: int) -> None:
        self.max_rows = max_rows
        self.waiting: deque[Request] = deque()
        self.running: dict[Request, None] = {}  # in order of admission

    def add(self, request: Request) -> None:
        """Let a new request wait."""
        self.waiting.append(request)

    def admit(self) -> list[Request]:
        """Move requests from waiting to running, in order; returns them.

        All that wait, if there are rows for them; else none until an eighth of all rows is free, because reading prompts
        together costs less than reading them one by one.
        """
        free = self.max_rows - len(self.running)
        if not self.waiting or free <= 0 or (free < len(self.waiting) and free * SHARE < self.max_rows):
            return []
        admitted = [self.waiting.popleft() for _ in range(min(free, len(self.waiting)))]
        self.running.update(dict.fromkeys(admitted))
        return admitted

    def finish(self, request: Request) -> None:
        """Remove a request that ended, wherever it is."""
        if request in self.running:
            del self.running[request]
        elif request in self.waiting:
            self.waiting.remove(request)

    def preempt(self, requests: list[Request]) -> None:
        """Let running requests wait again, before all others, and admit fewer from now on: memory ran out."""
        for request in reversed(requests):
            del self.running[request]
            self.waiting.appendleft(request)
        self.max_rows = max(1, len(self.running))

"""Who looks on while a model learns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from lmlab.learn.clock import Clock


class Watch(Protocol):
    """Who looks on: a progress line, a live table, or nobody."""

    def update(self, clock: Clock, train: float, valid: float | None, unit: str) -> None:
        """Called about twice a second, in the unit of the task: training since the last validation, and the best so far."""

    def say(self, line: str) -> None:
        """Something the user should read."""


class Silent:
    """A watch that shows nothing."""

    def update(self, clock: Clock, train: float, valid: float | None, unit: str) -> None:
        """Nothing."""

    def say(self, line: str) -> None:
        """Nothing."""

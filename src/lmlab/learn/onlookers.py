"""Who looks on while a model learns."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Protocol

from lmlab.page.numbers import clock as minutes

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


LIVE_EVERY_S, PLAIN_EVERY_S = 0.5, 15.0


class Lines:
    """Says on stderr how far training is: one line that changes on a terminal and in a notebook, one now and then in a log."""

    def __init__(self, name: str) -> None:
        self.name, self._said_at, self._width = name, time.monotonic(), 0
        self._live = sys.stderr.isatty() or "ipykernel" in sys.modules

    def update(self, clock: Clock, train: float, valid: float | None, unit: str) -> None:
        """How far, how well, how long still."""
        if time.monotonic() - self._said_at < (LIVE_EVERY_S if self._live else PLAIN_EVERY_S):
            return
        self._said_at = time.monotonic()
        held_out = "" if valid is None else f", valid {valid:.3f}"
        line = f"{self.name}: {clock.fraction:.0%} · {train:.3f} {unit}{held_out} · {minutes(clock.remaining_s)} left"
        sys.stderr.write(f"\r{line:<{self._width}}" if self._live else f"{line}\n")
        sys.stderr.flush()
        self._width = len(line)

    def say(self, line: str) -> None:
        """A line of its own."""
        print(f"\r{line:<{self._width}}" if self._live and self._width else line, file=sys.stderr, flush=True)
        self._width = 0


def watching(watch: Watch | None, progress: bool, name: str) -> Watch:
    """Who looks on: the one that was given, or lines on stderr, or nobody."""
    return watch or (Lines(name) if progress else Silent())

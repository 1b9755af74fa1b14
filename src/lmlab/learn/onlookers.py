"""Progress displays of a training run."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Protocol

from lmlab.learn.world import SINGLE_PROCESS, World
from lmlab.page.numbers import clock as minutes

if TYPE_CHECKING:
    from lmlab.learn.clock import Clock


class Watch(Protocol):
    """The interface of a progress display: a progress line, a live table, or no display."""

    def update(self, clock: Clock, train: float, valid: float | None, unit: str) -> None:
        """Display the present losses. Called about twice a second.

        Args:
            clock: the progress through the budget.
            train: mean training loss since the last validation, in `unit`.
            valid: best validation loss so far, in `unit`; None: not validated yet.
            unit: the unit of the task.
        """

    def say(self, line: str) -> None:
        """Display a message to the user."""


class Silent:
    """A progress display that shows nothing."""

    def update(self, clock: Clock, train: float, valid: float | None, unit: str) -> None:
        """Do nothing."""

    def say(self, line: str) -> None:
        """Do nothing."""


LIVE_EVERY_S, PLAIN_EVERY_S = 0.5, 15.0


class Lines:
    """A progress display on stderr: one line that is rewritten in a terminal or notebook, or occasional lines in a log."""

    def __init__(self, name: str) -> None:
        self.name, self._said_at, self._width = name, time.monotonic(), 0
        self._live = sys.stderr.isatty() or "ipykernel" in sys.modules

    def update(self, clock: Clock, train: float, valid: float | None, unit: str) -> None:
        """Print the share of the budget used, the losses and the remaining time, unless the last line is recent."""
        if time.monotonic() - self._said_at < (LIVE_EVERY_S if self._live else PLAIN_EVERY_S):
            return
        self._said_at = time.monotonic()
        held_out = "" if valid is None else f", valid {valid:.3f}"
        line = f"{self.name}: {clock.fraction:.0%} · {train:.3f} {unit}{held_out} · {minutes(clock.remaining_s)} left"
        sys.stderr.write(f"\r{line:<{self._width}}" if self._live else f"{line}\n")
        sys.stderr.flush()
        self._width = len(line)

    def say(self, line: str) -> None:
        """Print a message on a line of its own."""
        print(f"\r{line:<{self._width}}" if self._live and self._width else line, file=sys.stderr, flush=True)
        self._width = 0


def watching(watch: Watch | None, progress: bool, name: str, world: World = SINGLE_PROCESS) -> Watch:
    """Return the given display, else lines on stderr if `progress`, else none. Only the writer has a display."""
    if not world.is_writer:
        return Silent()
    return watch or (Lines(name) if progress else Silent())

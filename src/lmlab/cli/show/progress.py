"""Progress on stderr: one live line on a terminal, otherwise occasional plain lines."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Self

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn

from lmlab.page.numbers import clock as minutes

if TYPE_CHECKING:
    from lmlab.learn.clock import Clock

PLAIN_EVERY_S, FIRST_PLAIN_S = 15.0, 5.0
SHOW_EVERY_S = 0.1
MEASURING = {
    "tokenise": "finding tokens",
    "walk": "before it scores: asking a copy that has seen nothing, for the certificate",
    "score": "scoring",
}


class ProgressLine:
    """A line of progress on stderr; stdout is left for results."""

    def __init__(self, name: str = "") -> None:
        self.name = name
        self.console = Console(stderr=True)
        self._bar: Progress | None = None
        self._began_at = self._said_at = time.monotonic()
        self._measuring = ""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.stop()

    def show(self, fraction: float, status: str, *, plain: bool = True) -> None:
        """Show progress, at most ten times a second.

        Args:
            fraction: the fraction of the work that is done.
            status: the current state in words.
            plain: also print if stderr is no terminal.
        """
        live = self.console.is_terminal
        said = self._said_at > self._began_at
        wait_s = SHOW_EVERY_S if live else PLAIN_EVERY_S if said else FIRST_PLAIN_S
        if time.monotonic() - self._said_at < wait_s or not (live or plain):
            return
        self._said_at = time.monotonic()
        if not live:
            print(f"{self.name}: {fraction:.0%} · {status}", file=sys.stderr, flush=True)
            return
        if self._bar is None:
            columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.percentage:>3.0f}%"))
            self._bar = Progress(*columns, TextColumn("{task.fields[status]}"), console=self.console, transient=True)
            self._task = self._bar.add_task(self.name, total=1.0, status="")
            self._bar.start()
        self._bar.update(self._task, completed=min(fraction, 1.0), status=status)

    def say(self, line: str) -> None:
        """Print a separate line."""
        self.console.print(line, highlight=False, markup=False, soft_wrap=True)  # so that a log has it in one line

    def update(self, clock: Clock, train: float, valid: float | None, unit: str) -> None:
        """Show the progress of training: losses, tokens per second and time left."""
        held_out = "" if valid is None else f", valid {valid:.3f}"
        speed = clock.tokens / max(clock.seconds, 1e-9)
        left = minutes(clock.remaining_s)
        self.show(clock.fraction, f"{train:.3f} {unit}{held_out} · {speed:,.0f} {clock.thing}s/s · {left} left")

    def tokens(self, done: int, total: int) -> None:
        """Show the progress of coding: the tokens done, and their total."""
        self.show(done / max(1, total), f"{done:,} of {total:,} tokens")

    def measuring(self, what: str, done: int, total: int) -> None:
        """Show the progress of an evaluation: the step, and the fraction of it that is done."""
        if self.console.is_terminal and what != self._measuring:
            self._said_at = 0.0  # show a new step at once, since it may report nothing more before it ends
        self._measuring = what
        self.show(done / max(1, total), MEASURING[what])

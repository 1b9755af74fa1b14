"""How far a piece of work is: one live line on a terminal, a plain line now and then elsewhere; always on stderr."""

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
    """Says how much is done, and of what; stdout stays clean for results."""

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
        """Called as often as one likes; shown ten times a second at most. plain: also where there is no terminal."""
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
        """A line of its own."""
        self.console.print(line, highlight=False, markup=False, soft_wrap=True)  # a log keeps it in one piece

    def update(self, clock: Clock, train: float, valid: float | None, unit: str) -> None:
        """Of training: how far, how well, how fast, how long still."""
        held_out = "" if valid is None else f", valid {valid:.3f}"
        speed = clock.tokens / max(clock.seconds, 1e-9)
        left = minutes(clock.remaining_s)
        self.show(clock.fraction, f"{train:.3f} {unit}{held_out} · {speed:,.0f} {clock.thing}s/s · {left} left")

    def tokens(self, done: int, total: int) -> None:
        """Of coding: how many tokens of how many."""
        self.show(done / max(1, total), f"{done:,} of {total:,} tokens")

    def measuring(self, what: str, done: int, total: int) -> None:
        """Of measuring: which part of the work, and how much of that."""
        if self.console.is_terminal and what != self._measuring:
            self._said_at = 0.0  # what is done now is shown at once: it may tell no more before it ends
        self._measuring = what
        self.show(done / max(1, total), MEASURING[what])

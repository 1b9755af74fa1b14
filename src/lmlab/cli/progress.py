"""What a user sees while a model trains: one live line on a terminal, a plain line now and then elsewhere."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Self

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn

if TYPE_CHECKING:
    from lmlab.learn.clock import Clock

PLAIN_EVERY_S = 15.0


class TrainingLine:
    """Progress of one training run, on stderr, so that stdout stays clean for results."""

    def __init__(self, name: str = "") -> None:
        self.name = name
        self.console = Console(stderr=True)
        self._bar: Progress | None = None
        self._said_at = time.monotonic()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.stop()

    def update(self, clock: Clock, train: float, valid: float | None, unit: str) -> None:
        """Show how far, how well, how fast, how long still."""
        held_out = "" if valid is None else f", valid {valid:.3f}"
        status = (
            f"{train:.3f} {unit}{held_out} · {clock.tokens / max(clock.seconds, 1e-9):,.0f} tokens/s"
            f" · {_duration(clock.remaining_s)} left"
        )
        if self.console.is_terminal:
            self._live(clock.fraction, status)
        elif time.monotonic() - self._said_at > PLAIN_EVERY_S:
            self._said_at = time.monotonic()
            print(f"{self.name}: {clock.fraction:.0%} · {status}", file=sys.stderr, flush=True)

    def say(self, line: str) -> None:
        """A line of its own."""
        self.console.print(line, highlight=False, markup=False, soft_wrap=True)  # a log keeps it in one piece

    def _live(self, fraction: float, status: str) -> None:
        if self._bar is None:
            self._bar = Progress(
                TextColumn("{task.description}"),
                BarColumn(),
                TextColumn("{task.percentage:>3.0f}%"),
                TextColumn("{task.fields[status]}"),
                console=self.console,
                transient=True,
            )
            self._task = self._bar.add_task(self.name, total=1.0, status="")
            self._bar.start()
        self._bar.update(self._task, completed=min(fraction, 1.0), status=status)


def _duration(seconds: float) -> str:
    if seconds != seconds:  # not a number: nothing to go by yet
        return "?"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes}:{rest:02d}"

"""Progress displays of a running comparison."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from lmlab.comparison.findings import Status
from lmlab.learn.clock import Clock

DONE: tuple[Status, ...] = ("ranked", "unranked", "failed")


@dataclass(frozen=True, kw_only=True)
class EntryProgress:
    """The progress of one entry of a comparison, for display."""

    name: str
    status: Status
    seconds: float = 0.0  # used so far
    bits_per_byte: float | None = None  # of the final result
    fraction: float = 0.0  # of training that is done
    valid_bits_per_byte: float | None = None  # best so far in training


class Display(Protocol):
    """Interface of a progress display for a running comparison."""

    def show(self, entries: Sequence[EntryProgress], left_s: float | None, doing: str) -> None:
        """Show the progress of all entries; called after each change, at most a few times a second.

        Args:
            entries: the progress of each entry.
            left_s: seconds left of the budget; None: the budget is not in seconds.
            doing: the current step.
        """

    def say(self, line: str) -> None:
        """Print a separate line."""


class Lines:
    """A display on stderr: lines on which models are trained and scored, or in a notebook one line that is rewritten."""

    def __init__(self) -> None:
        self._told: set[str] = set()
        self._live, self._width = "ipykernel" in sys.modules, 0

    def show(self, entries: Sequence[EntryProgress], left_s: float | None, doing: str) -> None:
        """Print a line for every entry that is newly trained or done; in a notebook rewrite the one line."""
        if self._live:
            self._rewrite(entries, left_s, doing)
            return
        for entry in entries:
            if entry.status == "measuring":  # scored again on other bytes, with another result
                self._told.discard(entry.name)
            if entry.status == "trained" and f"{entry.name} trained" not in self._told:
                self._told.add(f"{entry.name} trained")
                self.say(f"{entry.name}: trained ({entry.seconds:.0f} s)")
            if entry.status in DONE and entry.name not in self._told:
                self._told.add(entry.name)
                bits = "failed" if entry.bits_per_byte is None else f"{entry.bits_per_byte:.4f} bits per byte"
                self.say(f"{entry.name}: {bits} ({entry.seconds:.0f} s)")

    def say(self, line: str) -> None:
        """Print a separate line on stderr."""
        print(f"\r{line:<{self._width}}" if self._width else line, file=sys.stderr, flush=True)
        self._width = 0

    def _rewrite(self, entries: Sequence[EntryProgress], left_s: float | None, doing: str) -> None:
        ready = sum(entry.status in DONE for entry in entries)
        left = "" if left_s is None else f" · {max(0, left_s):.0f} s left"
        line = f"{doing or 'comparing'} · {ready} of {len(entries)} models done{left}"
        sys.stderr.write(f"\r{line:<{self._width}}")
        sys.stderr.flush()
        self._width = len(line)


@dataclass(frozen=True)
class TrainingWatch:
    """Reports the progress of one run: the fraction of its budget that is used, and its best validation so far."""

    told: Callable[[float, float | None], None]

    def update(self, clock: Clock, train: float, valid: float | None, unit: str) -> None:
        """Report the progress of training."""
        self.told(min(1.0, clock.fraction), valid)

    def say(self, line: str) -> None:
        """Do nothing: the record of the run holds how its training ended."""


class BudgetClock:
    """Counts the seconds that a comparison has used, including those of earlier calls."""

    def __init__(self, before_s: float) -> None:
        self._before_s, self._began = before_s, time.perf_counter()

    @property
    def used_s(self) -> float:
        """Seconds used so far."""
        return self._before_s + time.perf_counter() - self._began

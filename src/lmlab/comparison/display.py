"""Who looks on while a comparison runs."""

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
    """How far one entry is."""

    name: str
    status: Status
    seconds: float = 0.0  # spent on it so far
    bits_per_byte: float | None = None  # of its result
    fraction: float = 0.0  # of its training
    valid_bits_per_byte: float | None = None  # the best so far while it trains


class Display(Protocol):
    """Who looks on while the comparison runs."""

    def show(self, entries: Sequence[EntryProgress], left_s: float | None, doing: str) -> None:
        """Called whenever something changed, at most a few times a second. left_s: None: the budget is no time."""

    def say(self, line: str) -> None:
        """A line of its own."""


class Lines:
    """Says on stderr which models are done."""

    def __init__(self) -> None:
        self._told: set[str] = set()

    def show(self, entries: Sequence[EntryProgress], left_s: float | None, doing: str) -> None:
        """A line for every model that has come to its end since."""
        for entry in entries:
            if entry.status == "measuring":  # once more, on other bytes: its number will be another
                self._told.discard(entry.name)
            if entry.status == "trained" and f"{entry.name} trained" not in self._told:
                self._told.add(f"{entry.name} trained")
                self.say(f"{entry.name}: trained ({entry.seconds:.0f} s)")
            if entry.status in DONE and entry.name not in self._told:
                self._told.add(entry.name)
                bits = "failed" if entry.bits_per_byte is None else f"{entry.bits_per_byte:.4f} bits per byte"
                self.say(f"{entry.name}: {bits} ({entry.seconds:.0f} s)")

    def say(self, line: str) -> None:
        """A line of its own."""
        print(line, file=sys.stderr, flush=True)


@dataclass(frozen=True)
class TrainingWatch:
    """Passes the progress of one training on: the share of its budget that is used, and the best validation so far."""

    told: Callable[[float, float | None], None]

    def update(self, clock: Clock, train: float, valid: float | None, unit: str) -> None:
        """Tell how far training is."""
        self.told(min(1.0, clock.fraction), valid)

    def say(self, line: str) -> None:
        """Nothing: how a training ended stands in the record of its run."""


class BudgetClock:
    """Counts the seconds that a comparison has used, those of earlier calls included."""

    def __init__(self, before_s: float) -> None:
        self._before_s, self._began = before_s, time.perf_counter()

    @property
    def used_s(self) -> float:
        """Seconds so far."""
        return self._before_s + time.perf_counter() - self._began

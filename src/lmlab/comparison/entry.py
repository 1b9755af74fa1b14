"""A model on its way through a comparison, and those who look on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from lmlab.learn.clock import Clock
from lmlab.learn.run import Run
from lmlab.measure import Result, Scored
from lmlab.models.registry import Way, file_name, kind_of


@dataclass
class Entry:
    """One model under one tokenizer, and what became of it; with several seeds, the mean of its runs."""

    model: str
    tokenizer: str
    status: str = "waiting"  # then "training", "measuring", and at last "ranked", "unranked" or "failed"
    error: str = ""
    runs: list[Run] = field(default_factory=list)  # one a seed
    seed_results: list[Result] = field(default_factory=list)
    result: Result | None = None  # their mean
    rank: int | None = None
    peak_bytes: int = 0
    seconds: float = 0.0
    reused: bool = False
    fraction: float = 0.0  # of its training
    details: dict[str, Any] = field(default_factory=dict)
    name: str = ""  # on the page: the model, and the tokenizer where several are compared

    @property
    def run(self) -> Run | None:
        """The run of its first seed, which stands for it where one must: its sample, its curve, its certificate."""
        return self.runs[0] if self.runs else None

    @property
    def scored(self) -> Scored:
        """What its result was computed from."""
        assert self.result is not None, "only an entry with a result has scores"
        return self.result.scored

    @property
    def learned(self) -> bool:
        """Whether it was trained from a random start, so that another seed would have made another model."""
        return self.run is not None and kind_of(self.model).way is Way.LEARNS

    def folder(self, seed: int) -> str:
        """The name of the folder of one of its runs."""
        return f"{file_name(self.model)}-{self.tokenizer.replace(':', '')}" + (f"-seed{seed}" if seed else "")


class Display(Protocol):
    """Who looks on while the comparison runs."""

    def show(self, entries: Sequence[Entry], left_s: float, doing: str) -> None:
        """Called whenever something changed, at most a few times a second."""

    def say(self, line: str) -> None:
        """A line of its own."""


class Nobody:
    """A display that shows nothing."""

    def show(self, entries: Sequence[Entry], left_s: float, doing: str) -> None:
        """Nothing."""

    def say(self, line: str) -> None:
        """Nothing."""


@dataclass
class EntryWatch:
    """Passes training progress on to the display."""

    entry: Entry
    show: Callable[[str], None]

    def update(self, clock: Clock, train: float, valid: float | None, unit: str) -> None:
        """Show how far training is."""
        self.entry.fraction = min(1.0, clock.fraction)
        self.show(f"training {self.entry.name}")

    def say(self, line: str) -> None:
        """Keep the line for the record."""
        self.entry.details["message"] = line

"""A model on its way through a comparison, and who looks on."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

import numpy as np

from lmlab.comparison.close_look import CloseLook
from lmlab.comparison.findings import Status
from lmlab.learn.checkpoint import read_progress
from lmlab.learn.clock import Clock
from lmlab.learn.run import Run
from lmlab.measure import Result, Scored
from lmlab.measure.interval import interval
from lmlab.models.registry import Way, file_name, kind_of

DONE: tuple[Status, ...] = ("ranked", "unranked", "failed")


@dataclass
class Contender:
    """One model under one tokenizer, and what became of it; with several seeds, the mean of its runs."""

    model: str
    tokenizer: str
    status: Status = "waiting"
    error: str = ""
    runs: list[Run] = field(default_factory=list)  # one a seed
    seed_results: list[Result] = field(default_factory=list)
    result: Result | None = None  # their mean
    rank: int | None = None
    peak_bytes: int = 0
    seconds: float = 0.0
    before_s: float = 0.0  # of training, when this comparison found its runs in the folder
    reused: bool = False
    fraction: float = 0.0  # of its training
    valid_bits_per_byte: float | None = None  # the best so far while it trains
    message: str = ""  # what training said last
    look: CloseLook = field(default_factory=CloseLook)
    name: str = ""  # on the page: the model, and the tokenizer where several are compared

    @property
    def run(self) -> Run | None:
        """The run of its first seed, which stands for it where one must: its sample, its curve, its certificate."""
        return self.runs[0] if self.runs else None

    def goes_on_from(self, run: Run) -> Run:
        """A run that was in the folder, wholly trained or in part; what that took is not to be forgotten."""
        done = read_progress(run.checkpoint) if run.status == "unfinished" else run.record.result
        self.before_s += 0.0 if done is None else done.seconds
        self.reused = True
        return run

    @property
    def scored(self) -> Scored:
        """What its result was computed from."""
        assert self.result is not None, "only an entry with a result has scores"
        return self.result.scored

    def take(self, look: CloseLook) -> None:
        """Keep what a close look showed; a claim that could not be cashed in takes the certificate away."""
        self.look = look
        if self.result is not None:
            self.result = look.certify(self.result)
            self.status = "ranked" if self.result.certified else "unranked"

    @property
    def learned(self) -> bool:
        """Whether it was trained from a random start, so that another seed would have made another model."""
        return self.run is not None and kind_of(self.model).way is Way.LEARNS

    def folder(self, seed: int) -> str:
        """The name of the folder of one of its runs."""
        return f"{file_name(self.model)}-{self.tokenizer.replace(':', '')}" + (f"-seed{seed}" if seed else "")


class Display(Protocol):
    """Who looks on while the comparison runs."""

    def show(self, entries: Sequence[Contender], left_s: float, doing: str) -> None:
        """Called whenever something changed, at most a few times a second."""

    def say(self, line: str) -> None:
        """A line of its own."""


class Lines:
    """Says on stderr which models are done."""

    def __init__(self) -> None:
        self._told: set[str] = set()

    def show(self, entries: Sequence[Contender], left_s: float, doing: str) -> None:
        """A line for every model that has come to its end since."""
        for entry in entries:
            if entry.status == "measuring":  # once more, on other bytes: its number will be another
                self._told.discard(entry.name)
            if entry.status == "trained" and f"{entry.name} trained" not in self._told:
                self._told.add(f"{entry.name} trained")
                self.say(f"{entry.name}: trained ({entry.seconds:.0f} s)")
            if entry.status in DONE and entry.name not in self._told:
                self._told.add(entry.name)
                bits = "failed" if entry.result is None else f"{entry.result.bits_per_byte:.4f} bits per byte"
                self.say(f"{entry.name}: {bits} ({entry.seconds:.0f} s)")

    def say(self, line: str) -> None:
        """A line of its own."""
        print(line, file=sys.stderr, flush=True)


@dataclass
class TrainingWatch:
    """Passes training progress on to whoever looks on."""

    entry: Contender
    show: Callable[[str], None]

    def update(self, clock: Clock, train: float, valid: float | None, unit: str) -> None:
        """Show how far training is."""
        self.entry.fraction, self.entry.valid_bits_per_byte = min(1.0, clock.fraction), valid
        self.show(f"training {self.entry.name}")

    def say(self, line: str) -> None:
        """Keep the line for the record."""
        self.entry.message = line


def mean_result(results: list[Result]) -> Result:
    """Several seeds of one model as one result: the mean of their bits, and the first certificate that fails, if any."""
    if len(results) == 1:
        return results[0]
    scores = [r.scored for r in results]
    share = 1.0 / len(scores)
    scored = replace(
        scores[0],
        nats_per_token=np.mean([s.nats_per_token for s in scores], axis=0),
        total_nats=sum(s.total_nats for s in scores) * share,
        model_nats=sum(s.model_nats for s in scores) * share,
        closed_nats=sum(s.closed_nats for s in scores) * share,
        impossible_tokens=max(s.impossible_tokens for s in scores),
    )
    worst = next((r for r in results if not r.certified), results[0])
    return replace(results[0], scored=scored, interval=interval(scored), certificate=worst.certificate)

"""One model under one tokenizer in a comparison, with all its seeds: a view of its records."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from lmlab.comparison.close_look import CloseLook
from lmlab.comparison.entry_records import MeasuredEntry, TrainedEntry
from lmlab.comparison.entry_store import EntryStore
from lmlab.comparison.findings import Status
from lmlab.learn.run import Run
from lmlab.measure import Result, Scored, Spread
from lmlab.measure.interval import interval
from lmlab.models.registry import Way, kind_of


@dataclass(frozen=True, kw_only=True, eq=False)
class ComparedEntry:
    """What became of one model under one tokenizer; with several seeds, its number is the mean of its runs."""

    name: str  # on the page: the model, and the tokenizer where several are compared
    model: str
    tokenizer: str
    stores: tuple[EntryStore, ...]  # one a seed
    text: Spread  # that it is measured on
    status: Status = "waiting"
    error: str = ""
    rank: int | None = None
    reused: bool = False  # its training began before this call

    @cached_property
    def trained(self) -> list[TrainedEntry]:
        """The records of the runs that came to the end of their budget."""
        return [found for store in self.stores if (found := store.trained) is not None]

    @cached_property
    def measured(self) -> list[MeasuredEntry]:
        """The records of results on this text, one a seed."""
        found = [store.measured for store in self.stores]
        return [one for one in found if one is not None and one.read_sha256 == self.text.part.sha256]

    @property
    def is_measured(self) -> bool:
        """Whether every seed has a result on this text."""
        return not self.error and len(self.measured) == len(self.stores)

    @property
    def recorded_status(self) -> Status:
        """What its records say, where nothing of it is under way."""
        if self.error:
            return "failed"
        if self.is_measured:
            certified = all(one.result.certified for one in self.measured)
            return "ranked" if certified and self.look.holds else "unranked"
        if len(self.trained) == len(self.stores):
            return "trained"
        return "interrupted" if any(store.has_run for store in self.stores) else "waiting"

    @cached_property
    def runs(self) -> list[Run]:
        """The trained runs, one a seed."""
        return [store.run for store in self.stores if store.trained is not None]

    @property
    def run(self) -> Run | None:
        """The run of its first seed, which stands for it where one must: its sample, its curve, its certificate."""
        return self.runs[0] if self.runs else None

    @cached_property
    def seed_results(self) -> list[Result]:
        """The result of every seed; none where one of them is missing."""
        whole = len(self.measured) == len(self.stores)  # one that failed in a close look has a number all the same
        return [store.result(self.text) for store in self.stores] if whole else []

    @cached_property
    def look(self) -> CloseLook:
        """The close look at its first seed; an empty one where there is none yet."""
        return (self.stores[0].look if self.measured else None) or CloseLook()

    @cached_property
    def result(self) -> Result | None:
        """The mean of its results. A claim that the close look found too good takes its certificate away."""
        return self.look.certify(mean_result(self.seed_results)) if self.seed_results else None

    @property
    def scored(self) -> Scored:
        """The scores that its result was computed from."""
        assert self.result is not None, "only an entry with a result has scores"
        return self.result.scored

    @property
    def learned(self) -> bool:
        """Whether it was trained from a random start, so that another seed would have made another model."""
        return self.run is not None and kind_of(self.model).way is Way.LEARNS

    @property
    def seconds(self) -> float:
        """Seconds of training, measuring and looking closely, over all seeds."""
        return sum(one.seconds for one in self.trained) + sum(one.seconds for one in self.measured) + self.look.seconds

    @property
    def peak_memory_bytes(self) -> int:
        """The most that a process held meanwhile; 0: not known."""
        held = [one.peak_memory_bytes for one in self.trained] + [one.peak_memory_bytes for one in self.measured]
        return max(held, default=0)

    @property
    def message(self) -> str:
        """How the training of its last seed ended."""
        return self.trained[-1].message if self.trained else ""


def mean_result(results: Sequence[Result]) -> Result:
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

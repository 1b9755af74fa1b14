"""One model under one tokenizer in a comparison: combines the records of its seeds."""

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
    """The state and result of one model under one tokenizer, combined over its seeds; its score is their mean."""

    name: str  # in the report: the model, and the tokenizer if several are compared
    model: str
    tokenizer: str
    stores: tuple[EntryStore, ...]  # one per seed
    text: Spread  # the sample that is scored
    status: Status = "waiting"
    error: str = ""
    rank: int | None = None
    reused: bool = False  # whether training began before this call

    @cached_property
    def trained(self) -> list[TrainedEntry]:
        """The training records of the seeds whose training is complete."""
        return [found for store in self.stores if (found := store.trained) is not None]

    @cached_property
    def measured(self) -> list[MeasuredEntry]:
        """The score records on this text, at most one per seed."""
        found = [store.measured for store in self.stores]
        return [one for one in found if one is not None and one.read_sha256 == self.text.part.sha256]

    @property
    def is_measured(self) -> bool:
        """Whether every seed has a result on this text."""
        return not self.error and len(self.measured) == len(self.stores)

    @property
    def recorded_status(self) -> Status:
        """The status that the records show, if no work on the entry is in progress."""
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
        """The trained runs, one per seed."""
        return [store.run for store in self.stores if store.trained is not None]

    @property
    def run(self) -> Run | None:
        """The run of the first trained seed, whose sample, curve and certificate represent the entry."""
        return self.runs[0] if self.runs else None

    @cached_property
    def seed_results(self) -> list[Result]:
        """The result of every seed; empty if one of them is missing."""
        whole = len(self.measured) == len(self.stores)  # an entry that failed in its examination still has a score
        return [store.result(self.text) for store in self.stores] if whole else []

    @cached_property
    def look(self) -> CloseLook:
        """The examination of the first seed; an empty one if there is none yet."""
        return (self.stores[0].look if self.measured else None) or CloseLook()

    @cached_property
    def result(self) -> Result | None:
        """The mean result over seeds. It is not certified if compression failed to reach the claimed size."""
        return self.look.certify(mean_result(self.seed_results)) if self.seed_results else None

    @property
    def scored(self) -> Scored:
        """The scores from which the result was computed."""
        assert self.result is not None, "only an entry with a result has scores"
        return self.result.scored

    @property
    def learned(self) -> bool:
        """Whether the model was trained from a random initialization, so that the seed changes its result."""
        return self.run is not None and kind_of(self.model).way is Way.LEARNS

    @property
    def seconds(self) -> float:
        """Seconds of training, scoring and examination, over all seeds."""
        return sum(one.seconds for one in self.trained) + sum(one.seconds for one in self.measured) + self.look.seconds

    @property
    def peak_memory_bytes(self) -> int:
        """Peak memory of a process in training or scoring, in bytes; 0: unknown."""
        held = [one.peak_memory_bytes for one in self.trained] + [one.peak_memory_bytes for one in self.measured]
        return max(held, default=0)

    @property
    def valid_bits_per_byte(self) -> float | None:
        """Bits per byte of the validation part under the first seed's weights; None: unknown."""
        if self.run is None:
            return None
        curve = [bits for line in self.run.metrics if (bits := line.get("valid_bits_per_byte")) is not None]
        return min(curve, default=self.trained[0].valid_bits_per_byte)

    @property
    def message(self) -> str:
        """The message at the end of training of the last seed."""
        return self.trained[-1].message if self.trained else ""


def mean_result(results: Sequence[Result]) -> Result:
    """Combine the results of several seeds: the mean of their nats, and the first certificate that fails, if any."""
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
        known_nats=sum(s.known_nats for s in scores) * share,
        impossible_tokens=max(s.impossible_tokens for s in scores),
    )
    worst = next((r for r in results if not r.certified), results[0])
    return replace(results[0], scored=scored, interval=interval(scored), certificate=worst.certificate)

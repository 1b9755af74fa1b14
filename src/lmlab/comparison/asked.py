"""What is asked of a comparison, checked and whole."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from lmlab.comparison.entry_records import EntrySpec
from lmlab.comparison.folder import entry_name
from lmlab.config import Budget
from lmlab.models.registry import Way, kind_of
from lmlab.text.corpus import Corpus


@dataclass(frozen=True, kw_only=True)
class AskedEntry:
    """One model under one tokenizer, as it is asked for. name: on the page."""

    name: str
    model: str
    tokenizer: str

    @property
    def counts(self) -> bool:
        """Whether it is counted: it takes what time it needs, and comes out the same with every seed."""
        return kind_of(self.model).way is Way.COUNTS


@dataclass(frozen=True, kw_only=True)
class Asked:
    """What is asked of a comparison. Exactly one of `budget_s`, for everything, and `each`, for every model, is set."""

    corpus: Corpus
    entries: tuple[AskedEntry, ...]
    seeds: tuple[int, ...]
    budget_s: float | None
    each: Budget | None
    shares: Mapping[str, float]
    settings: Mapping[str, Mapping[str, Any]]
    learning: Mapping[str, Mapping[str, Any]]
    device: str
    command: str

    @property
    def timed(self) -> bool:
        """Whether a clock decides how long models train and how much is measured."""
        return self.each is None or self.each.seconds is not None

    def spec(self, entry: AskedEntry, seed: int, budget: Budget) -> EntrySpec:
        """What is asked of one run."""
        return EntrySpec(
            name=entry_name(entry.model, entry.tokenizer, seed),
            model=entry.model,
            tokenizer=entry.tokenizer,
            text={name: part.sha256 for name, part in self.corpus.parts.items()},
            settings=dict(self.settings.get(entry.model, {})),
            learning=dict(self.learning.get(entry.model, {})),
            budget=str(budget),
            seed=seed,
            device=self.device,
        )

    def seeds_of(self, entry: AskedEntry) -> tuple[int, ...]:
        """The seeds an entry is trained with."""
        return self.seeds[:1] if entry.counts else self.seeds

"""The validated request of a comparison."""

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
    """One requested pair of model and tokenizer.

    name: the name in the report.
    """

    name: str
    model: str
    tokenizer: str

    @property
    def counts(self) -> bool:
        """Whether the model is fitted by counting: it takes the time it needs, and its seed changes nothing."""
        return kind_of(self.model).way is Way.COUNTS


@dataclass(frozen=True, kw_only=True)
class Asked:
    """The validated request of a comparison.

    Either `budget_s` (seconds for the whole comparison) or `each` (the budget of each trained run) is set, never both.
    """

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
        """Whether a budget of seconds decides how long models train and how much text is scored."""
        return self.each is None or self.each.seconds is not None

    def spec(self, entry: AskedEntry, seed: int, budget: Budget) -> EntrySpec:
        """Return the specification of one run."""
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
        """Return the seeds that an entry is trained with: only the first for a count model."""
        return self.seeds[:1] if entry.counts else self.seeds

"""The records of a whole comparison, and the progress of this call."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from lmlab.comparison import time_shares
from lmlab.comparison.asked import Asked, AskedEntry
from lmlab.comparison.choose_text import Texts
from lmlab.comparison.compared_entry import ComparedEntry
from lmlab.comparison.display import EntryProgress
from lmlab.comparison.entry_records import EntrySpec, TextChoice
from lmlab.comparison.entry_store import EntryStore, read_record
from lmlab.comparison.findings import Baseline, BaselinesFound, OverlapFound, Status
from lmlab.comparison.folder import ComparisonFolder, entry_name
from lmlab.comparison.mixes import MixRecord
from lmlab.comparison.schedule import EntryState, State
from lmlab.comparison.time_shares import LEAST_S, Turn
from lmlab.comparison.work import Shared, trained_record
from lmlab.config import Budget, Mistake, an, in_one_line
from lmlab.measure import Spread

OVERLAP, BASELINES, MIXES = "overlap.json", "baselines.json", "mixes"


class ComparisonRecords:
    """The records of one comparison.

    Attributes:
        runs: the entry and the seed of each run, by the name of the run.
        errors: by run, the error of this call; errors are not saved.
        live: by run in progress, its status, the fraction done and the best validation bits per byte.
        unmixed: by tokenizer, why this call could not mix its models.
    """

    def __init__(self, asked: Asked, folder: ComparisonFolder) -> None:
        self.asked, self.folder = asked, folder
        self.runs: dict[str, tuple[AskedEntry, int]] = {
            entry_name(entry.model, entry.tokenizer, seed): (entry, seed)
            for entry in asked.entries
            for seed in asked.seeds_of(entry)
        }
        self.stores = {name: folder.store(name) for name in self.runs}
        self.reused = [name for name, store in self.stores.items() if store.has_run]
        self.errors: dict[str, str] = {}
        self.live: dict[str, tuple[Status, float, float | None]] = {}
        self.unmixed: dict[str, str] = {}
        self.shared = Shared(corpus=asked.corpus, store_of=lambda task: self.stores[task.spec.name])
        self.texts = Texts(
            corpus=asked.corpus,
            tokenizers=list(dict.fromkeys(entry.tokenizer for entry in asked.entries)),
            contexts=[c for given in asked.settings.values() if isinstance(c := given.get("context"), int)],
        )

    def state(self, *, hurry: bool, time_planned: bool) -> State:
        """Return the state of the comparison, the input of `schedule.next_step`.

        Args:
            hurry: training was stopped; only what is trained is scored.
            time_planned: the training time has been divided.
        """
        failed = {self.runs[name][0] for name in self.errors}
        if hurry:  # a model has a score only if all its seeds are trained
            failed |= {compared for name, (compared, _) in self.runs.items() if self.stores[name].trained is None}
        return State(
            entries=tuple(
                EntryState(
                    name=name,
                    counts=compared.counts,
                    trained=(store := self.stores[name]).trained is not None,
                    measured=self._is_measured(store),
                    looked=seed != self.asked.seeds[0] or store.look is not None,
                    failed=compared in failed,
                )
                for name, (compared, seed) in self.runs.items()
            ),
            timed=self.asked.timed,
            hurry=hurry,
            time_planned=time_planned,
            text_chosen=self.folder.plan.test_bytes is not None,
            has_baselines=self.baselines is not None,
            to_mix=tuple(spec for spec in self.texts.tokenizers if self._is_to_be_mixed(spec)),
        )

    def take_over(self) -> list[str]:
        """Write the records of runs that were trained in this folder and lack them.

        Returns:
            The names of the models whose training is complete.

        Raises:
            Mistake: a run has other settings than requested.
        """
        again = []
        for name in self.reused:
            compared, seed = self.runs[name]
            store, asked = self.stores[name], self.asked.spec(compared, seed, Budget(seconds=LEAST_S))
            self._refuse_other_settings(store, asked)
            if store.run.status == "unfinished":
                continue
            again.append(compared.name)
            if store.trained is None:
                store.write_spec(replace(asked, budget=store.run.record.training.budget))
                try:
                    seconds = store.run.record.result.seconds
                    store.write_trained(trained_record(store.run, seconds=seconds, device=self.asked.device))
                except Mistake as nothing_learned:
                    self.errors[name] = in_one_line(nothing_learned)
        if not self.asked.timed and self.folder.plan.test_bytes is None:
            self.folder.note(test_bytes=time_shares.BYTES_WITHOUT_CLOCK)
        return list(dict.fromkeys(again))

    def _refuse_other_settings(self, store: EntryStore, asked: EntrySpec) -> None:
        """Raise a Mistake if a run in the folder has other settings than requested."""
        run, before = store.run, store.spec
        learning = run.record.training.learning
        had = {**run.record.model.config, **learning}
        given = self.folder.plan.settings.get(asked.model, {}) if before is None else before.settings
        # settings that were given then but are missing now would have been None
        asked_then = {key for key, value in given.items() if value is not None}
        wanted = {**dict.fromkeys([*learning, *asked_then]), **asked.settings, **asked.learning}
        if other := next((key for key, value in wanted.items() if had.get(key) != value), None):
            why = f"holds {an(asked.model)} that was trained with {other}={had.get(other)}"
            raise Mistake(
                f"{self.folder.path} {why}; name a new folder with {{out}}",
                code="comparison-run-of-other-settings",
                out=None,
            )

    @property
    def overlap(self) -> OverlapFound | None:
        """The overlap between the parts of the corpus; None: not computed yet."""
        return read_record(self.folder.path / OVERLAP, OverlapFound)

    @property
    def baselines(self) -> tuple[Baseline, ...] | None:
        """The results of the compressors on this text; None: they have not run."""
        found = read_record(self.folder.path / BASELINES, BaselinesFound)
        return found.baselines if found is not None and found.text == self.text.counted().sha256 else None

    def mix_file(self, tokenizer: str) -> Path:
        """Return the path of the record of a tokenizer's mix."""
        return self.folder.path / MIXES / f"{tokenizer.replace(':', '')}.json"

    def mix_record(self, tokenizer: str) -> MixRecord | None:
        """Return the record of the mix, if it was made of the entries that can be mixed now, on this text."""
        found = read_record(self.mix_file(tokenizer), MixRecord)
        now = MixRecord(of=weights_of(self.mixable(tokenizer)), text=self.text.part.sha256)
        return found if found is not None and (found.of, found.text) == (now.of, now.text) else None

    def mixable(self, tokenizer: str) -> list[ComparedEntry]:
        """Return the certified entries of a tokenizer that were scored on the requested device.

        All parts of a mix must run on one device, so entries that were moved to the CPU are left out.
        """
        found = [self.entry(compared) for compared in self.asked.entries if compared.tokenizer == tokenizer]
        return [
            entry
            for entry in found
            if entry.is_measured and all(one.result.certified and not one.on_cpu for one in entry.measured)
        ]

    def _is_to_be_mixed(self, tokenizer: str) -> bool:
        several = len(self.mixable(tokenizer)) > 1
        return several and tokenizer not in self.unmixed and self.mix_record(tokenizer) is None

    @property
    def choice(self) -> TextChoice:
        """The choice of text to score; before it is made, the size that fits the budget."""
        return self.texts.choice(self.folder.plan.test_bytes or time_shares.test_bytes(self.budget_s or 0.0))

    @property
    def text(self) -> Spread:
        """The sample of the test part that is scored."""
        return self.shared.text(self.choice)

    @property
    def budget_s(self) -> float | None:
        """Seconds for the whole comparison; None if each model has a budget in steps or tokens."""
        if not self.asked.timed:
            return None
        if self.asked.each is None:
            return self.asked.budget_s
        return self.folder.plan.budget_s or time_shares.each_budget_s(self.asked.each, self.turns(only_missing=False))

    def turns(self, *, only_missing: bool) -> list[Turn]:
        """Return the training turns of the runs that learn.

        Args:
            only_missing: leave out runs that are trained or failed.
        """
        return [
            Turn(share=self.asked.shares.get(compared.model, 1.0), runs=1)
            for name, (compared, _) in self.runs.items()
            if not compared.counts and not (only_missing and (self.stores[name].trained or name in self.errors))
        ]

    def entry(self, compared: AskedEntry) -> ComparedEntry:
        """Return one model's combined records over all its seeds, as a `ComparedEntry`."""
        names = [name for name, (other, _) in self.runs.items() if other == compared]
        entry = ComparedEntry(
            name=compared.name,
            model=compared.model,
            tokenizer=compared.tokenizer,
            stores=tuple(self.stores[name] for name in names),
            text=self.text,
            error=next((self.errors[name] for name in names if name in self.errors), ""),
            reused=any(name in self.reused for name in names),
        )
        live = next((self.live[name][0] for name in names if name in self.live), None)
        return replace(entry, status=live or entry.recorded_status)

    def _is_measured(self, store: EntryStore) -> bool:
        measured = store.measured
        return measured is not None and measured.read_sha256 == self.text.part.sha256

    def progress(self, compared: AskedEntry) -> EntryProgress:
        """Return the progress of one model, for display."""
        entry = self.entry(compared)
        names = [name for name, (other, _) in self.runs.items() if other == compared]
        fraction, valid = next((self.live[name][1:] for name in names if name in self.live), (0.0, None))
        bits = [one.bits_per_byte for one in entry.measured] if entry.is_measured else []
        return EntryProgress(
            name=entry.name,
            status=entry.status,
            seconds=entry.seconds,
            bits_per_byte=sum(bits) / len(bits) if bits else None,
            fraction=fraction,
            valid_bits_per_byte=valid,
        )


def weights_of(entries: Sequence[ComparedEntry]) -> dict[str, str]:
    """Return the hash of the weights of each entry's first seed, by entry name."""
    return {entry.name: entry.measured[0].weights_sha256 for entry in entries}

"""A comparison at work: step after step as `schedule` says, every result a record on disk, and at last the page."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from lmlab.comparison import time_shares
from lmlab.comparison.baselines import run_baselines
from lmlab.comparison.choose_text import Texts, choose_text, last_bytes
from lmlab.comparison.close_look import look_at_all
from lmlab.comparison.compared_entry import ComparedEntry
from lmlab.comparison.display import BudgetClock, Display, EntryProgress, TrainingWatch
from lmlab.comparison.entry_records import EntrySpec, TextChoice
from lmlab.comparison.entry_store import EntryStore, read_record, write_record
from lmlab.comparison.executors import Executor, Here
from lmlab.comparison.figures import drawing_s
from lmlab.comparison.findings import Baseline, BaselinesFound, OverlapFound, RankingFound, Status
from lmlab.comparison.folder import MODELS, ComparisonFolder, entry_name
from lmlab.comparison.mix_entries import mixed, why_not_mixed, worth_mixing
from lmlab.comparison.mixes import MixRecord
from lmlab.comparison.outcome import Comparison
from lmlab.comparison.report import write_report
from lmlab.comparison.schedule import EntryState, State, Step, What, next_step
from lmlab.comparison.seed_variance import SeedVariance
from lmlab.comparison.summarize import order, summarize
from lmlab.comparison.time_shares import LEAST_S, MIXING, TimePlan, Turn
from lmlab.comparison.work import Outcome, Shared, Task, attempt, trained_record
from lmlab.config import Budget, Mistake, an, in_one_line
from lmlab.hardware.choice import choose_device
from lmlab.hardware.threads import fastest_threads
from lmlab.measure import Spread
from lmlab.measure.interval import units_of
from lmlab.measure.ranks import ranking
from lmlab.models.registry import Way, kind_of
from lmlab.records import from_json, to_json
from lmlab.text.corpus import Corpus

OVERLAP, BASELINES, MIXES = "overlap.json", "baselines.json", "mixes"
NOTE_EVERY_S = 5.0  # how often it is written down how much of the budget is used
NO_TIME = (
    "No time was left to mix the {} models and see what they are worth together; the same comparison, asked for again in its"
    " folder, mixes them once all are trained."
)


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


class ComparisonRun:
    """Brings a comparison to its end, from wherever its records are."""

    def __init__(self, asked: Asked, folder: ComparisonFolder, executor: Executor, display: Display | None) -> None:
        self.asked, self.folder, self.executor, self.display = asked, folder, executor, display
        self.runs: dict[str, tuple[AskedEntry, int]] = {  # by the name of the entry with its seed
            entry_name(entry.model, entry.tokenizer, seed): (entry, seed)
            for entry in asked.entries
            for seed in asked.seeds_of(entry)
        }
        self.stores = {name: folder.store(name) for name in self.runs}
        self.reused = [name for name, store in self.stores.items() if store.has_run]
        self.errors: dict[str, str] = {}
        self.live: dict[str, tuple[Status, float, float | None]] = {}  # what is under way: share done, best validation
        self.unmixed: dict[str, str] = {}  # tokenizers that this call could not mix, and why
        self.shared = Shared(
            corpus=asked.corpus, store_of=lambda task: self.stores[task.spec.name], watch_of=self._watch
        )
        self.clock, self.noted_s = BudgetClock(folder.plan.used_s), 0.0
        self.time_plan: TimePlan | None = None
        self.finishing_s = 0.0
        self.until_s: float | None = None  # by the clock, when measuring ends; None: it takes what it needs
        self.hurry = self.measuring = False
        self.threads = ExitStack()  # how many of them measure
        self.texts = Texts(
            corpus=asked.corpus,
            tokenizers=list(dict.fromkeys(entry.tokenizer for entry in asked.entries)),
            contexts=[c for given in asked.settings.values() if isinstance(c := given.get("context"), int)],
        )
        on_cpu = choose_device(asked.device).type == "cpu"
        self.around_s = time_shares.AROUND_S if on_cpu else time_shares.AROUND_ON_GPU_S
        self._take_over()

    # --- from beginning to end ---

    def run(self) -> Comparison:
        """Do what the records lack, then rank and write the page."""
        with self.threads:
            finished = self._work()
        entries = [self._entry(compared) for compared in self.asked.entries]
        variance, ranks, ranked = self._rank(entries)
        entries = sorted((replace(entry, rank=ranks.get(entry.name)) for entry in entries), key=order)
        mixes = [record for spec in self.texts.tokenizers if (record := self._mix_record(spec)) is not None]
        found = summarize(
            self.asked.corpus,
            self.text,
            entries,
            self._baselines or (),
            variance,
            ranked,
            mixes=[record.mix for record in mixes if record.mix is not None],
            not_mixed=[*(record.why_not for record in mixes if record.why_not), *self.unmixed.values()],
            shares=dict(self.asked.shares),
            overlap=self._overlap or OverlapFound(sentences=(), shared={}),
            command=self.asked.command,
            budget_s=self.budget_s,
            each=None if self.asked.each is None else str(self.asked.each),
            seed=self.asked.seeds[0],
            seconds=self.folder.plan.used_s,
        )
        write_record(self.folder.path / "comparison.json", found)
        report = write_report(found, self.folder.path / "report.html")
        return Comparison(
            corpus=self.asked.corpus,
            measured=self.text,
            entries=entries,
            findings=found,
            report=report,
            stopped=not finished,
        )

    def _work(self) -> bool:
        """Do every step; whether nobody stopped it. Who stops the training sees what is trained measured and ranked."""
        while True:
            try:
                self._look_for_overlap()
                while (step := next_step(self._state())) is not None:
                    self._do(step)
                return not self.hurry
            except KeyboardInterrupt:
                if self.hurry or self.measuring:
                    return False
                self.hurry = True
                self._say("stopped; models that finished are measured and ranked (stop again to leave that out)")
                self._end_soon()

    def _do(self, step: Step) -> None:
        if step.measuring and not self.measuring:
            self.measuring = True
            if self.asked.timed:  # the number of threads has a part in the last digits
                self.threads.enter_context(fastest_threads())
        steps: dict[What, Callable[[tuple[str, ...]], None]] = {
            "train": self._train_or_measure,
            "measure": self._train_or_measure,
            "plan the time": self._plan_time,
            "choose the text": self._choose_text,
            "run the baselines": self._run_baselines,
            "mix": self._mix,
            "look closely": self._look,
        }
        steps[step.what](step.names)
        self.folder.note(used_s=self.clock.used_s)
        self._show("")

    def _state(self) -> State:
        """What the records say."""
        failed = {self.runs[name][0] for name in self.errors}
        if self.hurry:  # a model with several seeds has a number only when all of them are trained
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
            hurry=self.hurry,
            time_planned=self.time_plan is not None,
            text_chosen=self.folder.plan.test_bytes is not None,
            has_baselines=self._baselines is not None,
            to_mix=tuple(spec for spec in self.texts.tokenizers if self._is_to_be_mixed(spec)),
        )

    # --- the steps ---

    def _look_for_overlap(self) -> None:
        if self._overlap is None:
            self._show("looking for overlap")
            found = self.asked.corpus.overlap()
            shared = {name: one.share for name, one in found.items()}
            record = OverlapFound(sentences=tuple(map(str, found.values())), shared=shared)
            write_record(self.folder.path / OVERLAP, record)

    def _train_or_measure(self, names: tuple[str, ...]) -> None:
        """Train these entries, and measure those that are trained, where it is known on what."""
        tasks = [self._task(name) for name in names]
        if isinstance(self.executor, Here):
            outcomes = self.executor.run(tasks, self._attempt_here)
        else:
            for name in names:
                self.live[name] = ("training", 0.0, None)
            outcomes = self.executor.run(tasks, attempt)
        for outcome in outcomes:
            self._keep(outcome)

    def _attempt_here(self, task: Task) -> Outcome:
        name = task.spec.name
        doing: Status = "training" if self.stores[name].trained is None else "measuring"
        self.live[name] = (doing, 0.0, None)
        self._show(f"{doing} {self.runs[name][0].name}")
        return attempt(task, self.shared)

    def _task(self, name: str) -> Task:
        """What is to be done with an entry. Its spec is on disk before it begins."""
        store, (compared, seed) = self.stores[name], self.runs[name]
        trained, kept = store.trained is not None, store.spec
        budget = self._budget_of(name) if kept is None else Budget.parse(kept.budget)
        spec = kept if trained and kept is not None else self.asked.spec(compared, seed, budget)
        if not trained and not compared.counts:
            self.folder.note(began=True)
        if kept is None or to_json(kept) != to_json(spec):
            store.write_spec(spec)
        return Task(
            spec=spec,
            corpus={} if isinstance(self.executor, Here) else self.asked.corpus.spec(),
            records=str(store.records.resolve()),
            run=str(store.run_folder),
            text=self.choice if trained or not self.asked.timed else None,
            keep_scores=True,
            seed=self.asked.seeds[0],
            on_cpu=name in self.folder.plan.on_cpu,
        )

    def _budget_of(self, name: str) -> Budget:
        """The whole budget of a run that begins now: as planned, or less where much time was lost."""
        compared, _ = self.runs[name]
        share = self.asked.shares.get(compared.model, 1.0)
        if compared.counts:
            return Budget(seconds=LEAST_S)
        if self.asked.each is not None:
            return time_shares.shared_out(self.asked.each, share)
        assert self.time_plan is not None, "there is a plan"
        waiting = self._turns(only_missing=True)
        after_s = self._baselines_s + self.finishing_s + time_shares.LATE * self.time_plan.measuring_s
        fair_s = time_shares.equal_seconds(waiting, self._left_s - after_s, self.around_s)
        return Budget(seconds=time_shares.seconds_now(self.time_plan.train_s, fair_s) * share)

    def _keep(self, outcome: Outcome) -> None:
        """Take an outcome in, and write its records where it was made on a machine with other disks."""
        store = self.stores[outcome.name]
        self.live.pop(outcome.name, None)
        if outcome.error:
            compared, _ = self.runs[outcome.name]
            self.errors[outcome.name] = outcome.error
            self._say(f"{compared.name} failed: {outcome.error}")
        elif not isinstance(self.executor, Here):
            store.take(outcome.trained, outcome.measured)
        self._show("", note=True)

    def _plan_time(self, _: tuple[str, ...]) -> None:
        """Fix how long models train, unless that is fixed, and keep time for measuring."""
        self._time_drawing()
        plan, each = self.folder.plan, self.asked.each
        self.time_plan = time_shares.plan_time(
            self._turns(only_missing=False),
            self._turns(only_missing=True),
            budget_s=self.asked.budget_s or 0.0,
            each_s=None if each is None else each.seconds,
            train_s=plan.train_s,
            used_s=self.clock.used_s,
            after_s=self._baselines_s + self.finishing_s,
            around_s=self.around_s,
            keep_s=self._measuring_s,
        )
        self.folder.note(train_s=self.time_plan.train_s, budget_s=self.time_plan.budget_s)

    def _turns(self, *, only_missing: bool) -> list[Turn]:
        """The runs of models that learn: all of them, or those that did not come to their end."""
        return [
            Turn(share=self.asked.shares.get(compared.model, 1.0), runs=1)
            for name, (compared, _) in self.runs.items()
            if not compared.counts and not (only_missing and (self.stores[name].trained or name in self.errors))
        ]

    def _time_drawing(self) -> None:
        """See how long the page will take; the first figure of a process finds fonts, and does not count."""
        for _ in range(1 if self.finishing_s else 2):
            taken_s = drawing_s()
        self.finishing_s = min(time_shares.FIGURES * taken_s, time_shares.FINISHING * (self.budget_s or 0.0))

    def _choose_text(self, _: tuple[str, ...]) -> None:
        """Choose how much is measured: by the time that is left where models learned, else by the budget alone."""
        on_cpu: frozenset[str] = frozenset()
        size = self.choice.bytes
        ready = [store.run for name, store in self.stores.items() if store.trained and name not in self.errors]
        if self.asked.timed and any(not compared.counts for compared in self.asked.entries):
            self._show("choosing what is measured")
            self._time_drawing()
            kept_s = 0.0 if self.time_plan is None else time_shares.LATE * self.time_plan.measuring_s
            left_s = max(self._left_s - self.finishing_s, kept_s)
            self.until_s = self.clock.used_s + left_s
            chosen = choose_text(self.texts, size, ready, self.asked.device, left_s - self._baselines_s)
            size, on_cpu = chosen.bytes, chosen.on_cpu
        self.folder.note(test_bytes=size, on_cpu=tuple(sorted(on_cpu)))

    def _end_soon(self) -> None:
        """Measure what is trained for no longer than that many models were to have."""
        if self.asked.timed:
            self._time_drawing()
            trained = sum(store.trained is not None for store in self.stores.values())
            self.until_s = self.clock.used_s + self._measuring_s(self.budget_s or 0.0) * trained / len(self.stores)

    def _run_baselines(self, _: tuple[str, ...]) -> None:
        self._show("compressors")
        corpus, seconds = self.asked.corpus, self._baselines_s if self.asked.timed else math.inf
        test = self.text.counted().text().encode()
        found = run_baselines(last_bytes(corpus.train), test, seconds, of_bytes=corpus.train.bytes)
        record = BaselinesFound(text=self.text.counted().sha256, baselines=tuple(found))
        write_record(self.folder.path / BASELINES, record)

    def _mix(self, names: tuple[str, ...]) -> None:
        """Mix the models of a tokenizer, as many as there is time for."""
        (tokenizer,) = names
        self._show("mixing")
        here = self._mixable(tokenizer)
        left_s = None if self.until_s is None else MIXING * (self.until_s - self.clock.used_s)
        mine_s = None if left_s is None else left_s / len(self.texts.tokenizers)
        record = MixRecord(of=_weights(here), text=self.text.part.sha256)
        try:
            if why := why_not_mixed(here):
                record = replace(record, why_not=why)
            elif chosen := worth_mixing(here, mine_s, self.asked.device):
                folder = self.folder.path / MODELS / f"mix-{tokenizer.replace(':', '')}"
                untried = [entry for entry in here if entry not in chosen]
                made = mixed(chosen, folder, device=self.asked.device, seed=self.asked.seeds[0], untried=untried)
                record = replace(record, mix=made)
            else:
                self.unmixed[tokenizer] = NO_TIME.format(tokenizer)
                return
        except Exception as error:  # as with a single model: the comparison must survive it
            self.unmixed[tokenizer] = f"The mix of the {tokenizer} models failed: {in_one_line(error)}."
            return
        write_record(self._mix_file(tokenizer), record)

    def _look(self, names: tuple[str, ...]) -> None:
        """Look closely at these entries, each at its first seed, in the time that is left."""
        stores = {name: self.stores[name] for name in names}
        left_s = None if self.until_s is None else self.until_s - self.clock.used_s
        looks = look_at_all(stores, self.text, seed=self.asked.seeds[0], left_s=left_s)
        for name, look in zip(names, looks, strict=True):
            compared, _ = self.runs[name]
            self._show(f"looking closely at {compared.name}")
            try:
                self.stores[name].write_look(look(), keep=self.until_s is None or not self.hurry)
            except Exception as error:  # whatever a model does, the comparison must survive it
                self.errors[name] = in_one_line(error)
                self._say(f"{compared.name} failed: {self.errors[name]}")

    # --- what is on disk ---

    def _take_over(self) -> None:
        """Take over runs that were trained in this folder without records; a Mistake if they have other settings."""
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
                    store.write_trained(trained_record(store.run, seconds=store.run.record.result.seconds))
                except Mistake as nothing_learned:
                    self.errors[name] = in_one_line(nothing_learned)
        if not self.asked.timed and self.folder.plan.test_bytes is None:
            self.folder.note(test_bytes=time_shares.BYTES_WITHOUT_CLOCK)
        if again:
            self._say(f"trained before, in this folder, and not again: {', '.join(dict.fromkeys(again))}")

    def _refuse_other_settings(self, store: EntryStore, asked: EntrySpec) -> None:
        """A Mistake where a run in the folder has other settings than those that are asked for."""
        run, before = store.run, store.spec
        learning = run.record.training.asked_learning
        had = {**run.record.model.config, **learning}
        given = self.folder.plan.settings.get(asked.model, {}) if before is None else before.settings
        # what was asked for then and is not now would have been left open
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
    def _overlap(self) -> OverlapFound | None:
        return read_record(self.folder.path / OVERLAP, OverlapFound)

    @property
    def _baselines(self) -> tuple[Baseline, ...] | None:
        found = read_record(self.folder.path / BASELINES, BaselinesFound)
        return found.baselines if found is not None and found.text == self.text.counted().sha256 else None

    def _mix_file(self, tokenizer: str) -> Path:
        return self.folder.path / MIXES / f"{tokenizer.replace(':', '')}.json"

    def _mix_record(self, tokenizer: str) -> MixRecord | None:
        """The record of mixing the entries that can be mixed now."""
        found = read_record(self._mix_file(tokenizer), MixRecord)
        now = MixRecord(of=_weights(self._mixable(tokenizer)), text=self.text.part.sha256)
        return found if found is not None and (found.of, found.text) == (now.of, now.text) else None

    def _mixable(self, tokenizer: str) -> list[ComparedEntry]:
        """The certified entries of a tokenizer that were measured where it was asked for, as all parts of a mix must be."""
        found = [self._entry(compared) for compared in self.asked.entries if compared.tokenizer == tokenizer]
        return [
            entry
            for entry in found
            if entry.is_measured and all(one.result.certified and not one.on_cpu for one in entry.measured)
        ]

    def _is_to_be_mixed(self, tokenizer: str) -> bool:
        several = len(self._mixable(tokenizer)) > 1
        return several and tokenizer not in self.unmixed and self._mix_record(tokenizer) is None

    # --- what is asked of the records ---

    @property
    def choice(self) -> TextChoice:
        """What is measured: what was chosen, or until then as much as suits the budget."""
        return self.texts.choice(self.folder.plan.test_bytes or time_shares.test_bytes(self.budget_s or 0.0))

    @property
    def text(self) -> Spread:
        """The bytes that are measured."""
        return self.shared.text(self.choice)

    @property
    def budget_s(self) -> float | None:
        """Seconds for everything; None where models have budgets in steps or tokens."""
        if not self.asked.timed:
            return None
        if self.asked.each is None:
            return self.asked.budget_s
        return self.folder.plan.budget_s or time_shares.each_budget_s(self.asked.each, self._turns(only_missing=False))

    @property
    def _left_s(self) -> float:
        return (self.budget_s or 0.0) - self.clock.used_s

    @property
    def _baselines_s(self) -> float:
        return time_shares.baselines_s(self.asked.corpus.train.bytes, self.budget_s or 0.0)

    def _measuring_s(self, time_s: float) -> float:
        """How many of so many seconds are kept for measuring."""
        took_s = [store.measured.seconds for store in self.stores.values() if store.measured is not None]
        return time_shares.measuring_s(time_s, len(self.stores), self.asked.corpus.test.bytes, max(took_s, default=0.0))

    def _entry(self, compared: AskedEntry) -> ComparedEntry:
        """The view of one model's records."""
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

    def _rank(self, entries: Sequence[ComparedEntry]) -> tuple[SeedVariance, dict[str, int], RankingFound | None]:
        """How much numbers vary between seeds, and who can be told apart from whom; None where nobody is to be ranked."""
        good = [entry for entry in entries if entry.status == "ranked"]
        variance = SeedVariance.of(good, len(self.asked.seeds))
        if not good:
            return variance, {}, None
        units = units_of([entry.scored for entry in good], self.text)
        found = ranking(units, luck=variance.training, seed=self.asked.seeds[0])
        names = [entry.name for entry in good]
        return variance, dict(zip(names, found.ranks, strict=True)), from_json(RankingFound, found.to_json(names))

    # --- who looks on ---

    def _watch(self, name: str) -> TrainingWatch:
        """Passes the progress of one training on."""

        def told(fraction: float, valid: float | None) -> None:
            self.live[name] = ("training", fraction, valid)
            self._show(f"training {self.runs[name][0].name}")

        return TrainingWatch(told)

    def _show(self, doing: str, *, note: bool = False) -> None:
        used_s = self.clock.used_s
        if note or used_s - self.noted_s > NOTE_EVERY_S:
            self.noted_s = used_s
            self.folder.note(used_s=used_s)
        if self.display is not None:
            progress = [self._progress(compared) for compared in self.asked.entries]
            self.display.show(progress, None if self.budget_s is None else self._left_s, doing)

    def _progress(self, compared: AskedEntry) -> EntryProgress:
        entry = self._entry(compared)
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

    def _say(self, line: str) -> None:
        if self.display is not None:
            self.display.say(line)


def _weights(entries: Sequence[ComparedEntry]) -> dict[str, str]:
    """The hash of the weights of each entry's first seed."""
    return {entry.name: entry.measured[0].weights_sha256 for entry in entries}

"""Runs a comparison: takes the steps that `schedule` returns, records every result on disk, and writes the report."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import replace

from lmlab.comparison import time_shares
from lmlab.comparison.asked import Asked
from lmlab.comparison.baselines import run_baselines
from lmlab.comparison.choose_text import choose_text, last_bytes
from lmlab.comparison.close_look import look_at_all
from lmlab.comparison.compared_entry import ComparedEntry
from lmlab.comparison.comparison_records import BASELINES, OVERLAP, ComparisonRecords, weights_of
from lmlab.comparison.display import BudgetClock, Display, TrainingWatch
from lmlab.comparison.entry_store import write_record
from lmlab.comparison.executors import Executor
from lmlab.comparison.executors.here import Here
from lmlab.comparison.figures import drawing_s
from lmlab.comparison.findings import BaselinesFound, OverlapFound, RankingFound, Status
from lmlab.comparison.folder import MODELS, ComparisonFolder
from lmlab.comparison.mix_entries import mixed, why_not_mixed, worth_mixing
from lmlab.comparison.mixes import MixRecord
from lmlab.comparison.outcome import Comparison
from lmlab.comparison.report import write_report
from lmlab.comparison.schedule import State, Step, What, next_step
from lmlab.comparison.seed_variance import SeedVariance
from lmlab.comparison.summarize import order, summarize
from lmlab.comparison.time_shares import LEAST_S, MIXING, TimePlan
from lmlab.comparison.work import Outcome, Task, attempt
from lmlab.config import Budget, Mistake, in_one_line
from lmlab.hardware.choice import choose_device
from lmlab.hardware.threads import fastest_threads
from lmlab.measure.interval import units_of
from lmlab.measure.ranks import ranking
from lmlab.records import from_json, to_json

NOTE_EVERY_S = 5.0  # seconds between records of the used budget


class ComparisonRun:
    """Completes a comparison from the state that its records show."""

    def __init__(self, asked: Asked, folder: ComparisonFolder, executor: Executor, display: Display | None) -> None:
        self.asked, self.folder, self.executor, self.display = asked, folder, executor, display
        self.records = ComparisonRecords(asked, folder)
        self.records.shared.watch_of = self._watch
        self.clock, self.noted_s = BudgetClock(folder.plan.used_s), 0.0
        self.time_plan: TimePlan | None = None
        self.finishing_s, self.contention = 0.0, 1.0
        self.until_s: float | None = None  # end of scoring, in used seconds; None: no limit
        self.hurry = self.measuring = False
        self.threads = ExitStack()  # the thread count for scoring
        on_cpu = choose_device(asked.device).type == "cpu"
        self.usual_around_s = time_shares.AROUND_S if on_cpu else time_shares.AROUND_ON_GPU_S
        self.overheads_s: list[float] = []  # of the runs that this call trained
        if again := self.records.take_over():
            self._say(f"trained before, in this folder, and not again: {', '.join(again)}")

    # --- the whole comparison ---

    def run(self) -> Comparison:
        """Complete the missing steps, rank the entries, and write the report."""
        with self.threads:
            if self.asked.timed:
                self.threads.enter_context(fastest_threads())
            finished = self._work()
        entries = [self.records.entry(compared) for compared in self.asked.entries]
        variance, ranks, ranked = self._rank(entries)
        entries = sorted((replace(entry, rank=ranks.get(entry.name)) for entry in entries), key=order)
        mixes = [
            record for spec in self.records.texts.tokenizers if (record := self.records.mix_record(spec)) is not None
        ]
        found = summarize(
            self.asked.corpus,
            self.records.text,
            entries,
            self.records.baselines or (),
            variance,
            ranked,
            mixes=[record.mix for record in mixes if record.mix is not None],
            not_mixed=[*(record.why_not for record in mixes if record.why_not), *self.records.unmixed.values()],
            shares=dict(self.asked.shares),
            overlap=self.records.overlap or OverlapFound(sentences=(), shared={}),
            command=self.asked.command,
            budget_s=self.records.budget_s,
            each=None if self.asked.each is None else str(self.asked.each),
            seed=self.asked.seeds[0],
            seconds=self.folder.plan.used_s,
        )
        write_record(self.folder.path / "comparison.json", found)
        report = write_report(found, self.folder.path / "report.html")
        return Comparison(
            corpus=self.asked.corpus,
            measured=self.records.text,
            entries=entries,
            findings=found,
            report=report,
            stopped=not finished,
        )

    def _work(self) -> bool:
        """Take every step; return whether the user did not stop the comparison.

        After the first Ctrl-C during training, trained models are still scored and ranked.
        """
        while True:
            try:
                self._look_for_overlap()
                state = self._state
                while (step := next_step(state)) is not None:
                    self._do(step)
                    before, state = state, self._state
                    if state == before:  # otherwise the same step would repeat forever
                        raise Mistake(
                            f"to {step.what} left no record in {self.folder.path}; every machine of {{executor}}"
                            " must see this folder",
                            code="comparison-without-records",
                            executor=None,
                        )
                return not self.hurry
            except KeyboardInterrupt:
                if self.hurry or self.measuring:
                    return False
                self.hurry = True
                self._say("stopped; models that finished are measured and ranked (stop again to leave that out)")
                self._end_soon()

    @property
    def _state(self) -> State:
        return self.records.state(hurry=self.hurry, time_planned=self.time_plan is not None)

    def _do(self, step: Step) -> None:
        if step.measuring and not self.measuring:
            self.measuring = True
            if self.asked.timed:  # without a clock the thread count stays fixed, since it changes the last digits
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

    # --- the steps ---

    def _look_for_overlap(self) -> None:
        if self.records.overlap is None:
            self._show("looking for overlap")
            found = self.asked.corpus.overlap()
            shared = {name: one.share for name, one in found.items()}
            record = OverlapFound(sentences=tuple(map(str, found.values())), shared=shared)
            write_record(self.folder.path / OVERLAP, record)

    def _train_or_measure(self, names: tuple[str, ...]) -> None:
        """Train these entries, and score those that are trained if the text is known."""
        tasks = [self._task(name) for name in names]
        if isinstance(self.executor, Here):
            outcomes = self.executor.run(tasks, self._attempt_here)
        else:
            for name in names:
                self.records.live[name] = ("training", 0.0, None)
            outcomes = self.executor.run(tasks, attempt)
        for outcome in outcomes:
            self._keep(outcome)

    def _attempt_here(self, task: Task) -> Outcome:
        name = task.spec.name
        doing: Status = "training" if self.records.stores[name].trained is None else "measuring"
        self.records.live[name] = (doing, 0.0, None)
        self._show(f"{doing} {self.records.runs[name][0].name}")
        return attempt(task, self.records.shared)

    def _task(self, name: str) -> Task:
        """Return the task of one entry, after writing its specification to disk."""
        store, (compared, seed) = self.records.stores[name], self.records.runs[name]
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
            text=self.records.choice if trained or not self.asked.timed else None,
            keep_scores=True,
            seed=self.asked.seeds[0],
            on_cpu=name in self.folder.plan.on_cpu,
        )

    def _budget_of(self, name: str) -> Budget:
        """Return the whole budget of a run that begins now: the planned one, or less if much time was lost."""
        compared, _ = self.records.runs[name]
        share = self.asked.shares.get(compared.model, 1.0)
        if compared.counts:
            return Budget(seconds=LEAST_S)
        if self.asked.each is not None:
            return time_shares.shared_out(self.asked.each, share)
        assert self.time_plan is not None, "there is a plan"
        waiting = self.records.turns(only_missing=True)
        after_s = self._baselines_s + self.finishing_s + time_shares.LATE * self.time_plan.measuring_s
        fair_s = time_shares.equal_seconds(waiting, self._left_s - after_s, self.around_s)
        return Budget(seconds=time_shares.seconds_now(self.time_plan.train_s, fair_s) * share)

    def _keep(self, outcome: Outcome) -> None:
        """Accept an outcome, and write its records if another machine with other disks made them."""
        store = self.records.stores[outcome.name]
        self.records.live.pop(outcome.name, None)
        if outcome.error:
            compared, _ = self.records.runs[outcome.name]
            self.records.errors[outcome.name] = outcome.error
            self._say(f"{compared.name} failed: {outcome.error}")
        elif not isinstance(self.executor, Here):
            store.take(outcome.trained, outcome.measured)
        elif outcome.trained is not None and (plan := store.run.record.training.plan) is not None:
            charged_s = store.run.record.result.seconds + plan.planning_s
            self.overheads_s.append(max(0.0, outcome.trained.seconds - charged_s))
        self._show("", note=True)

    def _plan_time(self, _: tuple[str, ...]) -> None:
        """Fix the training time per run, unless it is fixed already, and reserve time for scoring."""
        self._time_drawing()
        plan, each = self.folder.plan, self.asked.each
        self.time_plan = time_shares.plan_time(
            self.records.turns(only_missing=False),
            self.records.turns(only_missing=True),
            budget_s=self.asked.budget_s or 0.0,
            each_s=None if each is None else each.seconds,
            train_s=plan.train_s,
            used_s=self.clock.used_s,
            after_s=self._baselines_s + self.finishing_s,
            around_s=self.around_s,
            keep_s=self._measuring_s,
        )
        self.folder.note(train_s=self.time_plan.train_s, budget_s=self.time_plan.budget_s)

    def _time_drawing(self) -> None:
        """Estimate the seconds to write the report. The first figure in a process searches for fonts and is not timed."""
        for _ in range(1 if self.finishing_s else 2):
            taken_s, processor_s = drawing_s()
        self.contention = taken_s / max(processor_s, 1e-9)
        self.finishing_s = min(time_shares.FIGURES * taken_s, time_shares.FINISHING * (self.records.budget_s or 0.0))

    def _choose_text(self, _: tuple[str, ...]) -> None:
        """Choose how much text is scored: by the remaining time if models were trained, else by the budget alone."""
        on_cpu: frozenset[str] = frozenset()
        size = self.records.choice.bytes
        ready = [
            store.run
            for name, store in self.records.stores.items()
            if store.trained and name not in self.records.errors
        ]
        if self.asked.timed and any(not compared.counts for compared in self.asked.entries):
            self._show("choosing what is measured")
            self._time_drawing()
            kept_s = 0.0 if self.time_plan is None else time_shares.KEPT * self.time_plan.measuring_s
            left_s = max(self._left_s - self.finishing_s, kept_s)
            self.until_s = self.clock.used_s + left_s
            chosen = choose_text(self.records.texts, size, ready, self.asked.device, left_s - self._baselines_s)
            size, on_cpu = chosen.bytes, chosen.on_cpu
        self.folder.note(test_bytes=size, on_cpu=tuple(sorted(on_cpu)))

    def _end_soon(self) -> None:
        """Limit the time for scoring to the share of the planned time that belongs to the trained models."""
        if self.asked.timed:
            self._time_drawing()
            trained = sum(store.trained is not None for store in self.records.stores.values())
            self.until_s = self.clock.used_s + self._measuring_s(self.records.budget_s or 0.0) * trained / len(
                self.records.stores
            )

    def _run_baselines(self, _: tuple[str, ...]) -> None:
        self._show("compressors")
        corpus, seconds = self.asked.corpus, self._baselines_s if self.asked.timed else math.inf
        test = self.records.text.counted().text().encode()
        found = run_baselines(last_bytes(corpus.train), test, seconds, of_bytes=corpus.train.bytes)
        record = BaselinesFound(text=self.records.text.counted().sha256, baselines=tuple(found))
        write_record(self.folder.path / BASELINES, record)

    def _mix(self, names: tuple[str, ...]) -> None:
        """Mix the models of a tokenizer, as many as there is time for."""
        (tokenizer,) = names
        self._show("mixing")
        here = self.records.mixable(tokenizer)
        left_s = None if self.until_s is None else MIXING * (self.until_s - self.clock.used_s)
        mine_s = None if left_s is None else left_s / len(self.records.texts.tokenizers)
        record = MixRecord(of=weights_of(here), text=self.records.text.part.sha256)
        try:
            if why := why_not_mixed(here):
                record = replace(record, why_not=why)
            else:
                chosen = worth_mixing(here, mine_s)
                folder = self.folder.path / MODELS / f"mix-{tokenizer.replace(':', '')}"
                untried = [entry for entry in here if entry not in chosen]
                made = mixed(chosen, folder, device=self.asked.device, seed=self.asked.seeds[0], untried=untried)
                record = replace(record, mix=made)
        except Exception as error:  # a failing mix must not stop the comparison
            self.records.unmixed[tokenizer] = f"The mix of the {tokenizer} models failed: {in_one_line(error)}."
            return
        write_record(self.records.mix_file(tokenizer), record)

    def _look(self, names: tuple[str, ...]) -> None:
        """Examine these entries, each at its first seed, in the time that is left."""
        stores = {name: self.records.stores[name] for name in names}
        left_s = None if self.until_s is None else self.until_s - self.clock.used_s
        looks = look_at_all(stores, self.records.text, seed=self.asked.seeds[0], left_s=left_s)
        for name, look in zip(names, looks, strict=True):
            compared, _ = self.records.runs[name]
            self._show(f"looking closely at {compared.name}")
            try:
                self.records.stores[name].write_look(look(), keep=self.until_s is None or not self.hurry)
            except Exception as error:  # a failing model must not stop the comparison
                self.records.errors[name] = in_one_line(error)
                self._say(f"{compared.name} failed: {self.records.errors[name]}")

    @property
    def around_s(self) -> float:
        """The expected seconds that a run takes beside its training."""
        return time_shares.overhead_s(self.usual_around_s, self.contention, self.overheads_s)

    @property
    def _left_s(self) -> float:
        return (self.records.budget_s or 0.0) - self.clock.used_s

    @property
    def _baselines_s(self) -> float:
        return time_shares.baselines_s(self.asked.corpus.train.bytes, self.records.budget_s or 0.0)

    def _measuring_s(self, time_s: float) -> float:
        """Return how many of `time_s` seconds are reserved for scoring."""
        took_s = [store.measured.seconds for store in self.records.stores.values() if store.measured is not None]
        return time_shares.measuring_s(
            time_s, len(self.records.stores), self.asked.corpus.test.bytes, max(took_s, default=0.0)
        )

    def _rank(self, entries: Sequence[ComparedEntry]) -> tuple[SeedVariance, dict[str, int], RankingFound | None]:
        """Return the variance over seeds, the rank by entry name, and the ranking; None if no entry can be ranked."""
        good = [entry for entry in entries if entry.status == "ranked"]
        variance = SeedVariance.of(good, len(self.asked.seeds))
        if not good:
            return variance, {}, None
        units = units_of([entry.scored for entry in good], self.records.text)
        found = ranking(units, luck=variance.training, seed=self.asked.seeds[0])
        names = [entry.name for entry in good]
        return variance, dict(zip(names, found.ranks, strict=True)), from_json(RankingFound, found.to_json(names))

    # --- display of progress ---

    def _watch(self, name: str) -> TrainingWatch:
        """Return a watch that reports the progress of one run to the display."""

        def told(fraction: float, valid: float | None) -> None:
            self.records.live[name] = ("training", fraction, valid)
            self._show(f"training {self.records.runs[name][0].name}")

        return TrainingWatch(told)

    def _show(self, doing: str, *, note: bool = False) -> None:
        used_s = self.clock.used_s
        if note or used_s - self.noted_s > NOTE_EVERY_S:
            self.noted_s = used_s
            self.folder.note(used_s=used_s)
        if self.display is not None:
            progress = [self.records.progress(compared) for compared in self.asked.entries]
            self.display.show(progress, None if self.records.budget_s is None else self._left_s, doing)

    def _say(self, line: str) -> None:
        if self.display is not None:
            self.display.say(line)

"""Runs a search: takes the steps that `rungs.next_step` returns, and records every result on disk."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

from lmlab.comparison.choose_text import Texts, choose_text
from lmlab.comparison.display import BudgetClock, TrainingWatch
from lmlab.comparison.entry_records import EntrySpec, MeasuredEntry, TrainedEntry
from lmlab.comparison.entry_store import EntryStore, read_record, write_record
from lmlab.comparison.executors import Executor
from lmlab.comparison.folder import MODELS, ComparisonFolder
from lmlab.comparison.measure_run import measure_run
from lmlab.comparison.score_found import Score
from lmlab.comparison.time_shares import test_bytes
from lmlab.comparison.work import Outcome, Shared, Task, attempt
from lmlab.config import Budget, Mistake
from lmlab.hardware.threads import fastest_threads
from lmlab.hardware.versions import versions
from lmlab.learn.checkpoint import read_progress
from lmlab.learn.run import Run, load_run
from lmlab.learn.run_files import copy_finished_run
from lmlab.measure import spread
from lmlab.selection.candidates import COUNTING, counted, selection
from lmlab.selection.choose import Finalist, choose, validation_bits
from lmlab.selection.records import (
    BEST,
    CHOICE,
    FOUND,
    RUNGS,
    SELECTION,
    Candidate,
    Choice,
    Ended,
    Found,
    FoundCandidate,
    Rung,
    Rungs,
    Selection,
)
from lmlab.selection.rungs import CandidateState, State, Step, next_step
from lmlab.text.corpus import Corpus
from lmlab.text.tokenizers import tokenizer_for

VALIDATED_BYTES = 60_000  # of the validation part that finished runs are compared on, at most
NOTE_EVERY_S = 2.0  # seconds between records of the used budget
CHOOSING = 0.5  # share of the time after training in which the model is chosen; the rest is for measuring
FINISHING_S = 0.6  # seconds for the page and for copying the chosen run
MULTIPLE = 16  # of which another width is one, so that heads and kernels fit


class Display(Protocol):
    """Interface of a progress display for a search."""

    def show(self, found: list[FoundCandidate], shares: tuple[float, ...], left_s: float, doing: str) -> None:
        """Show the candidates so far, the seconds left, and the current step."""

    def say(self, line: str) -> None:
        """Print a separate line."""


@dataclass(frozen=True, kw_only=True)
class AskedSearch:
    """The validated request of a search."""

    corpus: Corpus
    models: tuple[str, ...]
    tokenizers: tuple[str, ...]
    named: bool  # whether the user named the tokenizers; of others, a text may allow fewer ids than they ask for
    budget_s: float
    seed: int
    device: str
    command: str


class Search:
    """Completes a search from the state that its records show."""

    def __init__(
        self, asked: AskedSearch, out: Path, folder: ComparisonFolder, executor: Executor, display: Display | None
    ) -> None:
        self.asked, self.out, self.folder, self.executor, self.display = asked, out, folder, executor, display
        self.clock, self.noted_s = BudgetClock(folder.plan.used_s), folder.plan.used_s
        self.errors: dict[str, str] = {}
        self.stores: dict[str, EntryStore] = {}
        self.shared = Shared(
            corpus=asked.corpus, store_of=lambda task: self.store(task.spec.name), watch_of=self._watch
        )
        self.validation = spread(asked.corpus.valid, VALIDATED_BYTES)
        self.threads = ExitStack()  # the thread count for scoring
        self.folder.note(began=True)

    def run(self) -> Found:
        """Complete the missing steps, and write the record of the search."""
        with self.threads:
            self._work()
        found = self.found()
        write_record(self.out / FOUND, found)
        return found

    def _work(self) -> None:
        while (step := next_step(self.state)) is not None:
            before = self.state
            self._show(f"{step.what} {step.name}".strip())
            self._do(step)
            self._note(always=True)
            if _without_time(self.state) == _without_time(before):
                raise Mistake(
                    f"to {step.what} {step.name} left no record in {self.folder.path}", code="search-without-records"
                )

    # --- records ---

    def store(self, name: str) -> EntryStore:
        """Return the store of a candidate; that of the chosen model is the folder of the search itself."""
        if name not in self.stores:
            self.stores[name] = self.folder.store(name)
            if name == BEST:
                self.stores[name] = EntryStore(self.stores[name].records, self.out)
        return self.stores[name]

    @property
    def selection(self) -> Selection | None:
        """The plan; None before the models that count are finished."""
        return read_record(self.folder.path / SELECTION, Selection)

    @property
    def choice(self) -> Choice | None:
        """The choice; None: not chosen yet."""
        return read_record(self.folder.path / CHOICE, Choice)

    @property
    def candidates(self) -> tuple[Candidate, ...]:
        """All candidates; before the plan, those that count."""
        plan = self.selection
        return tuple(counted(self.asked.models, self.asked.tokenizers)) if plan is None else plan.candidates

    @property
    def state(self) -> State:
        """The state, from which `next_step` is derived."""
        plan, choice = self.selection, self.choice
        best = self.store(BEST)
        reserve_s = 0.0 if plan is None else plan.reserve_s
        measured = choice is not None and best.has_run and best.measured is not None
        return State(
            candidates=tuple(self._state_of(candidate) for candidate in self.candidates),
            counting_s=COUNTING * self.asked.budget_s - self.clock.used_s,
            rungs=() if plan is None else plan.rungs,
            left_s=self.left_s - reserve_s,
            chosen=choice is not None,
            measured=measured and best.run.record.model.sha256 == choice.sha256 if choice is not None else False,
        )

    def _state_of(self, candidate: Candidate) -> CandidateState:
        reached = self._rungs(candidate.name)
        finished = self.store(candidate.name).trained is not None and bool(reached)
        share = 1.0 if finished else max((rung.share for rung in reached), default=0.0)
        plan = self.selection
        return CandidateState(
            name=candidate.name,
            counts=candidate.counts,
            reached=share,
            valid=tuple((rung.share, rung.bits_per_byte) for rung in reached),
            to_finish_s=(1 - share) * (0.0 if plan is None else plan.train_s),
            failed=candidate.name in self.errors,
        )

    def _rungs(self, name: str) -> tuple[Rung, ...]:
        found = read_record(self.store(name).records / RUNGS, Rungs)
        return () if found is None else found.rungs

    # --- steps ---

    def _do(self, step: Step) -> None:
        steps: dict[str, Callable[[Step], None]] = {
            "count": self._train,
            "train": self._train,
            "plan": self._plan,
            "choose": self._choose,
            "measure": self._measure,
        }
        if step.what in ("choose", "measure"):
            self.threads.pop_all().close()
            self.threads.enter_context(fastest_threads())
        steps[step.what](step)

    def _plan(self, _: Step) -> None:
        """Fix the candidates that learn, their budget and the rungs. The models that count rank the tokenizers."""
        bits = {
            candidate.tokenizer: rungs[-1].bits_per_byte
            for candidate in self.candidates
            if (rungs := self._rungs(candidate.name))
        }
        tokenizers = sorted(self.asked.tokenizers, key=lambda spec: bits.get(spec, float("inf")))
        plan = selection(
            self.asked.models,
            tokenizers,
            left_s=self.left_s,
            budget_s=self.asked.budget_s,
            counts=[candidate for candidate in self.candidates if self._rungs(candidate.name)],
        )
        if not plan.candidates:
            raise Mistake(f"every model failed: {'; '.join(self.errors.values())}", code="search-failed")
        write_record(self.folder.path / SELECTION, plan)

    def _train(self, step: Step) -> None:
        """Train one candidate to a rung, and record what it reached there."""
        candidate = next(c for c in self.candidates if c.name == step.name)
        store = self.store(candidate.name)
        spec = store.spec or self._spec(candidate)
        if store.spec is None:
            store.write_spec(spec)
        if not self.asked.named and candidate.tokenizer not in self.shared.tokenizers:
            made = tokenizer_for(self.asked.corpus, candidate.tokenizer, at_most=True)
            self.shared.tokenizers[candidate.tokenizer] = made
        task = Task(
            spec=spec,
            corpus=self.asked.corpus.spec(),
            records=str(store.records.resolve()),
            run=str(store.run_folder),
            seed=self.asked.seed,
            until=step.until,
        )
        (outcome,) = self.executor.run([task], self._attempt)
        if outcome.error:
            self.errors[candidate.name] = outcome.error
            self._say(f"{candidate.name} failed: {outcome.error}")
            return
        rung = self._reached(candidate, step.until, store, finished=outcome.trained is not None)
        if rung is not None:
            write_record(store.records / RUNGS, Rungs(rungs=(*self._rungs(candidate.name), rung)))

    def _attempt(self, task: Task) -> Outcome:
        return attempt(task, self.shared)

    def _spec(self, candidate: Candidate) -> EntrySpec:
        """Return the specification of a candidate: its budget is the final one, however early it is stopped."""
        plan = self.selection
        budget = Budget(seconds=1.0 if plan is None or candidate.counts else plan.train_s)
        settings: dict[str, Any] = {}
        if candidate.like:
            config = load_run(self.store(candidate.like).run_folder).record.model.config
            if "width" in config:
                settings["width"] = max(MULTIPLE, round(config["width"] * candidate.width / MULTIPLE) * MULTIPLE)
        return EntrySpec(
            name=candidate.name,
            model=candidate.model,
            tokenizer=candidate.tokenizer,
            text={name: part.sha256 for name, part in self.asked.corpus.parts.items()},
            settings=settings,
            learning={},
            budget=str(budget),
            seed=self.asked.seed,
            device=self.asked.device,
        )

    def _reached(self, candidate: Candidate, share: float, store: EntryStore, *, finished: bool) -> Rung | None:
        """Return what a candidate reached; None and an error if its validation is not known."""
        run = store.run if finished else load_run(store.run_folder)
        share = 1.0 if finished else share
        try:
            if finished and not (run.metrics and any(_bits(line) is not None for line in run.metrics)):
                bits = validation_bits(run, self.validation, self.asked.device)
            else:
                bits = min(b for line in run.metrics if (b := _bits(line)) is not None)
        except (ValueError, Mistake) as error:
            self.errors[candidate.name] = str(error) or "it was not validated"
            return None
        spent = run.record.result if finished else read_progress(run.checkpoint)
        return Rung(share=share, bits_per_byte=bits, seconds=0.0 if spent is None else spent.seconds)

    def _choose(self, _: Step) -> None:
        """Choose by validation, and copy the chosen run to the folder of the search."""
        finished = [c for c in self.candidates if self.store(c.name).trained is not None and c.name not in self.errors]
        if not finished:
            raise Mistake(f"every model failed: {'; '.join(self.errors.values())}", code="search-without-finalist")
        groups: dict[str, list[Finalist]] = {}
        for candidate in finished:
            known = self._rungs(candidate.name)[-1].bits_per_byte if candidate.counts else None
            run = self.store(candidate.name).run
            bits = validation_bits(run, self.validation, self.asked.device) if known is None else known
            groups.setdefault(candidate.tokenizer, []).append(
                Finalist(name=candidate.name, run=run, bits_per_byte=bits)
            )
        learned = {candidate.tokenizer for candidate in finished if not candidate.counts}
        # Without a run that learned, there is nothing to mix: one model that counts is a finalist by itself.
        finalists = {spec: group for spec, group in groups.items() if spec in learned} or groups
        lowest = min((f.bits_per_byte, spec, f.name) for spec, group in groups.items() for f in group)
        spec, alone = lowest[1:]
        if spec not in finalists:
            finalists[spec] = [f for f in groups[spec] if f.name == alone]
        left_s = CHOOSING * (self.left_s - FINISHING_S)
        models = self.folder.path / MODELS
        choice = choose(finalists, self.validation, models, device=self.asked.device, left_s=left_s)
        every = {f.name: f.bits_per_byte for group in groups.values() for f in group}
        write_record(
            self.folder.path / CHOICE,
            replace(choice, bits_per_byte=dict(sorted((every | choice.bits_per_byte).items()))),
        )

    def _measure(self, _: Step) -> None:
        """Measure the chosen model on the test part, once, and make the folder of the search its run."""
        choice = self.choice
        assert choice is not None, "a model is chosen"
        run, store = load_run(self.folder.path / MODELS / choice.run), self.store(BEST)
        copy_finished_run(run, self.out)
        store.__dict__.pop("run", None)
        store.write_trained(_trained(store.run))
        started = time.perf_counter()
        texts = Texts(corpus=self.asked.corpus, tokenizers=[choice.tokenizer])
        if self.folder.plan.test_bytes is None:
            left_s = max(1.0, self.left_s - FINISHING_S)
            chosen = choose_text(texts, test_bytes(self.asked.budget_s), [store.run], self.asked.device, left_s)
            self.folder.note(test_bytes=chosen.bytes)
        size = self.folder.plan.test_bytes
        assert size is not None, "the text is chosen"
        text = texts.spread(size)
        self._show("measuring on the test part")
        result = measure_run(
            store.run, text, name=self.asked.corpus.name, seed=self.asked.seed, device=self.asked.device
        )
        sha256 = store.write_result(result)
        store.write_measured(
            MeasuredEntry(
                weights_sha256=choice.sha256,
                text=texts.choice(size),
                read_sha256=text.part.sha256,
                result=Score(result.to_json()),
                seconds=time.perf_counter() - started,
                scores_sha256=sha256,
            )
        )

    # --- what was found ---

    def found(self) -> Found:
        """Return what the records show, for the page and the terminal."""
        choice, measured, plan = self.choice, self.store(BEST).measured, self.selection
        assert choice is not None, "a model is chosen"
        assert measured is not None, "the chosen model is measured"
        assert plan is not None, "the search is planned"
        corpus = self.asked.corpus
        return Found(
            text=corpus.name,
            division=corpus.division,
            train_bytes=corpus.train.bytes,
            valid_bytes=corpus.valid.bytes,
            test_bytes=corpus.test.bytes,
            budget_s=self.asked.budget_s,
            seconds=self.clock.used_s,
            train_s=plan.train_s,
            shares=plan.rungs,
            candidates=tuple(self.rows),
            choice=choice,
            result=measured.result,
            folder=str(self.out),
            command=self.asked.command,
            machine=versions().get("gpu", versions()["processor"]),
        )

    @property
    def rows(self) -> list[FoundCandidate]:
        """The table of candidates: those in the chosen model first, then by how far they came and how well they did."""
        choice = self.choice
        weights = {} if choice is None else {part.name: part.weight for part in choice.parts}
        rows = [self._row(candidate, weights.get(candidate.name)) for candidate in self.candidates]
        return sorted(rows, key=_place)

    def _row(self, candidate: Candidate, weight: float | None) -> FoundCandidate:
        store, rungs = self.store(candidate.name), self._rungs(candidate.name)
        record = load_run(store.run_folder).record if store.has_run else None
        error = self.errors.get(candidate.name, "")
        ended: Ended = "failed" if error else "stopped"
        if not error and store.trained is not None:
            ended = "counted" if candidate.counts else "finished"
        return FoundCandidate(
            name=candidate.name,
            model=candidate.model,
            tokenizer=candidate.tokenizer,
            ended=ended,
            rungs=rungs,
            settings={} if record is None else dict(record.model.config),
            parameters=None if record is None else record.model.parameters,
            seconds=rungs[-1].seconds if rungs else 0.0,
            weight=weight,
            error=error,
        )

    # --- time and progress ---

    @property
    def left_s(self) -> float:
        """Seconds left of the budget."""
        return self.asked.budget_s - self.clock.used_s

    def _note(self, *, always: bool = False) -> None:
        if always or self.clock.used_s - self.noted_s > NOTE_EVERY_S:
            self.noted_s = self.clock.used_s
            self.folder.note(used_s=self.noted_s)

    def _watch(self, name: str) -> TrainingWatch:
        def told(fraction: float, valid: float | None) -> None:
            self._note()
            held_out = "" if valid is None else f", validation {valid:.3f}"
            self._show(f"training {name}: {fraction:.0%}{held_out}")

        return TrainingWatch(told)

    def _show(self, doing: str) -> None:
        if self.display is not None:
            plan = self.selection
            self.display.show(self.rows, () if plan is None else plan.rungs, self.left_s, doing)

    def _say(self, line: str) -> None:
        if self.display is not None:
            self.display.say(line)


def _without_time(state: State) -> State:
    return replace(state, left_s=0.0, counting_s=0.0)


def _bits(line: dict[str, Any]) -> float | None:
    found: float | None = line.get("valid_bits_per_byte")
    return found


def _place(row: FoundCandidate) -> tuple[float, ...]:
    last = row.rungs[-1] if row.rungs else None
    weight = 0.0 if row.weight is None else row.weight
    return (-weight, 0.0 if last is None else -last.share, float("inf") if last is None else last.bits_per_byte)


def _trained(run: Run) -> TrainedEntry:
    result = run.record.result
    return TrainedEntry(status=run.status, weights_sha256=str(run.record.model.sha256), seconds=result.seconds)

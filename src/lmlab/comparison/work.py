"""The work on one run: trains it, scores it, and writes its records, in any process that can read the text."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import torch

from lmlab.comparison.entry_records import EntrySpec, MeasuredEntry, TextChoice, TrainedEntry
from lmlab.comparison.entry_store import EntryStore
from lmlab.comparison.measure_run import measure_run
from lmlab.comparison.score_found import Score
from lmlab.comparison.validation_loss import validation_bits
from lmlab.config import in_one_line
from lmlab.hardware.memory import PeakMemory
from lmlab.hardware.threads import using_threads
from lmlab.learn.checkpoint import read_progress
from lmlab.learn.going_on import resume
from lmlab.learn.onlookers import Watch
from lmlab.learn.pace import Timings
from lmlab.learn.run import Run
from lmlab.learn.run_advice import require_trained
from lmlab.learn.train import train
from lmlab.measure import Spread, score_part
from lmlab.measure.counted import count_within
from lmlab.models.registry import Way, kind_of
from lmlab.text.corpus import Corpus
from lmlab.text.tokenizers import Tokenizer, tokenizer_for


@dataclass(frozen=True, kw_only=True)
class Task:
    """A task: train one run and, if `text` is set, score it on that text."""

    spec: EntrySpec
    corpus: Mapping[str, Any]  # Corpus.spec()
    records: str  # folder of the records
    run: str  # folder of the run
    text: TextChoice | None = None  # None: only train
    validation: TextChoice | None = None  # None: do not score the validation part
    keep_scores: bool = False
    seed: int = 0  # of the positions that the certificate checks
    threads: int | None = None  # None: the thread count of the process
    until: float = 1.0  # share of the budget after which training pauses; the outcome then has no records
    on_cpu: bool = False  # score on the CPU instead of the requested device


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """The result of a task: records, or an error message."""

    task: Task
    trained: TrainedEntry | None = None
    measured: MeasuredEntry | None = None
    error: str = ""

    @property
    def name(self) -> str:
        """The name of the run."""
        return self.task.spec.name


@dataclass(kw_only=True)
class Shared:
    """Corpus, tokenizers, text samples and timings, cached once per process for all tasks."""

    corpus: Corpus
    timings: Timings = field(default_factory=Timings)
    store_of: Callable[[Task], EntryStore] = lambda task: EntryStore(Path(task.records), Path(task.run))
    watch_of: Callable[[str], Watch | None] = lambda name: None  # by the name of the run
    tokenizers: dict[str, Tokenizer] = field(default_factory=dict)
    texts: dict[TextChoice, Spread] = field(default_factory=dict)

    def tokenizer(self, spec: str) -> Tokenizer:
        """Return the tokenizer of a specification, trained on the training part."""
        if spec not in self.tokenizers:
            self.tokenizers[spec] = tokenizer_for(self.corpus, spec)
        return self.tokenizers[spec]

    def text(self, choice: TextChoice) -> Spread:
        """Return the sample of a choice."""
        if choice not in self.texts:
            self.texts[choice] = choice.spread(self.corpus)
        return self.texts[choice]


def trained_record(run: Run, *, seconds: float, device: str, peak_memory_bytes: int = 0) -> TrainedEntry:
    """Return the training record of a completed run, with the validation loss of a count model.

    Raises:
        Mistake: the run has no trained weights.
    """
    result, sha256 = require_trained(run).record.result, run.record.model.sha256
    assert sha256 is not None, "a run that came to its end has weights"
    said = str(result.undertrained or result.calibration_note or result.message)
    return TrainedEntry(
        status=run.status,
        weights_sha256=sha256,
        seconds=seconds,
        peak_memory_bytes=peak_memory_bytes,
        message=said and f"{run.record.model.name}: {said}",
        valid_bits_per_byte=validation_bits(run, device) if kind_of(run.record.model.name).way is Way.COUNTS else None,
    )


def attempt(task: Task, shared: Shared | None = None) -> Outcome:
    """Complete a task; a failure becomes an outcome with an error, so that other runs are not affected.

    Steps whose records are on disk are not repeated. Only Ctrl-C ends more than this task.
    """
    try:
        shared = shared or Shared(corpus=Corpus.from_spec(dict(task.corpus)))
        threads = nullcontext() if task.threads is None else using_threads(torch.device("cpu"), task.threads)
        with threads:  # a fixed thread count sums in the same order everywhere
            return _Work(task, shared).done()
    except Exception as error:  # a failing model must not stop the others
        return Outcome(task=task, error=in_one_line(error))


@dataclass
class _Work:
    task: Task
    shared: Shared

    @cached_property
    def store(self) -> EntryStore:
        return self.shared.store_of(self.task)

    def done(self) -> Outcome:
        trained = self.store.trained
        if trained is None:
            trained = self._trained()
            if trained is None:
                return Outcome(task=self.task)
            self.store.write_trained(trained)
        if self.task.text is None:
            return Outcome(task=self.task, trained=trained)
        measured, text = self.store.measured, self.shared.text(self.task.text)
        if measured is None or measured.read_sha256 != text.part.sha256:
            measured = self._measured(trained, self.task.text)
            self.store.write_measured(measured)
        return Outcome(task=self.task, trained=trained, measured=measured)

    def _trained(self) -> TrainedEntry | None:
        """Train the run, to its end or to the share of the budget after which it pauses; None: it paused."""
        started, before_s = time.perf_counter(), 0.0
        with PeakMemory() as memory:
            if self.store.has_run:
                run = self.store.run
                spent = read_progress(run.checkpoint) if run.status == "unfinished" else run.record.result
                before_s = 0.0 if spent is None else spent.seconds
                run = resume(run, watch=self.shared.watch_of(self.task.spec.name), until=self.task.until)
            else:
                run = self._begun()
            self.store.keep_run(run)
        if run.status == "unfinished":
            if run.paused:
                return None
            raise KeyboardInterrupt
        seconds = before_s + time.perf_counter() - started
        device = self.task.spec.device
        return trained_record(run, seconds=seconds, device=device, peak_memory_bytes=memory.peak_bytes)

    def _begun(self) -> Run:
        """Train a new run, after deleting the remains of one that was killed at its start."""
        spec = self.task.spec
        shutil.rmtree(self.store.run_folder, ignore_errors=True)
        return train(
            spec.model,
            self.shared.corpus,
            out=self.store.run_folder,
            tokenizer=self.shared.tokenizer(spec.tokenizer),
            budget=spec.budget,
            seed=spec.seed,
            settings=spec.settings,
            learning=spec.learning,
            device=spec.device,
            timings=self.shared.timings,
            watch=self.shared.watch_of(spec.name),
            until=self.task.until,
        )

    def _measured(self, trained: TrainedEntry, choice: TextChoice) -> MeasuredEntry:
        started, text, run = time.perf_counter(), self.shared.text(choice), self.store.run
        device = "cpu" if self.task.on_cpu else self.task.spec.device
        with PeakMemory() as memory:
            valid_bits = self._validation(device)
            result = measure_run(run, text, name=self.shared.corpus.name, seed=self.task.seed, device=device)
            scores_sha256 = self.store.write_result(result) if self.task.keep_scores else ""
        return MeasuredEntry(
            weights_sha256=trained.weights_sha256,
            text=choice,
            read_sha256=text.part.sha256,
            result=Score(result.to_json()),
            seconds=time.perf_counter() - started,
            peak_memory_bytes=memory.peak_bytes,
            scores_sha256=scores_sha256,
            on_cpu=self.task.on_cpu,
            validated=valid_bits is not None,
            valid_bits_per_byte=valid_bits,
        )

    def _validation(self, device: str) -> float | None:
        """Return the bits per byte of the validation part with the saved weights; None if not requested."""
        if self.task.validation is None:
            return None
        text, run = self.shared.text(self.task.validation), self.store.run
        read = score_part(run.load(device), run.tokenizer, text.part)
        return count_within(run.tokenizer, read, text).bits_per_byte

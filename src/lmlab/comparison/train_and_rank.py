"""The comparison itself: train each model inside its share of the budget, measure all on the same bytes, rank them."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lmlab.comparison.close_look import look_closely
from lmlab.comparison.contender import Contender, Display, mean_result
from lmlab.comparison.findings import Findings, Yardstick
from lmlab.comparison.luck import Luck
from lmlab.comparison.measured_text import first_bytes, last_bytes
from lmlab.comparison.rehearsal import rehearse
from lmlab.comparison.report import write_report
from lmlab.comparison.summarize import order, summarize
from lmlab.comparison.time_shares import in_order, share_seconds, test_bytes, training_seconds
from lmlab.comparison.yardsticks import measure_yardsticks
from lmlab.config import Budget, Mistake, make
from lmlab.hardware.choice import choose
from lmlab.hardware.load import at_this_moment
from lmlab.hardware.memory import PeakMemory
from lmlab.interface import NeuralLanguageModel
from lmlab.learn.clock import Clock
from lmlab.learn.loop import TrainConfig
from lmlab.learn.pace import Timings
from lmlab.learn.run import Run, load_run
from lmlab.learn.train import sized_language_model, stream_folder, train
from lmlab.measure import evaluate, rank
from lmlab.models.registry import Role, Way, kind_of, ladder
from lmlab.records import to_json
from lmlab.text.corpus import Corpus, read
from lmlab.text.files import write_atomically
from lmlab.text.parts import Part
from lmlab.text.stream import tokenize
from lmlab.text.tokenizers import Tokenizer, parse_spec, train_tokenizer


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """The outcome. entries: the models, best first, then those that failed. report: the page."""

    corpus: Corpus
    measured: Part
    entries: list[Contender]
    findings: Findings
    report: Path

    def to_json(self) -> dict[str, Any]:
        """Everything that was found, as comparison.json holds it."""
        found: dict[str, Any] = to_json(self.findings)
        return found


def compare(
    text: str | Path | Sequence[str | Path] | Corpus = "sotu",
    *,
    out: str | Path,
    budget: str | Budget = "5m",
    models: Sequence[str] | None = None,
    tokenizers: Sequence[str] = ("char",),
    split: Sequence[float] = (80, 10, 10),
    valid: str | Path | None = None,
    test: str | Path | None = None,
    seed: int = 0,
    seeds: int = 1,
    settings: Mapping[str, Mapping[str, Any]] | None = None,
    device: str = "auto",
    watch: Display | None = None,
    command: str = "",
    started: float | None = None,
) -> Comparison:
    """Train every model on one text inside one wall-clock budget, measure them on the same test bytes, and rank them.

    seeds: how often each learned model is trained, with `seed` and those after it; its number is then their mean, and
        what training leaves to luck is measured instead of estimated. The budget stays what it is for all of them.
    settings: of each model, by its name. command: how to repeat it, for the page.
    started: when the budget began to run, by time.perf_counter; None: now.
    The comparison is kept in the folder `out`, with its page. Run again with the same folder, it goes on from the models
    that finished.
    """
    started = time.perf_counter() if started is None else started
    budget = Budget.parse(budget) if isinstance(budget, str) else budget
    if budget.seconds is None:
        raise Mistake(
            "a comparison needs a budget of time, such as {budget}: steps of different models are no fair measure",
            budget="5m",
        )
    if seeds < 1:
        raise Mistake(f"{{seeds}} is a whole number from 1 up; got {seeds}", seeds=None)
    for name in models or ():
        if kind_of(name).role is not Role.LANGUAGE_MODEL:
            raise Mistake(f"{name} is no language model; only those are compared")
    if not tokenizers:
        raise Mistake("name at least one tokenizer, such as {tokenizers}", tokenizers="char")
    for spec in tokenizers:
        parse_spec(spec)
    if unused := set(settings or {}) - set(models or ladder()):
        names = ", ".join(sorted(unused))
        raise Mistake(f"{{settings}} names {names}, which is not among the models that are compared", settings=None)
    corpus = text if isinstance(text, Corpus) else read(text, valid=valid, test=test, split=split, seed=seed)
    if not corpus.test.bytes:
        instead = "give it a share above 0 in {split}" if valid is None else "name one with {test}"
        raise Mistake(f"{corpus.name} has no test part to compare on; {instead}", split=None, test=None)
    job = _Job(
        corpus=corpus,
        out=Path(out),
        budget_s=budget.seconds,
        seeds=list(range(seed, seed + seeds)),
        settings=settings or {},
        device=device,
        watch=watch,
        started=started,
    )
    several = len(set(tokenizers)) > 1
    entries = [
        Contender(model, tokenizer, name=f"{model} · {tokenizer}" if several else model)
        for tokenizer in dict.fromkeys(tokenizers)
        for model in in_order(list(dict.fromkeys(models or ladder())))
    ]
    return job.run(entries, command)


@dataclass(kw_only=True)
class _Job:
    corpus: Corpus
    out: Path
    budget_s: float
    seeds: list[int]
    settings: Mapping[str, Mapping[str, Any]]
    device: str
    watch: Display | None
    started: float

    def __post_init__(self) -> None:
        self.hardware = choose(self.device)
        self.measured = first_bytes(self.corpus.test, test_bytes(self.budget_s))
        self.tokenizers: dict[str, Tokenizer] = {}
        self.timings = Timings()

    @property
    def left_s(self) -> float:
        return self.budget_s - (time.perf_counter() - self.started)

    def run(self, entries: list[Contender], command: str) -> Comparison:
        self._claim_folder()
        before = {entry.name: self._from_before(entry) for entry in entries}
        yardsticks: list[Yardstick] = []
        overlap: list[str] = []
        try:
            self._show(entries, "compressors")
            overlap = [str(found) for found in self.corpus.overlap().values()]
            yardsticks = measure_yardsticks(last_bytes(self.corpus.train), self.measured.text().encode())
            for entry in entries:
                with self._shielded(entry, entries):
                    rivals = [e for e in entries if e.status == "waiting" and len(before[e.name]) < len(self._seeds(e))]
                    self._one(entry, entries, before[entry.name], rivals)
                if entry.status == "interrupted":
                    raise KeyboardInterrupt
        except KeyboardInterrupt:
            self._say("stopped; the models that finished are ranked")
        luck = self._rank(entries)
        ordered = sorted(entries, key=order)
        found = summarize(
            self.corpus,
            self.measured,
            ordered,
            yardsticks,
            luck,
            overlap=overlap,
            command=command,
            budget_s=self.budget_s,
            seed=self.seeds[0],
            seconds=time.perf_counter() - self.started,
        )
        write_atomically(self.out / "comparison.json", json.dumps(to_json(found), allow_nan=False).encode())
        report = write_report(found, self.out / "report.html")
        return Comparison(corpus=self.corpus, measured=self.measured, entries=ordered, findings=found, report=report)

    def _show(self, entries: Sequence[Contender], doing: str) -> None:
        if self.watch is not None:
            self.watch.show(entries, self.left_s, doing)

    def _say(self, line: str) -> None:
        if self.watch is not None:
            self.watch.say(line)

    def _claim_folder(self) -> None:
        """A comparison goes on in its own folder, and never in one that holds something else."""
        mark = self.out / "corpus.json"
        spec = self.corpus.spec()
        if mark.exists():
            if json.loads(mark.read_text(encoding="utf-8")).get("parts") != spec["parts"]:
                raise self._taken("holds a comparison on another text")
            return
        if self.out.exists() and any(self.out.iterdir()):
            raise self._taken("is not empty and holds no comparison")
        write_atomically(mark, json.dumps(spec, indent=2).encode())

    def _taken(self, why: str) -> Mistake:
        return Mistake(f"{self.out} {why}; name a new folder with {{out}}", out=None)

    @contextmanager
    def _shielded(self, entry: Contender, entries: Sequence[Contender]) -> Iterator[None]:
        """A model that crashes is shown as failed; the others go on."""
        started = time.perf_counter()
        try:
            with PeakMemory() as memory:
                yield
            entry.peak_bytes = memory.peak_bytes
        except Exception as error:  # whatever a model does, the comparison must survive it
            entry.status, entry.error = "failed", " ".join(f"{type(error).__name__}: {error}".split())
            self._say(f"{entry.name} failed: {entry.error}")
        entry.seconds = time.perf_counter() - started
        self._show(entries, "")

    def _one(
        self, entry: Contender, entries: Sequence[Contender], before: Mapping[int, Run], rivals: Sequence[Contender]
    ) -> None:
        """Train and measure one entry with every seed that was not trained before, and measure those that were.

        rivals: the entries, itself included, that the time left is for.
        """
        seconds = self._training_seconds(entry, rivals) if entry in rivals else 0.0
        for seed in self._seeds(entry):
            entry.reused = seed in before
            run = before[seed] if seed in before else self._trained(entry, entries, seed, seconds)
            if run.status == "unfinished":
                entry.status = "interrupted"
                return
            entry.runs.append(run)
            entry.status = "measuring"
            self._show(entries, f"measuring {entry.name}")
            entry.seed_results.append(
                evaluate(run.load(self.device), run.tokenizer, self.measured, name=self.corpus.name, seed=self.seeds[0])
            )
        entry.result = mean_result(entry.seed_results, self.seeds[0])
        run = entry.runs[0]
        entry.look = look_closely(run.model, run.tokenizer, entry.seed_results[0], self.seeds[0])
        entry.status = "ranked" if entry.result.certified else "unranked"

    def _seeds(self, entry: Contender) -> list[int]:
        """Those it is trained with; a count model comes out the same with every one."""
        return self.seeds[:1] if kind_of(entry.model).way is Way.COUNTS else self.seeds

    def _training_seconds(self, entry: Contender, rivals: Sequence[Contender]) -> float:
        """Seconds of training for each of an entry's runs: its share of the time left, less what measuring will take."""
        if kind_of(entry.model).way is Way.COUNTS:
            return 1.0  # it takes what it needs
        seeds = len(self._seeds(entry))
        waiting = [e.model for e in rivals if kind_of(e.model).way is Way.LEARNS]
        share_s = share_seconds(entry.model, waiting, self.left_s, self.budget_s)
        tokenizer = self._tokenizer(entry)
        stream = tokenize(self.corpus.train, tokenizer, stream_folder())
        cls: Any = kind_of(entry.model).load()
        assert issubclass(cls, NeuralLanguageModel)
        config = TrainConfig(budget=Budget(seconds=max(1.0, share_s / seeds)))
        wanted: Any = make(cls.Config, self._settings(entry), entry.model)
        hardware = at_this_moment(self.hardware)
        size, _ = sized_language_model(cls, wanted, tokenizer, stream, config, hardware, self.timings)
        rehearsal = rehearse(cls(size, tokenizer.vocab_size), self.hardware)
        tokens_per_byte = stream.tokens / stream.bytes
        measuring_s = rehearsal.seconds(self.measured.bytes * tokens_per_byte, tokens_per_byte)
        return training_seconds(share_s, measuring_s, seeds)

    def _folder(self, entry: Contender, seed: int) -> Path:
        return self.out / "models" / entry.folder(seed)

    def _tokenizer(self, entry: Contender) -> Tokenizer:
        if entry.tokenizer not in self.tokenizers:
            self.tokenizers[entry.tokenizer] = train_tokenizer(entry.tokenizer, self.corpus.train.pieces())
        return self.tokenizers[entry.tokenizer]

    def _settings(self, entry: Contender) -> dict[str, Any]:
        return dict(self.settings.get(entry.model, {}))

    def _from_before(self, entry: Contender) -> dict[int, Run]:
        """Its finished runs in this folder, by seed; a Mistake if they are not of the settings that are asked for."""
        found = {}
        for seed in self._seeds(entry):
            folder = self._folder(entry, seed)
            if not (folder / "config.json").exists():
                continue
            run = load_run(folder)
            if run.status == "unfinished":
                continue
            for key, value in self._settings(entry).items():
                had = run.record.model.config.get(key)
                if had != value:
                    raise self._taken(f"holds a {entry.name} that was trained with {key}={had}")
            found[seed] = run
        return found

    def _trained(self, entry: Contender, entries: Sequence[Contender], seed: int, seconds: float) -> Run:
        """A new run; one that this comparison began before and did not finish gives way."""
        folder = self._folder(entry, seed)
        if folder.exists():
            shutil.rmtree(folder)
        entry.status = "training"
        return train(
            entry.model,
            self.corpus,
            out=folder,
            tokenizer=self._tokenizer(entry),
            budget=Budget(seconds=seconds),
            seed=seed,
            settings=self._settings(entry),
            device=self.device,
            timings=self.timings,
            watch=_TrainingWatch(entry, lambda doing: self._show(entries, doing)),
        )

    def _rank(self, entries: Sequence[Contender]) -> Luck:
        good = [e for e in entries if e.status == "ranked"]
        luck = Luck.of(good, len(self.seeds))
        ranks = rank([e.scored for e in good], margin=lambda i, j: luck.margin(good[i], good[j]), seed=self.seeds[0])
        for entry, place in zip(good, ranks, strict=True):
            entry.rank = place
        return luck


@dataclass
class _TrainingWatch:
    """Passes training progress on to whoever looks on."""

    entry: Contender
    show: Callable[[str], None]

    def update(self, clock: Clock, train: float, valid: float | None, unit: str) -> None:
        """Show how far training is."""
        self.entry.fraction = min(1.0, clock.fraction)
        self.show(f"training {self.entry.name}")

    def say(self, line: str) -> None:
        """Keep the line for the record."""
        self.entry.message = line

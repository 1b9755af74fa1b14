"""The comparison itself: train each model inside its share of the budget, measure all on the same bytes, rank them."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from lmlab.comparison.close_look import look_closely
from lmlab.comparison.contender import Contender, Display, TrainingWatch, mean_result
from lmlab.comparison.findings import Findings, RankingFound, Yardstick
from lmlab.comparison.luck import Luck
from lmlab.comparison.measured_text import last_bytes, measured_text
from lmlab.comparison.measuring import measure_run
from lmlab.comparison.rehearsal import rehearse
from lmlab.comparison.report import write_report
from lmlab.comparison.summarize import order, summarize
from lmlab.comparison.time_shares import (
    DEFAULT_BUDGET,
    Turn,
    checked_shares,
    equal_seconds,
    in_order,
    seconds_now,
    seconds_of,
    test_bytes,
)
from lmlab.comparison.yardsticks import measure_yardsticks
from lmlab.config import Budget, Mistake, make
from lmlab.hardware.choice import choose
from lmlab.hardware.load import at_this_moment
from lmlab.hardware.memory import PeakMemory
from lmlab.interface import NeuralLanguageModel
from lmlab.learn.loop import TrainConfig
from lmlab.learn.pace import Timings
from lmlab.learn.run import Run, load_run
from lmlab.learn.train import sized_language_model, stream_folder, train
from lmlab.measure import Spread
from lmlab.measure.interval import units_of
from lmlab.measure.ranks import ranking
from lmlab.models.registry import Way, kind_of, ladder, language_model, trainable_kind
from lmlab.records import from_json, to_json
from lmlab.text.corpus import Corpus, read
from lmlab.text.files import write_atomically
from lmlab.text.stream import tokenize
from lmlab.text.tokenizers import Tokenizer, parse_spec, train_tokenizer


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """The outcome. measured: which bytes. entries: the models, best first, then those that failed. report: the page."""

    corpus: Corpus
    measured: Spread
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
    budget: str | Budget | None = None,
    each: str | Budget | None = None,
    shares: Mapping[str, float] | None = None,
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

    budget: of time, for everything (five minutes, if nobody says). Learned models train equally long.
    each: instead of a budget, the time that every run of a learned model trains; the budget is what that comes to.
    shares: by model, how many times as long as the others it trains.
    seeds: how often each learned model is trained, with `seed` and those after it; its number is then their mean, and
        what training leaves to luck is measured, so that the ranking speaks of kinds of model. The budget stays what it
        is for all of them.
    settings: of each model, by its name. command: how to repeat it, for the page.
    started: when the budget began to run, by time.perf_counter; None: now.
    The comparison is kept in the folder `out`, with its page. Run again with the same folder, it goes on from the models
    that finished.
    """
    started = time.perf_counter() if started is None else started
    if budget is not None and each is not None:
        raise Mistake(
            "{budget} is for everything and {each} for every model; leave one of them out", budget=None, each=None
        )
    budget_s = seconds_of(DEFAULT_BUDGET if budget is None else budget, "budget") if each is None else 0.0
    each_s = None if each is None else seconds_of(each, "each")
    if seeds < 1:
        raise Mistake(f"{{seeds}} is a whole number from 1 up; got {seeds}", seeds=None)
    for name in models or ():
        language_model(trainable_kind(name).name)
    if not tokenizers:
        raise Mistake("name at least one tokenizer, such as {tokenizers}", tokenizers="char")
    for spec in tokenizers:
        parse_spec(spec)
    if unused := set(settings or {}) - set(models or ladder()):
        names = ", ".join(sorted(unused))
        raise Mistake(f"{{settings}} names {names}, which is not among the models that are compared", settings=None)
    weights = checked_shares(shares or {}, models or ladder())
    corpus = text if isinstance(text, Corpus) else read(text, valid=valid, test=test, split=split, seed=seed)
    if not corpus.test.bytes:
        instead = "give it a share above 0 in {split}" if valid is None else "name one with {test}"
        raise Mistake(f"{corpus.name} has no test part to compare on; {instead}", split=None, test=None)
    several = len(set(tokenizers)) > 1
    entries = [
        Contender(model, tokenizer, name=f"{model} · {tokenizer}" if several else model)
        for tokenizer in dict.fromkeys(tokenizers)
        for model in in_order(list(dict.fromkeys(models or ladder())))
    ]
    if each_s is not None:
        runs = seeds * sum(weights.get(e.model, 1.0) for e in entries if kind_of(e.model).way is Way.LEARNS)
        budget_s = each_s * max(1.0, runs)
    job = _Job(
        corpus=corpus,
        out=Path(out),
        budget_s=budget_s,
        each_s=each_s,
        shares=weights,
        seeds=list(range(seed, seed + seeds)),
        settings=settings or {},
        device=device,
        watch=watch,
        started=started,
    )
    return job.run(entries, command)


@dataclass(kw_only=True)
class _Job:
    corpus: Corpus
    out: Path
    budget_s: float  # with `each_s`, what that comes to: without measuring until the models were rehearsed
    each_s: float | None
    shares: Mapping[str, float]
    seeds: list[int]
    settings: Mapping[str, Mapping[str, Any]]
    device: str
    watch: Display | None
    started: float

    def __post_init__(self) -> None:
        self.hardware = choose(self.device)
        self.tokenizers: dict[str, Tokenizer] = {}
        self.timings = Timings()
        self.turns: dict[str, Turn] = {}  # of the learned entries, by name, once the first of them is to be trained
        self.planned_s = 0.0  # of training, for a run of share 1

    @property
    def left_s(self) -> float:
        return self.budget_s - (time.perf_counter() - self.started)

    def run(self, entries: list[Contender], command: str) -> Comparison:
        self._claim_folder()
        contexts = [c for s in self.settings.values() if isinstance(c := s.get("context"), int)]
        tokenizers = list(dict.fromkeys(e.tokenizer for e in entries))
        self.measured = measured_text(self.corpus.test, test_bytes(self.budget_s), tokenizers, contexts)
        before = {entry.name: self._from_before(entry) for entry in entries}
        yardsticks: list[Yardstick] = []
        overlap: list[str] = []
        try:
            self._show(entries, "compressors")
            overlap = [str(found) for found in self.corpus.overlap().values()]
            yardsticks = measure_yardsticks(last_bytes(self.corpus.train), self.measured.counted().text().encode())
            for entry in entries:
                if not self.turns and kind_of(entry.model).way is Way.LEARNS:
                    self._plan(entries, before)
                with self._shielded(entry, entries):
                    self._one(entry, entries, before)
                if entry.status == "interrupted":
                    raise KeyboardInterrupt
        except KeyboardInterrupt:
            self._say("stopped; the models that finished are ranked")
        luck, ranked = self._rank(entries)
        ordered = sorted(entries, key=order)
        found = summarize(
            self.corpus,
            self.measured,
            ordered,
            yardsticks,
            luck,
            ranked,
            shares=dict(self.shares),
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

    def _one(self, entry: Contender, entries: Sequence[Contender], before: Mapping[str, Mapping[int, Run]]) -> None:
        """Train and measure one entry with every seed that was not trained before, and measure those that were.

        before: the finished runs of all entries.
        """
        mine = before[entry.name]
        seconds = self._training_seconds(entry, entries, before) if self._missing(entry, before) else 0.0
        for seed in self._seeds(entry):
            entry.reused = seed in mine
            run = mine[seed] if seed in mine else self._trained(entry, entries, seed, seconds)
            if run.status == "unfinished":
                entry.status = "interrupted"
                return
            entry.runs.append(run)
            entry.status = "measuring"
            self._show(entries, f"measuring {entry.name}")
            entry.seed_results.append(
                measure_run(run, self.measured, name=self.corpus.name, seed=self.seeds[0], device=self.device)
            )
        entry.result = mean_result(entry.seed_results)
        run = entry.runs[0]
        entry.look = look_closely(run.model, run.tokenizer, entry.seed_results[0], self.seeds[0])
        entry.status = "ranked" if entry.result.certified else "unranked"

    def _seeds(self, entry: Contender) -> list[int]:
        """Those it is trained with; a count model comes out the same with every one."""
        return self.seeds[:1] if kind_of(entry.model).way is Way.COUNTS else self.seeds

    def _missing(self, entry: Contender, before: Mapping[str, Mapping[int, Run]]) -> int:
        """How many of its runs have yet to be trained."""
        return len(self._seeds(entry)) - len(before[entry.name])

    def _plan(self, entries: Sequence[Contender], before: Mapping[str, Mapping[int, Run]]) -> None:
        """Rehearse the learned models that have yet to be trained, and divide the time between all that learn."""
        learned = [e for e in entries if kind_of(e.model).way is Way.LEARNS]
        bare = {
            e.name: Turn(share=self.shares.get(e.model, 1.0), runs=len(self.seeds), measuring_s=0.0) for e in learned
        }
        guess_s = self.each_s or equal_seconds(list(bare.values()), self.left_s, self.budget_s)
        found = {}
        for entry in learned:
            if self._missing(entry, before):
                self._show(entries, f"rehearsing {entry.name}")
                found[entry.name] = self._measuring_seconds(entry, guess_s * bare[entry.name].share)
        usual_s = sum(found.values()) / max(1, len(found))  # for those that were trained before
        self.turns = {name: replace(turn, measuring_s=found.get(name, usual_s)) for name, turn in bare.items()}
        if self.each_s is None:
            self.planned_s = equal_seconds(list(self.turns.values()), self.left_s, self.budget_s)
            return
        self.planned_s = self.each_s
        to_do = [(self.turns[e.name], self._missing(e, before)) for e in learned]
        ahead_s = sum(self.each_s * turn.share * runs + turn.measuring_s * turn.runs for turn, runs in to_do)
        self.budget_s = time.perf_counter() - self.started + ahead_s

    def _training_seconds(
        self, entry: Contender, entries: Sequence[Contender], before: Mapping[str, Mapping[int, Run]]
    ) -> float:
        """Seconds of training for each of an entry's runs that are missing."""
        if kind_of(entry.model).way is Way.COUNTS:
            return 1.0  # it takes what it needs
        mine = self.turns[entry.name]
        if self.each_s is not None:
            return mine.share * self.each_s
        rivals = [e for e in entries if e.status == "waiting" and e.name in self.turns and self._missing(e, before)]
        waiting = [replace(self.turns[e.name], runs=self._missing(e, before)) for e in rivals]
        return seconds_now(mine, self.planned_s, waiting, self.left_s, self.budget_s)

    def _measuring_seconds(self, entry: Contender, seconds: float) -> float:
        """What measuring one run of an entry will take, if it trains about so long; 0 if that cannot be found out."""
        try:
            return self._rehearsed(entry, seconds)
        except Exception:  # whatever is wrong with the model is told in its own turn
            return 0.0

    def _rehearsed(self, entry: Contender, seconds: float) -> float:
        tokenizer = self._tokenizer(entry)
        stream = tokenize(self.corpus.train, tokenizer, stream_folder())
        cls: Any = kind_of(entry.model).load()
        assert issubclass(cls, NeuralLanguageModel)
        config = TrainConfig(budget=Budget(seconds=seconds))
        wanted: Any = make(cls.Config, self._settings(entry), entry.model)
        hardware = at_this_moment(self.hardware)
        size, _ = sized_language_model(cls, wanted, tokenizer, stream, config, hardware, self.timings)
        rehearsal = rehearse(cls(size, tokenizer.vocab_size), self.hardware)
        tokens_per_byte = stream.tokens / stream.bytes
        # history is read too, though it does not count
        return rehearsal.seconds(self.measured.part.bytes * tokens_per_byte, tokens_per_byte)

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
            watch=TrainingWatch(entry, lambda doing: self._show(entries, doing)),
        )

    def _rank(self, entries: Sequence[Contender]) -> tuple[Luck, RankingFound | None]:
        """What training leaves to luck, and who can be told apart from whom; None where nobody is to be ranked."""
        good = [e for e in entries if e.status == "ranked"]
        luck = Luck.of(good, len(self.seeds))
        if not good:
            return luck, None
        units = units_of([e.scored for e in good], self.measured)
        found = ranking(units, luck=luck.training, seed=self.seeds[0])
        for entry, place in zip(good, found.ranks, strict=True):
            entry.rank = place
        return luck, from_json(RankingFound, found.to_json([e.name for e in good]))

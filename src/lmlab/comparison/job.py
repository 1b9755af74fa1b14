"""A comparison at work: train each model inside its share of the budget, measure all on the same bytes, rank them."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lmlab.comparison import time_shares
from lmlab.comparison.contender import Contender, Display, TrainingWatch
from lmlab.comparison.figures import drawing_s
from lmlab.comparison.findings import RankingFound, Yardstick
from lmlab.comparison.folder import MODELS, ComparisonFolder
from lmlab.comparison.luck_over_seeds import Luck
from lmlab.comparison.measure_all import Measuring
from lmlab.comparison.mixes_found import Together
from lmlab.comparison.outcome import Comparison
from lmlab.comparison.report import write_report
from lmlab.comparison.summarize import order, summarize
from lmlab.comparison.text_to_measure import last_bytes
from lmlab.comparison.time_shares import LEAST_S, MIXING, Turn
from lmlab.comparison.together import mixed, why_not_mixed, worth_mixing
from lmlab.comparison.yardsticks import measure_yardsticks
from lmlab.config import Budget, Mistake, an, in_one_line
from lmlab.disk.files import write_atomically
from lmlab.hardware.choice import choose_device
from lmlab.hardware.memory import PeakMemory
from lmlab.hardware.threads import fastest_threads
from lmlab.learn.going_on import resume
from lmlab.learn.pace import Timings
from lmlab.learn.run import Run, load_run
from lmlab.learn.train import train
from lmlab.measure.interval import units_of
from lmlab.measure.ranks import ranking
from lmlab.models.registry import Way, kind_of
from lmlab.records import from_json, to_json
from lmlab.text.corpus import Corpus
from lmlab.text.shared_substrings import Overlap
from lmlab.text.tokenizers import Tokenizer, train_tokenizer

NOTE_EVERY_S = 5.0  # how often it is written down how much of the budget is used


@dataclass(kw_only=True)
class Job:
    """One comparison at work; `started` when its budget began to run, by time.perf_counter."""

    corpus: Corpus
    folder: ComparisonFolder
    budget_s: float  # with `each_s`, what that comes to, once it is planned
    each_s: float | None
    shares: Mapping[str, float]
    seeds: list[int]
    settings: Mapping[str, Mapping[str, Any]]
    learning: Mapping[str, Mapping[str, Any]]
    device: str
    watch: Display | None
    entries: list[Contender]
    started: float

    def __post_init__(self) -> None:
        self.noted_at = self.started
        self.learned = [e for e in self.entries if kind_of(e.model).way is Way.LEARNS]
        self.before = {entry.name: self._from_before(entry) for entry in self.entries}
        new = {entry.model: self._settings(entry) for entry in self.entries if not self._has_begun(entry)}
        self.folder.note(settings={**self.folder.plan.settings, **new})
        self.train_s = self.folder.plan.train_s  # of a run of share 1, once that is fixed
        self.measuring_s = self.finishing_s = 0.0
        on_cpu = choose_device(self.device).type == "cpu"
        self.around_s = (
            time_shares.AROUND_S if on_cpu else time_shares.AROUND_ON_GPU_S
        )  # what a run takes beside training
        self.tokenizers: dict[str, Tokenizer] = {}
        self.timings = Timings()
        self.overlap: dict[str, Overlap] = {}
        self.yardsticks: list[Yardstick] = []
        self.together: list[Together] = []
        self.not_mixed: list[str] = []
        self.measuring = Measuring(
            part=self.corpus.test,
            name=self.corpus.name,
            tokenizers=list(dict.fromkeys(e.tokenizer for e in self.entries)),
            contexts=[c for s in self.settings.values() if isinstance(c := s.get("context"), int)],
            wanted_bytes=self.folder.plan.test_bytes or time_shares.test_bytes(self.budget_s),
            device=self.device,
            seed=self.seeds[0],
        )

    @property
    def used_s(self) -> float:
        """Seconds of the budget that are gone."""
        return time.perf_counter() - self.started

    @property
    def left_s(self) -> float:
        """Seconds of the budget that are left."""
        return self.budget_s - self.used_s

    def run(self, command: str) -> Comparison:
        """Train, measure, rank."""
        trained = self._to_its_end(self._train_all)
        if not trained:
            self._say("stopped; models that finished are measured and ranked (stop again to leave that out)")
        measured = self._to_its_end(lambda: self._measure_all(hurry=not trained))
        luck, ranked = self._rank()
        ordered = sorted(self.entries, key=order)
        found = summarize(
            self.corpus,
            self.measuring.text,
            ordered,
            self.yardsticks,
            luck,
            ranked,
            together=self.together,
            not_mixed=self.not_mixed,
            shares=dict(self.shares),
            overlap=self.overlap,
            command=command,
            budget_s=self.budget_s,
            seed=self.seeds[0],
            seconds=self.used_s,
        )
        write_atomically(self.folder.path / "comparison.json", json.dumps(to_json(found), allow_nan=False).encode())
        report = write_report(found, self.folder.path / "report.html")
        return Comparison(
            corpus=self.corpus,
            measured=self.measuring.text,
            entries=ordered,
            findings=found,
            report=report,
            stopped=not (trained and measured),
        )

    def _to_its_end(self, work: Callable[[], None]) -> bool:
        """Whether nobody stopped it."""
        try:
            work()
        except KeyboardInterrupt:
            return False
        return True

    def _train_all(self) -> None:
        if reused := [entry.name for entry in self.entries if self.before[entry.name]]:
            self._say(f"trained before, in this folder, and not again: {', '.join(reused)}")
        if self.train_s is not None and any(map(self._missing, self.learned)):
            self.started -= self.folder.plan.used_s  # it goes on with the time that is left
        self._show("looking for overlap")
        self.overlap = self.corpus.overlap()
        counted = [entry for entry in self.entries if entry not in self.learned]
        for entry in counted:
            self._train(entry, LEAST_S)
        for entry in counted:  # at once, because what that takes here and now says what the others will take
            if entry.status == "trained":
                self._measure(entry)
        self._time_drawing()
        self._plan()
        for entry in self.learned:
            self._train(entry, self._seconds_now(entry))

    def _plan(self) -> None:
        """Fix how long models train, unless that is fixed, and keep time for measuring."""
        around_s = self._yardsticks_s + self.finishing_s
        turns = [self._turn(entry, len(self.seeds)) for entry in self.learned]
        missing = [self._turn(entry, runs) for entry in self.learned if (runs := self._missing(entry))]
        if self.each_s is not None:
            training_s = time_shares.training_s(missing, self.each_s, self.around_s)
            self.train_s, self.measuring_s = self.each_s, self._measuring_s(training_s / (1 - time_shares.MEASURING))
            self.budget_s = self.used_s + training_s + self.measuring_s + around_s
        elif missing:
            self.measuring_s = self._measuring_s(self.left_s - around_s)
            if self.train_s is None:
                training_s = self.left_s - around_s - self.measuring_s
                self.train_s = time_shares.equal_seconds(turns, training_s, self.around_s)
        if self.train_s is not None:
            self.folder.note(train_s=self.train_s, used_s=self.used_s)

    def _time_drawing(self) -> None:
        """See how long the page will take; the first figure of a process finds fonts, and does not count."""
        if any(map(self._missing, self.learned)):  # else nobody waits for the end of the budget
            for _ in range(1 if self.finishing_s else 2):
                taken_s = drawing_s()
            self.finishing_s = min(time_shares.FIGURES * taken_s, time_shares.FINISHING * self.budget_s)

    def _measuring_s(self, time_s: float) -> float:
        took_s = [entry.result.seconds for entry in self.entries if entry.result is not None]
        return time_shares.measuring_s(time_s, len(self.entries), self.corpus.test.bytes, max(took_s, default=0.0))

    @property
    def _yardsticks_s(self) -> float:
        return time_shares.yardsticks_s(self.corpus.train.bytes, self.budget_s)

    def _turn(self, entry: Contender, runs: int) -> Turn:
        return Turn(share=self.shares.get(entry.model, 1.0), runs=runs)

    def _seconds_now(self, entry: Contender) -> float:
        """Seconds of training for each of its runs that are missing: as planned, or less where much time was lost."""
        assert self.train_s is not None, "there is a plan"
        waiting = [e for e in self.learned if e.status == "waiting" and self._missing(e)]
        turns = [self._turn(e, self._missing(e)) for e in waiting]
        after_s = self._yardsticks_s + self.finishing_s + time_shares.LATE * self.measuring_s
        seconds = self.train_s
        if turns and self.each_s is None:
            fair_s = time_shares.equal_seconds(turns, self.left_s - after_s, self.around_s)
            seconds = time_shares.seconds_now(seconds, fair_s)
        return seconds * self.shares.get(entry.model, 1.0)

    def _train(self, entry: Contender, seconds: float) -> None:
        """Train one entry with every seed that was not trained before."""
        with self._shielded(entry):
            for seed in self._seeds(entry):
                run = self.before[entry.name].get(seed)
                run = self._trained(entry, seed, seconds) if run is None else entry.goes_on_from(run)
                if run.status == "unfinished":
                    entry.status = "interrupted"
                    raise KeyboardInterrupt
                entry.runs.append(run.that_learned())
            entry.status = "trained"
        self._show("", note=True)

    def _measure_all(self, *, hurry: bool) -> None:
        """Measure what was trained until the time is up; in a hurry, for no longer than that many models were to have."""
        ready = [entry for entry in self.entries if entry.status == "trained" or entry.result is not None]
        if not ready:
            return
        self._time_drawing()
        now, until_s = time.perf_counter(), self.started + self.budget_s - self.finishing_s
        filling = not hurry and any(map(self._missing, self.learned))  # else nobody waits for the end of the budget
        if hurry:
            until_s = now + self._measuring_s(self.budget_s) * len(ready) / len(self.entries)
        with fastest_threads():
            if filling:
                self._show("choosing what is measured")
                self.measuring.choose(ready, until_s - self._yardsticks_s - now)
                self.folder.note(test_bytes=self.measuring.wanted_bytes)
            self._show("compressors")
            train, test = last_bytes(self.corpus.train), self.measuring.text.counted().text().encode()
            self.yardsticks = measure_yardsticks(train, test, self._yardsticks_s, of_bytes=self.corpus.train.bytes)
            for entry in ready:
                if entry.result is None:
                    self._measure(entry)
            if not hurry:
                self._mix_all(MIXING * (until_s - time.perf_counter()) if filling else None)
            good = [entry for entry in ready if entry.result is not None]
            for entry, look in self.measuring.looks(good, until_s if hurry or filling else None):
                self._show(f"looking closely at {entry.name}")
                with self._shielded(entry):
                    entry.take(look())

    def _mix_all(self, time_s: float | None) -> None:
        """What the models of each tokenizer are worth together, as many as there is time for."""
        for tokenizer in dict.fromkeys(entry.tokenizer for entry in self.entries):
            ranked = [e for e in self.entries if e.status == "ranked" and e.tokenizer == tokenizer]
            here = self.measuring.in_one_place(ranked)
            if len(here) < 2:
                continue
            self._show("mixing")
            place = self.folder.path / MODELS / f"mix-{tokenizer.replace(':', '')}"
            mine_s = None if time_s is None else time_s / len(self.measuring.tokenizers)
            try:
                if why := why_not_mixed(here):
                    self.not_mixed.append(why)
                elif chosen := worth_mixing(here, mine_s, self.device):
                    untried = [entry for entry in ranked if entry not in chosen]
                    self.together.append(mixed(chosen, self.measuring, place, untried))
                else:
                    self.not_mixed.append(
                        f"No time was left to mix the {tokenizer} models and see what they are worth together; the"
                        " same comparison, asked for again in its folder, mixes them once all are trained."
                    )
            except Exception as error:  # as with a single model: the comparison must survive it
                self.not_mixed.append(f"The mix of the {tokenizer} models failed: {in_one_line(error)}.")

    def _measure(self, entry: Contender) -> None:
        entry.status = "measuring"
        self._show(f"measuring {entry.name}")
        with self._shielded(entry):
            self.measuring.measure(entry)

    @contextmanager
    def _shielded(self, entry: Contender) -> Iterator[None]:
        """A model that crashes is shown as failed; the others go on."""
        started = time.perf_counter()
        try:
            with PeakMemory() as memory:
                yield
            entry.peak_bytes = max(entry.peak_bytes, memory.peak_bytes)
        except Exception as error:  # whatever a model does, the comparison must survive it
            entry.status, entry.error = "failed", in_one_line(error)
            self._say(f"{entry.name} failed: {entry.error}")
        entry.seconds += time.perf_counter() - started
        self._show("")

    def _show(self, doing: str, *, note: bool = False) -> None:
        if self.train_s is not None and (note or time.perf_counter() - self.noted_at > NOTE_EVERY_S):
            self.noted_at = time.perf_counter()
            self.folder.note(used_s=self.used_s)
        if self.watch is not None:
            self.watch.show(self.entries, self.left_s, doing)

    def _say(self, line: str) -> None:
        if self.watch is not None:
            self.watch.say(line)

    def _seeds(self, entry: Contender) -> list[int]:
        """Those it is trained with; a count model comes out the same with every one."""
        return self.seeds if entry in self.learned else self.seeds[:1]

    def _missing(self, entry: Contender) -> int:
        """How many of its runs have yet to be trained."""
        return len(self._seeds(entry)) - len(self.before[entry.name])

    def _folder(self, entry: Contender, seed: int) -> Path:
        return self.folder.path / MODELS / entry.folder(seed)

    def _has_begun(self, entry: Contender) -> bool:
        return any((self._folder(entry, seed) / "config.json").exists() for seed in self._seeds(entry))

    def _tokenizer(self, entry: Contender) -> Tokenizer:
        if entry.tokenizer not in self.tokenizers:
            self.tokenizers[entry.tokenizer] = train_tokenizer(entry.tokenizer, self.corpus.train.pieces())
        return self.tokenizers[entry.tokenizer]

    def _settings(self, entry: Contender) -> dict[str, Any]:
        return dict(self.settings.get(entry.model, {}))

    def _learning(self, entry: Contender) -> dict[str, Any]:
        return dict(self.learning.get(entry.model, {}))

    def _from_before(self, entry: Contender) -> dict[int, Run]:
        """Its finished runs in this folder, by seed; a Mistake if they are not of the settings that are asked for."""
        found = {}
        for seed in self._seeds(entry):
            folder = self._folder(entry, seed)
            if not (folder / "config.json").exists():
                continue
            run = load_run(folder)
            learning = run.record.training.asked_learning
            had = {**run.record.model.config, **learning}
            # what was asked for then and is not now would have been left open
            asked = {key for key, value in self.folder.plan.settings.get(entry.model, {}).items() if value is not None}
            wanted = {**dict.fromkeys([*learning, *asked]), **self._settings(entry), **self._learning(entry)}
            if other := next((key for key, value in wanted.items() if had.get(key) != value), None):
                why = f"holds {an(entry.name)} that was trained with {other}={had.get(other)}"
                raise Mistake(
                    f"{self.folder.path} {why}; name a new folder with {{out}}",
                    code="comparison-run-of-other-settings",
                    out=None,
                )
            if run.status != "unfinished":
                found[seed] = run
        return found

    def _trained(self, entry: Contender, seed: int, seconds: float) -> Run:
        """A new run; one that this comparison began before and did not finish goes on, for the seconds it has left."""
        folder = self._folder(entry, seed)
        entry.status = "training"
        watch = TrainingWatch(entry, self._show)
        if entry in self.learned and (folder / "config.json").exists():
            return resume(entry.goes_on_from(load_run(folder)), watch=watch)
        if folder.exists():
            shutil.rmtree(folder)
        return train(
            entry.model,
            self.corpus,
            out=folder,
            tokenizer=self._tokenizer(entry),
            budget=Budget(seconds=seconds),
            seed=seed,
            settings=self._settings(entry),
            learning=self._learning(entry),
            device=self.device,
            timings=self.timings,
            watch=watch,
        )

    def _rank(self) -> tuple[Luck, RankingFound | None]:
        """What training leaves to luck, and who can be told apart from whom; None where nobody is to be ranked."""
        good = [e for e in self.entries if e.status == "ranked"]
        luck = Luck.of(good, len(self.seeds))
        if not good:
            return luck, None
        units = units_of([e.scored for e in good], self.measuring.text)
        found = ranking(units, luck=luck.training, seed=self.seeds[0])
        for entry, place in zip(good, found.ranks, strict=True):
            entry.rank = place
        return luck, from_json(RankingFound, found.to_json([e.name for e in good]))

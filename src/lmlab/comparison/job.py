"""The comparison itself: train each model inside its share of the budget, measure all on the same bytes, rank them."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lmlab.comparison.document import document, order
from lmlab.comparison.entry import Display, Entry, EntryWatch, Nobody
from lmlab.comparison.luck import Luck
from lmlab.comparison.measuring import look_closely, mean_result, rehearse
from lmlab.comparison.memory import PeakMemory
from lmlab.comparison.shares import COUNTED, in_order, share_seconds, test_bytes, training_seconds
from lmlab.comparison.slices import first_bytes, last_bytes
from lmlab.comparison.yardsticks import Yardstick, measure_yardsticks
from lmlab.config import Budget, TextFacts
from lmlab.learn.hardware import choose
from lmlab.learn.run import Run, load_run
from lmlab.learn.train import stream_folder, train
from lmlab.measure import evaluate
from lmlab.measure.interval import units_of
from lmlab.measure.ranks import ranking
from lmlab.models.registry import MODELS, model_class
from lmlab.text.corpus import Corpus, read
from lmlab.text.files import write_atomically
from lmlab.text.parts import Part
from lmlab.text.stream import tokenize
from lmlab.text.tokenizers import Tokenizer, parse_spec, train_tokenizer


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """The outcome: entries best first, then those that failed; `to_json` is what the report is made from."""

    corpus: Corpus
    measured: Part
    entries: list[Entry]
    yardsticks: list[Yardstick]
    document: dict[str, Any]

    def to_json(self) -> dict[str, Any]:
        """Everything that was found."""
        return self.document


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
    display: Display | None = None,
    command: str = "",
    started: float | None = None,
) -> Comparison:
    """Train every model on one text inside one wall-clock budget, measure them on the same test bytes, and rank them.

    seeds: how often each learned model is trained, with `seed` and those after it; its number is then their mean, and
        what training leaves to luck is measured, so that the ranking speaks of kinds of model. The budget stays what it
        is for all of them.
    started: when the budget began to run, by time.perf_counter; None: now.
    The comparison is kept in the folder `out`. Run again with the same folder, it goes on from the models that finished.
    """
    started = time.perf_counter() if started is None else started
    budget = Budget.parse(budget) if isinstance(budget, str) else budget
    if budget.seconds is None:
        raise ValueError(
            "a comparison needs a budget of time, such as 5m: steps of different models are no fair measure"
        )
    if seeds < 1:
        raise ValueError(f"seeds is a whole number from 1 up; got {seeds}")
    for name in models or ():
        model_class(name)  # an unknown name is an error that says which one was meant
    if not tokenizers:
        raise ValueError("name at least one tokenizer, such as char")
    for spec in tokenizers:
        parse_spec(spec)
    if unused := set(settings or {}) - set(models or MODELS):
        raise ValueError(f"--set names {', '.join(sorted(unused))}, which is not among the models that are compared")
    corpus = text if isinstance(text, Corpus) else read(text, valid=valid, test=test, split=split, seed=seed)
    if not corpus.test.bytes:
        instead = "give it a share above 0 in --split" if valid is None else "name one with --test"
        raise ValueError(f"{corpus.name} has no test part to compare on; {instead}")
    job = _Job(
        corpus=corpus,
        out=Path(out),
        budget_s=budget.seconds,
        seeds=list(range(seed, seed + seeds)),
        settings=settings or {},
        device=device,
        display=display or Nobody(),
        started=started,
    )
    several = len(set(tokenizers)) > 1
    entries = [
        Entry(model, tokenizer, name=f"{model} · {tokenizer}" if several else model)
        for tokenizer in dict.fromkeys(tokenizers)
        for model in in_order(list(dict.fromkeys(models or MODELS)))
    ]
    return job.run(entries, command)


class _Job:
    def __init__(
        self,
        *,
        corpus: Corpus,
        out: Path,
        budget_s: float,
        seeds: list[int],
        settings: Mapping[str, Mapping[str, Any]],
        device: str,
        display: Display,
        started: float,
    ) -> None:
        self.corpus, self.out, self.budget_s, self.seeds, self.settings = corpus, out, budget_s, seeds, settings
        self.device, self.hardware, self.display, self.started = device, choose(device), display, started
        self.measured = first_bytes(corpus.test, test_bytes(self.budget_s))
        self.tokenizers: dict[str, Tokenizer] = {}

    @property
    def left_s(self) -> float:
        return self.budget_s - (time.perf_counter() - self.started)

    def run(self, entries: list[Entry], command: str) -> Comparison:
        self._claim_folder()
        before = {entry.name: self._from_before(entry) for entry in entries}
        yardsticks: list[Yardstick] = []
        overlap: list[str] = []
        try:
            self.display.show(entries, self.left_s, "compressors")
            overlap = [str(found) for found in self.corpus.overlap().values()]
            yardsticks = measure_yardsticks(last_bytes(self.corpus.train), self.measured.text().encode())
            for entry in entries:
                with self._shielded(entry, entries):
                    rivals = [e for e in entries if e.status == "waiting" and len(before[e.name]) < len(self._seeds(e))]
                    self._one(entry, entries, before[entry.name], rivals)
                if entry.status == "interrupted":
                    raise KeyboardInterrupt
        except KeyboardInterrupt:
            self.display.say("stopped; the models that finished are ranked")
        luck, ranked = self._rank(entries)
        ordered = sorted(entries, key=order)
        facts = {"command": command, "budget_s": self.budget_s, "seed": self.seeds[0]}
        found = document(self.corpus, self.measured, ordered, yardsticks, luck, ranked, overlap=overlap, **facts)
        found["seconds"] = time.perf_counter() - self.started
        write_atomically(self.out / "comparison.json", json.dumps(found, allow_nan=False).encode())
        return Comparison(
            corpus=self.corpus, measured=self.measured, entries=ordered, yardsticks=yardsticks, document=found
        )

    def _claim_folder(self) -> None:
        """A comparison goes on in its own folder, and never in one that holds something else."""
        mark = self.out / "corpus.json"
        spec = self.corpus.spec()
        if mark.exists():
            if json.loads(mark.read_text()).get("parts") != spec["parts"]:
                raise ValueError(f"{self.out} holds a comparison on another text; name a new folder with --out")
            return
        if self.out.exists() and any(self.out.iterdir()):
            raise ValueError(f"{self.out} is not empty and holds no comparison; name a new folder with --out")
        write_atomically(mark, json.dumps(spec, indent=2).encode())

    @contextmanager
    def _shielded(self, entry: Entry, entries: Sequence[Entry]) -> Iterator[None]:
        """A model that crashes is shown as failed; the others go on."""
        started = time.perf_counter()
        try:
            with PeakMemory() as memory:
                yield
            entry.peak_bytes = memory.peak_bytes
        except Exception as error:  # whatever a model does, the comparison must survive it
            entry.status, entry.error = "failed", " ".join(f"{type(error).__name__}: {error}".split())
            self.display.say(f"{entry.name} failed: {entry.error}")
        entry.seconds = time.perf_counter() - started
        self.display.show(entries, self.left_s, "")

    def _one(self, entry: Entry, entries: Sequence[Entry], before: Mapping[int, Run], rivals: Sequence[Entry]) -> None:
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
            self.display.show(entries, self.left_s, f"measuring {entry.name}")
            entry.seed_results.append(evaluate(run.model, self.measured, name=self.corpus.name, seed=self.seeds[0]))
        entry.result = mean_result(entry.seed_results)
        entry.details |= look_closely(entry.runs[0].model, entry.seed_results[0], self.seeds[0])
        entry.status = "ranked" if entry.result.certified else "unranked"

    def _seeds(self, entry: Entry) -> list[int]:
        """Those it is trained with; a count model comes out the same with every one."""
        return self.seeds[:1] if entry.model in COUNTED else self.seeds

    def _training_seconds(self, entry: Entry, rivals: Sequence[Entry]) -> float:
        """Seconds of training for each of an entry's runs: its share of the time left, less what measuring will take."""
        if entry.model in COUNTED:
            return 1.0  # it takes what it needs
        seeds = len(self._seeds(entry))
        waiting = [e.model for e in rivals if e.model not in COUNTED]
        share_s = share_seconds(entry.model, waiting, self.left_s, self.budget_s)
        tokenizer = self._tokenizer(entry)
        stream = tokenize(self.corpus.train, tokenizer, stream_folder())
        facts = TextFacts(
            train_tokens=stream.tokens,
            train_bytes=stream.bytes,
            vocab_size=tokenizer.vocab_size,
            flops_per_second=self.hardware.training_flops,
        )
        budget = Budget(seconds=max(1.0, share_s / seeds))
        rehearsal = rehearse(entry.model, self._settings(entry), tokenizer, facts, budget, self.hardware)
        tokens_per_byte = stream.tokens / stream.bytes
        measuring_s = rehearsal.seconds(self.measured.bytes * tokens_per_byte, tokens_per_byte)
        return training_seconds(share_s, measuring_s, seeds)

    def _folder(self, entry: Entry, seed: int) -> Path:
        return self.out / "models" / entry.folder(seed)

    def _tokenizer(self, entry: Entry) -> Tokenizer:
        if entry.tokenizer not in self.tokenizers:
            self.tokenizers[entry.tokenizer] = train_tokenizer(entry.tokenizer, self.corpus.train.pieces())
        return self.tokenizers[entry.tokenizer]

    def _settings(self, entry: Entry) -> dict[str, Any]:
        return dict(self.settings.get(entry.model, {}))

    def _from_before(self, entry: Entry) -> dict[int, Run]:
        """Its finished runs in this folder, by seed; ValueError if they are not of the settings that are asked for."""
        found = {}
        for seed in self._seeds(entry):
            folder = self._folder(entry, seed)
            if not (folder / "config.json").exists():
                continue
            run = load_run(folder)
            if run.status == "unfinished":
                continue
            for key, value in self._settings(entry).items():
                had = run.config["model"]["config"].get(key)
                if had != value:
                    raise ValueError(f"{folder} was trained with {key}={had}; name a new folder with --out")
            found[seed] = run
        return found

    def _trained(self, entry: Entry, entries: Sequence[Entry], seed: int, seconds: float) -> Run:
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
            watch=EntryWatch(entry, lambda doing: self.display.show(entries, self.left_s, doing)),
        )

    def _rank(self, entries: Sequence[Entry]) -> tuple[Luck, dict[str, Any] | None]:
        """What training leaves to luck, and who can be told apart from whom; None where nobody is to be ranked."""
        good = [e for e in entries if e.status == "ranked"]
        luck = Luck.of(good, len(self.seeds))
        if not good:
            return luck, None
        found = ranking(units_of([e.scored for e in good]), luck=luck.training, seed=self.seeds[0])
        for entry, place in zip(good, found.ranks, strict=True):
            entry.rank = place
        return luck, found.to_json([e.name for e in good])

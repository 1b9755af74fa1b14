"""The comparison itself: train each model inside its share of the budget, measure all on the same bytes, rank them."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any, Protocol

from lmlab.compare.about import versions
from lmlab.compare.memory import PeakMemory
from lmlab.compare.passages import differing_passages, excerpt_bounds, read_closely
from lmlab.compare.shares import COUNTED, in_order, test_bytes, training_seconds
from lmlab.compare.yardsticks import Yardstick, measure_yardsticks
from lmlab.config import Budget
from lmlab.interface import NeuralModel
from lmlab.learn.clock import Clock
from lmlab.learn.run import Run, load_run
from lmlab.learn.train import train
from lmlab.measure import Result, Scored, evaluate, paired_difference, rank
from lmlab.models.registry import MODELS
from lmlab.text.corpus import Corpus, read
from lmlab.text.files import write_atomically
from lmlab.text.parts import Document, Part
from lmlab.text.tokenizers import Tokenizer, train_tokenizer

SAMPLE_CHARACTERS = 400
PROOF_BYTES = 1_500


@dataclass
class Entry:
    """One model under one tokenizer, and what became of it."""

    model: str
    tokenizer: str
    status: str = "waiting"  # then "training", "measuring", and at last "ranked", "unranked" or "failed"
    error: str = ""
    run: Run | None = None
    result: Result | None = None
    rank: int | None = None
    peak_bytes: int = 0
    seconds: float = 0.0
    reused: bool = False
    fraction: float = 0.0  # of its training
    details: dict[str, Any] = field(default_factory=dict)
    name: str = ""  # on the page: the model, and the tokenizer where several are compared

    @property
    def folder(self) -> str:
        """The name of its run's folder."""
        return f"{self.model}-{self.tokenizer.replace(':', '')}"


class Display(Protocol):
    """Who looks on while the comparison runs."""

    def show(self, entries: Sequence[Entry], left_s: float, doing: str) -> None:
        """Called whenever something changed, at most a few times a second."""

    def say(self, line: str) -> None:
        """A line of its own."""


class Nobody:
    """A display that shows nothing."""

    def show(self, entries: Sequence[Entry], left_s: float, doing: str) -> None:
        """Nothing."""

    def say(self, line: str) -> None:
        """Nothing."""


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
    settings: Mapping[str, Mapping[str, Any]] | None = None,
    device: str = "auto",
    display: Display | None = None,
    command: str = "",
) -> Comparison:
    """Train every model on one text inside one wall-clock budget, measure them on the same test bytes, and rank them.

    The comparison is kept in the folder `out`. Run again with the same folder, it goes on from the models that finished.
    """
    budget = Budget.parse(budget) if isinstance(budget, str) else budget
    if budget.seconds is None:
        raise ValueError(
            "a comparison needs a budget of time, such as 5m: steps of different models are no fair measure"
        )
    unknown = set(models or ()) - set(MODELS)
    if unknown:
        from lmlab.models.registry import model_class

        model_class(min(unknown))
    corpus = text if isinstance(text, Corpus) else read(text, valid=valid, test=test, split=split, seed=seed)
    if not corpus.test.bytes:
        raise ValueError(f"{corpus.name} has no test part to compare on; give it a share above 0 in --split")
    job = _Job(corpus, Path(out), budget, seed, settings or {}, device, display or Nobody())
    several = len(set(tokenizers)) > 1
    entries = [
        Entry(model, tokenizer, name=f"{model} · {tokenizer}" if several else model)
        for tokenizer in dict.fromkeys(tokenizers)
        for model in in_order(list(models or MODELS))
    ]
    return job.run(entries, command)


class _Job:
    def __init__(
        self,
        corpus: Corpus,
        out: Path,
        budget: Budget,
        seed: int,
        settings: Mapping[str, Mapping[str, Any]],
        device: str,
        display: Display,
    ) -> None:
        assert budget.seconds is not None
        self.corpus, self.out, self.seed, self.settings, self.device = corpus, out, seed, settings, device
        self.budget_s, self.display = budget.seconds, display
        self.started = time.perf_counter()
        self.measured = first_bytes(corpus.test, test_bytes(self.budget_s))
        self.tokenizers: dict[str, Tokenizer] = {}
        self.excerpt = excerpt_bounds(self.measured)

    @property
    def left_s(self) -> float:
        return self.budget_s - (time.perf_counter() - self.started)

    def run(self, entries: list[Entry], command: str) -> Comparison:
        self._claim_folder()
        yardsticks: list[Yardstick] = []
        stopped = False
        try:
            self.display.show(entries, self.left_s, "compressors")
            yardsticks = measure_yardsticks(_tail_bytes(self.corpus.train), self.measured.text().encode())
            for entry in entries:
                with self._shielded(entry, entries):
                    self._one(entry, entries)
                if entry.status == "interrupted":
                    stopped = True
                    break
        except KeyboardInterrupt:
            stopped = True
        if stopped:
            self.display.say("stopped; the models that finished are ranked")
        self._rank(entries)
        ordered = sorted(entries, key=_order)
        document = self._document(ordered, yardsticks, command)
        write_atomically(self.out / "comparison.json", json.dumps(document, allow_nan=False).encode())
        return Comparison(
            corpus=self.corpus, measured=self.measured, entries=ordered, yardsticks=yardsticks, document=document
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

    def _one(self, entry: Entry, entries: Sequence[Entry]) -> None:
        entry.run = self._trained(entry, entries)
        if entry.run.status == "unfinished":
            entry.status = "interrupted"
            return
        entry.status = "measuring"
        self.display.show(entries, self.left_s, f"measuring {entry.name}")
        model = entry.run.model
        entry.result = evaluate(model, self.measured, name=self.corpus.name, seed=self.seed)
        entry.details["excerpt"] = read_closely(model, entry.result.scored, self.excerpt)
        entry.details["sample"] = self._sample(model)
        entry.details["proof"] = self._proof(model)
        entry.status = "ranked" if entry.result.certificate.passed else "unranked"

    def _trained(self, entry: Entry, entries: Sequence[Entry]) -> Run:
        """The run of a finished model from before, or a new one."""
        folder = self.out / "models" / entry.folder
        if (folder / "config.json").exists():
            run = load_run(folder)
            if run.status != "unfinished":
                entry.reused = True
                return run
            _remove_run(folder)
        entry.status = "training"
        if entry.tokenizer not in self.tokenizers:
            self.tokenizers[entry.tokenizer] = train_tokenizer(entry.tokenizer, self.corpus.train.pieces())
        waiting = [e.model for e in entries if e.status in ("waiting", "training") and e.model not in COUNTED]
        seconds = training_seconds(entry.model, waiting or [entry.model], self.left_s)
        return train(
            entry.model,
            self.corpus,
            out=folder,
            tokenizer=self.tokenizers[entry.tokenizer],
            budget=Budget(seconds=seconds),
            seed=self.seed,
            settings=self.settings.get(entry.model, {}),
            device=self.device,
            watch=_EntryWatch(entry, lambda doing: self.display.show(entries, self.left_s, doing)),
        )

    def _sample(self, model: Any) -> str:
        from lmlab.decode import generate

        pieces = max(20, SAMPLE_CHARACTERS // (1 if model.tokenizer.spec in ("byte", "char") else 4))
        return str(generate(model, "", max_tokens=pieces, seed=self.seed)[0].text)

    def _proof(self, model: Any) -> dict[str, Any] | None:
        """The claim held against a compressed file, on the beginning of the test text."""
        from lmlab.compress.proof import proof

        text = self.measured.documents[0].pieces().__next__()[:PROOF_BYTES]
        return proof(model, text).to_json()

    def _rank(self, entries: Sequence[Entry]) -> None:
        good = [e for e in entries if e.status == "ranked"]
        for entry, place in zip(good, rank([_scored(e) for e in good], seed=self.seed), strict=True):
            entry.rank = place

    def _document(self, entries: Sequence[Entry], yardsticks: Sequence[Yardstick], command: str) -> dict[str, Any]:
        ranked = [e for e in entries if e.rank is not None]
        entropy = self.corpus.entropy_bits_per_symbol
        return {
            "format": 1,
            "command": command,
            "versions": versions(),
            "budget_s": self.budget_s,
            "seconds": time.perf_counter() - self.started,
            "seed": self.seed,
            "corpus": {
                "name": self.corpus.name,
                "documents": self.corpus.documents,
                "parts": {n: {"bytes": p.bytes, "sha256": p.sha256} for n, p in self.corpus.parts.items()},
                "overlap": [str(overlap) for overlap in self.corpus.overlap().values()],
                "entropy_bits_per_byte": entropy,
            },
            "measured": {"bytes": self.measured.bytes, "of": self.corpus.test.bytes, "sha256": self.measured.sha256},
            "entries": [_entry_json(e) for e in entries],
            "yardsticks": [vars(y) for y in yardsticks],
            "pairs": [_pair(a, b, self.seed) for a, b in pairwise(ranked)],
            "differences": _differences(ranked),
        }


@dataclass
class _EntryWatch:
    """Passes training progress on to the display."""

    entry: Entry
    show: Callable[[str], None]

    def update(self, clock: Clock, train_bits: float, valid_bits: float | None) -> None:
        self.entry.fraction = min(1.0, clock.fraction)
        self.show(f"training {self.entry.name}")

    def say(self, line: str) -> None:
        self.entry.details["message"] = line


def first_bytes(part: Part, limit: int) -> Part:
    """The beginning of a part, at most about `limit` bytes, cut between characters."""
    documents: list[Document] = []
    left = limit
    for document in part.documents:
        if left <= 0:
            break
        if document.size > left:
            share = left / document.size
            document, _ = document.split_at(max(1, int(document.characters() * share)))
        documents.append(document)
        left -= document.size
    return Part(part.name, documents)


def _tail_bytes(part: Part, limit: int = 8 << 20) -> bytes:
    """The last bytes of a part, about `limit` of them."""
    blocks: list[bytes] = []
    for document in reversed(part.documents):
        blocks.append(b"".join(document.blocks())[-limit:])
        limit -= len(blocks[-1])
        if limit <= 0:
            break
    return b"".join(reversed(blocks))


def _scored(entry: Entry) -> Scored:
    assert entry.result is not None
    return entry.result.scored


def _order(entry: Entry) -> tuple[float, float]:
    """Ranked ones by bits per byte, then those whose certificate fails, then those without a number."""
    bits = entry.result.bits_per_byte if entry.result is not None else math.inf
    return ({"ranked": 0.0, "unranked": 1.0}.get(entry.status, 2.0), bits)


def _entry_json(entry: Entry) -> dict[str, Any]:
    found: dict[str, Any] = {
        "name": entry.name,
        "model": entry.model,
        "tokenizer": entry.tokenizer,
        "status": entry.status,
        "error": entry.error,
        "rank": entry.rank,
        "seconds": entry.seconds,
        "peak_memory_bytes": entry.peak_bytes,
        "reused": entry.reused,
        **entry.details,
    }
    if entry.run is None or entry.result is None:
        return found
    training = entry.run.config["training"]
    tokens, seconds = training.get("tokens", 0), training.get("seconds", 0.0)
    model = entry.run.model
    if entry.reused:  # what it took in all, not only to measure it again
        found["seconds"] += seconds
    flops = model.training_flops_per_token * tokens if isinstance(model, NeuralModel) else None
    return found | {
        "result": entry.result.to_json(),
        "training": {"tokens": tokens, "seconds": seconds, "steps": training.get("steps")},
        "training_flops": flops,
        "tokens_per_second": tokens / seconds if seconds > 0.01 else None,
        "curve": _curve(entry.run),
    }


def _curve(run: Run) -> list[dict[str, float]]:
    """Validation bits per byte over seconds. Spelling costs of unknown words are not in it: they do not change."""
    return [
        {"seconds": line["seconds"], "bits_per_byte": line["valid_bits_per_byte"]}
        for line in run.metrics
        if line["valid_bits_per_byte"] is not None
    ]


def _pair(better: Entry, worse: Entry, seed: int) -> dict[str, Any]:
    """How much better one entry is than the next, and how sure that is."""
    found = paired_difference(_scored(worse), _scored(better), seed=seed)
    finite = found.low is not None and math.isfinite(found.low)
    return {
        "better": better.name,
        "worse": worse.name,
        "difference": found.estimate if finite else None,
        "interval": [found.low, found.high] if finite else None,
        "real": not found.includes_zero,
    }


def _differences(ranked: Sequence[Entry]) -> dict[str, Any] | None:
    """Passages where the best beats the second best by most, and the reverse."""
    if len(ranked) < 2:
        return None
    best, second = ranked[0], ranked[1]
    return {
        "best": best.name,
        "second": second.name,
        "for_best": differing_passages(_scored(best), _scored(second)),
        "for_second": differing_passages(_scored(second), _scored(best)),
    }


def _remove_run(folder: Path) -> None:
    """Delete the files of an unfinished run that this comparison itself had begun."""
    for path in sorted(folder.rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()

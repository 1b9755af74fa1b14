"""The folder of a comparison: one process at a time works in it, and only the same comparison continues in it.

    OUT/ corpus.json  plan.json  models/RUN/  entries/RUN/ spec.json trained.json measured.json scores.safetensors look.json
         overlap.json  baselines.json  mixes/TOKENIZER.json  comparison.json  report.html  ranking.svg

Training time is part of a model's identity. So plan.json holds the requested terms and the planned training seconds, and a
comparison with other terms needs another folder. Folders without entries/ can be read too.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path
from typing import Any

from lmlab.comparison.entry_store import EntryStore, write_record
from lmlab.config import Budget, Mistake, Stopped
from lmlab.disk.files import made_folder, write_atomically
from lmlab.disk.locks import locked
from lmlab.models.registry import Way, file_name, kind_of
from lmlab.page.numbers import counted
from lmlab.records import from_json

PLAN, TEXT, MODELS, ENTRIES = "plan.json", "corpus.json", "models", "entries"


def entry_name(model: str, tokenizer: str, seed: int) -> str:
    """Return the name of the folders of one model, tokenizer and seed."""
    return f"{file_name(model)}-{tokenizer.replace(':', '')}" + (f"-seed{seed}" if seed else "")


@dataclass(frozen=True, kw_only=True)
class Terms:
    """The budget, time shares, device and trained runs that determine training time.

    runs: the folder names of the runs that learn, among which the time is divided.
    """

    budget_s: float | None  # None: every run has the budget `each`
    each: str | None
    shares: dict[str, float]
    device: str
    runs: tuple[str, ...]

    def cover(self, asked: Terms) -> bool:
        """Return whether models trained under these terms are the requested ones or include them."""
        same = replace(asked, runs=self.runs) == self
        return same and (self.each is not None or set(asked.runs) <= set(self.runs))

    def apart_from(self, asked: Terms) -> str:
        """Describe these terms for an error message: only the seeds if nothing else differs."""
        (mine, seeds), (wanted, others) = _kinds_and_seeds(self.runs), _kinds_and_seeds(asked.runs)
        if replace(asked, runs=self.runs) == self and wanted <= mine and not others <= seeds:
            return f"{_listed(seeds)}, not {_listed(others)}"
        return str(self)

    def __str__(self) -> str:
        time = f"a budget of {self.budget_s:g} s" if self.each is None else f"{self.each} each"
        return f"{time} for {counted(len(self.runs), 'run')} of models that learn"


def _kinds_and_seeds(runs: Sequence[str]) -> tuple[set[str], set[int]]:
    """Parse names of run folders into model names (with tokenizers) and seeds; see `entry_name`."""
    named = [run.partition("-seed") for run in runs]
    return {name for name, _, _ in named}, {int(seed or 0) for _, _, seed in named}


def _listed(seeds: set[int]) -> str:
    return f"{'seed' if len(seeds) == 1 else 'seeds'} {', '.join(map(str, sorted(seeds)))}"


@dataclass(frozen=True, kw_only=True)
class Plan:
    """The terms of a comparison, and the decisions made as it runs."""

    terms: Terms
    train_s: float | None = None  # training seconds of a run of share 1; None: not planned, or a budget in steps
    budget_s: float | None = None  # of the whole comparison, once known
    began: bool = False  # whether training has begun under these terms
    used_s: float = 0.0  # seconds used until this plan was last written
    settings: dict[str, dict[str, Any]] = field(default_factory=dict)  # by model, in folders without specifications
    test_bytes: int | None = None  # approximate bytes to score; None: not chosen yet
    on_cpu: tuple[str, ...] = ()  # runs that are scored on the CPU, because they are faster there


@dataclass
class ComparisonFolder:
    """A folder that this process has locked."""

    path: Path
    plan: Plan

    def note(self, **changes: Any) -> None:
        """Write changes to the plan, such as decisions and used seconds."""
        self.plan = replace(self.plan, **changes)
        write_record(self.path / PLAN, self.plan)

    def store(self, name: str) -> EntryStore:
        """Return the store of one run."""
        return EntryStore(self.path / ENTRIES / name, self.path / MODELS / name)


def kept_in(folder: Path) -> str:
    """Return the message that tells where the results of a stopped comparison are and how to continue."""
    return f"what was trained and measured is kept in {folder}: the same command goes on"


@contextmanager
def claimed(out: Path, text: Mapping[str, Any], terms: Terms, *, beside: bool) -> Iterator[ComparisonFolder]:
    """Lock the folder `out` for the block, and write the corpus specification there if it is new.

    Args:
        out: the folder.
        text: the specification of the corpus.
        terms: the terms of the comparison.
        beside: if `out` holds another comparison, take `out-2`, `out-3` and so on.

    Raises:
        Mistake: the folder holds something else, or another process works in it.
    """
    for number in count(1):
        path = out if number == 1 else out.with_name(f"{out.name}-{number}")
        if path.is_file():
            raise Mistake(
                f"{path} is a file; name a new folder with {{out}}", code="comparison-folder-is-file", out=None
            )
        made_folder(path)
        busy = Mistake(
            f"another process is at work in {path}; wait for it, or name a new folder with {{out}}",
            code="comparison-folder-busy",
            out=None,
        )
        with locked(path, busy):
            why = _held_against(path, text, terms)
            if not why:
                try:
                    yield _opened(path, text, terms)
                except KeyboardInterrupt:
                    raise Stopped(kept_in(path)) from None
                return
        if not beside:
            raise Mistake(f"{path} {why}; name a new folder with {{out}}", code="comparison-folder-taken", out=None)


def _held_against(path: Path, text: Mapping[str, Any], terms: Terms) -> str:
    """Return why a comparison with these terms cannot continue in this folder; empty: it can."""
    if not (path / TEXT).exists():
        return "is not empty and holds no comparison" if _visible(path) else ""
    if _read(path / TEXT).get("parts") != text["parts"]:
        return "holds a comparison on another text, or divided otherwise"
    plan = _plan(path)
    if plan is not None:
        return (
            ""
            if not plan.began or plan.terms.cover(terms)
            else f"holds a comparison with {plan.terms.apart_from(terms)}"
        )
    learned = [run for run in _runs(path) if kind_of(run).way is Way.LEARNS]
    return f"holds a {learned[0]} of an older version, without its terms" if learned else ""


def _opened(path: Path, text: Mapping[str, Any], terms: Terms) -> ComparisonFolder:
    if not (path / TEXT).exists():
        write_atomically(path / TEXT, json.dumps(text, indent=2).encode())
    plan = _plan(path)
    if plan is None or not (plan.began and plan.terms.cover(terms)):
        plan = Plan(terms=terms, settings={} if plan is None else plan.settings)
    return ComparisonFolder(path, plan)


def _plan(path: Path) -> Plan | None:
    if not (path / PLAN).exists():
        return None
    document = _read(path / PLAN)
    try:
        each_s = document["terms"].pop("each_s", None)  # format with seconds only
        document["terms"].setdefault("each", None if each_s is None else str(Budget(seconds=each_s)))
        plan = from_json(Plan, document)
        return replace(plan, began=plan.began or plan.train_s is not None)
    except (ValueError, TypeError, KeyError, AttributeError):  # valid JSON but no plan
        raise _damaged(path / PLAN) from None


def _read(path: Path) -> dict[str, Any]:
    try:
        found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except ValueError:
        raise _damaged(path) from None
    if not isinstance(found, dict):
        raise _damaged(path)
    return found


def _damaged(path: Path) -> Mistake:
    return Mistake(f"{path} is damaged; name a new folder with {{out}}", code="comparison-folder-damaged", out=None)


def _runs(path: Path) -> list[str]:
    """Return the model names of the runs in a folder."""
    stores = [EntryStore(path / ENTRIES / run.name, run) for run in sorted((path / MODELS).glob("*"))]
    return [store.run.record.model.name for store in stores if store.has_run]


def _visible(path: Path) -> bool:
    return any(not inside.name.startswith(".") for inside in path.iterdir())

"""The folder of a comparison: one process at a time works in it, and it goes on only with what it began.

How long a model was trained belongs to what it is. So plan.json keeps what was asked for and how many seconds of training that
came to; asked for something else, the folder is taken.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path
from typing import Any

from lmlab.config import Mistake, Stopped
from lmlab.disk.files import made_folder, write_atomically
from lmlab.disk.locks import locked
from lmlab.learn.run import load_run
from lmlab.models.registry import Way, kind_of
from lmlab.page.numbers import counted
from lmlab.records import from_json, to_json

PLAN, TEXT, MODELS = "plan.json", "corpus.json", "models"


@dataclass(frozen=True, kw_only=True)
class Terms:
    """What decides how long a model trains. runs: the folders of the learned models, among which the time is divided."""

    budget_s: float | None  # None: every run has `each_s`
    each_s: float | None
    shares: dict[str, float]
    device: str
    runs: tuple[str, ...]

    def cover(self, asked: Terms) -> bool:
        """Whether models trained under these terms are those that are asked for: the same ones, or some of them."""
        same = replace(asked, runs=self.runs) == self
        return same and (self.each_s is not None or set(asked.runs) <= set(self.runs))

    def apart_from(self, asked: Terms) -> str:
        """What these terms are where they do not cover what is asked: the seeds, if nothing else differs, or all of it."""
        (mine, seeds), (wanted, others) = _kinds_and_seeds(self.runs), _kinds_and_seeds(asked.runs)
        if replace(asked, runs=self.runs) == self and wanted <= mine and not others <= seeds:
            return f"{_listed(seeds)}, not {_listed(others)}"
        return str(self)

    def __str__(self) -> str:
        time = f"a budget of {self.budget_s:g} s" if self.each_s is None else f"{self.each_s:g} s each"
        return f"{time} for {counted(len(self.runs), 'run')} of models that learn"


def _kinds_and_seeds(runs: Sequence[str]) -> tuple[set[str], set[int]]:
    """What the names of the folders of runs say: see `Contender.folder`."""
    named = [run.partition("-seed") for run in runs]
    return {name for name, _, _ in named}, {int(seed or 0) for _, _, seed in named}


def _listed(seeds: set[int]) -> str:
    return f"{'seed' if len(seeds) == 1 else 'seeds'} {', '.join(map(str, sorted(seeds)))}"


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What a comparison began with, and how far it came."""

    terms: Terms
    train_s: float | None = None  # of a run of share 1; None: no model has begun to learn
    used_s: float = 0.0  # of the budget, up to the last time that this was written
    settings: dict[str, dict[str, Any]] = field(default_factory=dict)  # of each model, that were asked for
    test_bytes: int | None = None  # that were to be measured, once that was chosen: again, it is the same text


@dataclass
class ComparisonFolder:
    """A folder that is ours while this process works in it."""

    path: Path
    plan: Plan

    def note(self, **changes: Any) -> None:
        """Write down how far the comparison came."""
        self.plan = replace(self.plan, **changes)
        write_atomically(self.path / PLAN, json.dumps(to_json(self.plan), indent=2).encode())


def kept_in(folder: Path) -> str:
    """What there is of a comparison that was stopped, and how it goes on."""
    return f"what was trained is kept in {folder}: the same command goes on"


@contextmanager
def claimed(out: Path, text: Mapping[str, Any], terms: Terms, *, beside: bool) -> Iterator[ComparisonFolder]:
    """The folder `out`, locked while it lasts; a Mistake where it holds something else or somebody works in it.

    text: the spec of the corpus. beside: where it holds something else, `out-2`, `out-3` and so on instead.
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
    """Why a comparison on these terms cannot go on in this folder; empty: it can."""
    if not (path / TEXT).exists():
        return "is not empty and holds no comparison" if _visible(path) else ""
    if _read(path / TEXT).get("parts") != text["parts"]:
        return "holds a comparison on another text, or divided otherwise"
    plan = _plan(path)
    if plan is not None:
        return (
            ""
            if plan.train_s is None or plan.terms.cover(terms)
            else f"holds a comparison with {plan.terms.apart_from(terms)}"
        )
    learned = [run for run in _runs(path) if kind_of(run).way is Way.LEARNS]
    return f"holds a {learned[0]} of an older version, without its terms" if learned else ""


def _opened(path: Path, text: Mapping[str, Any], terms: Terms) -> ComparisonFolder:
    if not (path / TEXT).exists():
        write_atomically(path / TEXT, json.dumps(text, indent=2).encode())
    plan = _plan(path)
    if plan is None or plan.train_s is None or not plan.terms.cover(terms):
        plan = Plan(terms=terms, settings={} if plan is None else plan.settings)
    return ComparisonFolder(path, plan)


def _plan(path: Path) -> Plan | None:
    if not (path / PLAN).exists():
        return None
    document = _read(path / PLAN)
    try:
        return from_json(Plan, document)
    except (TypeError, AttributeError):  # it is JSON, and no plan
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
    """The kinds of the models in it."""
    return [load_run(config.parent).record.model.name for config in sorted((path / MODELS).glob("*/config.json"))]


def _visible(path: Path) -> bool:
    return any(not inside.name.startswith(".") for inside in path.iterdir())

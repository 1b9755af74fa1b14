"""The sweep itself. It answers what one run per cell cannot: which differences are real?

A job runs with one thread and a budget of steps or tokens, so that its numbers are the same whether jobs run one by one,
side by side in processes, or on a cluster.
"""

from __future__ import annotations

import json
import math
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from lmlab.comparison.text_to_measure import token_bytes
from lmlab.config import Budget, Mistake, Stopped, make
from lmlab.disk.files import made_folder, taken_by_a_file, write_atomically
from lmlab.disk.locks import locked
from lmlab.hardware.choice import choose_device
from lmlab.interface import ContextPolicy
from lmlab.learn.settings import MOST_SEEDS, refuse_if_it_counts, training_config
from lmlab.measure.spread_sample import enough_history
from lmlab.models.registry import Way, file_name, kind_of, language_model, model_class
from lmlab.page.notebook import panel
from lmlab.records import from_json, to_json
from lmlab.sweeps import runners
from lmlab.sweeps.best_cell import best_by_validation, tied_with
from lmlab.sweeps.cells import Cell, Unit, collect, unit_of
from lmlab.sweeps.differences import Difference, differences
from lmlab.sweeps.figure import draw
from lmlab.sweeps.grid import HISTORY_BYTES, TOKENIZER, Job, Outcome, Point, grid, plan
from lmlab.text.corpus import Corpus, read, stem
from lmlab.text.files_and_folders import Text
from lmlab.text.splitting import SplitBy
from lmlab.text.tokenizers import plain_spec
from lmlab_derive.shared import html

Told = Callable[[Outcome], None]  # of every job that ends


@dataclass(frozen=True, kw_only=True)
class Sweep:
    """What a sweep found. figure: the picture of it."""

    model: str
    cells: list[Cell]
    differences: list[Difference]
    runs: int
    figure: Path
    best: Cell | None = None  # by validation; None where that is not known

    def __repr__(self) -> str:
        best = "" if self.best is None else f", best by validation: {dict(self.best.settings)}"
        return f"Sweep({self.model}, {len(self.cells)} cells, {self.runs} runs{best})"

    def _repr_html_(self) -> str:
        """The picture, for a notebook."""
        best = (
            {} if self.best is None else {f"best {key} by validation": str(v) for key, v in self.best.settings.items()}
        )
        return panel(f"A sweep of {self.model}", best, draw(self.cells))

    @property
    def unit(self) -> Unit:
        """Of the means and the differences."""
        return unit_of(self.cells)

    @property
    def tied(self) -> list[Cell]:
        """Those whose validation is, to the digits that are shown, that of the best."""
        return tied_with(self.best, self.cells)

    @property
    def failed(self) -> int:
        """How many of the runs failed."""
        return sum(len(cell.errors) for cell in self.cells)

    @property
    def left(self) -> int:
        """How many of the runs had no turn, because someone stopped the sweep."""
        return self.runs - sum(len(cell.seeds) + len(cell.errors) for cell in self.cells)

    def to_json(self) -> dict[str, Any]:
        """Everything as JSON can hold it."""
        return {
            "model": self.model,
            "cells": [cell.to_json(self.unit) for cell in self.cells],
            "unit": self.unit,
            "best": None if self.best is None else self.best.settings,
            "tied": [cell.settings for cell in self.tied],
            "differences": to_json(self.differences),
            "runs": self.runs,
            "left": self.left,
            "figure": str(self.figure),
        }


def sweep(
    model: str,
    text: str | Path | Sequence[str | Path] | Corpus = "sotu",
    *,
    over: Sequence[str] | Mapping[str, Sequence[Any]],
    out: str | Path | None = None,
    seeds: int = 3,
    budget: str | Budget = "300steps",
    tokenizer: str | None = None,
    split: Sequence[float] = (80, 10, 10),
    split_by: SplitBy = "auto",
    valid: Text | None = None,
    test: Text | None = None,
    settings: Mapping[str, Any] | None = None,
    learning: Mapping[str, Any] | None = None,
    jobs: int = 1,
    ray: str | None = None,
    device: str = "cpu",
    watch: Told | None = None,
    progress: bool = False,
) -> Sweep:
    """Train a grid of settings with several seeds, and say which differences are real.

    over: the axes, {"layers": [2, 4]} or ["layers=2,4"]: settings of the model or of the training loop, or the tokenizer.
    seeds: runs per cell; a model that counts has one, since it comes out the same with every seed.
    budget: of each run, in steps or tokens. settings, learning, tokenizer ("char" if None): what all points share.
    jobs: processes side by side. ray: the address of a cluster; "local" starts one here.
    device: auto, cpu, cuda or mps. progress: say on stderr which runs have ended; watch: whoever wants to know, instead.
    The same folder `out` (runs/sweep-MODEL-TEXT, if none is named) again goes on: results are kept there, failures are tried
    again. Ctrl-C (or a polite kill that is made a KeyboardInterrupt) ends it with what there is; `left` of it then says how
    many runs had no turn.
    """
    if not 1 <= seeds <= MOST_SEEDS or jobs < 1:
        message = f"{{seeds}} is a whole number from 1 to {MOST_SEEDS}, and {{jobs}} one from 1 up"
        raise Mistake(message, code="sweep-numbers-out-of-range", seeds=None, jobs=None)
    budget = Budget.parse(budget)
    if budget.seconds is not None:
        raise Mistake(
            "a sweep needs a budget of steps or tokens, such as {budget}: seconds would differ from run to run",
            code="sweep-budget-of-time",
            budget="300steps",
        )
    if ray is None:  # else it is for other machines to say
        choose_device(device)
    language_model(model)
    refuse_if_it_counts(model, learning=learning)
    points = grid(model, over)
    fixed = dict(settings or {})
    learned = dict(learning or {})
    fixed_too = {"settings": fixed, "learning": learned, TOKENIZER: {} if tokenizer is None else {TOKENIZER: tokenizer}}
    for option, given in fixed_too.items():
        if twice := set(given) & set(points[0]):
            both = f"{{{option}}} and {{over}} both name {', '.join(sorted(twice))}; leave one of them out"
            raise Mistake(both, code="fixed-beside-axis", over=None, **{option: None})
    spec = plain_spec("char" if tokenizer is None else tokenizer)
    corpus = text if isinstance(text, Corpus) else read(text, valid=valid, test=test, split=split, split_by=split_by)
    if not corpus.test.bytes and not corpus.valid.bytes:
        instead = "give one a share above 0 in {split}" if test is None and valid is None else "name one with {test}"
        raise Mistake(
            f"{corpus.name} has no test or validation part to measure on; {instead}",
            code="sweep-without-held-out-part",
            split=None,
            test=None,
        )
    folder = Path("runs") / f"sweep-{file_name(model)}-{stem(text)}" if out is None else Path(out)
    planned = plan(
        model,
        corpus.spec(),
        points,
        fixed=fixed,
        learning=learned,
        tokenizer=spec,
        budget=str(budget),
        seeds=1 if kind_of(model).way is Way.COUNTS else seeds,
        folder=folder,
        device=device,
        history_bytes=history_for(corpus, [{TOKENIZER: spec, **fixed, **point} for point in points]),
    )
    for job in planned:  # a value that cannot be is refused before anything runs
        make(model_class(model).Config, job.settings, model)
        training_config(budget, job.seed, job.learning)
    with _claimed(folder):
        outcomes = run_jobs(planned, processes=jobs, ray=ray, watch=watch or (tell if progress else None))
        if len({outcome.measured for outcome in outcomes.values() if outcome.measured is not None}) > 1:
            raise Mistake(
                f"{folder} holds results that were measured on other bytes; name a new folder with {{out}}",
                code="sweep-of-other-bytes",
                out=None,
            )
        cells = collect(points, outcomes, planned)
        figure = html.write(folder / "sweep.svg", draw(cells))
    return Sweep(
        model=model,
        cells=cells,
        differences=differences(cells),
        runs=len(planned),
        figure=figure,
        best=best_by_validation(cells),
    )


def history_for(corpus: Corpus, asked: Sequence[Point]) -> int:
    """Bytes that all jobs read before each stretch: as many as the longest window that is asked for holds."""
    part = corpus.test if corpus.test.bytes else corpus.valid
    windows = [
        (ContextPolicy.last(settings["context"]), token_bytes(part, settings[TOKENIZER]))
        for settings in asked
        if isinstance(settings.get("context"), int)
    ]
    return max(HISTORY_BYTES, enough_history(windows))


@contextmanager
def _claimed(folder: Path) -> Iterator[None]:
    """One sweep at a time works in a folder, and in none that holds something else."""
    if taken := taken_by_a_file(folder):
        raise Mistake(
            f"{taken} is a file, and nothing can be in it; name a new folder with {{out}}",
            code="sweep-folder-below-file",
            out=None,
        )
    for name, what in (("config.json", "run"), ("corpus.json", "comparison")):
        if (folder / name).exists():
            raise Mistake(
                f"{folder} holds a {what}; name a new folder with {{out}}", code="sweep-folder-taken", out=None
            )
    wait = f"another process is at work in {folder}; wait for it, or name a new folder with {{out}}"
    with locked(made_folder(folder), Mistake(wait, code="sweep-folder-busy", out=None)):
        yield


def tell(outcome: Outcome) -> None:
    """A line on stderr for a run that ended."""
    found = f"failed: {outcome.error}" if outcome.error else f"{outcome.bits_per_byte:.4f} bits per byte"
    print(f"{Path(outcome.job.out).name}: {found}", file=sys.stderr, flush=True)


def run_jobs(
    jobs: Sequence[Job], *, processes: int = 1, ray: str | None = None, watch: Told | None = None
) -> dict[str, Outcome]:
    """Run every job that has no result yet; returns outcomes by job folder. A job that fails does not stop the others.

    A result is kept in the job's folder. A failure is not: the next sweep of the same folder tries again.
    """
    known = {job.out: _known(job) for job in jobs}
    found = {out: outcome for out, outcome in known.items() if outcome is not None}
    missing = [job for job in jobs if job.out not in found]
    runner = runners.on_ray(missing, ray) if ray is not None else runners.in_processes(missing, processes)
    try:
        for outcome in runner:
            found[outcome.job.out] = outcome
            if not outcome.error:  # written here, because a cluster's machine may have other disks
                write_atomically(_result_path(outcome.job), json.dumps(to_json(outcome), indent=2).encode())
            if watch is not None:
                watch(outcome)
    except KeyboardInterrupt:
        if not found:
            raise Stopped("no run had come to its end; the same command begins again") from None
    return found


def _result_path(job: Job) -> Path:
    return Path(job.out) / "result.json"


def _asked(job: Job) -> Job:
    """The job without where its files lie, so that a sweep may be moved: of its text only the parts count."""
    return replace(job, corpus=job.corpus["parts"], out="")


def _known(job: Job) -> Outcome | None:
    """The result from before, if it belongs to exactly this job; an unfinished attempt is cleared away."""
    path = _result_path(job)
    if path.exists():
        try:
            found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        except ValueError:
            raise Mistake(
                f"{path} is damaged; delete {job.out} to train it again", code="sweep-attempt-damaged"
            ) from None
        if _asked(from_json(Job, found["job"])) != _asked(from_json(Job, json.loads(json.dumps(to_json(job))))):
            raise Mistake(
                f"{job.out} holds a result of other settings; name a new folder with {{out}}",
                code="sweep-attempt-of-other-settings",
                out=None,
            )
        return _with_infinities(from_json(Outcome, found), "valid_bits_per_byte" in found)
    if (folder := Path(job.out)).exists():
        if not folder.is_dir() or any(path.name != "run" and path.name[0] != "." for path in folder.iterdir()):
            raise Mistake(
                f"{folder} is no attempt of this sweep; name a new folder with {{out}}",
                code="sweep-attempt-unknown",
                out=None,
            )
        shutil.rmtree(folder)
    return None


def _with_infinities(outcome: Outcome, has_valid: bool) -> Outcome:
    """JSON has null for what is infinite. has_valid: the validation part was measured, if there is one."""

    def number(value: float | None) -> float:
        return math.inf if value is None else value

    has_valid = has_valid and outcome.job.corpus["parts"]["valid"]["bytes"] > 0
    return replace(
        outcome,
        perplexity=number(outcome.perplexity),
        bits_per_byte=number(outcome.bits_per_byte),
        valid_bits_per_byte=number(outcome.valid_bits_per_byte) if has_valid else None,
    )

"""`sweep`: a comparison of the points of a grid, which says which differences are real.

Every run has one thread and a budget of steps or tokens, so that its numbers are the same whether runs are made one by one,
side by side in processes, or on a cluster.

    OUT/ NAME/ spec.json trained.json measured.json run/   for each point and seed
         sweep.svg

Folders of older versions, with result.json in the place of these records, are read too.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lmlab.comparison.choose_text import token_bytes
from lmlab.comparison.entry_records import EntrySpec, TextChoice
from lmlab.comparison.entry_store import MEASURED, SPEC, TRAINED, EntryStore
from lmlab.comparison.executors import Executor, RayCluster, executor_of
from lmlab.comparison.work import Outcome, Task, attempt
from lmlab.config import Budget, Mistake, Stopped, make
from lmlab.disk.files import made_folder, taken_by_a_file
from lmlab.disk.locks import locked
from lmlab.hardware.choice import choose_device
from lmlab.interface import ContextPolicy
from lmlab.learn.run_folder import record_file
from lmlab.learn.settings import MOST_SEEDS, refuse_if_it_counts, training_config
from lmlab.measure.spread_sample import enough_history
from lmlab.models.registry import Way, file_name, kind_of, language_model, model_class
from lmlab.page.notebook import panel
from lmlab.records import to_json
from lmlab.sweeps.best_cell import best_by_validation, tied_with
from lmlab.sweeps.differences import Difference, differences
from lmlab.sweeps.figure import draw
from lmlab.sweeps.grid import TOKENIZER, Point, grid, specs_of
from lmlab.sweeps.older_results import RESULT, read_older_result
from lmlab.sweeps.table import Cell, Unit, collect, error_of, unit_of
from lmlab.text.corpus import Corpus, read, stem
from lmlab.text.files_and_folders import Text
from lmlab.text.splitting import SplitBy
from lmlab.text.tokenizers import plain_spec
from lmlab_derive.shared import html

TEST_BYTES = 120_000  # measured, spread over the test part: more would take longer than training does
VALID_BYTES = 60_000  # likewise, of the validation part, by which the best cell is chosen
HISTORY_BYTES = 2048  # read before each stretch that is measured, where no window that is asked for holds more
OURS = (SPEC, TRAINED, MEASURED, RESULT, "run")  # what a run of a sweep may have in its folder
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
    executor: str | None = None,
    watch: Told | None = None,
    progress: bool = False,
) -> Sweep:
    """Train a grid of settings with several seeds, and say which differences are real.

    over: the axes, {"layers": [2, 4]} or ["layers=2,4"]: settings of the model or of the training loop, or the tokenizer.
    seeds: runs per cell; a model that counts has one, since it comes out the same with every seed.
    budget: of each run, in steps or tokens. settings, learning, tokenizer ("char" if None): what all points share.
    jobs: processes side by side. ray: the address of a cluster; "local" starts one here. executor: instead of both, here,
        processes:N or ray:ADDRESS.
    device: auto, cpu, cuda or mps. progress: say on stderr which runs have ended; watch: whoever wants to know, instead.
    The same folder `out` (runs/sweep-MODEL-TEXT, if none is named) again goes on: nothing that is finished is trained or
    measured again, and failures are tried again. Ctrl-C (or a polite kill that is made a KeyboardInterrupt) ends it with what
    there is; `left` of it then says how many runs had no turn.
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
    works = executor_of(executor or (f"processes:{jobs}" if ray is None else f"ray:{ray}"))
    if not isinstance(works, RayCluster):  # else it is for other machines to say
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
    runs = specs_of(
        model,
        corpus,
        points,
        fixed=fixed,
        learning=learned,
        tokenizer=spec,
        budget=str(budget),
        seeds=1 if kind_of(model).way is Way.COUNTS else seeds,
        device=device,
    )
    for _, asked in runs.values():  # a value that cannot be is refused before anything runs
        make(model_class(model).Config, asked.settings, model)
        training_config(budget, asked.seed, asked.learning)
    history = history_for(corpus, [{TOKENIZER: spec, **fixed, **point} for point in points])
    with _claimed(folder):
        tasks = tasks_of([asked for _, asked in runs.values()], corpus, folder.resolve(), history)
        outcomes = run_tasks(tasks, works, watch or (tell if progress else None))
        cells = collect({name: point for name, (point, _) in runs.items()}, outcomes)
        if len({cell.measured for cell in cells if cell.measured is not None}) > 1:
            raise Mistake(
                f"{folder} holds results that were measured on other bytes; name a new folder with {{out}}",
                code="sweep-of-other-bytes",
                out=None,
            )
        figure = html.write(folder / "sweep.svg", draw(cells))
    return Sweep(
        model=model,
        cells=cells,
        differences=differences(cells),
        runs=len(runs),
        figure=figure,
        best=best_by_validation(cells),
    )


def history_for(corpus: Corpus, asked: Sequence[Point]) -> int:
    """Bytes that all runs read before each stretch: as many as the longest window that is asked for holds."""
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
    for what, is_one in (("run", record_file(folder)), ("comparison", (folder / "corpus.json").exists())):
        if is_one:
            raise Mistake(
                f"{folder} holds a {what}; name a new folder with {{out}}", code="sweep-folder-taken", out=None
            )
    wait = f"another process is at work in {folder}; wait for it, or name a new folder with {{out}}"
    with locked(made_folder(folder), Mistake(wait, code="sweep-folder-busy", out=None)):
        yield


def tasks_of(specs: Sequence[EntrySpec], corpus: Corpus, folder: Path, history_bytes: int) -> list[Task]:
    """What is to be done for each run: train it with one thread, and measure it; the validation part too, if there is one."""
    part = corpus.test if corpus.test.bytes else corpus.valid
    text = TextChoice(part=part.name, bytes=TEST_BYTES, history_bytes=history_bytes)
    by_validation = TextChoice(part="valid", bytes=VALID_BYTES, history_bytes=history_bytes)
    written = corpus.spec()
    return [
        Task(
            spec=spec,
            corpus=written,
            records=str(folder / spec.name),
            run=str(folder / spec.name / "run"),
            text=text,
            validation=by_validation if corpus.valid.bytes else None,
            seed=spec.seed,
            threads=1,
        )
        for spec in specs
    ]


def run_tasks(tasks: Sequence[Task], executor: Executor, watch: Told | None = None) -> dict[str, Outcome]:
    """Bring every run to its end that is not there yet; returns outcomes by name. One that fails does not stop the others."""
    found = {task.spec.name: outcome for task in tasks if (outcome := finished(task)) is not None}
    missing = [task for task in tasks if task.spec.name not in found]
    for task in missing:
        _store(task).write_spec(task.spec)
    try:
        for outcome in executor.run(missing, attempt):
            found[outcome.name] = outcome
            _store(outcome.task).take(outcome.trained, outcome.measured)
            if watch is not None:
                watch(outcome)
    except KeyboardInterrupt:
        if not found:
            raise Stopped("no run had come to its end; the same command begins again") from None
    return found


def finished(task: Task) -> Outcome | None:
    """What the records of a run say; None: it is not finished. An attempt at something else, unfinished, is cleared away."""
    folder = Path(task.records)
    if not folder.exists():
        return None
    if not folder.is_dir() or any(path.name not in OURS and path.name[0] != "." for path in folder.iterdir()):
        raise Mistake(
            f"{folder} is no attempt of this sweep; name a new folder with {{out}}",
            code="sweep-attempt-unknown",
            out=None,
        )
    older = read_older_result(folder, task)
    store = _store(task)
    spec, measured = (store.spec, store.measured) if older is None else (older.task.spec, older.measured)
    if spec is None or to_json(spec) != to_json(task.spec):
        if measured is None:
            shutil.rmtree(folder)
            return None
        raise Mistake(
            f"{folder} holds a result of other settings; name a new folder with {{out}}",
            code="sweep-attempt-of-other-settings",
            out=None,
        )
    if older is not None:
        return older
    same = measured is not None and measured.text == task.text
    return Outcome(task=task, trained=store.trained, measured=measured) if same else None


def _store(task: Task) -> EntryStore:
    return EntryStore(Path(task.records), Path(task.run))


def tell(outcome: Outcome) -> None:
    """A line on stderr for a run that ended."""
    error = error_of(outcome)
    bits = "" if outcome.measured is None else f"{outcome.measured.bits_per_byte:.4f} bits per byte"
    print(f"{outcome.name}: {f'failed: {error}' if error else bits}", file=sys.stderr, flush=True)

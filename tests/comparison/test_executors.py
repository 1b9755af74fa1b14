"""An executor is one file and one line: whatever runs tasks in any order, a sweep and a comparison are the same."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

import lmlab as lab
from lmlab.comparison.executors import EXECUTORS, executor_of
from lmlab.comparison.executors.here import Here
from lmlab.comparison.executors.processes import Processes
from lmlab.comparison.work import Outcome, Task
from mistakes import mistake


class Backwards:
    """An executor that somebody adds: it begins with the last task."""

    def __init__(self, rest: str) -> None:
        self.rest = rest

    def run(self, tasks: Sequence[Task], work: Callable[[Task], Outcome]) -> Iterator[Outcome]:
        return map(work, reversed(tasks))


def test_an_executor_that_is_added_runs_sweeps_and_comparisons(
    small_text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(EXECUTORS, "backwards", f"{__name__}:Backwards")
    told: list[str] = []
    swept = [
        lab.sweep("ngram", small_text, over=["order=1,2"], out=tmp_path / name, executor=name, watch=watch)
        for name, watch in (("here", None), ("backwards", lambda outcome: told.append(outcome.name)))
    ]
    assert swept[0].to_json()["cells"] == swept[1].to_json()["cells"]
    assert told == ["order=2-seed0", "order=1-seed0"]
    found = lab.compare(
        small_text, models=["bag", "uniform"], each="5steps", executor="backwards", out=tmp_path / "c", device="cpu"
    )
    assert {entry.status for entry in found.entries} == {"ranked"}


def test_an_executor_is_named_with_what_it_needs() -> None:
    assert isinstance(executor_of("here"), Here)
    processes = executor_of("processes:3")
    assert isinstance(processes, Processes)
    assert processes.count == 3
    for spec, code in (("processes:0", "processes-not-a-number"), ("processes:", "processes-not-a-number")):
        with mistake(code):
            executor_of(spec)
    with mistake("executor-unknown", "here"):
        executor_of("her")


class Elsewhere(Backwards):
    """Planted: its machines write their records where nobody reads them."""

    def run(self, tasks: Sequence[Task], work: Callable[[Task], Outcome]) -> Iterator[Outcome]:
        return (Outcome(task=task) for task in tasks)


def test_an_executor_that_leaves_no_records_is_not_asked_for_ever(
    small_text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(EXECUTORS, "elsewhere", f"{__name__}:Elsewhere")
    with mistake("comparison-without-records", "train left no record"):
        lab.compare(small_text, models=["bag"], each="5steps", executor="elsewhere", out=tmp_path / "c", device="cpu")

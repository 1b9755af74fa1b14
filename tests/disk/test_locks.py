"""One process at a time works in a folder: who comes second gets one line, waits, or is not kept from it."""

from __future__ import annotations

import errno
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import lmlab as lab
from command_line import Lmlab, refused
from lmlab.config import Mistake
from lmlab.disk import locks
from lmlab.hardware import kept_figures
from mistakes import mistake


@contextmanager
def somebody_in(folder: str) -> Iterator[None]:
    """Another process has the lock: a file that is opened twice is locked once, whoever opened it."""
    Path(folder).mkdir(exist_ok=True)
    with open(Path(folder) / locks.LOCK, "a+b") as other:
        assert locks._lock(other)
        yield


@pytest.mark.parametrize(
    "verb",
    [
        ["train", "bag", "small.txt"],
        pytest.param(["sweep", "ngram", "small.txt", "--over", "order=1,2"], marks=pytest.mark.slow),
        ["compare", "small.txt", "--models", "bag"],
        ["mix", "one", "two"],
    ],
)
def test_who_comes_second_gets_one_line_and_writes_nothing(lmlab: Lmlab, small_text: Path, verb: list[str]) -> None:
    for model, name in (("bag", "one"), ("ngram", "two")):
        assert lmlab("train", model, small_text, "--out", name)[0] == 0
    with somebody_in("out"):
        code, out, err = lmlab(*verb, "--out", "out")
    assert (code, out) == (2, "")
    assert err.splitlines()[-1].startswith("lmlab: another ")
    assert "in out; wait for it" in err.splitlines()[-1]
    assert [path.name for path in Path("out").iterdir()] == [locks.LOCK]
    assert lmlab(*verb, "--out", "out")[0] == 0


def test_processes_of_one_training_work_under_the_lock_of_their_writer(tmp_path: Path) -> None:
    busy = Mistake("another process works here", code="run-folder-busy")
    with somebody_in(str(tmp_path)):
        with locks.locked(tmp_path, busy, writer=False):
            pass
        with mistake("run-folder-busy"), locks.locked(tmp_path, busy):
            pass


def test_a_sweep_does_not_settle_in_a_run_a_comparison_or_a_file(lmlab: Lmlab, small_text: Path) -> None:
    assert lmlab("train", "bag", small_text, "--out", "run")[0] == 0
    assert lmlab("compare", small_text, "--models", "bag", "--out", "compared")[0] == 0
    for place, why in (("run", "holds a run"), ("compared", "holds a comparison"), (small_text, "is a file")):
        refused(lmlab("sweep", "ngram", small_text, "--over", "order=1,2", "--out", place), why)


@pytest.mark.skipif(sys.platform == "win32", reason="another call locks there")
def test_a_file_system_without_locks_keeps_nobody_from_working(
    small_text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unknown(*_: object) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr("fcntl.flock", unknown)
    assert lab.train("bag", small_text, out=tmp_path / "run").status == "finished"


def test_a_lock_that_was_let_go_is_taken_anew(tmp_path: Path) -> None:
    busy = Mistake("somebody is here", code="busy")
    with locks.locked(tmp_path, busy), locks.locked(tmp_path, busy, again=True):
        pass
    with somebody_in(str(tmp_path)), pytest.raises(Mistake), locks.locked(tmp_path, busy, again=True):
        pass


def test_in_turn_one_waits_for_the_other_though_not_forever(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[bool] = []
    answers = iter([False, False, True])

    def look(_: object) -> bool:
        looked.append(next(answers, False))
        return looked[-1]

    monkeypatch.setattr(locks, "LOOK_S", 0.0)
    with monkeypatch.context() as patch:
        patch.setattr(locks, "_lock", look)
        with locks.in_turn(tmp_path / "new"):
            assert looked == [False, False, True]
    monkeypatch.setattr(locks, "MOST_WAITING_S", 0.0)
    with somebody_in(str(tmp_path)), locks.in_turn(tmp_path):
        pass  # it is asleep, perhaps
    (tmp_path / "file").touch()
    with locks.in_turn(tmp_path / "file" / "folder"):
        pass  # where nothing can be written


def test_who_waited_while_the_machine_was_measured_takes_those_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    kept_figures.forget()
    honest: Any = kept_figures.measure
    measured: list[str] = []

    def measure(device: str, key: dict[str, str]) -> kept_figures.Found:
        measured.append(device)
        return honest(device, key)  # type: ignore[no-any-return]

    @contextmanager
    def meanwhile(folder: Path) -> Iterator[None]:
        """Another process measures first."""
        with monkeypatch.context() as patch:
            patch.setattr(kept_figures, "in_turn", locks.in_turn)
            kept_figures.find()
            kept_figures.forget()
        yield

    monkeypatch.setattr(kept_figures, "measure", measure)
    monkeypatch.setattr(kept_figures, "in_turn", meanwhile)
    assert kept_figures.find().kept
    assert measured == ["cpu"]

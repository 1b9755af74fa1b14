"""Ctrl-C and polite kills at chosen moments: the exit code says which it was, one last line what is kept and how to go on."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import typer.core

import lmlab as lab
from command_line import Lmlab
from lmlab.cli import interactive
from lmlab.comparison import run_comparison
from lmlab.comparison.executors.processes import Processes
from lmlab.comparison.work import Outcome
from lmlab.learn import fit, loop, mixing, prepare_text, run
from lmlab.models.bag import Bag
from processes import THIS_CODE
from thinning import thinned

CODES = {signal.SIGINT: 130, signal.SIGTERM: 143}
BOTH = pytest.mark.parametrize("how", list(CODES))
SMALL = ["--set", "width=8", "--set", "embedding_width=8", "--set", "context=2", "--budget", "12steps"]


def stop_at(patch: pytest.MonkeyPatch, place: Any, name: str, how: int) -> None:
    """Somebody stops the process when this is called, the first time."""
    honest, calls = getattr(place, name), 0

    def stopped(*given: Any, **named: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == 1:
            os.kill(os.getpid(), how)
        return honest(*given, **named)

    patch.setattr(place, name, stopped)


def last_line(result: tuple[int, str, str], how: int) -> str:
    code, _, err = result
    assert code == CODES[how], err
    assert "Traceback" not in err
    assert err.splitlines()[-1].startswith("lmlab: stopped; ")
    return err.splitlines()[-1].removeprefix("lmlab: stopped; ")


@BOTH
def test_before_training_begins_nothing_is_kept(
    lmlab: Lmlab, small_text: Path, monkeypatch: pytest.MonkeyPatch, how: int
) -> None:
    stop_at(monkeypatch, prepare_text, "tokenize", how)
    said = last_line(lmlab("train", "feedforward", small_text, *SMALL, "--out", "run"), how)
    assert said == "nothing is kept, and the same command begins again"
    assert not Path("run").exists()


@BOTH
def test_a_count_that_was_stopped_begins_again(
    lmlab: Lmlab, small_text: Path, monkeypatch: pytest.MonkeyPatch, how: int
) -> None:
    with monkeypatch.context() as patch:
        stop_at(patch, Bag, "fit", how)
        said = last_line(lmlab("train", "bag", small_text, "--out", "run"), how)
    assert said == "run has learned nothing yet; go on with: lmlab train --resume --out run"
    assert lmlab("train", "--resume", "--out", "run")[0] == 0
    assert lab.load("run").status == "finished"


@BOTH
def test_a_training_that_was_stopped_goes_on(
    lmlab: Lmlab, small_text: Path, monkeypatch: pytest.MonkeyPatch, how: int
) -> None:
    with monkeypatch.context() as patch:
        stop_at(patch, loop.Trainer, "_step", how)
        code, out, err = lmlab("train", "feedforward", small_text, *SMALL, "--out", "run")
    assert code == CODES[how], err
    assert "Stopped, and saved. Go on with: lmlab train --resume --out run" in out
    assert lab.load("run").status == "unfinished"
    with monkeypatch.context() as patch:  # before it goes on it is what it was
        stop_at(patch, prepare_text, "tokenize", how)
        said = last_line(lmlab("train", "--resume", "--out", "run"), how)
    assert said == "run is kept up to its last checkpoint; go on with: lmlab train --resume --out run"
    assert lmlab("train", "--resume", "--out", "run")[0] == 0


@BOTH
def test_what_is_learned_is_saved_before_anybody_stops_it(
    lmlab: Lmlab, small_text: Path, monkeypatch: pytest.MonkeyPatch, how: int
) -> None:
    with monkeypatch.context() as patch:
        stop_at(patch, fit, "_undertrained", how)
        said = last_line(lmlab("train", "feedforward", small_text, *SMALL, "--out", "run"), how)
    assert said.startswith("run had come to its end and is saved: lmlab generate run")
    assert (Path("run") / "page.html").exists()
    assert lmlab("eval", "run")[0] == 0


@BOTH
def test_a_mix_is_written_whole_or_not_at_all(
    lmlab: Lmlab, small_text: Path, monkeypatch: pytest.MonkeyPatch, how: int
) -> None:
    for model in ("bag", "ngram"):
        assert lmlab("train", model, small_text, "--out", model)[0] == 0
    with monkeypatch.context() as patch:
        stop_at(patch, mixing, "fit_weights", how)
        said = last_line(lmlab("mix", "bag", "ngram", "--out", "mixed"), how)
    assert said.startswith("nothing is kept")
    assert not Path("mixed").exists()
    with monkeypatch.context() as patch:
        stop_at(patch, mixing, "finish_run", how)
        said = last_line(lmlab("mix", "bag", "ngram", "--out", "mixed"), how)
    assert said.startswith("mixed had come to its end and is saved")
    assert lmlab("eval", "mixed")[0] == 0


@BOTH
@pytest.mark.parametrize("moment", thinned(["run_baselines", "write_report"], ["write_report"]))
def test_a_comparison_that_was_stopped_goes_on(
    lmlab: Lmlab, small_text: Path, monkeypatch: pytest.MonkeyPatch, how: int, moment: str
) -> None:
    command = ["compare", small_text, "--models", "uniform,bag", "--budget", "9s", "--out", "out"]
    with monkeypatch.context() as patch:
        stop_at(patch, run_comparison, moment, how)
        said = last_line(lmlab(*command), how)
    assert said == "what was trained and measured is kept in out: the same command goes on"
    code, _, err = lmlab(*command)
    assert code == 0, err
    assert "not again: uniform, bag" in err


@BOTH
def test_a_sweep_of_which_nothing_is_done_says_so(
    lmlab: Lmlab, small_text: Path, monkeypatch: pytest.MonkeyPatch, how: int
) -> None:
    def stopped(*_: object) -> Iterator[Outcome]:
        os.kill(os.getpid(), how)
        yield from ()

    monkeypatch.setattr(Processes, "run", stopped)
    said = last_line(lmlab("sweep", "ngram", small_text, "--over", "order=1,2", "--out", "s"), how)
    assert said == "no run had come to its end; the same command begins again"


@BOTH
@pytest.mark.parametrize("verb", [["eval", "run"], ["generate", "run"], ["score", "run", "the cat"]])
def test_a_verb_that_only_reads_keeps_nothing(
    lmlab: Lmlab, small_text: Path, monkeypatch: pytest.MonkeyPatch, how: int, verb: list[str]
) -> None:
    assert lmlab("train", "bag", small_text, "--out", "run")[0] == 0
    stop_at(monkeypatch, run.Run, "load", how)
    assert last_line(lmlab(*verb), how).startswith("nothing is kept")


@BOTH
def test_while_the_command_line_is_read_too(lmlab: Lmlab, monkeypatch: pytest.MonkeyPatch, how: int) -> None:
    stop_at(monkeypatch, typer.core.TyperGroup, "parse_args", how)
    assert last_line(lmlab("data"), how).startswith("nothing is kept")


@BOTH
def test_a_library_that_swallows_it_and_then_fails_is_no_bug_of_ours(
    lmlab: Lmlab, small_text: Path, monkeypatch: pytest.MonkeyPatch, how: int
) -> None:
    def swallowed(*_: object, **__: object) -> None:
        with suppress(KeyboardInterrupt):
            os.kill(os.getpid(), how)
        raise AttributeError("module 'numpy' has no attribute 'matrix'")

    monkeypatch.setattr(prepare_text, "tokenize", swallowed)
    assert last_line(lmlab("train", "bag", small_text, "--out", "run"), how).startswith("nothing is kept")


def test_a_polite_kill_ends_a_conversation_and_not_one_text_of_it(
    lmlab: Lmlab, small_text: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert lmlab("train", "bag", small_text, "--out", "run")[0] == 0
    honest = interactive.converse

    def typed(_: str) -> str:
        return "the cat"

    def killed(*_: object) -> str:
        os.kill(os.getpid(), signal.SIGTERM)
        return "/help"

    for read, obey in ((typed, killed), (killed, interactive._obey)):
        with monkeypatch.context() as patch:
            patch.setattr(interactive, "converse", partial(honest, read=read))
            patch.setattr(interactive, "_obey", obey)
            last_line(lmlab("generate", "run", "--interactive"), signal.SIGTERM)


ASKING = """
import os, signal
from lmlab.learn.interrupt import interruptible
with interruptible() as asked:
    os.kill(os.getpid(), signal.SIGINT)
    print(asked())
"""


def test_a_signal_that_is_ignored_stays_ignored() -> None:
    """As in a script that was put into the background: Ctrl-C is for what stands in front."""
    command = ["sh", "-c", 'trap \'\' INT; exec "$0" "$@"', sys.executable, "-c", ASKING]
    found = subprocess.run(command, capture_output=True, text=True, check=True)
    assert found.stdout == "False\n"


STARTING = """
import sys
class Impatient:
    def find_spec(self, name, *_):
        if name == "typer":
            raise KeyboardInterrupt
sys.meta_path.insert(0, Impatient())
from lmlab.__main__ import main
main()
"""


def test_ctrl_c_while_the_program_starts_is_one_line() -> None:
    found = subprocess.run([sys.executable, "-c", STARTING], capture_output=True, text=True, check=False)
    assert (found.returncode, found.stdout) == (130, "")
    assert found.stderr.startswith("lmlab: stopped; ")
    assert found.stderr.count("\n") == 1


HEARING = """
import signal
from lmlab.comparison.entry_records import EntrySpec
from lmlab.comparison.executors.processes import Processes
from lmlab.comparison.work import Outcome, Task

AT_FIRST = signal.pthread_sigmask(signal.SIG_BLOCK, [])  # when it is imported, before the pool has said anything

def hears(task):
    return Outcome(task=task, error=str(signal.SIGINT in AT_FIRST))

if __name__ == "__main__":
    asked = dict(model="bag", tokenizer="char", text={}, settings={}, learning={}, budget="1steps", seed=0, device="cpu")
    tasks = [Task(spec=EntrySpec(name=name, **asked), corpus={}, records=name, run=name) for name in "xy"]
    print([outcome.error for outcome in Processes(2).run(tasks, hears)])
    print(signal.SIGINT in signal.pthread_sigmask(signal.SIG_BLOCK, []))
"""


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no masks of signals")
@pytest.mark.slow
def test_the_processes_of_a_sweep_never_hear_ctrl_c(tmp_path: Path) -> None:
    (tmp_path / "hearing.py").write_text(HEARING)
    command = [sys.executable, "hearing.py"]
    found = subprocess.run(
        command, cwd=tmp_path, env=os.environ | THIS_CODE, capture_output=True, text=True, check=True
    )
    assert found.stdout == "['True', 'True']\nFalse\n"

"""Several processes make the run that one makes: one folder, one writer, the same record and weights but for rounding."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from worlds import together

import lmlab
from interrupts import InterruptAt
from lmlab.learn import loop, prepare_text
from lmlab.learn.run import Run
from lmlab.learn.world import SINGLE_PROCESS, World
from mistakes import mistake

WORDS = [
    "the",
    "cat",
    "sat",
    "on",
    "a",
    "mat",
    "and",
    "saw",
    "one",
    "dog",
    "run",
    "to",
    "them",
    "while",
    "birds",
    "sing",
]
TINY: dict[str, Any] = {"layers": 1, "width": 16, "heads": 2}
GPT = {**TINY, "context": 12, "dropout": 0.2}


def plain_text(folder: Path) -> Path:
    path = folder / "text.txt"
    path.write_text("\n".join(" ".join(WORDS[i % 7 :: 1 + i % 3]) for i in range(200)))
    return path


def labelled(folder: Path) -> Path:
    path = folder / "labelled.tsv"
    path.write_text("text\tlabel\n" + "".join(f"{' '.join(WORDS[: 2 + i % 9])}\t{'ab'[i % 2]}\n" for i in range(60)))
    return path


def two_languages(folder: Path) -> Path:
    path = folder / "pairs.tsv"
    lines = (f"{' '.join(WORDS[: 1 + i % 5])}\t{' '.join(WORDS[3 : 5 + i % 7])}\n" for i in range(60))
    path.write_text("en\txx\n" + "".join(lines))
    return path


CASES: dict[str, tuple[Callable[[Path], Path], dict[str, Any]]] = {
    "gpt": (plain_text, GPT),
    "bert": (plain_text, TINY),
    "classifier": (labelled, TINY),
    "translator": (two_languages, TINY),
    "glove": (plain_text, {"least": 1, "width": 8}),
}


def trained(model: str, text: Path, out: Path, world: World = SINGLE_PROCESS, **changes: Any) -> Run:
    asked: dict[str, Any] = {"settings": CASES[model][1], "learning": {"rows": 6}, "budget": "6steps", "device": "cpu"}
    return lmlab.train(model, text, out=out, world=world, **(asked | changes))


def weights(run: Run) -> dict[str, torch.Tensor]:
    return dict(lmlab.load(run.folder).saved.tensors())


def assert_same_weights(found: dict[str, torch.Tensor], expected: dict[str, torch.Tensor]) -> None:
    for name, tensor in expected.items():
        # Adam makes steps of rounding where a gradient is zero, as that of the bias of keys is.
        torch.testing.assert_close(found[name], tensor, rtol=1e-2, atol=2e-3, msg=lambda m, n=name: f"{n}: {m}")


@pytest.mark.parametrize("model", list(CASES))
def test_two_processes_make_the_run_of_one(model: str, tmp_path: Path) -> None:
    text = CASES[model][0](tmp_path)
    alone = trained(model, text, tmp_path / "alone", learning={"rows": 6, "micro_batches": 2})
    one, other = together(2, lambda world: trained(model, text, tmp_path / "both", world))
    assert_same_weights(weights(one), weights(alone))
    assert one.record == other.record == lmlab.load(tmp_path / "both").record
    assert one.record.training.learning["micro_batches"] == 2
    assert one.record.training == alone.record.training
    assert {path.name for path in one.folder.iterdir()} == {path.name for path in alone.folder.iterdir()}
    assert_same_weights(dict(other.saved.tensors()), dict(one.saved.tensors()))


def test_one_free_folder_is_found_for_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    text = plain_text(tmp_path)
    asked: dict[str, Any] = {"settings": GPT, "learning": {"rows": 4}, "budget": "2steps", "device": "cpu"}
    found = together(2, lambda world: lmlab.train("gpt", text, world=world, **asked))
    assert [run.folder for run in found] == [Path("runs/gpt-text")] * 2
    assert len(list((tmp_path / "runs").iterdir())) == 1


@pytest.mark.parametrize("shared", [True, False], ids=["shared", "planted bug"])
def test_all_begin_with_the_weights_of_the_writer(
    shared: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The random weights of one machine may be rounded differently on another."""
    text, honest = plain_text(tmp_path), prepare_text.fresh_model

    def fresh(cls: Any, config: Any, tokenizer: Any, seed: int) -> Any:
        return honest(cls, config, tokenizer, seed + (threading.current_thread().name == "process 1"))

    monkeypatch.setattr(prepare_text, "fresh_model", fresh)
    if not shared:
        monkeypatch.setattr(World, "share", lambda *_: None)
    one, other = together(2, lambda world: trained("gpt", text, tmp_path / "both", world))
    with contextlib.nullcontext() if shared else pytest.raises(AssertionError):
        assert_same_weights(dict(other.saved.tensors()), dict(one.saved.tensors()))


def test_sizes_and_the_plan_for_seconds_are_those_of_the_writer(tmp_path: Path) -> None:
    text = plain_text(tmp_path)
    open_sizes: dict[str, Any] = {"settings": {"context": 12, "layers": 1, "heads": 1}, "budget": "1s"}
    one, other = together(2, lambda world: trained("gpt", text, tmp_path / "both", world, **open_sizes))
    assert one.record == other.record
    assert_same_weights(dict(other.saved.tensors()), dict(one.saved.tensors()))


def test_two_processes_resume_what_one_has_begun(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = plain_text(tmp_path)
    monkeypatch.setattr(loop, "SHOW_EVERY_S", 0.0)
    whole = trained("gpt", text, tmp_path / "whole")
    stopped = trained("gpt", text, tmp_path / "stopped", watch=InterruptAt(3))
    assert stopped.status == "unfinished"
    found = together(2, lambda world: lmlab.resume(stopped.folder, world=world))
    assert {run.status for run in found} == {"finished"}
    assert_same_weights(weights(found[0]), weights(whole))


def test_two_processes_give_a_finished_run_more(tmp_path: Path) -> None:
    run = trained("gpt", plain_text(tmp_path), tmp_path / "run")
    found = together(2, lambda world: lmlab.resume(run.folder, budget="+4steps", world=world))
    assert [one.record.result.steps for one in found] == [10, 10]
    assert found[0].record.training.extension_steps == [6]


def test_processes_that_read_different_texts_are_refused(tmp_path: Path) -> None:
    text, other = plain_text(tmp_path), tmp_path / "other.txt"
    other.write_text(text.read_text().replace("cat", "car"))
    with mistake("processes-read-other-data", "process 1"):
        together(2, lambda world: trained("gpt", other if world.rank else text, tmp_path / "run", world))


def test_counting_is_the_work_of_one_process(tmp_path: Path) -> None:
    text = plain_text(tmp_path)
    with mistake("counts-in-one-process"):
        together(2, lambda world: lmlab.train("ngram", text, out=tmp_path / "run", world=world))
    assert not (tmp_path / "run").exists()


def torchrun(*words: str | Path) -> subprocess.CompletedProcess[str]:
    launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    command = [*launcher, "-m", "lmlab", *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, env=environment, check=False, timeout=300)


@pytest.mark.slow
def test_torchrun_makes_the_run_of_one_process(tmp_path: Path) -> None:
    text = plain_text(tmp_path)
    settings = [word for name, value in GPT.items() for word in ("--set", f"{name}={value}")]
    asked = ["train", "gpt", text, "--device", "cpu", "--budget", "40steps", "--learn", "rows=6", *settings]
    done = torchrun(*asked, "--out", tmp_path / "both")
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("Saved in") == 1
    assert done.stderr.count("gpt: the budget is used") == 1
    alone = trained("gpt", text, tmp_path / "alone", budget="40steps", learning={"rows": 6, "micro_batches": 2})
    assert_same_weights(weights(lmlab.load(tmp_path / "both")), weights(alone))
    lines = [json.loads(line) for line in (tmp_path / "both" / "metrics.jsonl").read_text().splitlines()]
    assert len(lines) == len(alone.metrics)


@pytest.mark.slow
def test_a_mistake_ends_all_processes_in_a_line(tmp_path: Path) -> None:
    """Only the writer looks at the folder; the other one waits for it."""
    text, taken = plain_text(tmp_path), tmp_path / "taken"
    taken.mkdir()
    (taken / "file").write_text("mine")
    done = torchrun("train", "gpt", text, "--device", "cpu", "--budget", "4steps", "--out", taken)
    assert done.returncode != 0
    assert f"{taken} is not empty" in done.stderr
    assert "this is a bug in lmlab" not in done.stderr
    assert [path.name for path in taken.iterdir()] == ["file"]

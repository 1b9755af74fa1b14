"""The execution plan: made before the first step, stored, followed on the same machine and replaced on another."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

import lmlab
from interrupts import InterruptAt
from lmlab.config import Budget
from lmlab.hardware.execution_plan import ExecutionPlan, plan_of_older_record
from lmlab.hardware.versions import machine_name
from lmlab.learn import loop
from lmlab.learn.onlookers import Silent
from lmlab.learn.planning import left_after_planning
from lmlab.learn.run import Run

SETTINGS = {"layers": 1, "width": 32, "heads": 2, "context": 16}
FEW = {"rows": 4, "validations": 2, "calibrate": False}


class Told(Silent):
    """Remembers what was said."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def say(self, line: str) -> None:
        self.lines.append(line)


def stopped(text: Path, out: Path, monkeypatch: pytest.MonkeyPatch, budget: str = "40steps") -> Run:
    monkeypatch.setattr(loop, "SHOW_EVERY_S", 0.0)
    run = lmlab.train(
        "gpt", text, out=out, budget=budget, settings=SETTINGS, learning=FEW, device="cpu", watch=InterruptAt(9)
    )
    assert run.status == "unfinished"
    return run


def edited(run: Run, **changes: Any) -> None:
    """Change the plan in the record of a run."""
    path = run.folder / "run.json"
    record = json.loads(path.read_text())
    record["training"]["plan"] |= changes
    path.write_text(json.dumps(record))


def plan_in(run: Run) -> ExecutionPlan:
    plan = lmlab.load(run.folder).record.training.plan
    assert plan is not None
    return plan


def test_the_plan_says_everything_and_stands_in_the_record_before_the_first_step(
    small_text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[Any] = []
    honest = loop.Trainer._steps

    def steps(self: loop.Trainer, *given: Any) -> Any:
        seen.append(json.loads((tmp_path / "run" / "run.json").read_text())["training"]["plan"])
        return honest(self, *given)

    monkeypatch.setattr(loop.Trainer, "_steps", steps)
    lmlab.train("gpt", small_text, out=tmp_path / "run", budget="5steps", settings=SETTINGS, learning=FEW, device="cpu")
    (plan,) = seen
    assert plan["machine"] == machine_name("cpu")
    assert (plan["device"], plan["stepping"], plan["rows"], plan["optimizer"]) == ("cpu", "eager", 4, "muon")
    assert (plan["threads"], plan["matrix_every"], plan["planning_s"]) == (torch.get_num_threads(), 1, 0.0)
    assert any(name.startswith("attention in training") for name in plan["kernels"])


def test_settings_tell_the_plan_that_training_takes(small_text: Path, tmp_path: Path) -> None:
    asked: dict[str, Any] = {"budget": "5steps", "settings": SETTINGS, "learning": FEW, "device": "cpu"}
    told = lmlab.settings("gpt", small_text, **asked).plan
    run = lmlab.train("gpt", small_text, out=tmp_path / "run", **asked)
    assert told is not None
    assert told == plan_in(run)
    assert lmlab.settings("ngram", small_text).plan is None, "it counts"


def test_on_the_same_machine_a_run_is_resumed_by_its_plan(
    small_text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, told = stopped(small_text, tmp_path / "run", monkeypatch), Told()
    planned, used = plan_in(run), []
    edited(run, threads=1, precision="bf16")  # whatever would be chosen today
    honest = loop.Trainer.run

    def noted(self: loop.Trainer, *given: Any) -> Any:
        used.append((self.model.compute_dtype, self.threads))
        return honest(self, *given)

    monkeypatch.setattr(loop.Trainer, "run", noted)
    resumed = lmlab.resume(run.folder, watch=told)
    assert used == [(torch.bfloat16, 1)]
    assert resumed.record.training.earlier_plans == ()
    assert plan_in(run) == replace(planned, precision="bf16", threads=1)
    assert not any("another machine" in line for line in told.lines)


def test_on_another_machine_a_resumed_run_gets_a_new_plan_and_says_that_its_bits_end_there(
    small_text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, told = stopped(small_text, tmp_path / "run", monkeypatch), Told()
    edited(run, machine="elsewhere, 64 cores", threads=64, matrix_every=3, rows=5, kernels={"of theirs, float32": True})
    resumed = lmlab.resume(run.folder, watch=told)
    training = resumed.record.training
    assert [plan.machine for plan in training.earlier_plans] == ["elsewhere, 64 cores"]
    plan = plan_in(run)
    assert (plan.machine, plan.threads) == (machine_name("cpu"), torch.get_num_threads())
    assert (plan.matrix_every, plan.optimizer) == (3, "muon"), "the optimizer stays"
    assert plan.kernels is not None
    assert "of theirs, float32" not in plan.kernels
    assert [line for line in told.lines if "another machine" in line and "bit-identical" in line]


def test_a_rehearsal_changes_no_weight(small_text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: dict[str, Any] = {"budget": "5steps", "settings": {**SETTINGS, "dropout": 0.3}, "learning": FEW}
    found = lmlab.train("gpt", small_text, out=tmp_path / "rehearsed", **asked)
    monkeypatch.setattr(loop.Trainer, "rehearse", lambda self: 0.0)
    plain = lmlab.train("gpt", small_text, out=tmp_path / "plain", **asked)
    assert found.record.model.sha256 == plain.record.model.sha256


def test_planning_leaves_at_least_half_of_a_budget_of_seconds() -> None:
    plan = ExecutionPlan(machine=None, precision="float32", muon_precision="float32", threads=1, planning_s=3.0)
    assert left_after_planning(Budget(seconds=100), plan) == Budget(seconds=97)
    assert left_after_planning(Budget(seconds=4), plan) == Budget(seconds=2)
    assert left_after_planning(Budget(steps=4), plan) == Budget(steps=4)
    assert left_after_planning(Budget(seconds=4), None) == Budget(seconds=4)


def test_a_plan_of_an_older_record_is_read() -> None:
    chosen = {
        "precision": "bf16",
        "iteration": "float32",
        "threads": 2,
        "batch": 4,
        "stepping": "captured",
        "turns": False,
    }
    planned = {"tokens_per_second": 5.0, "tokens": 9.0, "threads": 1, "timed_s": 1.0, "sizes": 2, "rows": 0.5}
    plan = plan_of_older_record(chosen, planned, 8)
    assert (plan.machine, plan.precision, plan.threads, plan.rows, plan.row_factor) == (None, "bf16", 1, 8, 4)
    assert (plan.stepping, plan.matrix_every, plan.tokens) == ("captured", 1, 9.0)
    assert plan_of_older_record({**chosen, "turns": True}, None, None).matrix_every is None

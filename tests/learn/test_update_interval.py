"""How often Muon updates a matrix: by its cost beside the rest of a step, evenly, and as the plan of a run says."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

import lmlab
from interrupts import InterruptAt
from lmlab.config import Budget, Mistake
from lmlab.hardware.choice import Hardware
from lmlab.learn import loop
from lmlab.learn.fit import hardware_for
from lmlab.learn.optimizer import Optimizer
from lmlab.learn.orthogonal import orthogonalize, orthogonalizing_flops
from lmlab.learn.settings import TrainConfig
from lmlab.learn.update_interval import (
    LEAST_FLOPS,
    LEAST_LEFT,
    MOST_OF_A_STEP,
    assign_update_slots,
    update_interval,
)


@pytest.mark.parametrize(("rows", "columns"), [(64, 64), (96, 64), (64, 128), (256, 64), (64, 300)])
def test_operations_of_a_direction_are_those_that_torch_counts(rows: int, columns: int) -> None:
    with FlopCounterMode(display=False) as counter:
        orthogonalize(torch.randn(3, rows, columns))
    assert counter.get_total_flops() == 3 * orthogonalizing_flops(rows, columns)


def test_muon_updates_a_matrix_as_often_as_its_share_of_a_step_allows() -> None:
    rest = 1e12
    assert update_interval(0.5 * MOST_OF_A_STEP * rest, rest, 0.9) == 1
    assert update_interval(3 * MOST_OF_A_STEP * rest, rest, 0.9) == 3
    assert update_interval(3.1 * MOST_OF_A_STEP * rest, rest, 0.9) == 4
    for momentum in (0.5, 0.9, 0.95):  # what a gradient added is not forgotten before its matrix moves
        longest = update_interval(1e6 * rest, rest, momentum)
        assert momentum**longest >= LEAST_LEFT > momentum ** (longest + 1)
    assert update_interval(rest, None, 0.9) == 1, "a model that does not say what it computes"
    assert update_interval(rest, rest, 0.0) == 1, "nothing is gathered"
    assert update_interval(0.99 * LEAST_FLOPS, 1.0, 0.9) == 1, "nothing to save"


def test_all_steps_have_about_as_much_to_do() -> None:
    costs = {f"{block}.{name}": cost for block in range(6) for name, cost in (("qkv", 3.0), ("out", 1.0), ("up", 2.0))}
    for interval in (1, 2, 3, 5):
        slots = assign_update_slots(costs, interval)
        loads = [sum(costs[name] for name, slot in slots.items() if slot == this) for this in range(interval)]
        assert set(slots) == set(costs)
        assert max(loads) - min(loads) <= max(costs.values())


LARGE = {"layers": 2, "width": 128, "heads": 2, "context": 64}


@pytest.mark.parametrize(("rows", "every"), [(64, 1), (1, 9)])
def test_the_interval_follows_from_sizes_and_is_the_same_for_seconds_steps_and_tokens(
    rows: int, every: int, small_text: Path
) -> None:
    found = set()
    for budget in ("3s", "50steps", "10000tokens"):
        plan = lmlab.settings(
            "gpt", small_text, budget=budget, device="cpu", settings=LARGE, learning={"rows": rows}
        ).plan
        assert plan is not None
        assert (plan.optimizer, plan.rows) == ("muon", rows)
        found.add(plan.matrix_every)
    (interval,) = found
    assert interval == 1 if every == 1 else interval >= every


@pytest.mark.parametrize(
    ("kept", "takes_turns"),
    [({"turns": True}, True), ({"turns": False}, False), ({}, False), (None, False)],
    ids=["turns", "no turns", "before turns", "before anything was recorded"],
)
def test_an_older_run_is_resumed_with_the_interval_of_its_record(
    kept: dict[str, bool] | None, takes_turns: bool, small_text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = {"layers": 1, "width": 128, "heads": 2, "context": 32}
    monkeypatch.setattr(loop, "SHOW_EVERY_S", 0.0)
    run = lmlab.train(
        "gpt", small_text, out=tmp_path / "run", budget="30steps", device="cpu", settings=settings,
        learning={"rows": 1}, watch=InterruptAt(5),
    )  # fmt: skip
    assert run.status == "unfinished"
    path = run.folder / "run.json"
    record = json.loads(path.read_text())
    path.unlink()
    plan = record["training"].pop("plan")
    assert plan["matrix_every"] > 1
    older = {"precision": plan["precision"], "iteration": plan["muon_precision"], "threads": 1, "batch": 1}
    record["training"] |= {"chosen": None if kept is None else older | kept, "planned": None}
    (run.folder / "config.json").write_text(json.dumps({**record, "format": 2}))
    found, plain = [], loop.optimizer_for

    def noted(*given: Any) -> Optimizer:
        found.append(plain(*given))
        return found[-1]

    monkeypatch.setattr(loop, "optimizer_for", noted)
    lmlab.resume(run.folder)
    assert (found[-1].config.matrix_every > 1) == takes_turns


def test_a_budget_of_seconds_asks_how_fast_the_machine_is_at_this_moment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lmlab.learn.fit.at_this_moment", lambda hardware: replace(hardware, flops=7.0))
    assert hardware_for(TrainConfig(budget=Budget(seconds=1.0)), "cpu", "auto").flops == 7.0
    assert hardware_for(TrainConfig(budget=Budget(steps=1)), "cpu", "auto").flops > 7.0


def test_what_is_asked_for_is_taken_or_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    config = TrainConfig(budget=Budget(steps=1), matrix_every=2)
    assert hardware_for(config, "cpu", "auto").stepping == "eager"
    recorded = Hardware(device=torch.device("cuda"), dtype=torch.float32, stepping="captured")
    monkeypatch.setattr("lmlab.learn.fit.choose", lambda *_: recorded)
    with pytest.raises(Mistake, match="leave matrix_every at 1"):
        hardware_for(config, "cuda", "auto")
    for wrong in (0, 10**12):
        with pytest.raises(Mistake, match="matrix_every"):
            TrainConfig(budget=Budget(steps=1), matrix_every=wrong)

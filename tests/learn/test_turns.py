"""How often Muon comes to a matrix: by what it costs beside the rest of a step, evenly, and as a run began to do it."""

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
from lmlab.learn.turns import LEAST_LEFT, MOST_OF_A_STEP, dealt, steps_between


@pytest.mark.parametrize(("rows", "columns"), [(64, 64), (96, 64), (64, 128), (256, 64), (64, 300)])
def test_operations_of_a_direction_are_those_that_torch_counts(rows: int, columns: int) -> None:
    with FlopCounterMode(display=False) as counter:
        orthogonalize(torch.randn(3, rows, columns))
    assert counter.get_total_flops() == 3 * orthogonalizing_flops(rows, columns)


def test_muon_comes_as_often_as_its_share_of_a_step_allows() -> None:
    rest = 1e9
    assert steps_between(0.5 * MOST_OF_A_STEP * rest, rest, 0.9) == 1
    assert steps_between(3 * MOST_OF_A_STEP * rest, rest, 0.9) == 3
    assert steps_between(3.1 * MOST_OF_A_STEP * rest, rest, 0.9) == 4
    for momentum in (0.5, 0.9, 0.95):  # what a gradient added is not forgotten before its matrix moves
        longest = steps_between(1e6 * rest, rest, momentum)
        assert momentum**longest >= LEAST_LEFT > momentum ** (longest + 1)
    assert steps_between(rest, None, 0.9) == 1, "a model that does not say what it computes"
    assert steps_between(rest, rest, 0.0) == 1, "nothing is gathered"


def test_all_turns_have_about_as_much_to_do() -> None:
    costs = {f"{block}.{name}": cost for block in range(6) for name, cost in (("qkv", 3.0), ("out", 1.0), ("up", 2.0))}
    for every in (1, 2, 3, 5):
        turns = dealt(costs, every)
        loads = [sum(costs[name] for name, turn in turns.items() if turn == this) for this in range(every)]
        assert set(turns) == set(costs)
        assert max(loads) - min(loads) <= max(costs.values())


@pytest.mark.parametrize(("rows", "every"), [(64, 1), (1, 9)])
def test_a_run_takes_turns_where_batches_are_small(rows: int, every: int, small_text: Path) -> None:
    found = lmlab.settings(
        "gpt", small_text, budget="3s", device="cpu",
        settings={"layers": 2, "width": 128, "heads": 2, "context": 64}, learning={"rows": rows},
    )  # fmt: skip
    here = {setting.name: setting.here for setting in found.learning}["matrix_every"]
    assert here == 1 if every == 1 else here >= every


@pytest.mark.parametrize(
    ("budget", "kept", "in_turns"),
    [
        ("2s", "as it is", True),
        ("2s", "without turns", False),
        ("2s", "without anything", False),
        ("30steps", "as it is", False),
    ],
)
def test_a_run_goes_on_as_it_began(
    budget: str, kept: str, in_turns: bool, small_text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A record of before says nothing of turns, or nothing of what was chosen; today the same command would take them."""
    settings = {"layers": 1, "width": 128, "heads": 2, "context": 32}
    monkeypatch.setattr(loop, "SHOW_EVERY_S", 0.0)
    run = lmlab.train(
        "gpt", small_text, out=tmp_path / "run", budget=budget, device="cpu", settings=settings, learning={"rows": 1},
        watch=InterruptAt(5),
    )  # fmt: skip
    assert run.status == "unfinished"
    path = run.folder / "run.json"
    record = json.loads(path.read_text())
    assert record["training"]["chosen"]["turns"] == (budget == "2s")
    if kept == "without turns":
        del record["training"]["chosen"]["turns"]
    elif kept == "without anything":
        record["training"]["chosen"] = None
    path.write_text(json.dumps(record))
    found, plain = [], loop.optimizer_for

    def noted(*given: Any) -> Optimizer:
        found.append(plain(*given))
        return found[-1]

    monkeypatch.setattr(loop, "optimizer_for", noted)
    lmlab.resume(run.folder)
    assert (found[-1].config.matrix_every > 1) == in_turns


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

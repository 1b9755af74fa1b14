"""The execution plan: one frozen record that says how the steps of a run are taken (docs/execution.md)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, kw_only=True)
class ExecutionPlan:
    """Everything that decides how the steps of a run are taken.

    A plan is made before the first step, stored in the record of the run, and used again when the run is resumed on the
    same machine.
    """

    machine: str | None  # `versions.machine_name`; None: an older record, which does not name its machine
    device: str | None = None  # cpu, cuda or mps
    precision: str  # of matrix products
    muon_precision: str  # of the matrix products inside Muon
    threads: int  # of a CPU
    rows: int | None = None  # sequences of a step; None: `row_factor` times as many as the model usually takes
    row_factor: int = 1
    stepping: str = "eager"  # or captured, or compiled and captured
    optimizer: str | None = None  # adamw, adagrad, or muon for hidden matrices beside adamw for the rest
    matrix_every: int | None = None  # steps from one Muon update of a matrix to the next; None: by the sizes
    kernels: Mapping[str, bool] | None = None  # functions in C by name, and whether each is used; None: not known yet
    tokens_per_second: float | None = None  # measured for a budget of seconds
    tokens: float | None = None  # that the budget is expected to train on
    planning_s: float = 0.0  # seconds of the budget that were spent on this plan


def plan_of_older_record(
    chosen: Mapping[str, Any], planned: Mapping[str, Any] | None, rows: int | None
) -> ExecutionPlan:
    """Read a plan from a record of format 1 or 2, which holds one half under `chosen` and the other under `planned`.

    Args:
        chosen: precision, threads and the like.
        planned: speed and tokens; None: the budget is not one of seconds.
        rows: of a step, where they followed from the speed.
    """
    speed = planned or {}
    return ExecutionPlan(
        machine=None,
        precision=chosen["precision"],
        muon_precision=chosen["iteration"],
        threads=speed.get("threads", chosen["threads"]),
        rows=rows,
        row_factor=chosen["batch"],
        stepping=chosen.get("stepping", "eager"),
        matrix_every=None if chosen.get("turns") else 1,
        tokens_per_second=speed.get("tokens_per_second"),
        tokens=speed.get("tokens"),
    )

"""Terminal output of a model's settings."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from lmlab_derive.shared.console import result_console, say
from lmlab_derive.shared.table import Column, print_table

if TYPE_CHECKING:
    from lmlab.hardware.execution_plan import ExecutionPlan
    from lmlab.learn.about_settings import Setting, Settings


def print_settings(found: Settings) -> None:
    """Print two tables, of the model and of the training loop, and the execution plan."""
    console = result_console()
    say(console, f"{found.model}: {found.about}")
    if found.text is not None:
        here = f"here: {found.text} in {found.tokenizer} tokens with a budget of {found.budget}"
        timed = ", as steps were timed just now" if found.by_the_clock else ""
        say(console, f"{here}, {found.parameters:,} parameters{timed}")
    for option, settings in (("--set", found.settings), ("--learn", found.learning)):
        if settings:
            print()
            _print(option, settings, with_here=found.text is not None)
    if found.plan is not None:
        print()
        print_plan(found.plan)
    if not found.settings:
        say(console, "It has no settings.")


def print_plan(plan: ExecutionPlan) -> None:
    """Print how the steps of a run are taken, a line for each field of the plan (docs/execution.md)."""
    console, found = result_console(), dataclasses.asdict(plan)
    kernels = found.pop("kernels") or {}
    say(console, "Execution plan")
    for name, value in found.items():
        rounded = float(f"{value:.3g}") if isinstance(value, float) else value
        say(console, f"  {name}: {_shown(rounded)}")
    for kernel, used in kernels.items():
        say(console, f"  {kernel}: {'in C' if used else 'plain'}")


def _print(option: str, settings: Sequence[Setting], *, with_here: bool) -> None:
    columns = [Column(option, left=True), Column("default", left=True)]
    columns += [Column("here", left=True)] if with_here else []
    columns.append(Column("what it is", left=True))
    rows = []
    for s in settings:
        here = [_shown(s.here)] if with_here else []
        meaning = f"{s.meaning} ({s.kind})" if "|" in s.kind else s.meaning
        rows.append([s.name, "auto" if s.default is None else _shown(s.default), *here, meaning])
    print_table(result_console(), columns, rows)


def _shown(value: Any) -> str:
    if value is None:
        return "none"
    return str(value).lower() if isinstance(value, bool) else str(value)

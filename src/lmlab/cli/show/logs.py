"""Terminal output of compared lm-eval logs."""

from __future__ import annotations

from lmlab.exchange.compare_logs import LogComparison, LoggedTask
from lmlab_derive.shared.console import result_console, say
from lmlab_derive.shared.table import Column, print_table


def print_logs(found: LogComparison) -> None:
    """Print each task: the models with letters, and the differences of all pairs."""
    for task in found.tasks:
        _print_task(task, found.level)


def _print_task(task: LoggedTask, level: float) -> None:
    console = result_console()
    better = "lower" if task.lower_is_better else "higher"
    left_out = f", {task.left_out:,} that not every model has left out" if task.left_out else ""
    say(console, f"{task.task}, {task.metric}: {task.documents:,} documents{left_out}; {better} is better")
    rows = [[one.model, f"{one.value:.4f}", f"{one.low:.4f} to {one.high:.4f}", one.letters] for one in task.models]
    columns = [
        Column("model", left=True),
        Column("value"),
        Column(f"{level:.6g} interval"),
        Column("letters", left=True),
    ]
    print_table(console, columns, rows, elsewhere="--json has them")
    for pair in task.pairs:
        verdict = "told apart" if pair.apart else "not told apart"
        say(
            console,
            f"  {pair.a} - {pair.b}: {pair.difference:+.4f} [{pair.low:+.4f}, {pair.high:+.4f}], {pair.differing:,} documents"
            f" differ: {verdict}",
        )
    say(
        console,
        f"  models that share a letter are not told apart; all pairs hold together with probability {level:.6g}",
    )

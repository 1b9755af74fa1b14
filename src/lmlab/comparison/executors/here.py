"""Executor that runs tasks in this process, one after the other."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from lmlab.comparison.work import Outcome, Task


class Here:
    """Runs each task when its outcome is requested."""

    def __init__(self, rest: str = "") -> None:
        """Ignore `rest`: this executor has no settings."""

    def run(self, tasks: Sequence[Task], work: Callable[[Task], Outcome]) -> Iterator[Outcome]:
        """See `Executor.run`."""
        return map(work, tasks)

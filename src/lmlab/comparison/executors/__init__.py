"""Executors of the tasks of a comparison or sweep. An executor is one file here and one line in `EXECUTORS`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Protocol

from lmlab.comparison.executors.here import Here
from lmlab.comparison.executors.processes import Processes
from lmlab.comparison.executors.ray_cluster import RayCluster
from lmlab.comparison.work import Outcome, Task
from lmlab.config import Mistake, nearest


class Executor(Protocol):
    """Runs tasks that do not depend on each other."""

    def run(self, tasks: Sequence[Task], work: Callable[[Task], Outcome]) -> Iterator[Outcome]:
        """Run each task and yield the outcomes in order of completion.

        If the process of a task dies, its outcome holds an error. Closing the iterator also ends the tasks.
        """


EXECUTORS: dict[str, Callable[[str], Executor]] = {  # by name; each is made from what follows a colon
    "here": Here,
    "processes": Processes,
    "ray": RayCluster,
}


def executor_of(spec: str) -> Executor:
    """Return the executor of a specification such as here, processes:4 or ray:ADDRESS."""
    name, _, rest = spec.partition(":")
    if name not in EXECUTORS:
        raise Mistake(
            f"{{executor}} is {nearest(name, list(EXECUTORS))}; got {spec!r}", code="executor-unknown", executor=None
        )
    return EXECUTORS[name](rest)

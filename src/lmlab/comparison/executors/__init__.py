"""Executors of the tasks of a comparison or sweep. An executor is one file here and one line in `EXECUTORS`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from typing import Protocol

from lmlab.comparison.work import Outcome, Task
from lmlab.config import Mistake, nearest


class Executor(Protocol):
    """Runs tasks that do not depend on each other."""

    def run(self, tasks: Sequence[Task], work: Callable[[Task], Outcome]) -> Iterator[Outcome]:
        """Run each task and yield the outcomes in order of completion.

        If the process of a task dies, its outcome holds an error. Closing the iterator also ends the tasks. Tasks and `work`
        can be pickled. Standard output belongs to the user.
        """


EXECUTORS = {  # module:Class by name; its argument is the text after the colon of a specification
    "here": "lmlab.comparison.executors.here:Here",
    "processes": "lmlab.comparison.executors.processes:Processes",
    "ray": "lmlab.comparison.executors.ray_cluster:RayCluster",
}


def executor_of(spec: str) -> Executor:
    """Return the executor of a specification such as here, processes:4 or ray:ADDRESS."""
    name, _, rest = spec.partition(":")
    if name not in EXECUTORS:
        raise Mistake(
            f"there is no {{executor}} {spec!r}; {nearest(name, list(EXECUTORS))}",
            code="executor-unknown",
            executor=None,
        )
    module, _, cls = EXECUTORS[name].partition(":")
    found: Executor = getattr(import_module(module), cls)(rest)
    return found

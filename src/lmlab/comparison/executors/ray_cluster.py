"""Executor that runs tasks on a Ray cluster, whose machines must have access to the text and the folder."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence

from lmlab.comparison.executors.processes import DIED
from lmlab.comparison.work import Outcome, Task
from lmlab.config import Mistake


class RayCluster:
    """Runs tasks on the Ray cluster at an address; "local" starts a cluster on this machine."""

    def __init__(self, address: str = "local") -> None:
        self.address = address or "local"

    def run(self, tasks: Sequence[Task], work: Callable[[Task], Outcome]) -> Generator[Outcome, None, None]:
        """See `Executor.run`."""
        try:
            import ray
        except ImportError:
            raise Mistake(
                "{ray} needs the ray package; install it with: pip install 'lmlab[ray]'", code="ray-missing", ray=None
            ) from None
        ray.init(address=None if self.address == "local" else self.address, log_to_driver=False)
        try:
            remote = ray.remote(num_cpus=1)(work)
            waiting = {remote.remote(task): task for task in tasks}
            while waiting:
                (done,), _ = ray.wait(list(waiting))
                task = waiting.pop(done)
                try:
                    outcome = ray.get(done)
                except ray.exceptions.RayError:
                    outcome = Outcome(task=task, error=DIED)
                yield outcome
        finally:
            ray.shutdown()

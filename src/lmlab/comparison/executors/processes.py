"""Executor that runs tasks in parallel in separate processes, because a process cannot undo a change of its thread count."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing import active_children, get_context, parent_process
from typing import Any

from lmlab.comparison.work import Outcome, Task
from lmlab.config import Mistake

DIED = "its process died; it was killed, or there was not enough memory"
_STARTING = threading.Lock()  # only one thread at a time may hide the script

Work = Callable[[Task], Outcome]


class Processes:
    """Runs tasks in a pool of `count` processes."""

    def __init__(self, count: str | int = 1) -> None:
        if not str(count).isdecimal() or not int(count):
            raise Mistake(
                f"{{executor}} is processes and a whole number from 1 up, such as processes:2; got {count!r}",
                code="processes-not-a-number",
                executor=None,
            )
        self.count = int(count)

    def run(self, tasks: Sequence[Task], work: Work) -> Generator[Outcome, None, None]:
        """See `Executor.run`.

        If a process dies, its pool does not tell which task it had. So every unfinished task then gets its own process, and the
        one that dies again is the task that failed.
        """
        if not tasks:
            return
        others = set(active_children())
        left = dict(enumerate(tasks))
        with _pool(self.count) as pool:
            try:
                with _deaf_to_ctrl_c(), _main_left_alone(tasks, work):
                    waiting = {pool.submit(work, task): place for place, task in left.items()}
                for future in as_completed(waiting):
                    outcome = future.result()
                    left.pop(waiting[future])
                    yield outcome
                return
            except BrokenProcessPool:
                pass
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)  # otherwise every waiting task would still run
                for child in set(active_children()) - others:
                    child.terminate()  # SIGTERM, so that a run in training is saved first
                raise
        with ThreadPoolExecutor(self.count) as threads:
            alone = [threads.submit(_in_own_process, task, work) for task in left.values()]
            for done in as_completed(alone):
                yield done.result()


def _in_own_process(task: Task, work: Work) -> Outcome:
    with _pool(1) as pool:
        try:
            with _deaf_to_ctrl_c(), _main_left_alone([task], work):
                future = pool.submit(work, task)
            return future.result()
        except BrokenProcessPool:
            return Outcome(task=task, error=DIED)


def _pool(processes: int) -> ProcessPoolExecutor:
    return ProcessPoolExecutor(processes, mp_context=get_context("spawn"), initializer=_follow_parent)


@contextmanager
def _deaf_to_ctrl_c() -> Iterator[None]:
    """Block Ctrl-C (SIGINT) in processes that start in this block, even while they import torch: the parent handles it."""
    if sys.platform == "win32":
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def _main_left_alone(tasks: Sequence[Task], work: Work) -> Iterator[None]:
    """Keep processes that start in this block from running the main script again.

    A spawned process runs the script to import names from `__main__`. Only a model or work function defined there needs that.
    A script that calls a sweep at top level would start another sweep in every process.
    """
    if work.__module__ == "__main__" or any(task.spec.model.startswith("__main__:") for task in tasks):
        yield
        return
    main: Any = sys.modules["__main__"]
    with _STARTING:
        spec, file = main.__spec__, main.__dict__.pop("__file__", None)
        main.__spec__ = None
        try:
            yield
        finally:
            main.__spec__ = spec
            if file is not None:
                main.__file__ = file


def _follow_parent() -> None:
    """Ignore Ctrl-C in a process of the pool, and end the process when its parent has ended.

    Otherwise the process would wait forever for its next task if the parent is killed.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = parent_process()
    assert parent is not None, "a process of a pool has a parent"

    def wait() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=wait, daemon=True).start()

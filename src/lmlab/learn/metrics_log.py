"""Live logs of training: every line of metrics, as it is written, for TensorBoard or for a function of the user's."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lmlab.config import Mistake
from lmlab.learn.event_file import event, file_header
from lmlab.learn.onlookers import Watch

if TYPE_CHECKING:
    from lmlab.learn.clock import Clock

Log = Callable[[Mapping[str, Any]], object]
"""A function that takes one line of metrics: a step, seconds, and losses by name. What it returns is not used."""


class LoggingWatch:
    """A progress display that also hands every line of metrics to functions."""

    def __init__(self, watch: Watch, logs: Sequence[Log]) -> None:
        self.watch, self.logs = watch, tuple(logs)

    def update(self, clock: Clock, train: float, valid: float | None, unit: str) -> None:
        """Pass the losses on."""
        self.watch.update(clock, train, valid, unit)

    def say(self, line: str) -> None:
        """Pass a message on."""
        self.watch.say(line)

    def log(self, line: Mapping[str, Any]) -> None:
        """Hand one line of metrics to every function, without the values that are None."""
        known = {name: value for name, value in line.items() if value is not None}
        for log in self.logs:
            log(known)


def with_logs(watch: Watch, logs: Log | Sequence[Log] | None, tensorboard: str | Path | None) -> Watch:
    """Return a display that also logs, if a log or a folder for TensorBoard is given."""
    functions = (
        [] if logs is None else [logs] if callable(logs) else list(logs) if isinstance(logs, Sequence) else [logs]
    )
    if not all(callable(function) for function in functions):
        raise Mistake("{log} is a function, or a list of functions", code="log-no-function", log=None)
    if tensorboard is not None:
        functions.append(TensorBoard(Path(tensorboard)))
    return LoggingWatch(watch, functions) if functions else watch


class TensorBoard:
    """A log that appends every line of metrics to an event file, which TensorBoard reads while the training runs."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        # One file for each call: TensorBoard shows those of a folder as one curve.
        self.path = folder / f"events.out.tfevents.{int(time.time())}.{os.getpid()}.lmlab"
        number = 1
        while self.path.exists():
            self.path, number = self.path.with_suffix(f".{number}"), number + 1
        self.path.write_bytes(file_header())

    def __call__(self, line: Mapping[str, Any]) -> None:
        """Append one line of metrics."""
        with open(self.path, "ab") as file:
            file.write(event(line, wall_time=time.time()))

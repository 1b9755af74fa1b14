"""The outcome of a training run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from lmlab.learn.progress import Progress

Status = Literal["finished", "stopped early", "interrupted", "paused", "diverged", "untrained"]


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """The outcome of a training run, after which the model holds its best weights by validation.

    Without validation, the model holds its last weights.
    """

    status: Status
    message: str
    progress: Progress
    calibrated: float | None = None  # see `Task.calibrated`


class Diverged(Exception):
    """The error that the loss is NaN, infinite or far above a uniform guess. Its message says which weights are kept."""

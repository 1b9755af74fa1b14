"""How a training run ends."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from lmlab.learn.progress import Progress

Status = Literal["finished", "stopped early", "interrupted", "diverged", "untrained"]


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """How a run ended. The model then holds its best weights by validation (its last ones if there is no validation)."""

    status: Status
    message: str
    progress: Progress
    calibrated: float | None = None  # see `Task.calibrated`


class Diverged(Exception):
    """The loss is no number any more, or far worse than guessing; the message says what is kept."""

"""Ctrl-C at a moment that a test chooses."""

from __future__ import annotations

import os
import signal

from lmlab.learn.clock import Clock


class InterruptAt:
    """A watch that presses Ctrl-C once a step is reached."""

    def __init__(self, step: int) -> None:
        self.step = step

    def update(self, clock: Clock, train: float, valid: float | None, unit: str) -> None:
        if clock.steps >= self.step:
            os.kill(os.getpid(), signal.SIGINT)

    def say(self, line: str) -> None:
        pass

"""Ctrl-C at a moment that a test chooses."""

from __future__ import annotations

import os
import signal

from lmlab.learn.clock import Clock


class InterruptAt:
    """A watch that presses Ctrl-C, once, when a step is reached: a second time would end the process there and then."""

    def __init__(self, step: int) -> None:
        self.step, self.pressed = step, False

    def update(self, clock: Clock, train: float, valid: float | None, unit: str) -> None:
        if clock.steps >= self.step and not self.pressed:
            self.pressed = True
            os.kill(os.getpid(), signal.SIGINT)

    def say(self, line: str) -> None:
        pass

"""Trains once in peace and once under fire: children are forked and killed by SIGKILL."""

from __future__ import annotations

import os
import random
import signal
import threading
from pathlib import Path
from typing import Any

import lmlab
from lmlab.hardware.openmp import set_threads
from lmlab.learn import curve_figures, going_on, loop, run_page, train
from lmlab.models import gpt

IMPORTED_ONCE = (curve_figures, going_on, gpt, run_page, train)  # rather than by every child
SETTINGS = {"layers": 1, "width": 32, "heads": 2, "context": 32}


def train_or_go_on(text: str, out: Path) -> None:
    """As `lmlab train --resume` does: go on if there is something to go on with."""
    set_threads(1)
    if (out / "run.json").exists():
        lmlab.resume(out)
    else:
        lmlab.train("gpt", text, out=out, budget="60steps", settings=SETTINGS, learning={"rows": 8}, device="cpu")


def kill_myself_later(steps: int, delay_s: float) -> None:
    """Arrange for SIGKILL `delay_s` after the beginning of step `steps` from now: any moment inside a step or a write.

    The process does it to itself: another one, on a busy machine, might only get its turn when training is over.
    """
    honest, done = loop.Trainer._step, 0

    def step(self: loop.Trainer, piece: Any, carry: Any) -> Any:
        nonlocal done
        done += 1
        if done == steps:
            threading.Timer(delay_s, os.kill, (os.getpid(), signal.SIGKILL)).start()
        return honest(self, piece, carry)

    loop.Trainer._step = step  # type: ignore[method-assign]


def child(text: str, out: Path, kill: tuple[int, float] | None) -> int:
    """Exit code of a forked training run, -9 if it was killed."""
    pid = os.fork()
    if pid == 0:
        if kill:
            loop.CHECKPOINT_EVERY_S = 0.0
            kill_myself_later(*kill)
        train_or_go_on(text, out)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def trained_and_killed(text: str, folder: Path, kills: int, environment: dict[str, str]) -> None:
    """Write folder/whole and folder/killed, in a process of which this is all: an error if a child failed by itself."""
    os.environ.update(environment)  # of the test: that of the process this one is forked from is older
    moments = random.Random(0)
    for _ in range(kills):
        moment = (moments.randint(1, 9), moments.random() * 0.02)
        assert child(text, folder / "killed", moment) == -signal.SIGKILL, "it ended before it was killed"
    for name in ("killed", "whole"):
        assert child(text, folder / name, None) == 0

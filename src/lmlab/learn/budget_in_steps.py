"""The comparison of a budget of seconds with a number of steps, for tasks on which more steps only overfit."""

from __future__ import annotations

import time
from pathlib import Path

from lmlab.hardware.choice import Hardware
from lmlab.hardware.rates import settle
from lmlab.hardware.threads import using_threads
from lmlab.interface import Learner
from lmlab.learn.loop import Trainer
from lmlab.learn.onlookers import Silent
from lmlab.learn.settings import TrainConfig
from lmlab.learn.task import Task

TIMED_STEPS = 10


def allows_more_steps(steps: int, config: TrainConfig, model: Learner, task: Task, hardware: Hardware) -> bool:
    """Whether a budget of seconds allows more than `steps` steps, estimated by timing a few steps.

    The timed steps change the weights of `model`, which must be discarded afterwards.
    """
    if config.budget.seconds is None:
        return False
    step = Trainer(model, task, config, hardware, Path(), Silent()).to_be_timed()
    with using_threads(hardware.device, hardware.now):  # the thread count that the run starts with
        for _ in range(TIMED_STEPS // 2):
            step()
        settle(hardware.device)
        started = time.perf_counter()
        for _ in range(TIMED_STEPS):
            step()
        settle(hardware.device)
    return steps * (time.perf_counter() - started) / TIMED_STEPS < config.budget.seconds

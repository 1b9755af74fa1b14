"""A config made whole: what is set is kept, the rest follows from the text, the budget and the speed of this machine."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from lmlab.learn.loop import Trainer
from lmlab.learn.pace import Pace, Plan, Step, Timings, size_by_the_clock
from lmlab.learn.watch import Silent

if TYPE_CHECKING:
    from lmlab.config import TextFacts
    from lmlab.hardware.choice import Hardware
    from lmlab.interface import Learner
    from lmlab.learn.settings import TrainConfig
    from lmlab.learn.task import Task
    from lmlab.text.pieces import Vocabulary


def sized(
    cls: type[Learner],
    config: Any,
    facts: TextFacts,
    vocabulary: Vocabulary,
    task: Callable[[Learner], Task],
    train_config: TrainConfig,
    hardware: Hardware,
    timings: Timings | None = None,
) -> tuple[Any, Plan | None]:
    """The config to train, and for a budget of seconds what it was planned to read.

    task: what a fresh model would learn, in the batches it would see; its steps are what is timed.
    """

    def begin(config: Any) -> Step:
        model = cls(config, facts.vocab_size)
        model.take_vocabulary(vocabulary)
        trainer = Trainer(model, task(model), train_config, hardware, Path(), Silent())
        return trainer.to_be_timed()

    def on_paper(config: Any) -> Learner:
        with torch.device("meta"):  # takes no memory and draws no weights
            return cls(config, facts.vocab_size)

    def flops_per_token(config: Any) -> float:
        model = on_paper(config)
        known = model.training_flops_per_token
        return known if known is not None else 6.0 * model.parameters_count

    pace = Pace(cls.name, flops_per_token, begin, hardware, timings)
    state = torch.random.get_rng_state()
    try:
        return size_by_the_clock(partial(cls.resolve, config), facts, train_config.budget, pace)
    finally:
        torch.random.set_rng_state(state)

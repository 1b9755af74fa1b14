"""The resolution of a config: explicit settings are kept, and the rest follows from the text, the budget and the machine's
speed.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from lmlab.config import Budget
from lmlab.interface import TextLearner
from lmlab.learn.loop import Trainer
from lmlab.learn.memory_needed import refuse_what_memory_cannot_hold
from lmlab.learn.onlookers import Silent
from lmlab.learn.pace import Pace, Speed, Step, Timings, size_by_the_clock

if TYPE_CHECKING:
    from lmlab.config import TextFacts
    from lmlab.hardware.choice import Hardware
    from lmlab.interface import Learner
    from lmlab.learn.settings import TrainConfig
    from lmlab.learn.task import Task
    from lmlab.text.pieces import Vocabulary

FEWEST_TOKENS = 256  # of a step: an eighth of the rows that every kind of model takes by default


def sized(
    cls: type[Learner],
    config: Any,
    facts: TextFacts,
    vocabulary: Vocabulary,
    task: Callable[[Learner, float], Task],
    train_config: TrainConfig,
    hardware: Hardware,
    timings: Timings | None = None,
    validation_tokens: int = 0,
    fewer_rows: bool = False,
) -> tuple[Any, Speed | None]:
    """Resolve the config of a model; for a budget of seconds also return the measured speed.

    Args:
        cls: the class of the model.
        config: its settings; None where open.
        facts: the sizes of the text.
        vocabulary: the vocabulary of the tokenizer.
        task: creates the training task of a new model with a share of the default rows. Its steps are timed.
        train_config: the settings of the training loop.
        hardware: the hardware to train on.
        timings: timings that are shared with other runs.
        validation_tokens: validation tokens evaluated over the whole run.
        fewer_rows: whether the share of the default rows may be below 1.
    """

    def begin(config: Any, rows: float) -> Step:
        model = cls(config, facts.vocab_size)
        model.take_vocabulary(vocabulary)
        trainer = Trainer(model, task(model, rows), train_config, hardware, Path(), Silent())
        return trainer.to_be_timed()

    def refuse_giants(config: Any, tokens: int) -> None:
        refuse_what_memory_cannot_hold(cls, config, facts.vocab_size, tokens, hardware.device)

    def on_paper(config: Any) -> Learner:
        with _UninitializedWeights():
            return cls(config, facts.vocab_size)

    def flops_per_token(config: Any) -> float:
        model = on_paper(config)
        known = model.training_flops_per_token
        return known if known is not None else 6.0 * model.parameters_count

    def resolve(facts: TextFacts, budget: Budget) -> Any:
        whole = cls.resolve(config, facts, budget)
        refuse_giants(whole, FEWEST_TOKENS)
        return whole

    smallest = cls.resolve(config, facts, Budget(steps=1))
    refuse_giants(smallest, FEWEST_TOKENS)  # even an empty model of a million layers would not fit
    rows, length = train_config.rows, train_config.length
    if rows is None or length is None:
        paper = on_paper(smallest)
        usual_rows, usual_length = paper.batch_shape if isinstance(paper, TextLearner) else (1, FEWEST_TOKENS)
        rows, length = rows or usual_rows, length or usual_length
    refuse_giants(smallest, rows * length)
    pace = Pace(cls.name, flops_per_token, begin, hardware, timings)
    state = torch.random.get_rng_state()
    try:
        return size_by_the_clock(resolve, facts, train_config.budget, pace, validation_tokens, fewer_rows)
    finally:
        torch.random.set_rng_state(state)


class _UninitializedWeights(TorchFunctionMode):
    """A torch mode in which weights are allocated but not initialized, so that even a large model is constructed at once.

    Memory that is not written to is not used. Torch's "meta" device would serve too. But it imports the compiler and a
    computer algebra system, which takes two seconds or more.
    """

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func in (torch.randn, torch.rand):
            return torch.empty(*args, **{k: v for k, v in (kwargs or {}).items() if k != "generator"})
        if func in (Tensor.normal_, Tensor.uniform_, Tensor.mul, Tensor.__rmul__, Tensor.div):
            return args[0]
        if func is torch.linalg.qr:  # used to initialize orthogonal matrices
            return args[0], args[0][: args[0].shape[1]]
        return func(*args, **(kwargs or {}))

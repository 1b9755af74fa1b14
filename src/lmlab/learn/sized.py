"""A config made whole: what is set is kept, the rest follows from the text, the budget and the speed of this machine."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import torch

from lmlab.config import TextFacts
from lmlab.hardware.choice import Hardware
from lmlab.interface import NeuralLanguageModel
from lmlab.learn.loop import Silent, TrainConfig, Trainer
from lmlab.learn.pace import Pace, Plan, Step, Timings, size_by_the_clock
from lmlab.text.stream import TokenStream
from lmlab.text.tokenizers import Tokenizer


def sized(
    cls: type[NeuralLanguageModel],
    config: Any,
    stream: TokenStream,
    tokenizer: Tokenizer,
    train_config: TrainConfig,
    hardware: Hardware,
    timings: Timings | None = None,
) -> tuple[Any, Plan | None]:
    """The config to train, and for a budget of seconds what it was planned to read."""
    facts = TextFacts(train_tokens=stream.tokens, train_bytes=stream.bytes, vocab_size=tokenizer.vocab_size)

    def begin(config: Any) -> Step:
        model = cls(config, tokenizer.vocab_size)
        model.take_vocabulary(tokenizer.vocabulary)
        trainer = Trainer(model, tokenizer, stream, None, train_config, hardware, Path(), Silent())
        return trainer.single_step

    def on_paper(config: Any) -> NeuralLanguageModel:
        with torch.device("meta"):  # takes no memory and draws no weights
            return cls(config, tokenizer.vocab_size)

    def batch_tokens(config: Any) -> int:
        rows, length = on_paper(config).batch_shape
        return rows * length * hardware.batch

    def flops_per_token(config: Any) -> float:
        model = on_paper(config)
        known = model.training_flops_per_token
        return known if known is not None else 6.0 * model.parameters_count

    pace = Pace(cls.name, flops_per_token, begin, hardware, timings)
    state = torch.random.get_rng_state()
    try:
        resolve = partial(cls.resolve, config)
        return size_by_the_clock(resolve, facts, train_config.budget, pace, batch_tokens)
    finally:
        torch.random.set_rng_state(state)

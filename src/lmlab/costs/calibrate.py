"""The speed of this machine, by real steps: a few seconds of training that are thrown away."""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from lmlab.config import Budget, Mistake, TextFacts, make
from lmlab.costs.memory import Step
from lmlab.costs.planner import LEVEL, Rate, timed_rate
from lmlab.formulas import work
from lmlab.hardware.choice import choose, precision_name
from lmlab.hardware.load import using_threads
from lmlab.hardware.rates import settle
from lmlab.interface import TextLearner
from lmlab.learn.loop import Trainer
from lmlab.learn.settings import TrainConfig
from lmlab.learn.train import fresh_model, stream_folder, task_of
from lmlab.learn.watch import Silent
from lmlab.measure.student import t_quantile
from lmlab.models.registry import model_class
from lmlab.text.corpus import read
from lmlab.text.stream import tokenize
from lmlab.text.tokenizers import train_tokenizer

if TYPE_CHECKING:
    from lmlab.hardware.choice import Hardware

WARM_STEPS, BLOCKS, LEAST_STEPS = 3, 8, 24  # steps that do not count; groups whose speeds are compared; steps at least
TIMED_S = 15.0  # of steps, at least
SMALL = {"layers": 4, "width": 256, "context": 256}  # the gpt that is timed where no model is named


@dataclass(frozen=True, kw_only=True)
class Planned:
    """A run of a fixed number of steps on this machine."""

    model: str
    config: dict[str, Any]
    steps: int
    tokens: int
    parameters: int
    operations: float
    seconds: float  # of training with its validations, as a run's record counts them
    interval: tuple[float, float]
    level: float
    timed_steps: int
    hardware: str

    def to_json(self) -> dict[str, Any]:
        """As JSON can hold it."""
        return dict(vars(self))


def seconds_of_steps(step: Callable[[], object], device: torch.device, seconds: float | None = None) -> list[float]:
    """Seconds of each of some steps, for so long; the first few are thrown away."""
    for _ in range(WARM_STEPS):
        step()
        settle(device)
    taken: list[float] = []
    least_s = TIMED_S if seconds is None else seconds
    while sum(taken) < least_s or len(taken) < LEAST_STEPS:
        before = time.perf_counter()
        step()
        settle(device)
        taken.append(time.perf_counter() - before)
        if len(taken) >= BLOCKS and sum(taken) > max(4 * least_s, 1.0):  # a very slow one
            break
    return taken


def machine_rate(model: str | None, settings: dict[str, Any], vocab_size: int, device: str) -> Rate:
    """Operations per second that training reaches here, with a model of this kind (a small gpt by itself)."""
    cls = model_class(model or "gpt")
    hardware = choose(device)
    facts = TextFacts(train_tokens=10**9, train_bytes=10**9, vocab_size=vocab_size)
    config = cls.resolve(make(cls.Config, settings if model else SMALL, cls.name), facts, Budget(tokens=10**7))
    with torch.device("meta"):
        shape = cls(config, vocab_size).training_shape
    shape = replace(shape, past=0)
    step = Step(
        model=cls, config=config, vocab_size=vocab_size, shape=shape, device=hardware.device.type, dtype=hardware.dtype
    )
    fresh, optimizer, batch = step.ready()

    def once() -> None:
        fresh.loss(batch).mean.backward()
        optimizer.step(1.0)
        for p in fresh.parameters():
            p.grad = None

    with using_threads(hardware.device, hardware.threads):
        taken = seconds_of_steps(once, hardware.device)
    operations = work(cls.parts(config, vocab_size, shape)).both
    count = f"{fresh.parameters_count:,} parameters"
    return timed_rate(
        [operations / mean for mean in _block_means(taken)],
        f"{len(taken)} steps of {cls.name} with {count} on this machine, {hardware}",
    )


def plan_steps(
    model: str,
    text: str | Path,
    *,
    steps: int,
    settings: Mapping[str, Any] | None = None,
    tokenizer: str = "char",
    device: str = "auto",
    seed: int = 0,
) -> Planned:
    """How long a run of so many steps will train on this machine, by a few seconds of its own steps."""
    if steps < 1:
        raise Mistake("{steps} is a whole number from 1 up", steps=None)
    cls = model_class(model)
    if not issubclass(cls, TextLearner):
        raise Mistake(f"{model} takes no steps; name a model that learns")
    corpus, hardware = read(text), choose(device)
    tokens = train_tokenizer(tokenizer, corpus.train.pieces())
    stream = tokenize(corpus.train, tokens, stream_folder())
    asked = TrainConfig(budget=Budget(steps=steps), seed=seed)
    facts = TextFacts(train_tokens=stream.tokens, train_bytes=stream.bytes, vocab_size=tokens.vocab_size)
    config = cls.resolve(make(cls.Config, settings or {}, model), facts, asked.budget)
    fresh = fresh_model(cls, config, tokens, seed)
    task = task_of(fresh, tokens, corpus, stream, asked, hardware)
    trainer = Trainer(fresh, task, asked, hardware, Path(), Silent())
    with using_threads(hardware.device, hardware.threads):
        taken = seconds_of_steps(trainer.to_be_timed(), hardware.device)
        look_s = _validation_s(trainer, hardware)
    means = _block_means(taken)
    mean = statistics.fmean(means)
    spread = t_quantile(len(means) - 1, LEVEL) * statistics.stdev(means) / mean * math.sqrt(1 + 1 / len(means))
    looks = min(asked.validations, steps) if trainer.validation else 0
    seconds = steps * mean + looks * look_s
    step_tokens = task.rows * task.length
    return Planned(
        model=model,
        config=dict(vars(config)),
        steps=steps,
        tokens=steps * step_tokens,
        parameters=fresh.parameters_count,
        operations=(fresh.training_flops_per_token or 0.0) * steps * step_tokens,
        seconds=seconds,
        interval=(seconds / (1 + spread), seconds * (1 + spread)),
        level=LEVEL,
        timed_steps=len(taken),
        hardware=f"{hardware} ({precision_name(hardware.dtype)})",
    )


def _validation_s(trainer: Trainer, hardware: Hardware) -> float:
    """Of one look at the validation part, the faster of two."""
    found = []
    trainer.model.eval()
    for _ in range(2):
        before = time.perf_counter()
        with torch.no_grad():
            for batch in trainer.validation:
                trainer.model.loss(batch.to(hardware.device))
        settle(hardware.device)
        found.append(time.perf_counter() - before)
    trainer.model.train()
    return min(found)


def _block_means(taken: list[float]) -> list[float]:
    """Means of groups of neighbouring steps: single ones jump too much to say how the next minutes go."""
    size = max(1, len(taken) // BLOCKS)
    return [statistics.fmean(taken[i : i + size]) for i in range(0, size * BLOCKS, size) if taken[i : i + size]]

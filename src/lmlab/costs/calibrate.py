"""The speed of this machine, by real steps: a few seconds of training that are thrown away.

A run is more than its steps. Now and then it looks at the validation part, writes a sample and saves a checkpoint; each of
these is done and timed here too, and counted as often as the run will do it.
"""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch

from lmlab.config import Budget, Mistake, TextFacts, make
from lmlab.costs.memory import Step, take
from lmlab.costs.planner import LEVEL, Rate, timed_rate
from lmlab.formulas import Shape, work
from lmlab.hardware.choice import Hardware, choose, precision_name
from lmlab.hardware.rates import settle
from lmlab.hardware.threads import using_threads
from lmlab.learn.checkpoint import CHECKPOINT_EVERY_S
from lmlab.learn.loop import Trainer
from lmlab.learn.onlookers import Silent
from lmlab.learn.outcome import Diverged
from lmlab.learn.prepare import prepare, reads_plain_text
from lmlab.learn.prepared import PreparedLearner
from lmlab.learn.request import TrainingRequest
from lmlab.learn.sampling import sample_is_due
from lmlab.measure.student import t_quantile
from lmlab.models.registry import Way, model_class, trainable_kind
from lmlab.records import JsonRecord

WARM_STEPS, WARM_S = 3, 1.0  # at least, that do not count: a young process still finds its memory and chooses kernels
BLOCKS, LEAST_STEPS = 8, 24  # groups of steps whose speeds are compared; steps at least
TIMED_S = 15.0  # of steps, at least
TIMES = 3  # that a look, a sample and a checkpoint are timed; the middle one counts
SMALL = {"layers": 4, "width": 256, "context": 256}  # the gpt that is timed where no model is named


@dataclass(frozen=True, kw_only=True)
class Planned(JsonRecord):
    """A run of a fixed number of steps on this machine."""

    model: str
    config: dict[str, Any]
    steps: int
    tokens: int
    parameters: int
    operations: float
    seconds: float  # of training, looks, samples and checkpoints included, as a run's record counts them
    interval: tuple[float, float]
    level: float
    step_s: float
    look_s: float  # at the validation part; 0: there is none
    sample_s: float
    checkpoint_s: float
    timed_steps: int
    hardware: str


def seconds_of_steps(step: Callable[[], object], device: torch.device, seconds: float | None = None) -> list[float]:
    """Seconds of each of some steps, for so long; the first are thrown away."""
    least_s = TIMED_S if seconds is None else seconds
    started, warm = time.perf_counter(), 0
    while warm < WARM_STEPS or time.perf_counter() - started < min(WARM_S, least_s):
        step()
        settle(device)
        warm += 1
    taken: list[float] = []
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
        shape = Shape(*cls(config, vocab_size).batch_shape)
    step = Step(
        model=cls, config=config, vocab_size=vocab_size, shape=shape, device=hardware.device.type, dtype=hardware.dtype
    )
    fresh, optimizer, batch = step.ready()
    luck = torch.Generator(hardware.device).manual_seed(0)
    batch.tokens_BT.random_(vocab_size, generator=luck)  # one token again and again would be looked up too fast
    with using_threads(hardware.device, hardware.threads):
        taken = seconds_of_steps(lambda: take(fresh, optimizer, batch), hardware.device)
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
    learning: Mapping[str, Any] | None = None,
    tokenizer: str | None = None,
    device: str = "auto",
    seed: int = 0,
) -> Planned:
    """Predict how long `train` with a budget of so many steps takes on this machine, from a few seconds of its own steps.

    The other arguments are those of `train`. A run that stops early, because validation no longer improves, is shorter.
    """
    if steps < 1:
        raise Mistake("{steps} is a whole number from 1 up", code="steps-below-one", steps=None)
    kind = trainable_kind(model)
    if kind.way is not Way.LEARNS or not reads_plain_text(kind):
        raise Mistake(
            f"{model} does not learn from plain text step by step; plan one that does, such as gpt",
            code="plan-of-no-plain-text",
        )
    request = TrainingRequest(
        model=model,
        data=text,
        budget=Budget(steps=steps),
        seed=seed,
        settings=settings or {},
        learning=learning or {},
        tokenizer=tokenizer,
        device=device,
    )
    prepared = prepare(request)
    assert isinstance(prepared, PreparedLearner)
    fresh, task, loop, hardware = prepared.model, prepared.task, prepared.loop, prepared.hardware
    with TemporaryDirectory() as folder, using_threads(hardware.device, hardware.threads):
        trainer = Trainer(fresh, task, loop, hardware, Path(folder), Silent())
        taken = seconds_of_steps(trainer.to_be_timed(), hardware.device)
        try:
            look_s = _middle_s(trainer.validate, hardware) if trainer.validation.batches else 0.0
        except Diverged:
            rate = loop.learning_rate or fresh.default_learning_rate
            raise Mistake(
                f"{model} diverges in its first steps, so there is no run to plan; try a learning rate below {rate:g}",
                code="plan-diverges",
            ) from None
        sample_s = _middle_s(lambda: trainer.samples.write(0), hardware)
        checkpoint_s = _middle_s(trainer.save, hardware)
    means = _block_means(taken)
    mean = statistics.fmean(means)
    spread = t_quantile(len(means) - 1, LEVEL) * statistics.stdev(means) / mean * math.sqrt(1 + 1 / len(means))
    looks = min(loop.validations, steps) if trainer.validation.batches else 0
    seconds = seconds_in_all(steps * mean, looks, look_s, sample_s, checkpoint_s)
    per_step = trainer.clock.tokens / trainer.clock.steps
    return Planned(
        model=model,
        config=dict(vars(prepared.config)),
        steps=steps,
        tokens=round(steps * per_step),
        parameters=fresh.parameters_count,
        operations=(task.training_flops(fresh) or 0.0) * steps * per_step,
        seconds=seconds,
        interval=(seconds / (1 + spread), seconds * (1 + spread)),
        level=LEVEL,
        step_s=mean,
        look_s=look_s,
        sample_s=sample_s,
        checkpoint_s=checkpoint_s,
        timed_steps=len(taken),
        hardware=f"{hardware} ({precision_name(hardware.dtype)})",
    )


def seconds_in_all(steps_s: float, looks: int, look_s: float, sample_s: float, checkpoint_s: float) -> float:
    """Seconds of a run: its steps, with what it does between them as often as its loop does."""
    seconds = steps_s + looks * look_s
    spent_s = last_s = 0.0
    for look in range(1, looks + 1):
        if sample_is_due(seconds * look / looks, spent_s, last_s):
            spent_s, last_s = spent_s + sample_s, sample_s
    return seconds + spent_s + seconds // CHECKPOINT_EVERY_S * checkpoint_s


@torch.no_grad()
def _middle_s(act: Callable[[], object], hardware: Hardware) -> float:
    """Seconds of something that a run does between steps."""
    found = []
    for _ in range(TIMES):
        before = time.perf_counter()
        act()
        settle(hardware.device)
        found.append(time.perf_counter() - before)
    return statistics.median(found)


def _block_means(taken: list[float]) -> list[float]:
    """Means of groups of neighbouring steps: single ones jump too much to say how the next minutes go."""
    size = max(1, len(taken) // BLOCKS)
    return [statistics.fmean(taken[i : i + size]) for i in range(0, size * BLOCKS, size) if taken[i : i + size]]

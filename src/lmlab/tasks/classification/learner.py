"""Learning labels: what the loop learns from a table of texts, and how a classifier is prepared for it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache, partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch

from lmlab.config import Budget, Mistake, TextFacts, make, settings_of
from lmlab.hardware.choice import Hardware
from lmlab.interface import Learner
from lmlab.learn.budget_in_steps import allows_more_steps
from lmlab.learn.lineage import initial_weights, lineage_of
from lmlab.learn.loop import Trainer
from lmlab.learn.onlookers import Silent
from lmlab.learn.prepare_text import fresh_model
from lmlab.learn.prepared import PreparedLearner
from lmlab.learn.request import TrainingRequest
from lmlab.learn.run import Run
from lmlab.learn.settings import TrainConfig
from lmlab.learn.task import PartName, Task
from lmlab.models.families.labelling import Bags, Examples, TextClassifier
from lmlab.tasks.classification.data import Encoded, as_read
from lmlab.text.labelled import Labelled, read_labelled
from lmlab.text.tokenizers import Tokenizer, train_tokenizer

MOST_EPOCHS, SHORT_STEPS = (
    5,
    600,
)  # a table whose epochs are short is learned for so many of them, in so many steps at most
LEAST_STEPS = 300  # of a small table, whose epochs are over before anything is learned; validation ends it
DIVERGED_NATS = 2.0  # above the cost of guessing uniformly
FEW_STEPS = 1000  # below which the usual learning rate may get nowhere in that time
STRETCH = 200  # texts that are joined where only their words count
RATES = (1, 3, 10)  # times the usual one, then tried, if there is time


@dataclass(frozen=True, kw_only=True)
class Labelling(Task):
    """The label of each text."""

    name = "classification"
    thing = "example"
    unit = "bits per label"

    train: Encoded
    valid: Encoded | None
    labels: int
    rows: int
    at_once: int = 512  # texts, where nothing is learned
    epochs: int = TextClassifier.epochs
    prepare: Callable[[Bags], Examples] = lambda texts: texts  # see `TextClassifier.prepared`

    @cached_property
    def examples(self) -> Examples:
        """The training texts, as the model reads them."""
        return self.prepare(self.train.bags())

    def batch(self, seed: int, step: int) -> Examples:
        """The next examples of this epoch's order, which is drawn from (seed, epoch)."""
        epoch, place = divmod(step, self.steps_per_epoch)
        order = _order(len(self.train), seed, epoch)[place * self.rows : (place + 1) * self.rows]
        return self.examples.take(torch.from_numpy(order))

    @property
    def steps_per_epoch(self) -> int:
        """Steps in which every example is seen once."""
        return max(1, math.ceil(len(self.train) / self.rows))

    def validation(self) -> Iterable[Examples]:
        """All of the validation part."""
        return self._validation

    @cached_property
    def _validation(self) -> list[Examples]:
        return [] if self.valid is None else [self.prepare(texts) for texts in self.valid.batches(self.at_once)]

    def measured(self, nats: float, part: PartName) -> Mapping[str, float]:
        """Bits that the right label costs."""
        return {"bits_per_label": nats / math.log(2)}

    def training_flops(self, model: Learner) -> float | None:
        """For each text of an epoch, each batch as long as its longest text."""
        assert isinstance(model, TextClassifier)
        lengths_B = np.diff(self.train.starts_B)[_order(len(self.train), 0, 0)]
        lengths_B = lengths_B.clip(max=model.longest or lengths_B.max())
        batches = [lengths_B[first : first + self.rows] for first in range(0, len(lengths_B), self.rows)]
        operations = [model.training_flops(len(batch), int(batch.max())) or 0 for batch in batches]
        return sum(operations) / len(lengths_B) or None

    @property
    def enough_steps(self) -> int:
        """Of a few epochs, or, where these are over in a moment, as many as it takes to get anywhere."""
        short = min(MOST_EPOCHS * self.steps_per_epoch, SHORT_STEPS)
        return max(self.epochs * self.steps_per_epoch, short, LEAST_STEPS)

    @property
    def worst_nats(self) -> float:
        """Somewhat above what guessing costs."""
        return math.log(self.labels) + DIVERGED_NATS


@lru_cache(maxsize=2)
def _order(examples: int, seed: int, epoch: int) -> np.ndarray:
    return np.random.default_rng([seed, epoch]).permutation(examples)


def prepare(request: TrainingRequest) -> PreparedLearner:
    """Prepare a classifier for a table of texts with labels (TSV, CSV or JSONL).

    The columns of the request are those of the text and the label, if the header leaves it open. The weights that are kept are
    the best by validation, whose examples are drawn from the training examples if none are given.
    """
    request.refuse_windows()
    spec = request.tokenizer_spec
    cls: type[TextClassifier] = request.model_class
    config, loop = _config(request), request.loop
    hardware = request.hardware("eager")  # no two batches have one shape
    table = _read(request)
    source = request.begin or request.resumed
    texts = {name: as_read(part.texts, cls.by_words) for name, part in table.parts.items() if name != "test"}
    tokenizer = (
        _tokenizer(cls, spec, texts["train"], table.parts["train"].bytes) if source is None else source.tokenizer
    )
    if request.resumed is None:
        config = _resolved(cls, config, table, tokenizer, request.budget)
    if not getattr(config, "symbols", True):
        raise Mistake(
            f"{request.model}: a text leaves no ids to begin and end with; set symbols=true", code="symbols-needed"
        )
    loop = replace(loop, budget=loop.budget.over(len(table.parts["train"])))
    task = _task(cls, config, table, texts, tokenizer, loop)
    weights = initial_weights(request)
    model = _model(cls, config, tokenizer, task, request.seed, None if weights is None else weights.run)

    def fresh() -> TextClassifier:
        return deepcopy(model)

    if request.resumed is None:
        loop, hardware = _long_enough(request, fresh, task, loop, hardware)
    learning = {**request.learning, **({"learning_rate": loop.learning_rate} if loop.learning_rate else {})}
    return PreparedLearner(
        request=request,
        data=table,
        tokenizer=tokenizer,
        config=config,
        training=request.training(loop.budget, learning=learning, lineage=lineage_of(request)),
        model=model,
        task=task,
        loop=loop,
        hardware=hardware,
    )


def _read(request: TrainingRequest) -> Labelled:
    """The table of a request, or that of the run that is resumed."""
    if request.resumed is not None:
        return Labelled.from_spec(request.resumed.record.inputs.corpus)
    if not isinstance(request.data, str | Path):
        raise Mistake(
            f"{request.model} learns from one table; name a file or a folder", code="classifier-needs-one-table"
        )
    request.refuse_taken_folder()
    table = read_labelled(request.data, **request.table_division, columns=request.columns)
    copied = table.copied(table.parts["test"])[1]
    if copied.number:
        marked = "" if copied.is_held_out else ": too many for a test part, and eval marks its numbers"
        request.watch.say(f"{table.name}, test part: {copied}{marked}")
    return table


def _config(request: TrainingRequest) -> Any:
    """The settings of the model; those that say how large its weights are come from the run that it begins with."""
    cls, begin = request.model_class, request.begin
    if begin is None:
        return request.model_config
    known = set(settings_of(cls.Config)) - {"dropout"}  # how much is right depends on what is learned
    kept = {key: value for key, value in begin.record.model.config.items() if key in known}
    return make(cls.Config, {**kept, **request.settings}, request.model)


def _long_enough(
    request: TrainingRequest,
    fresh: Callable[[], TextClassifier],
    task: Labelling,
    loop: TrainConfig,
    hardware: Hardware,
) -> tuple[TrainConfig, Hardware]:
    """End a budget of seconds after a few epochs, and choose the learning rate if these are few steps.

    More epochs would teach the classifier its examples by heart.
    """
    say, enough = request.watch.say, task.enough_steps
    if not allows_more_steps(enough, loop, fresh(), task, hardware):
        return loop, hardware
    say(
        f"{request.model}: {request.budget} is more than it needs ({enough} steps, {enough / task.steps_per_epoch:.0f}"
        " epochs); more would teach it examples by heart, so it ends there"
    )
    shorter = replace(loop, budget=Budget(steps=enough))
    tries = (1 + len(RATES)) * enough
    can_choose = enough < FEW_STEPS and loop.learning_rate is None and task.valid is not None and len(task.valid) > 0
    if can_choose and allows_more_steps(tries, loop, fresh(), task, hardware):
        rate = _learning_rate(fresh, task, shorter, hardware)
        say(f"{request.model}: in so few steps the learning rate decides; by validation it is {rate:g}")
        shorter = replace(shorter, learning_rate=rate)
    return shorter, hardware


def _learning_rate(fresh: Callable[[], Learner], task: Labelling, config: TrainConfig, hardware: Hardware) -> float:
    """That of a few multiples of the usual one with which the whole training validates best."""
    found = []
    for times in RATES:
        model = fresh()
        rate = times * model.default_learning_rate
        tried = replace(config, learning_rate=rate)
        with TemporaryDirectory() as folder:
            outcome = Trainer(model, task, tried, hardware, Path(folder), Silent()).run()
        if outcome.status == "interrupted":
            raise KeyboardInterrupt
        nats = outcome.progress.best_nats
        found.append((math.inf if nats is None else nats, rate))
    return min(found)[1]


def _resolved(cls: type[Learner], config: Any, table: Labelled, tokenizer: Tokenizer, budget: Budget) -> Any:
    size = table.parts["train"].bytes
    facts = TextFacts(train_tokens=size // 5, train_bytes=size, vocab_size=tokenizer.vocab_size)  # words, roughly
    return replace(cls.resolve(config, facts, budget), labels=len(table.classes))


def _tokenizer(cls: type[TextClassifier], asked: str | None, texts: Sequence[str], train_bytes: int) -> Tokenizer:
    """Make the tokenizer for the texts of the training part, as the model reads them."""
    spec = asked or cls.usual_tokenizer(train_bytes)
    if cls.by_words and spec.startswith("words"):  # found faster in long stretches
        some = [text for text in texts if text]  # a text without any would leave two spaces
        texts = [" ".join(some[at : at + STRETCH]) for at in range(0, len(some), STRETCH)]
    return train_tokenizer(spec, texts, at_most=asked is None)


def _model(
    cls: type[TextClassifier], config: Any, tokenizer: Tokenizer, task: Labelling, seed: int, begin: Run | None
) -> TextClassifier:
    """A classifier before training, with the encoder of the run that it begins with, if there is one."""
    model: TextClassifier = fresh_model(cls, config, tokenizer, seed)
    model.take_examples(task.examples)
    if begin is not None:
        try:
            model.begin_with(begin.saved.tensors())
        except RuntimeError:
            raise Mistake(
                f"these {{settings}} do not fit the weights of {begin.folder}; change only what leaves every weight its place",
                code="settings-change-weights",
                settings=None,
            ) from None
    return model


def _task(
    cls: type[TextClassifier],
    settings: Any,
    table: Labelled,
    texts: Mapping[str, Sequence[str]],
    tokenizer: Tokenizer,
    config: TrainConfig,
) -> Labelling:
    train, valid = (
        Encoded.of_read(tokenizer, texts[name], table.parts[name].labels_B, by_words=cls.by_words)
        for name in ("train", "valid")
    )
    return Labelling(
        train=train,
        valid=valid,
        labels=len(table.classes),
        rows=config.rows or cls.rows,
        at_once=cls.at_once,
        epochs=cls.epochs,
        prepare=partial(cls.prepared, settings),
    )

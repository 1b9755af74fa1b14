"""From a table of texts with labels to a trained classifier: read, tokenise, learn, save; and going on with it."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch

from lmlab.config import Budget, Mistake, TextFacts, make, settings_of
from lmlab.hardware.choice import Hardware, as_asked, as_chosen, choose
from lmlab.hardware.threads import as_now
from lmlab.interface import Learner
from lmlab.learn.asked import Asked
from lmlab.learn.budget_in_steps import lasts_longer
from lmlab.learn.fit import hardware_for, learn
from lmlab.learn.going_on import lineage_from, source_of
from lmlab.learn.loop import Trainer
from lmlab.learn.onlookers import Silent, Watch
from lmlab.learn.run import Run, refuse_if_taken
from lmlab.learn.settings import TrainConfig, training_config
from lmlab.models.families.labelling import TextClassifier
from lmlab.models.registry import model_class
from lmlab.tasks.classification.task import Labelling, encoded, words_of
from lmlab.text.labelled import Labelled, read_labelled
from lmlab.text.tokenizers import Tokenizer, train_tokenizer

FEW_STEPS = 1000  # below which the usual learning rate may get nowhere in that time
STRETCH = 200  # texts that are joined where only their words count
RATES = (1, 3, 10)  # times the usual one, then tried, if there is time


def train(model: str, data: Any, asked: Asked) -> Run:
    """Train a classifier on a table of texts with labels (TSV, CSV or JSONL) and save it.

    Its columns are the names of those with the text and the label, where the header leaves it open.
    The weights that are kept are the best by validation, whose examples are drawn from the training ones where none are given.
    """
    if not isinstance(data, str | Path):
        raise Mistake(f"{model} learns from one table; name a file or a folder", code="classifier-needs-one-table")
    watch, budget, seed, begin, learning = asked.watch, asked.budget, asked.seed, asked.begin, dict(asked.learning)
    cls = model_class(model)
    config: Any = make(cls.Config, {**_settings_of(cls, begin), **asked.settings}, model)
    train_config = asked.config
    hardware = hardware_for(train_config, asked.device, asked.precision)
    hardware = as_asked(hardware, "eager")  # no two batches have one shape
    refuse_if_taken(asked.out)
    table = read_labelled(data, **asked.division_of_rows, columns=asked.columns)
    copied = table.copied(table.parts["test"])[1]
    if copied.number:
        marked = "" if copied.is_held_out else ": too many for a test part, and eval marks its numbers"
        watch.say(f"{table.name}, test part: {copied}{marked}")
    words = begin.tokenizer if begin is not None else _tokenizer(cls, asked.tokenizer, table)
    config = _resolved(cls, config, table, words, budget)
    if not getattr(config, "symbols", True):
        raise Mistake(f"{model}: a text leaves no ids to begin and end with; set symbols=true", code="symbols-needed")
    train_config = dataclasses.replace(train_config, budget=budget.over(len(table.parts["train"])))
    task = _task(cls, table, words, train_config)
    enough = task.enough_steps
    if lasts_longer(enough, train_config, _fresh(cls, config, words, seed), task, hardware):
        watch.say(
            f"{model}: {budget} is more than it needs ({enough} steps, {enough / task.steps_per_epoch:.0f} epochs);"
            " more would teach it names by heart, so it ends there"
        )
        hardware, whole = as_now(hardware), train_config
        train_config = dataclasses.replace(train_config, budget=Budget(steps=enough))
        tries = (1 + len(RATES)) * enough
        few = enough < FEW_STEPS and train_config.learning_rate is None and len(table.parts["valid"]) > 0
        if few and lasts_longer(tries, whole, _fresh(cls, config, words, seed), task, hardware):
            rate = _learning_rate(lambda: _fresh(cls, config, words, seed, begin), task, train_config, hardware)
            watch.say(f"{model}: in so few steps the learning rate decides; by validation it is {rate:g}")
            learning["learning_rate"] = rate
            train_config = dataclasses.replace(train_config, learning_rate=rate)
    lineage = () if begin is None else lineage_from(begin)
    training = asked.training(train_config.budget, learning=learning, chosen=hardware.chosen, lineage=lineage)
    fresh = _fresh(cls, config, words, seed, begin)  # before anything is written: the weights may not fit
    run = asked.new_run(Labelling.name, model, config, table.spec(), words, training)
    return learn(run, fresh, task, train_config, hardware, watch)


def _learning_rate(fresh: Callable[[], Learner], task: Labelling, config: TrainConfig, hardware: Hardware) -> float:
    """That of a few multiples of the usual one with which the whole training validates best."""
    found = []
    for times in RATES:
        model = fresh()
        rate = times * model.default_learning_rate
        tried = dataclasses.replace(config, learning_rate=rate)
        with TemporaryDirectory() as folder:
            outcome = Trainer(model, task, tried, hardware, Path(folder), Silent()).run()
        if outcome.status == "interrupted":
            raise KeyboardInterrupt
        nats = outcome.progress.best_nats
        found.append((math.inf if nats is None else nats, rate))
    return min(found)[1]


def resume(run: Run, *, watch: Watch | None = None) -> Run:
    """Go on with a run that was stopped; with a budget of steps or tokens to the same bits as if it never had been."""
    asked = run.record.training
    config = training_config(Budget.parse(asked.budget), asked.seed, asked.learning)
    hardware: Hardware = as_chosen(choose(asked.device, asked.precision), asked.chosen)
    cls = model_class(run.record.model.name)
    settings: Any = make(cls.Config, run.record.model.config, cls.name)
    begin = source_of(run, asked.lineage[-1]) if asked.lineage and not run.checkpoint.exists() else None
    fresh = _fresh(cls, settings, run.tokenizer, asked.seed, begin)
    task = _task(cls, Labelled.from_spec(run.record.inputs.corpus), run.tokenizer, config)
    return learn(run, fresh, task, config, hardware, watch or Silent())


def _resolved(cls: type[Learner], config: Any, table: Labelled, tokenizer: Tokenizer, budget: Budget) -> Any:
    size = table.parts["train"].bytes
    facts = TextFacts(train_tokens=size // 5, train_bytes=size, vocab_size=tokenizer.vocab_size)  # words, roughly
    return dataclasses.replace(cls.resolve(config, facts, budget), labels=len(table.classes))


def _settings_of(cls: type[TextClassifier], begin: Run | None) -> dict[str, Any]:
    """Of a run that is begun with: what stands for the sizes of its weights."""
    if begin is None:
        return {}
    if begin.status == "unfinished":
        raise Mistake(f"{begin.folder} is unfinished; finish it first: {begin.how_to_go_on}", code="run-unfinished")
    known = set(settings_of(cls.Config)) - {"dropout"}  # how much is right depends on what is learned
    return {key: value for key, value in begin.record.model.config.items() if key in known}


def _tokenizer(cls: type[TextClassifier], asked: str | None, table: Labelled) -> Tokenizer:
    """Made for the texts of the training part, as the model reads them."""
    part = table.parts["train"]
    spec, texts = asked or cls.usual_tokenizer(part.bytes), part.texts
    if cls.by_words:
        texts = tuple(words_of(text) for text in texts)
        if spec.startswith("words"):  # found faster in long stretches; a text without any would leave two spaces
            some = [text for text in texts if text]
            texts = tuple(" ".join(some[at : at + STRETCH]) for at in range(0, len(some), STRETCH))
    return train_tokenizer(spec, texts, at_most=asked is None)


def _fresh(
    cls: type[TextClassifier], config: Any, tokenizer: Tokenizer, seed: int, begin: Run | None = None
) -> TextClassifier:
    torch.manual_seed(seed)
    model = cls(config, tokenizer.vocab_size)
    model.take_vocabulary(tokenizer.vocabulary)
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


def _task(cls: type[TextClassifier], table: Labelled, tokenizer: Tokenizer, config: TrainConfig) -> Labelling:
    train, valid = (encoded(tokenizer, table.parts[name], cls.by_words) for name in ("train", "valid"))
    rows = config.rows or cls.rows
    return Labelling(train=train, valid=valid, labels=len(table.classes), rows=rows, at_once=cls.at_once)

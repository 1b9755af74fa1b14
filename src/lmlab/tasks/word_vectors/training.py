"""From a text to word vectors: read, count, learn, save; and going on with it."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch

from lmlab.config import Budget, Mistake, TextFacts, make
from lmlab.hardware.choice import Hardware, as_asked, as_chosen, choose
from lmlab.hardware.threads import as_now
from lmlab.interface import Learner
from lmlab.learn.asked import Asked
from lmlab.learn.budget_in_steps import lasts_longer
from lmlab.learn.fit import hardware_for, learn
from lmlab.learn.loop import Trainer
from lmlab.learn.onlookers import Silent, Watch
from lmlab.learn.run import Run, refuse_if_taken
from lmlab.learn.settings import TrainConfig, training_config
from lmlab.models.glove import GloVe, GloVeConfig
from lmlab.models.registry import model_class
from lmlab.tasks.word_vectors.counting import Pairs
from lmlab.tasks.word_vectors.space import of_run
from lmlab.tasks.word_vectors.task import EPOCHS, CoOccurrence, divided, pairs_of, plain_documents, refuse_if_short
from lmlab.text.corpus import Corpus, read
from lmlab.text.fingerprint import fingerprint_of
from lmlab.text.parts import Part
from lmlab.text.tokenizers import Tokenizer, parse_spec, train_tokenizer
from lmlab.text.vectors import RUN_FILE, write_vectors

BRIEFLY = 4  # epochs, of vectors that another model begins with
USUAL_SPLIT, WHOLE = (80, 10, 10), (100, 0, 0)  # what is passed where nobody said anything, and what is meant here


def train(model: str, text: Any, asked: Asked) -> Run:
    """Count which words of a text stand near which, learn vectors from it, and save them.

    All of the text is read; what is held out are pairs of words (the setting `held_out`).
    """
    if tuple(asked.split) not in (USUAL_SPLIT, WHOLE) or asked.valid is not None or asked.test is not None:
        raise Mistake(
            f"{model} reads all of its text and holds out pairs of words; leave {{split}}, {{valid}} and {{test}} away,"
            " and say how many pairs by the setting held_out, such as held_out=0.01",
            code="split-of-word-vectors",
            split=None,
            valid=None,
            test=None,
        )
    tokenizer = asked.tokenizer or "words"
    if parse_spec(tokenizer)[0] != "words":
        raise Mistake(
            f"{model} learns vectors of words; its {{tokenizer}} is words or words:N",
            code="word-vectors-tokenizer",
            tokenizer=None,
        )
    watch, budget, seed, train_config = asked.watch, asked.budget, asked.seed, asked.config
    cls = model_class(model)
    config: Any = make(cls.Config, asked.settings, model)
    hardware = hardware_for(train_config, asked.device, asked.precision)
    hardware = as_asked(hardware, "eager")  # sorting decides by looking
    refuse_if_taken(asked.out)
    corpus = text if isinstance(text, Corpus) else read(text, split=WHOLE)
    words = train_tokenizer(tokenizer, plain_documents(corpus.train), least=config.least)
    watch.say(f"{model}: counting the pairs of {words.vocab_size - 1:,} words")
    pairs = pairs_of(corpus.train, words, config.window)
    refuse_if_short(pairs, words.vocab_size - 1, config, corpus.name)
    parts = divided(pairs, config.held_out, seed)
    size = corpus.train.bytes
    facts = TextFacts(train_tokens=size // 5, train_bytes=size, vocab_size=words.vocab_size)  # words, roughly
    config = cls.resolve(config, facts, budget)
    task = CoOccurrence.of(parts, config, train_config.rows, seed)
    train_config = dataclasses.replace(train_config, budget=budget.over(len(task.train)))
    enough = task.enough_steps
    if lasts_longer(enough, train_config, _fresh(cls, config, words.vocab_size, seed), task, hardware):
        watch.say(f"{model}: {budget} is more than {EPOCHS} epochs take; it learns these")
        hardware = as_now(hardware)
        train_config = dataclasses.replace(train_config, budget=Budget(steps=enough))
    training, learned_from = asked.training(train_config.budget, chosen=hardware.chosen), [fingerprint_of(corpus.train)]
    run = asked.new_run(CoOccurrence.name, model, config, _spec(corpus, parts), words, training, learned_from)
    return _learn(run, _fresh(cls, config, words.vocab_size, seed), task, train_config, hardware, watch)


def resume(run: Run, *, watch: Watch | None = None) -> Run:
    """Go on with a run that was stopped; with a budget of steps or tokens to the same bits as if it never had been."""
    asked = run.record.training
    train_config = training_config(Budget.parse(asked.budget), asked.seed, asked.learning)
    hardware = as_chosen(choose(asked.device, asked.precision), asked.chosen)
    cls = model_class(run.record.model.name)
    config: Any = make(cls.Config, run.record.model.config, cls.name)
    task = CoOccurrence.of(parts_of(run), config, train_config.rows, asked.seed)
    fresh = _fresh(cls, config, run.tokenizer.vocab_size, asked.seed)
    return _learn(run, fresh, task, train_config, hardware, watch or Silent())


def learned_vectors(
    part: Part, words: Tokenizer, width: int, name: str, hardware: Hardware, seed: int, *, least: int
) -> np.ndarray:
    """Vectors of all words of a tokenizer from a text, for models that begin with them: a few epochs, nothing held out.

    least: times that each of them occurs.
    """
    config = GloVeConfig(width=width, least=least, held_out=0.0)
    pairs = pairs_of(part, words, config.window)
    refuse_if_short(pairs, words.vocab_size - 1, config, name)
    task = CoOccurrence.of(divided(pairs, 0.0, seed), config, None, seed)
    model = _fresh(GloVe, config, words.vocab_size, seed)
    budget = Budget(steps=BRIEFLY * task.steps_per_epoch)
    with TemporaryDirectory() as folder:
        outcome = Trainer(model, task, TrainConfig(budget=budget, seed=seed), hardware, Path(folder), Silent()).run()
    if outcome.status == "interrupted":
        raise KeyboardInterrupt
    if outcome.status == "diverged":  # it holds the vectors that it began with, drawn by chance
        raise Mistake(
            f"vectors of the words of {name} cannot be learned ({outcome.message}); set vectors to a GloVe text file or a run"
            " of glove",
            code="vectors-not-learned",
        )
    assert isinstance(model, GloVe)
    found: np.ndarray = model.vectors_VX.cpu().numpy()
    return found


def parts_of(run: Run) -> dict[str, Pairs]:
    """The pairs of a run's text, counted and divided again."""
    config: Any = make(model_class(run.record.model.name).Config, run.record.model.config, "glove")
    pairs = pairs_of(run.corpus.train, run.tokenizer, config.window)
    return divided(pairs, config.held_out, run.record.training.seed)


def _learn(run: Run, model: Learner, task: CoOccurrence, config: TrainConfig, hardware: Hardware, watch: Watch) -> Run:
    run = learn(run, model, task, config, hardware, watch)
    if run.status != "unfinished":
        found = of_run(run)
        write_vectors(run.folder / RUN_FILE, found.words, found.vectors_VX)
    return run


def _spec(corpus: Corpus, parts: dict[str, Pairs]) -> dict[str, Any]:
    """What the text is, and how many pairs each part has."""
    spec = corpus.spec()
    return {**spec, "parts": {name: {**part, "pairs": len(parts[name])} for name, part in spec["parts"].items()}}


def _fresh(cls: type[Learner], config: Any, vocab_size: int, seed: int) -> Learner:
    torch.manual_seed(seed)
    return cls(config, vocab_size)

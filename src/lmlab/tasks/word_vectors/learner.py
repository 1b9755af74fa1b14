"""Learning word vectors: what the loop learns from the pairs of words of a text, and how the model is prepared for it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from lmlab.config import Budget, Mistake, TextFacts
from lmlab.hardware.choice import Hardware
from lmlab.learn.budget_in_steps import allows_more_steps
from lmlab.learn.loop import Trainer
from lmlab.learn.onlookers import Silent
from lmlab.learn.prepare_text import fresh_model
from lmlab.learn.prepared import PreparedLearner
from lmlab.learn.request import TrainingRequest
from lmlab.learn.run import Run
from lmlab.learn.settings import TrainConfig
from lmlab.learn.task import PartName, Task
from lmlab.models.glove import GloVe, GloVeConfig, PairBatch
from lmlab.tasks.word_vectors.counting import Pairs
from lmlab.tasks.word_vectors.data import (
    CountedText,
    Entries,
    divided,
    pairs_of,
    parts_of,
    plain_documents,
    refuse_if_short,
)
from lmlab.tasks.word_vectors.space import of_run
from lmlab.text.corpus import Corpus, read
from lmlab.text.fingerprint import fingerprint_of
from lmlab.text.parts import Part
from lmlab.text.tokenizers import Tokenizer, parse_spec, train_tokenizer
from lmlab.text.vectors import RUN_FILE, write_vectors

ROWS = 1 << 16  # pairs in a step, at most
EPOCHS = 8  # at most, where the budget is seconds: held-out pairs are no better for more
STEPS = 100  # of an epoch, at least: a short text has smaller steps
DIVERGED = 10  # times the error of a model that says nothing
BRIEFLY = 4  # epochs, of vectors that another model begins with
USUAL_SPLIT, WHOLE = (80, 10, 10), (100, 0, 0)  # what is passed where nobody said anything, and what is meant here


@dataclass(frozen=True, kw_only=True)
class CoOccurrence(Task):
    """The logarithm of how often each pair of words occurs."""

    name = "word vectors"
    thing = "pair"
    unit = "error per pair"

    train: Entries
    valid: Entries
    rows: int

    @classmethod
    def of(cls, parts: Mapping[str, Pairs], config: GloVeConfig, rows: int | None, seed: int) -> CoOccurrence:
        """The training and validation pairs of a text."""
        train, valid = Entries.of(parts["train"], config, seed), Entries.of(parts["valid"], config)
        return cls(train=train, valid=valid, rows=rows or max(1, min(ROWS, len(train) // STEPS)))

    def batch(self, seed: int, step: int) -> PairBatch:
        """The next pairs; they were shuffled once, as the reference implementation does, and come in that order every epoch."""
        start = step % self.steps_per_epoch * self.rows
        return self.train.batch(start, start + self.rows)

    @property
    def steps_per_epoch(self) -> int:
        """Steps in which every pair is seen once."""
        return -(-len(self.train) // self.rows)

    def validation(self) -> Iterable[PairBatch]:
        """The pairs that are held out for it."""
        return list(self.valid.batches())

    def measured(self, nats: float, part: PartName) -> Mapping[str, float]:
        """The objective, for each pair: half the weighted squared error of the logarithm."""
        return {"error_per_pair": nats}

    @property
    def enough_steps(self) -> int:
        """Of a few epochs."""
        return EPOCHS * self.steps_per_epoch

    @property
    def worst_nats(self) -> float:
        """Well above what a model that says nothing has."""
        silent = float((self.train.weights_P * self.train.logs_P**2).mean()) / 2
        return DIVERGED * silent + 1.0


def prepare(request: TrainingRequest) -> PreparedLearner:
    """Prepare word vectors: count which words of a text stand near which.

    All of the text is read; what is held out are pairs of words (the setting `held_out`).
    """
    request.refuse_columns()
    request.refuse_windows()
    config, loop = request.model_config, request.loop
    hardware = request.hardware("eager")  # sorting decides by looking
    if request.resumed is None:
        text, words = _counted(request, config)
        size = text.corpus.train.bytes
        facts = TextFacts(train_tokens=size // 5, train_bytes=size, vocab_size=words.vocab_size)  # words, roughly
        config = request.model_class.resolve(config, facts, request.budget)
    else:
        run = request.resumed
        text, words = CountedText(run.corpus, parts_of(run)), run.tokenizer
    task = CoOccurrence.of(text.parts, config, loop.rows, request.seed)
    loop = replace(loop, budget=loop.budget.over(len(task.train)))
    if request.resumed is None:
        fresh = fresh_model(request.model_class, config, words, request.seed)
        if allows_more_steps(task.enough_steps, loop, fresh, task, hardware):
            request.watch.say(f"{request.model}: {request.budget} is more than {EPOCHS} epochs take; it learns these")
            loop = replace(loop, budget=Budget(steps=task.enough_steps))
    return PreparedLearner(
        request=request,
        data=text,
        tokenizer=words,
        config=config,
        training=request.training(loop.budget),
        learned_from=[] if request.out is None else [fingerprint_of(text.corpus.train)],
        model=fresh_model(request.model_class, config, words, request.seed),
        task=task,
        loop=loop,
        hardware=hardware,
        on_learned=_write_vectors,
    )


def _counted(request: TrainingRequest, config: GloVeConfig) -> tuple[CountedText, Tokenizer]:
    """Read the text of a request, and count the pairs of its words."""
    model, tokenizer = request.model, request.tokenizer_spec or "words"
    if tuple(request.split) not in (USUAL_SPLIT, WHOLE) or request.valid is not None or request.test is not None:
        raise Mistake(
            f"{model} reads all of its text and holds out pairs of words; leave {{split}}, {{valid}} and {{test}} away,"
            " and say how many pairs by the setting held_out, such as held_out=0.01",
            code="split-of-word-vectors",
            split=None,
            valid=None,
            test=None,
        )
    if parse_spec(tokenizer)[0] != "words":
        raise Mistake(
            f"{model} learns vectors of words; its {{tokenizer}} is words or words:N",
            code="word-vectors-tokenizer",
            tokenizer=None,
        )
    request.refuse_taken_folder()
    corpus = request.data if isinstance(request.data, Corpus) else read(request.data, split=WHOLE)
    words = train_tokenizer(tokenizer, plain_documents(corpus.train), least=config.least)
    request.watch.say(f"{model}: counting the pairs of {words.vocab_size - 1:,} words")
    pairs = pairs_of(corpus.train, words, config.window)
    refuse_if_short(pairs, words.vocab_size - 1, config, corpus.name)
    return CountedText(corpus, divided(pairs, config.held_out, request.seed)), words


def _write_vectors(run: Run) -> None:
    """Write the learned vectors as a text file that other programs read."""
    found = of_run(run)
    write_vectors(run.folder / RUN_FILE, found.words, found.vectors_VX)


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
    model = fresh_model(GloVe, config, words, seed)
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

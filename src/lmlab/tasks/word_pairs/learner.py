"""Learning to combine two words: what the loop learns from labelled pairs, and how the model is prepared for it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np
import torch

from lmlab.config import TextFacts
from lmlab.learn.prepare_text import fresh_model
from lmlab.learn.prepared import PreparedLearner
from lmlab.learn.request import TrainingRequest
from lmlab.learn.run import Run
from lmlab.learn.task import PartName, Task
from lmlab.models.autoencoder import Autoencoder, LabelledPairs
from lmlab.tasks.word_pairs.data import Source, data_of_request, data_of_run, pieces
from lmlab.tasks.word_pairs.labelled_pairs import WordPairs
from lmlab.text.vectors import RUN_FILE, write_vectors

ROWS = 512  # pairs in a step
AT_ONCE = 8192  # pairs, where nothing is learned
DIVERGED = 10.0  # above what a model has that brings nothing back and guesses


def batch_of(pairs: WordPairs) -> LabelledPairs:
    """As tensors."""
    return LabelledPairs(torch.from_numpy(pairs.words_B2.astype(np.int64)), torch.from_numpy(pairs.labels_B))


def batches(pairs: WordPairs) -> Iterator[LabelledPairs]:
    """All of them, in order."""
    for start in range(0, len(pairs), AT_ONCE):
        yield batch_of(pairs.chosen(np.arange(start, min(start + AT_ONCE, len(pairs)))))


@dataclass(frozen=True, kw_only=True)
class Combining(Task):
    """Bringing two words back from their parent, and the label of the pair."""

    name = "combining"
    thing = "pair"
    unit = "loss per pair"

    train: Source
    valid: WordPairs
    labels: int
    rows: int

    def batch(self, seed: int, step: int) -> LabelledPairs:
        """Pairs drawn from (seed, step)."""
        return batch_of(self.train.draw(np.random.default_rng([seed, 0, step]), self.rows))

    def validation(self) -> Iterable[LabelledPairs]:
        """The pairs that are held out for it."""
        return list(batches(self.valid))

    def measured(self, nats: float, part: PartName) -> Mapping[str, float]:
        """J, for each pair."""
        return {"loss_per_pair": nats}

    @property
    def worst_nats(self) -> float:
        """Two vectors of length one not brought back cost 1."""
        return 1.0 + math.log(self.labels) + DIVERGED


def prepare(request: TrainingRequest) -> PreparedLearner:
    """Prepare a model that combines two words, from a text, or from a table of two words and a label on each line.

    Without `vectors` among the settings, word vectors are learned from the training part of the text first.
    """
    request.refuse_columns()
    request.refuse_windows()
    config, loop = request.model_config, request.loop
    hardware = request.hardware("eager")
    if request.resumed is None:
        data = data_of_request(request, config, hardware)
        material, words = data.material, data.words
        facts = TextFacts(train_tokens=len(material.train), train_bytes=0, vocab_size=words.vocab_size)
        config = replace(config, width=data.vectors_VX.shape[1], labels=len(material.classes))
        config = request.model_class.resolve(config, facts, request.budget)
    else:
        data = data_of_run(request.resumed)
        material, words = data.material, data.words
    loop = replace(loop, budget=loop.budget.over(len(material.train)))
    model: Autoencoder = fresh_model(request.model_class, config, words, request.seed)
    model.take_vectors(torch.from_numpy(data.vectors_VX))
    rows, labels = loop.rows or ROWS, len(material.classes)

    def write_given_vectors(run: Run) -> None:
        write_vectors(run.folder / RUN_FILE, pieces(words), data.vectors_VX)

    return PreparedLearner(
        request=request,
        data=data,
        tokenizer=words,
        config=config,
        training=request.training(loop.budget),
        learned_from=data.learned_from,
        model=model,
        task=Combining(train=material.train, valid=material.valid, labels=labels, rows=rows),
        loop=loop,
        hardware=hardware,
        on_created=write_given_vectors,
    )

"""Learning to combine: batches of labelled pairs, drawn anew for every step."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import torch

from lmlab.learn.task import PartName, Task
from lmlab.models.autoencoder import LabelledPairs
from lmlab.tasks.word_pairs.labelled_pairs import WordPairs
from lmlab.tasks.word_pairs.material import Source

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

"""Learning labels: batches of whole texts, every example once an epoch."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import torch

from lmlab.interface import Learner
from lmlab.learn.task import PartName, Task
from lmlab.models.families.labelling import Bags, TextClassifier
from lmlab.text.labelled import Examples
from lmlab.text.plain_words import words_of as words_of
from lmlab.text.tokenizers import Tokenizer

EPOCHS = 5  # at most, where the budget is seconds; in more a classifier learns its examples by heart
LEAST_STEPS = 300  # of a small table, whose epochs are over before anything is learned; validation ends it
DIVERGED_NATS = 2.0  # above the cost of guessing uniformly


@dataclass(frozen=True)
class Encoded:
    """Texts as word ids, one after the other, and where each begins; with their labels where they have any."""

    ids_N: np.ndarray
    starts_B: np.ndarray  # one more than there are texts: the last is the end
    labels_B: np.ndarray

    @classmethod
    def of(
        cls, tokenizer: Tokenizer, texts: Sequence[str], labels_B: np.ndarray | None = None, *, by_words: bool = True
    ) -> Encoded:
        """Every text as its words (see `words_of`), or as it is."""
        if by_words:
            together, lengths_B = tokenizer.encode_each([words_of(text) for text in texts])
            joined = together.ids
        else:
            ids = [tokenizer.encode(text).ids for text in texts]
            lengths_B = np.array([len(i) for i in ids], dtype=np.int64)
            joined = np.concatenate(ids) if ids else np.zeros(0, dtype=np.int64)
        starts_B = np.concatenate([[0], np.cumsum(lengths_B, dtype=np.int64)])
        return cls(joined.astype(np.int32), starts_B, np.zeros(len(texts), np.int64) if labels_B is None else labels_B)

    def __len__(self) -> int:
        return len(self.labels_B)

    def words(self, i: int) -> np.ndarray:
        """The ids of one text."""
        return self.ids_N[self.starts_B[i] : self.starts_B[i + 1]]

    def bags(self, which: np.ndarray) -> Bags:
        """Some of the texts as a batch."""
        chosen = [self.words(i) for i in which.tolist()]
        starts_B = np.concatenate([[0], np.cumsum([len(ids) for ids in chosen[:-1]], dtype=np.int64)])
        ids_N = np.concatenate(chosen).astype(np.int64)
        return Bags(torch.from_numpy(ids_N), torch.from_numpy(starts_B), torch.from_numpy(self.labels_B[which]))

    def batches(self, size: int) -> Iterator[Bags]:
        """All texts, in order, so many at a time."""
        for first in range(0, len(self), size):
            yield self.bags(np.arange(first, min(first + size, len(self))))


def encoded(tokenizer: Tokenizer, examples: Examples, by_words: bool = True) -> Encoded:
    """A part of a table."""
    return Encoded.of(tokenizer, examples.texts, examples.labels_B, by_words=by_words)


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

    def batch(self, seed: int, step: int) -> Bags:
        """The next examples of this epoch's order, which is drawn from (seed, epoch)."""
        epoch, place = divmod(step, self.steps_per_epoch)
        return self.train.bags(_order(len(self.train), seed, epoch)[place * self.rows : (place + 1) * self.rows])

    @property
    def steps_per_epoch(self) -> int:
        """Steps in which every example is seen once."""
        return max(1, math.ceil(len(self.train) / self.rows))

    def validation(self) -> Iterable[Bags]:
        """All of the validation part."""
        return [] if self.valid is None or not len(self.valid) else list(self.valid.batches(self.at_once))

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
        return max(EPOCHS * self.steps_per_epoch, LEAST_STEPS)

    @property
    def worst_nats(self) -> float:
        """Somewhat above what guessing costs."""
        return math.log(self.labels) + DIVERGED_NATS


@lru_cache(maxsize=2)
def _order(examples: int, seed: int, epoch: int) -> np.ndarray:
    return np.random.default_rng([seed, epoch]).permutation(examples)

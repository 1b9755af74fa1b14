"""What classifiers have in common: texts in, the probability of every label out.

Shapes: N tokens of all texts together, B texts, K labels.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor
from torch.nn import functional as F

from lmlab.interface import Learner, Loss


@dataclass(frozen=True)
class Bags:
    """A batch of texts as token ids, one after the other, with where each begins and its label."""

    ids_N: Tensor
    starts_B: Tensor
    labels_B: Tensor

    @property
    def count(self) -> int:
        """Texts."""
        return len(self.labels_B)

    @property
    def rows(self) -> int:
        """Texts."""
        return len(self.labels_B)

    def select(self, rows: slice) -> Bags:
        """Return the batch of these rows."""
        first, stop, _ = rows.indices(self.rows)
        begin, *_, end = [*self.starts_B.tolist(), len(self.ids_N)][first : stop + 1]
        return Bags(self.ids_N[begin:end], self.starts_B[rows] - begin, self.labels_B[rows])

    def to(self, device: torch.device) -> Bags:
        """The same on another device."""
        return Bags(self.ids_N.to(device), self.starts_B.to(device), self.labels_B.to(device))


class TextClassifier(Learner):
    """Says of texts how likely each label is."""

    by_words: ClassVar[bool]  # whether a text is its words in lower case, marks apart; else it is read as it is
    ordered: ClassVar[bool]  # whether the order of words can matter
    rows: ClassVar[int] = 64  # texts in a step
    at_once: ClassVar[int] = 512  # texts, where nothing is learned

    @classmethod
    def usual_tokenizer(cls, train_bytes: int) -> str:
        """What texts of so many bytes are divided into where nobody says it."""
        return "words"

    @property
    def longest(self) -> int | None:
        """The most tokens it reads of a text; None: all there are."""
        return None

    def blank(self, rows: int, tokens: int) -> Bags:
        """Texts of one token again and again."""
        starts_B = torch.arange(0, rows * tokens, tokens)
        return Bags(torch.zeros(rows * tokens, dtype=torch.long), starts_B, torch.zeros(rows, dtype=torch.long))

    def begin_with(self, tensors: Mapping[str, Tensor]) -> None:
        """Take what it can of the weights of a run that its kind begins with (`Kind.begins_with`)."""
        raise AssertionError(f"{self.name} begins with no other model")

    @abstractmethod
    def logits(self, ids_N: Tensor, starts_B: Tensor) -> Tensor:
        """B×K, before the softmax."""

    def loss(self, batch: Bags) -> Loss:
        """Nats of the labels, and how many there are."""
        logits_BK = self.logits(batch.ids_N, batch.starts_B)
        return Loss(total=F.cross_entropy(logits_BK, batch.labels_B, reduction="sum"), count=batch.count)

    @torch.no_grad()
    def probabilities(self, ids_N: Tensor, starts_B: Tensor) -> Tensor:
        """B×K, float32."""
        assert not self.training, "probabilities are those of the whole text"
        return torch.softmax(self.logits(ids_N, starts_B).float(), dim=-1)

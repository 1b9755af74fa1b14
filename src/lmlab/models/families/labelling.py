"""What classifiers have in common: texts in, the probability of every label out.

Shapes: N tokens of all texts together, B texts, K labels.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol, Self

import torch
from torch import Tensor
from torch.nn import functional as F

from lmlab.interface import Learner, Loss
from lmlab.models.families.word_counts import places


class Examples(Protocol):
    """A batch of texts with labels in a form that a classifier reads."""

    @property
    def labels_B(self) -> Tensor:
        """The labels."""
        ...

    @property
    def count(self) -> int:
        """Texts."""
        ...

    @property
    def rows(self) -> int:
        """Texts."""
        ...

    def select(self, rows: slice) -> Self:
        """Return the batch of these rows."""
        ...

    def take(self, which_B: Tensor) -> Self:
        """Return the batch of these rows, in this order."""
        ...

    def to(self, device: torch.device) -> Self:
        """Return the same batch on another device."""
        ...


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
        return self.take(torch.arange(*rows.indices(self.rows), device=self.labels_B.device))

    def take(self, which_B: Tensor) -> Bags:
        """Return the batch of these rows, in this order."""
        at_N, starts_B = places(F.pad(self.starts_B, (0, 1), value=len(self.ids_N)), which_B)
        return Bags(self.ids_N[at_N], starts_B[:-1], self.labels_B[which_B])

    def to(self, device: torch.device) -> Bags:
        """The same on another device."""
        return Bags(self.ids_N.to(device), self.starts_B.to(device), self.labels_B.to(device))


class TextClassifier(Learner):
    """Says of texts how likely each label is."""

    by_words: ClassVar[bool]  # whether a text is its words in lower case, marks apart; else it is read as it is
    ordered: bool  # whether the order of words can matter
    epochs: ClassVar[int] = 5  # at most, where the budget is seconds; in more a classifier learns its examples by heart
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

    @classmethod
    def prepared(cls, config: Any, texts: Bags) -> Examples:
        """Return the texts in the form that `loss` reads fastest, which is worked out once for all steps."""
        return texts

    def take_examples(self, examples: Any) -> None:
        """Initialize weights that depend on the training examples, as `prepared` returns them.

        A newly constructed model receives this call once, before training. The default does nothing.
        """

    def pair_scores(self, ids_N: Tensor) -> tuple[Tensor, Tensor] | None:
        """Return, for each two neighbouring words of one text, the number of the pair, and what it adds to the logits: (N-1)×K.

        A pair that a text has several times, or two pairs of one number, add it once. None: the model has no pairs.
        """
        return None

    @abstractmethod
    def logits(self, ids_N: Tensor, starts_B: Tensor) -> Tensor:
        """B×K, before the softmax."""

    def logits_of(self, batch: Any) -> Tensor:
        """B×K, before the softmax, of a batch of texts, prepared or not."""
        return self.logits(batch.ids_N, batch.starts_B)

    def loss(self, batch: Any) -> Loss:
        """Nats of the labels, and how many there are."""
        logits_BK = self.logits_of(batch)
        return Loss(total=F.cross_entropy(logits_BK, batch.labels_B, reduction="sum"), count=batch.count)

    @torch.no_grad()
    def probabilities(self, ids_N: Tensor, starts_B: Tensor) -> Tensor:
        """B×K, float32."""
        assert not self.training, "probabilities are those of the whole text"
        return torch.softmax(self.logits(ids_N, starts_B).float(), dim=-1)

"""`autoencoder`: two word vectors combined into one (Socher 2011).

    h = W₁ [x₁; x₂] + b₁,   p = ReLU(h),   x' = W₂ p + b₂,   ŷ = W₃ p + b₃
    J = ½ ‖x' - x‖² + CE(y, softmax(ŷ))

ŷ are logits. Where labels come from: see `lmlab.tasks.word_pairs`. Word vectors are given and stay as
they are, of length one: learned ones would shrink to nothing, which is easiest to bring back.

Shapes: B pairs, V words, X width of the word vectors, P of the parent, K labels.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from lmlab.config import at_least_one
from lmlab.formulas import EMBEDDING, HEAD, ONE_TOKEN, Part, Shape, Size, joined, linear, product
from lmlab.interface import Learner, Loss

if TYPE_CHECKING:
    from lmlab.config import Budget, TextFacts

WIDTH = 50


@dataclass(frozen=True, kw_only=True)
class AutoencoderConfig:
    """Settings of `autoencoder`; None is filled in by what suits the data."""

    labels: int | None = None  # how many; the pairs say
    width: int | None = None  # of the word vectors
    parent: int | None = None  # width of the parent
    least: int = 5  # times that a word of the text must occur to have a vector
    vectors: str | None = None  # a GloVe text file, or a run of glove; else they are learned from the text first

    def __post_init__(self) -> None:
        at_least_one("autoencoder", labels=self.labels, width=self.width, parent=self.parent, least=self.least)


@dataclass(frozen=True)
class LabelledPairs:
    """A batch of pairs of words and their labels."""

    words_B2: Tensor
    labels_B: Tensor

    @property
    def count(self) -> int:
        """Pairs."""
        return len(self.labels_B)

    @property
    def rows(self) -> int:
        """Pairs."""
        return len(self.labels_B)

    def select(self, rows: slice) -> LabelledPairs:
        """Return the batch of these rows."""
        return LabelledPairs(self.words_B2[rows], self.labels_B[rows])

    def to(self, device: torch.device) -> LabelledPairs:
        """The same on another device."""
        return LabelledPairs(self.words_B2.to(device), self.labels_B.to(device))


class Autoencoder(Learner):
    """Combines two vectors, brings them back, and labels the pair."""

    name = "autoencoder"
    Config = AutoencoderConfig
    default_weight_decay: ClassVar[float] = 0.0
    letters: ClassVar[dict[str, str]] = {"width": "D_x", "parent": "D_p", "labels": "K"}
    reads: ClassVar[str] = "a pair of words"

    def __init__(self, config: AutoencoderConfig, vocab_size: int) -> None:
        super().__init__(config, vocab_size)
        labels, width, parent = config.labels, config.width, config.parent
        if not (labels and width and parent):
            raise AssertionError("resolve first")
        self.embedding_VX = nn.Parameter(torch.zeros(vocab_size, width), requires_grad=False)
        self.encoder = nn.Linear(2 * width, parent)
        self.decoder = nn.Linear(parent, 2 * width)
        self.output = nn.Linear(parent, labels)

    @classmethod
    def parts(cls, config: Any, vocab_size: Size, shape: Shape = ONE_TOKEN) -> list[Part]:
        """The given vectors, then W₁, W₂ and W₃ with their biases; a row of `shape` is a pair."""
        c, rows = config, shape.rows
        inputs = 2 * c.width
        encoder = Part(  # no gradient is wanted of the word vectors
            "encoder", inputs * c.parent + c.parent, inputs * c.parent, product(rows, inputs, c.parent, wanted=1)
        )
        return [
            Part(EMBEDDING, vocab_size * c.width),
            encoder,
            joined("decoder", linear(rows, c.parent, inputs, bias=True)),
            joined(HEAD, linear(rows, c.parent, c.labels, bias=True)),
        ]

    @classmethod
    def resolve(cls, config: AutoencoderConfig, facts: TextFacts, budget: Budget) -> AutoencoderConfig:
        """A parent as wide as a word; two labels, until the pairs say."""
        width = config.width or WIDTH
        return replace(config, width=width, parent=config.parent or width, labels=config.labels or 2)

    def blank(self, rows: int, tokens: int) -> LabelledPairs:
        """One pair again and again."""
        return LabelledPairs(torch.zeros(rows, 2, dtype=torch.long), torch.zeros(rows, dtype=torch.long))

    @torch.no_grad()
    def take_vectors(self, vectors_VX: Tensor) -> None:
        """Keep these vectors, each brought to length one; a word without one has zeros."""
        self.embedding_VX.copy_(F.normalize(vectors_VX, dim=1))

    def inputs(self, words_B2: Tensor) -> Tensor:
        """The two vectors of each pair, one after the other: B×2X."""
        return F.embedding(words_B2, self.embedding_VX).flatten(1)

    def parents(self, words_B2: Tensor) -> Tensor:
        """p of each pair: B×P."""
        return torch.relu(self.encoder(self.inputs(words_B2)))

    def loss(self, batch: LabelledPairs) -> Loss:
        """J₁ + J₂ of all pairs, in nats for the label, and each by itself."""
        p_BP = self.parents(batch.words_B2)
        reconstruction = 0.5 * (self.decoder(p_BP) - self.inputs(batch.words_B2)).square().sum()
        label = F.cross_entropy(self.output(p_BP), batch.labels_B, reduction="sum")
        return Loss(
            total=reconstruction + label, count=batch.count, parts={"reconstruction": reconstruction, "label": label}
        )

"""`glove`: word vectors from co-occurrence counts (Pennington, Socher and Manning 2014).

    J = ½ Σ_ij f(X_ij) (w_i · c_j + b_i + k_j - log X_ij)²,   f(x) = min(1, (x / most)^power)

X_ij is how often word j stands near word i, nearer ones counting more. A vector is w_i + c_i: X is symmetric, so both say
the same of the word, and their sum says it with less noise.

Shapes: B pairs of words, V words, X width of the vectors.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from lmlab.config import Mistake, a_share, at_least_one
from lmlab.formulas import EMBEDDING, ONE_TOKEN, Part, Shape, Size, product
from lmlab.interface import Learner, Loss

if TYPE_CHECKING:
    from lmlab.config import Budget, TextFacts

LARGE_TEXT = 1_000_000  # words of which there are enough for wide vectors


@dataclass(frozen=True, kw_only=True)
class GloVeConfig:
    """Settings of `glove`; None is filled in by what suits the text."""

    width: int | None = None  # of the vectors
    window: int = 10  # words to either side that count as near; one at distance d counts 1/d
    least: int = 5  # times that a word must occur to have a vector
    most: float = 100.0  # co-occurrences from which on a pair counts fully
    power: float = 0.75  # of the weight of rarer pairs
    held_out: float = 0.01  # share of the pairs that is kept for validation, and as many for the test

    def __post_init__(self) -> None:
        at_least_one("glove", width=self.width, window=self.window, least=self.least)
        a_share("glove", held_out=self.held_out)
        if not (0 < self.most < math.inf and 0 <= self.power < math.inf):
            raise Mistake(
                f"glove: most is a number above 0 and power one from 0 up; got {self.most:g} and {self.power:g}",
                code="glove-weighting-out-of-range",
            )
        if self.held_out >= 0.5:
            raise Mistake(
                f"glove: held_out is kept twice, so it is below 0.5, such as 0.01; got {self.held_out:g}",
                code="glove-held-out-too-large",
            )


@dataclass(frozen=True)
class PairBatch:
    """Pairs of words with how much each weighs and the logarithm of how often it occurs."""

    words_B: Tensor
    contexts_B: Tensor
    weights_B: Tensor
    logs_B: Tensor

    @property
    def count(self) -> int:
        """Pairs."""
        return len(self.words_B)

    @property
    def rows(self) -> int:
        """Pairs."""
        return len(self.words_B)

    def select(self, rows: slice) -> PairBatch:
        """Return the batch of these rows."""
        return PairBatch(self.words_B[rows], self.contexts_B[rows], self.weights_B[rows], self.logs_B[rows])

    def to(self, device: torch.device) -> PairBatch:
        """The same on another device."""
        return PairBatch(
            self.words_B.to(device), self.contexts_B.to(device), self.weights_B.to(device), self.logs_B.to(device)
        )


class GloVe(Learner):
    """Two vectors and two biases for each word."""

    name = "glove"
    Config = GloVeConfig
    default_optimizer: ClassVar[str] = "adagrad"
    default_learning_rate: ClassVar[float] = 0.2
    default_weight_decay: ClassVar[float] = 0.0
    letters: ClassVar[dict[str, str]] = {"width": "d"}
    reads: ClassVar[str] = "a pair of words"

    def __init__(self, config: GloVeConfig, vocab_size: int) -> None:
        super().__init__(config, vocab_size)
        if not config.width:
            raise AssertionError("resolve first")
        self.words_VX, self.contexts_VX = (
            nn.Parameter((torch.rand(vocab_size, config.width) - 0.5) / config.width) for _ in range(2)
        )
        self.word_bias_V, self.context_bias_V = (nn.Parameter(torch.zeros(vocab_size)) for _ in range(2))

    @classmethod
    def parts(cls, config: Any, vocab_size: Size, shape: Shape = ONE_TOKEN) -> list[Part]:
        """Both tables with their biases; a row of `shape` is a pair of words."""
        return [
            Part(EMBEDDING, vocab_size * (config.width + 1), times=2),
            Part("inner product", work=product(shape.rows, config.width, 1)),
        ]

    @classmethod
    def resolve(cls, config: GloVeConfig, facts: TextFacts, budget: Budget) -> GloVeConfig:
        """Wide vectors where there is much text."""
        return replace(config, width=config.width or (100 if facts.train_tokens >= LARGE_TEXT else 50))

    def blank(self, rows: int, tokens: int) -> PairBatch:
        """One pair again and again."""
        zeros_B = torch.zeros(rows, dtype=torch.long)
        return PairBatch(zeros_B, zeros_B, zeros_B.float(), zeros_B.float())

    def predicted(self, words_B: Tensor, contexts_B: Tensor) -> Tensor:
        """What it takes the logarithm of each pair's count for."""
        w_BX, c_BX = F.embedding(words_B, self.words_VX), F.embedding(contexts_B, self.contexts_VX)
        biases_B = self.word_bias_V[words_B] + self.context_bias_V[contexts_B]
        return torch.bmm(w_BX[:, None, :], c_BX[:, :, None])[:, 0, 0] + biases_B

    def loss(self, batch: PairBatch) -> Loss:
        """Half the weighted squared errors, and how many pairs there are."""
        errors_B = self.predicted(batch.words_B, batch.contexts_B) - batch.logs_B
        return Loss(total=0.5 * (batch.weights_B * errors_B * errors_B).sum(), count=batch.count)

    @property
    def vectors_VX(self) -> Tensor:
        """Of every word, the unknown one included."""
        return (self.words_VX + self.contexts_VX).detach()

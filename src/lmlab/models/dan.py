"""`dan`: a deep averaging network (Iyyer 2015): a text is the average of its words' vectors, then a few layers.

    v = (1/n) Σ E[w_i],   h = f(W v + b) …,   p(label) = softmax(U h + c)

In training whole words are left out of the average at random, so that no single word carries the decision. The order of words
cannot matter to an average.

Shapes: N words of all texts together, B texts, X width of the word vectors, H of the layers, K labels.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from lmlab.config import Mistake, a_share, at_least_one
from lmlab.formulas import EMBEDDING, HEAD, ONE_TOKEN, Part, Shape, Size, joined, linear
from lmlab.layers import fast
from lmlab.models.families.labelling import Bags as Bags
from lmlab.models.families.labelling import TextClassifier
from lmlab.text.vectors import read_vectors

if TYPE_CHECKING:
    from lmlab.config import Budget, TextFacts
    from lmlab.text.pieces import Vocabulary

SMALL = 0.02  # of the first word vectors: what a word means is learned, not drawn


@dataclass(frozen=True, kw_only=True)
class DANConfig:
    """Settings of `dan`; None is filled in by what suits the examples."""

    labels: int | None = None  # how many; the examples say
    width: int | None = None  # of the word vectors
    hidden: int | None = None  # width of the layers above the average
    layers: int = 1  # above the average
    word_dropout: float = 0.3  # share of the words of a text that a step leaves out
    dropout: float = 0.2  # of hidden units
    vectors: str | None = None  # a file of word vectors in the GloVe text format, to begin with

    def __post_init__(self) -> None:
        at_least_one("dan", labels=self.labels, width=self.width, hidden=self.hidden, layers=self.layers)
        a_share("dan", word_dropout=self.word_dropout, dropout=self.dropout)


class DAN(TextClassifier):
    """Averages word vectors and looks at the average."""

    name = "dan"
    Config = DANConfig
    by_words, ordered = True, False
    reads: ClassVar[str] = "a text, however long"
    letters: ClassVar[dict[str, str]] = {"width": "d", "hidden": "H", "layers": "L", "labels": "K"}
    read_by_row = ("embedding_VX",)
    default_learning_rate: ClassVar[float] = 0.001
    default_weight_decay: ClassVar[float] = 1.0  # nearly all weights are vectors of words that are seldom met

    def __init__(self, config: DANConfig, vocab_size: int) -> None:
        super().__init__(config, vocab_size)
        labels, width, hidden = config.labels, config.width, config.hidden
        if not (labels and width and hidden):
            raise AssertionError("resolve first")
        self.embedding_VX = nn.Parameter(torch.randn(vocab_size, width) * SMALL)
        sizes = [width, *[hidden] * config.layers]
        self.layers = nn.ModuleList(nn.Linear(i, o) for i, o in pairwise(sizes))
        self.output = nn.Linear(hidden, labels)

    @classmethod
    def parts(cls, config: Any, vocab_size: Size, shape: Shape = ONE_TOKEN) -> list[Part]:
        """E, the layers, U and c; a row of `shape` is a text, however many words it has."""
        c = config
        first = joined("first layer", linear(shape.rows, c.width, c.hidden, bias=True))
        others = joined("other layers", linear(shape.rows, c.hidden, c.hidden, bias=True), times=c.layers - 1)
        return [
            Part(EMBEDDING, vocab_size * c.width),
            first,
            others,
            joined(HEAD, linear(shape.rows, c.hidden, c.labels, bias=True)),
        ]

    @classmethod
    def resolve(cls, config: DANConfig, facts: TextFacts, budget: Budget) -> DANConfig:
        """Vectors of 100 numbers, or as wide as those of the file; layers likewise. Two labels, until the examples say."""
        width = config.width
        if width is None:
            width = 100 if config.vectors is None else read_vectors(config.vectors, [])[0].shape[1]
        return replace(config, width=width, hidden=config.hidden or 100, labels=config.labels or 2)

    def take_vocabulary(self, vocabulary: Vocabulary) -> None:
        """Begin with the vectors of a file, where it has the word; the others are drawn as widely as those are."""
        if self.config.vectors is None:
            return
        words = [piece.strip(" ") for piece in vocabulary.pieces]
        vectors, found = read_vectors(self.config.vectors, words)
        if vectors.shape[1] != self.config.width:
            raise Mistake(
                f"{self.config.vectors} has vectors of width {vectors.shape[1]}, not {self.config.width}: leave width out",
                code="dan-vectors-width",
            )
        if not found.any():
            raise Mistake(
                f"{self.config.vectors} has a vector for none of the {len(words)} words of the examples",
                code="dan-vectors-lack-words",
            )
        given = torch.from_numpy(vectors[found])
        with torch.no_grad():
            self.embedding_VX.mul_(given.std() / SMALL).add_(given.mean(0))
            self.embedding_VX[torch.from_numpy(found)] = given

    def logits(self, ids_N: Tensor, starts_B: Tensor) -> Tensor:
        """B×K, before the softmax. A text without words is the zero vector."""
        by_row = self.training and fast.enabled and ids_N.device.type != "mps"  # which has no sparse tensors
        v_BX = self._average_by_row(ids_N, starts_B) if by_row else self._average(ids_N, starts_B)
        for layer in self.layers:
            v_BX = F.dropout(torch.relu(layer(v_BX)), self.config.dropout, self.training)
        logits_BK: Tensor = self.output(v_BX)
        return logits_BK

    def _average(self, ids_N: Tensor, starts_B: Tensor) -> Tensor:
        """Of the words of each text; in training of those that are not left out."""
        if not (self.training and self.config.word_dropout):
            return F.embedding_bag(ids_N, self.embedding_VX, starts_B, mode="mean")
        kept_N = (torch.rand(len(ids_N), device=ids_N.device) >= self.config.word_dropout).to(self.embedding_VX.dtype)
        ends_B = torch.cat([starts_B[1:], starts_B.new_tensor([len(ids_N)])])
        sums_N = F.pad(kept_N.cumsum(0), (1, 0))
        words_B1 = (sums_N[ends_B] - sums_N[starts_B]).clamp(min=1)[:, None]
        return F.embedding_bag(ids_N, self.embedding_VX, starts_B, mode="sum", per_sample_weights=kept_N) / words_B1

    def _average_by_row(self, ids_N: Tensor, starts_B: Tensor) -> Tensor:
        """The same in training, as a product of how often each text has each word with the words' vectors.

        So the gradient is that of a few rows: most words are in none of the texts.
        """
        texts, device = len(starts_B), ids_N.device
        lengths_B = torch.diff(starts_B, append=starts_B.new_tensor([len(ids_N)]))
        text_N = torch.repeat_interleave(torch.arange(texts, device=device), lengths_B)
        if self.config.word_dropout:
            kept_M = (torch.rand(len(ids_N), device=device) >= self.config.word_dropout).nonzero()[:, 0]
            ids_N, text_N = ids_N.index_select(0, kept_M), text_N.index_select(0, kept_M)
        there_V = torch.zeros(self.vocab_size, dtype=torch.bool, device=device).index_fill_(0, ids_N, True)
        words_R = there_V.nonzero()[:, 0]
        column_N = (there_V.cumsum(0) - 1).index_select(0, ids_N)  # of a word among these
        times_M = torch.bincount(text_N * len(words_R) + column_N, minlength=texts * len(words_R))
        times_BR = times_M.view(texts, len(words_R))
        vectors_RX = F.embedding(words_R, self.embedding_VX, sparse=True)
        return times_BR.to(vectors_RX.dtype) @ vectors_RX / times_BR.sum(1, keepdim=True).clamp(min=1)

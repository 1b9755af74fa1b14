"""`dan`: a deep averaging network (Iyyer 2015): a text is the average of its words' vectors, then a few layers.

    v = Σ a_w E[w] / Σ a_w,   h = f(W v + b) …,   p(label) = softmax(U h + c + Σ P[pair])

The sums are over the distinct words and, with `pairs`, the distinct pairs of neighbouring words of a text. a_w is 1 + ln of how
often the text has w. The vectors and the weights of pairs begin with the evidence of naive Bayes (Wang and Manning 2012). In
training whole words are left out of the average at random, so that no single word carries the decision; pairs likewise. Without
pairs the order of words cannot matter.

Shapes: N distinct words of all texts together, M distinct pairs, B texts, R different words that a batch has, X width of the
word vectors, H of the layers, K labels, V words and P pairs that are told apart.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from lmlab.config import Mistake, a_share, at_least_one, one_of
from lmlab.formulas import EMBEDDING, HEAD, ONE_TOKEN, Part, Shape, Size, joined, linear
from lmlab.layers import fast
from lmlab.models.families.labelling import Bags as Bags
from lmlab.models.families.labelling import TextClassifier
from lmlab.models.families.word_counts import Entries, WordCounts, count_words, hashed_pairs, label_evidence
from lmlab.text.vectors import read_vectors

if TYPE_CHECKING:
    from lmlab.config import Budget, TextFacts
    from lmlab.text.pieces import Vocabulary

SMALL = 0.02  # of the first word vectors: what a word means is learned, not drawn
SPREAD = 0.05  # standard deviation of the numbers that vectors of a file begin with: larger ones hardly move
WORD_EVIDENCE, PAIR_EVIDENCE = 0.02, 0.1  # times the evidence of naive Bayes, in the first vectors and weights of pairs
LEAST_BUCKETS, MOST_BUCKETS = 1 << 12, 1 << 20
TOKENS_OF_A_BUCKET = 4  # of the training texts, about: a third of the pairs in a text are met for the first time

Counts = Literal["plain", "log"]


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
    frozen: bool = False  # whether the vectors of the file stay as they are
    pairs: bool = False  # whether pairs of neighbouring words speak for labels too
    buckets: int | None = None  # how many pairs are told apart
    counts: Counts | None = None  # how repeated words count; None in a resolved config: plain, as in older runs

    def __post_init__(self) -> None:
        at_least_one("dan", labels=self.labels, width=self.width, hidden=self.hidden, layers=self.layers)
        at_least_one("dan", buckets=self.buckets)
        if self.frozen and self.vectors is None:
            raise Mistake(
                "dan: frozen vectors are those of a file; name it, or leave {frozen} out",
                code="dan-frozen-without-vectors",
                frozen=None,
            )
        if self.counts is not None:
            one_of("dan", Counts, counts=self.counts)
        a_share("dan", word_dropout=self.word_dropout, dropout=self.dropout)


class DAN(TextClassifier):
    """Averages word vectors and looks at the average; with pairs, adds what each pair says."""

    name = "dan"
    Config = DANConfig
    by_words = True
    epochs = 3
    reads: ClassVar[str] = "a text, however long"
    letters: ClassVar[dict[str, str]] = {"width": "d", "hidden": "H", "layers": "L", "labels": "K", "buckets": "P"}
    read_by_row = ("embedding_VX", "pairs_PK")
    default_learning_rate: ClassVar[float] = 0.001
    default_weight_decay: ClassVar[float] = 1.0  # nearly all weights are vectors of words that are seldom met

    def __init__(self, config: DANConfig, vocab_size: int) -> None:
        super().__init__(config, vocab_size)
        labels, width, hidden = config.labels, config.width, config.hidden
        if not (labels and width and hidden):
            raise AssertionError("resolve first")
        self.ordered = config.pairs
        self.embedding_VX = nn.Parameter(torch.randn(vocab_size, width) * SMALL)
        sizes = [width, *[hidden] * config.layers]
        self.layers = nn.ModuleList(nn.Linear(i, o) for i, o in pairwise(sizes))
        self.output = nn.Linear(hidden, labels)
        if config.pairs:
            self.pairs_PK = nn.Parameter(torch.zeros(_buckets(config), labels))

    @classmethod
    def parts(cls, config: Any, vocab_size: Size, shape: Shape = ONE_TOKEN) -> list[Part]:
        """E, the layers, U and c, and P; a row of `shape` is a text, however many words it has."""
        c = config
        first = joined("first layer", linear(shape.rows, c.width, c.hidden, bias=True))
        others = joined("other layers", linear(shape.rows, c.hidden, c.hidden, bias=True), times=c.layers - 1)
        return [
            Part(EMBEDDING, vocab_size * c.width),
            first,
            others,
            joined(HEAD, linear(shape.rows, c.hidden, c.labels, bias=True)),
            *([Part("pairs", c.buckets * c.labels)] if c.pairs else []),
        ]

    @classmethod
    def resolve(cls, config: DANConfig, facts: TextFacts, budget: Budget) -> DANConfig:
        """Vectors of 100 numbers, or as wide as those of the file; layers likewise. Two labels, until the examples say."""
        width = config.width
        if width is None:
            width = 100 if config.vectors is None else read_vectors(config.vectors, [])[0].shape[1]
        buckets = config.buckets
        if buckets is None and config.pairs:
            enough = 1 << max(1, facts.train_tokens // TOKENS_OF_A_BUCKET).bit_length()
            buckets = min(max(enough, LEAST_BUCKETS), MOST_BUCKETS)
        return replace(
            config,
            width=width,
            hidden=config.hidden or 100,
            labels=config.labels or 2,
            buckets=buckets,
            counts=config.counts or "log",
        )

    def take_vocabulary(self, vocabulary: Vocabulary) -> None:
        """Begin with the vectors of a file, where it has the word; the others are drawn as widely as those are.

        The vectors of the file are shifted to a mean of zero and scaled.
        """
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
            self.embedding_VX.mul_(SPREAD / SMALL)
            centred = given - given.mean(0)
            self.embedding_VX[torch.from_numpy(found)] = centred * (
                SPREAD / centred.square().mean().sqrt().clamp(min=1e-9)
            )

    @classmethod
    def prepared(cls, config: DANConfig, texts: Bags) -> WordCounts:
        """Count the words and pairs of the texts."""
        return count_words(
            texts.ids_N,
            texts.starts_B,
            texts.labels_B,
            log_counts=config.counts == "log",
            pair_buckets=_buckets(config) if config.pairs else 0,
        )

    @torch.no_grad()
    def take_examples(self, examples: WordCounts) -> None:
        """Begin with how much each word and each pair speaks for each label."""
        labels = self.config.labels
        if not self.config.frozen:
            evidence_VK = label_evidence(examples.words, examples.labels_B, labels, self.vocab_size)
            held = min(labels, self.config.width)
            self.embedding_VX[:, :held] += WORD_EVIDENCE * evidence_VK[:, :held]
        if self.config.pairs:
            evidence_PK = label_evidence(examples.pairs, examples.labels_B, labels, _buckets(self.config))
            self.pairs_PK.copy_(PAIR_EVIDENCE * evidence_PK)

    def logits(self, ids_N: Tensor, starts_B: Tensor) -> Tensor:
        """B×K, before the softmax. A text without words is the zero vector."""
        texts = Bags(ids_N, starts_B, torch.zeros(len(starts_B), dtype=torch.long, device=ids_N.device))
        return self.logits_of(self.prepared(self.config, texts))

    def logits_of(self, batch: Bags | WordCounts) -> Tensor:
        """B×K, before the softmax."""
        texts = self.prepared(self.config, batch) if isinstance(batch, Bags) else batch
        by_row = self.training and fast.enabled and texts.words_N.device.type != "mps"  # which has no sparse tensors
        x_BX = self._average_by_row(texts) if by_row else self._average(texts)
        for layer in self.layers:
            x_BX = F.dropout(torch.relu(layer(x_BX)), self.config.dropout, self.training)
        logits_BK: Tensor = self.output(x_BX)
        return logits_BK + self._pair_scores(texts, by_row) if self.config.pairs else logits_BK

    @torch.no_grad()
    def pair_scores(self, ids_N: Tensor) -> tuple[Tensor, Tensor] | None:
        """The number of each pair of neighbouring words of one text, and what it adds to the logits."""
        if not self.config.pairs:
            return None
        numbers, _ = hashed_pairs(ids_N.cpu().numpy(), np.array([0, len(ids_N)]), _buckets(self.config))
        numbers_M = torch.from_numpy(numbers).to(self.pairs_PK.device)
        return numbers_M, self.pairs_PK.index_select(0, numbers_M)

    @property
    def _vectors(self) -> Tensor:
        """V×X, without a gradient where they are frozen."""
        return self.embedding_VX.detach() if self.config.frozen else self.embedding_VX

    def _average(self, texts: WordCounts) -> Tensor:
        """Of the words of each text; in training of those that are not left out."""
        weights_N, (ids_N, text_N) = texts.weights_N, texts.words
        if self.training and self.config.word_dropout:
            weights_N = weights_N * self._kept(ids_N)
        sums_BX = F.embedding_bag(ids_N, self._vectors, texts.starts_B[:-1], mode="sum", per_sample_weights=weights_N)
        return sums_BX / weights_N.new_zeros(texts.rows).index_add_(0, text_N, weights_N).clamp(min=1)[:, None]

    def _average_by_row(self, texts: WordCounts) -> Tensor:
        """The same in training, as a product of the weights of words in texts with the words' vectors.

        So the gradient is that of a few rows: most words are in none of the texts.
        """
        weights_N, (ids_N, text_N) = texts.weights_N, texts.words
        if self.config.word_dropout:
            kept_M = self._kept(ids_N).nonzero()[:, 0]
            ids_N, text_N, weights_N = (values_N.index_select(0, kept_M) for values_N in (ids_N, text_N, weights_N))
        there_V = torch.zeros(self.vocab_size, dtype=torch.bool, device=ids_N.device).index_fill_(0, ids_N, True)
        words_R = there_V.nonzero()[:, 0]
        column_N = (there_V.cumsum(0) - 1).index_select(0, ids_N)  # of a word among these
        weights_BR = weights_N.new_zeros(texts.rows, len(words_R))
        weights_BR.view(-1).index_copy_(0, text_N * len(words_R) + column_N, weights_N)
        vectors_RX = F.embedding(words_R, self._vectors, sparse=True)
        return weights_BR @ vectors_RX / weights_BR.sum(1, keepdim=True).clamp(min=1)

    def _pair_scores(self, texts: WordCounts, by_row: bool) -> Tensor:
        """What the pairs of each text say; in training those that are not left out, for as much as all of them."""
        ids_M, text_M = texts.pairs
        share = 1.0
        if self.training and self.config.word_dropout:
            share = 1 - self.config.word_dropout
            kept = self._kept(ids_M).nonzero()[:, 0]
            ids_M, text_M = Entries(ids_M.index_select(0, kept), text_M.index_select(0, kept))
        rows_R, row_M = torch.unique(ids_M, return_inverse=True)
        scores_RK = F.embedding(rows_R, self.pairs_PK, sparse=by_row)
        scores_MK = scores_RK.index_select(0, row_M)
        return scores_MK.new_zeros(texts.rows, scores_MK.shape[1]).index_add(0, text_M, scores_MK) / share

    def _kept(self, ids_N: Tensor) -> Tensor:
        """Which words, or pairs, a step does not leave out."""
        return torch.rand(len(ids_N), device=ids_N.device) >= self.config.word_dropout


def _buckets(config: DANConfig) -> int:
    """Return how many pairs are told apart."""
    if not config.buckets:
        raise AssertionError("resolve first")
    return config.buckets

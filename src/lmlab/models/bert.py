"""`bert`: an encoder Transformer that learns to fill blanks (Devlin and others, 2019).

    p(token at a masked place) = softmax(E g + c),   g = norm(GELU(W x^L + b)),   E the word vectors themselves

Every place sees all others, before and after it, so that what it says of a token is no probability of the text: its
"pseudo" log-likelihood is not to be compared with that of models that read from left to right.

Shapes: B rows, T places, N masked places of all rows together, V vocabulary, D width.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from lmlab.config import within_text
from lmlab.formulas import ONE_TOKEN, Part, Shape, Size, divided_up, joined, linear
from lmlab.interface import Loss, TextLearner
from lmlab.layers.encoder import Affine, Norm
from lmlab.layers.heads import cross_entropy_nats, head_part, log_probabilities, summed_nats
from lmlab.layers.looking import Looks
from lmlab.models.families.encoder import (
    EDGES,
    LETTERS,
    Encoder,
    EncoderConfig,
    Symbols,
    of_size,
    parts_of,
    pooler_part,
    published,
)
from lmlab.models.sizing import Appetite, with_settings

if TYPE_CHECKING:
    from lmlab.config import Budget, TextFacts

MASKED_OF_20 = 3  # 15% of the tokens are to be guessed
BATCH_PLACES = 2048  # per step
USUAL_CONTEXT = 64  # places: sentences fit; of the same time, windows twice as long learn less
MOST_TOKENS, LEAST_TOKENS, BYTES_A_TOKEN = 8192, 512, 256  # of a vocabulary of byte pairs that nobody chose

# (layers, width), each about twice the one before it. At first an encoder learns little but how often tokens occur, the longer
# the larger it is: on reviews, 4.7 million weights with 4 masked tokens each ended half a bit ahead of 19 million with 0.4
# each, and on one slow core 0.1 million with 0.8 each as far ahead of 0.8 million with 0.04.
SIZES = [(2, 64), (3, 96), (4, 128), (4, 192), (6, 192), (6, 256), (8, 320), (8, 448), (10, 576), (12, 768)]
APPETITE = Appetite(
    batch_tokens=BATCH_PLACES * MASKED_OF_20 // 20, tokens_per_weight=2.0, weights_per_token=5.0, head=False
)


@dataclass(frozen=True, kw_only=True)
class BERTConfig(EncoderConfig):
    """Settings of `bert`; None is filled in by what suits the text and the budget."""

    pooler: bool | None = None  # a layer on the first place, which masked training does not touch
    transform: bool | None = None  # a layer between the encoder and the word vectors it is compared with, and a bias


def masked_of(tokens: Size) -> Size:
    """Of so many tokens 15%, rounded up, so that something is always asked for."""
    return divided_up(MASKED_OF_20 * tokens, 20)


@dataclass(frozen=True)
class Masked:
    """A batch of texts with blanks: what is shown, which places are asked for (of all rows in a line), what stood there."""

    inputs_BT: Tensor
    places_N: Tensor
    targets_N: Tensor
    text_BT: Tensor | None = None  # where there is text, and not padding; None: everywhere
    asked_N: Tensor | None = None  # False for places that only fill the batch up; None: all are asked for
    known: int | None = None  # places that are asked for, counted before they went to another device

    @property
    def count(self) -> int:
        """Places that are asked for."""
        if self.known is not None:
            return self.known
        return len(self.places_N) if self.asked_N is None else int(self.asked_N.sum())

    @property
    def rows(self) -> int:
        """Texts."""
        return len(self.inputs_BT)

    def select(self, rows: slice) -> Masked:
        """Return the batch of these rows."""
        first, stop, _ = rows.indices(self.rows)
        length = self.inputs_BT.shape[1]
        here_N = (self.places_N >= first * length) & (self.places_N < stop * length)
        if self.asked_N is not None:
            here_N &= self.asked_N
        text_BT = None if self.text_BT is None else self.text_BT[rows]
        if not here_N.any():  # a place that is not asked for stands in: there must be one
            filler_1 = self.places_N.new_zeros(1)
            return Masked(self.inputs_BT[rows], filler_1, filler_1, text_BT, filler_1.bool())
        return Masked(self.inputs_BT[rows], self.places_N[here_N] - first * length, self.targets_N[here_N], text_BT)

    def to(self, device: torch.device) -> Masked:
        """The same on another device."""
        shown, places, targets = (t.to(device) for t in (self.inputs_BT, self.places_N, self.targets_N))
        text, asked = (None if t is None else t.to(device) for t in (self.text_BT, self.asked_N))
        return Masked(shown, places, targets, text, asked, self.count)


class BERT(TextLearner):
    """An encoder that guesses the tokens that are hidden from it."""

    name = "bert"
    Config = BERTConfig
    default_learning_rate: ClassVar[float] = 0.002
    default_matrix_learning_rate: ClassVar[float] = (
        0.01  # twice that costs a bit per token: its norms come after the sums
    )
    letters: ClassVar[dict[str, str]] = LETTERS

    def __init__(self, config: BERTConfig, vocab_size: int) -> None:
        super().__init__(config, vocab_size)
        assert config.width is not None, "resolve the config first"
        self.encoder = Encoder(config, vocab_size, bool(config.pooler))
        self.transform = Affine(config.width, config.width) if config.transform else None
        if config.transform:
            self.norm = Norm(config.width)
            self.bias = nn.Parameter(torch.zeros(vocab_size))

    @classmethod
    def parts(cls, config: Any, vocab_size: Size, shape: Shape = ONE_TOKEN) -> list[Part]:
        """The encoder; its pooler, which learns nothing here; and the output layer, which reads masked places alone."""
        c, masked = config, Shape(1, masked_of(shape.places))
        pooler = Part("pooler", pooler_part(c.width, 1).weights, times=1 if c.pooler else 0)
        layer = joined("transform", linear(masked.places, c.width, c.width, bias=True), vectors=2 * c.width)
        return [
            *parts_of(c, vocab_size, shape),
            pooler,
            *([layer] if c.transform else []),
            head_part(vocab_size, c.width, masked, bias=bool(c.transform), tied=True),
        ]

    @classmethod
    def resolve(cls, config: BERTConfig, facts: TextFacts, budget: Budget) -> BERTConfig:
        """Sized to what the budget can train and the text can feed; a preset is as published, explicit settings are kept."""
        within_text("bert", facts.train_tokens, context=config.context)
        if config.preset is not None:
            return with_settings(published(BERTConfig(preset=config.preset, pooler=True, transform=False)), config)
        context = max(EDGES + 1, min(USUAL_CONTEXT, facts.train_tokens // 8))

        def at(size: tuple[int, int], context: int = context) -> BERTConfig:
            return of_size(BERTConfig(pooler=False, transform=True), size, context)

        # Sized as if nothing were set: the cells of a sweep then differ in what is swept alone.
        layers, width = APPETITE.size(SIZES, at, cls.parts, facts, budget)
        chosen = at((config.layers or layers, config.width or width), config.context or context)
        return APPETITE.with_dropout(with_settings(chosen, config), config.dropout, facts, budget)

    @property
    def symbols(self) -> Symbols:
        """The ids of begin, end and mask."""
        return self.encoder.symbols

    @classmethod
    def usual_tokenizer(cls, train_bytes: int) -> str:
        """Byte pairs: the most ids, by powers of two, that the text has enough bytes for."""
        size = LEAST_TOKENS
        while size < MOST_TOKENS and 2 * size * BYTES_A_TOKEN <= train_bytes:
            size *= 2
        return f"bpe:{size}"

    @property
    def longest_window(self) -> int:
        """The most tokens of a text, the symbols around it apart."""
        return self.encoder.context - EDGES

    @property
    def batch_shape(self) -> tuple[int, int]:
        """(texts, tokens of each) of a training batch that suits this model."""
        return max(1, BATCH_PLACES // self.encoder.context), self.longest_window

    def blank(self, rows: int, tokens: int) -> Masked:
        """Texts of one token again and again, as many places asked for as in training."""
        places_N = torch.zeros(masked_of(rows * tokens), dtype=torch.long)
        return Masked(torch.zeros(rows, tokens + EDGES, dtype=torch.long), places_N, places_N)

    @property
    def training_flops_per_token(self) -> float:
        """Operations of one training step per masked token, by formula, the update apart."""
        rows, length = self.batch_shape
        return (self.training_flops(rows, length) or 0) / masked_of(rows * length)

    def hidden_matrices(self) -> dict[str, int]:
        """The four matrices of each block; queries, keys and values are three in one."""
        names = {"qkv": 3, "out": 1, "up": 1, "down": 1}
        blocks = range(len(self.encoder.blocks))
        return {f"encoder.blocks.{i}.{name}.weight": parts for i in blocks for name, parts in names.items()}

    def loss(self, batch: Masked) -> Loss:
        """Nats of what stood at the masked places."""
        dropout = self.config.dropout if self.training else 0.0
        hidden_ND = self._hidden(batch.inputs_BT, batch.places_N, batch.text_BT, self.compute_dtype, dropout)
        return Loss(total=summed_nats(hidden_ND, *self._output(), batch.targets_N, batch.asked_N), count=batch.count)

    @torch.no_grad()
    def nats(self, batch: Masked) -> Tensor:
        """Nats of what stood at every masked place, N numbers, float32."""
        hidden_ND = self._hidden(batch.inputs_BT, batch.places_N, batch.text_BT)
        return cross_entropy_nats(hidden_ND, *self._output(), batch.targets_N)

    @torch.no_grad()
    def guesses(self, inputs_BT: Tensor, places_N: Tensor, text_BT: Tensor | None = None) -> Tensor:
        """Natural-log probabilities of every token at these places, N×V, float32."""
        return log_probabilities(self._hidden(inputs_BT, places_N, text_BT), *self._output())

    def looks_around(self, window_T: Tensor) -> Iterator[Looks]:
        """What the heads of each block looked at in one window, begin and end included, one block after the other."""
        return self.encoder.looks(window_T)

    def without_head(self, layer: int, head: int) -> AbstractContextManager[None]:
        """While it lasts, one head of one block (both from 0) is switched off."""
        return self.encoder.without_head(layer, head)

    def _output(self) -> tuple[Tensor, Tensor | None]:
        """V×D and V: the word vectors without the model's own symbols, and a bias."""
        return self.encoder.embedding[: self.vocab_size], self.bias if self.config.transform else None

    def _hidden(
        self,
        inputs_BT: Tensor,
        places_N: Tensor,
        text_BT: Tensor | None,
        dtype: torch.dtype = torch.float32,
        dropout: float = 0.0,
    ) -> Tensor:
        """What is compared with word vectors, at these places: N×D."""
        x_BTD = self.encoder(inputs_BT, text_BT, dtype=dtype, dropout=dropout)
        x_ND: Tensor = x_BTD.flatten(0, 1).index_select(0, places_N).to(dtype)
        if self.transform is None:
            return x_ND
        return self.norm(F.gelu(self.transform(x_ND)).float()).to(dtype)

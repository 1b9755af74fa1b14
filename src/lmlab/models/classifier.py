"""`classifier`: an encoder that gives texts labels, best begun with a trained `bert` (Devlin and others, 2019, section 4).

    pooled = tanh(W x^L_begin + b)   (or of the mean of all places),   p(label) = softmax(U pooled + c)

Of a text that is longer than the encoder reads, the beginning and the end are read.

Shapes: N tokens of all texts together, B texts, T places, D width, K labels.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import torch
from torch import Tensor
from torch.nn import functional as F

from lmlab.config import at_least_one, one_of
from lmlab.formulas import HEAD, ONE_TOKEN, Part, Shape, Size, joined, linear
from lmlab.layers.encoder import Affine
from lmlab.models.bert import BERT
from lmlab.models.families.encoder import (
    EDGES,
    LETTERS,
    Encoder,
    EncoderConfig,
    of_size,
    parts_of,
    pooler_part,
    published,
)
from lmlab.models.families.labelling import TextClassifier
from lmlab.models.sizing import with_settings

if TYPE_CHECKING:
    from lmlab.config import Budget, TextFacts

Pooling = Literal["first", "mean"]
SIZE, CONTEXT, DROPOUT = (2, 128), 128, 0.1  # where it begins with no other model


@dataclass(frozen=True, kw_only=True)
class ClassifierConfig(EncoderConfig):
    """Settings of `classifier`; those of the encoder are those of the run that it begins with."""

    labels: int | None = None  # how many; the examples say
    pooling: Pooling = "mean"  # what is looked at: the first place, as published, or the mean of all

    def __post_init__(self) -> None:
        super().__post_init__()
        at_least_one("classifier", labels=self.labels)
        one_of("classifier", Pooling, pooling=self.pooling)


class Classifier(TextClassifier):
    """An encoder, a layer that pools its places, and the labels."""

    name = "classifier"
    Config = ClassifierConfig
    by_words, ordered, rows, at_once = False, True, 32, 32
    default_learning_rate: ClassVar[float] = 0.0001  # with five times that a large one forgets all it began with
    letters: ClassVar[dict[str, str]] = {**LETTERS, "labels": "K"}
    reads: ClassVar[str] = "a text of {} tokens"

    def __init__(self, config: ClassifierConfig, vocab_size: int) -> None:
        super().__init__(config, vocab_size)
        if not (config.labels and config.width):
            raise AssertionError("resolve first")
        self.encoder = Encoder(config, vocab_size, pooler=True)
        self.output = Affine(config.width, config.labels)

    @classmethod
    def parts(cls, config: Any, vocab_size: Size, shape: Shape = ONE_TOKEN) -> list[Part]:
        """The encoder, its pooler, U and c; a row of `shape` is a text of so many tokens."""
        return [
            *parts_of(config, vocab_size, shape),
            pooler_part(config.width, shape.rows),
            joined(HEAD, linear(shape.rows, config.width, config.labels, bias=True)),
        ]

    @classmethod
    def resolve(cls, config: ClassifierConfig, facts: TextFacts, budget: Budget) -> ClassifierConfig:
        """A small encoder where nothing is set, or that of a preset. Two labels, until the examples say."""
        if config.preset is not None:
            return with_settings(replace(published(config), labels=2), config)
        size = config.layers or SIZE[0], config.width or SIZE[1]
        chosen = replace(of_size(config, size, config.context or CONTEXT), dropout=DROPOUT, labels=2)
        return with_settings(chosen, config)

    @classmethod
    def usual_tokenizer(cls, train_bytes: int) -> str:
        """Byte pairs, as for the encoder."""
        return BERT.usual_tokenizer(train_bytes)

    @property
    def longest(self) -> int:
        """The most tokens of a text, the symbols around it apart."""
        return self.encoder.context - EDGES

    @property
    def usual_length(self) -> int:
        """A long text."""
        return self.longest

    def begin_with(self, tensors: Mapping[str, Tensor]) -> None:
        """The encoder is that of a `bert`; its pooler, which learned nothing there, and what is above it stay fresh."""
        with torch.no_grad():
            for name, p in self.encoder.named_parameters():
                if not name.startswith("pooler"):
                    p.copy_(tensors[f"encoder.{name}"])

    def logits(self, ids_N: Tensor, starts_B: Tensor) -> Tensor:
        """B×K, before the softmax."""
        dropout, dtype = (self.config.dropout, self.compute_dtype) if self.training else (0.0, torch.float32)
        inputs_BT, text_BT = self.framed(ids_N, starts_B)
        x_BTD = self.encoder(inputs_BT, text_BT, dtype=dtype, dropout=dropout)
        if self.config.pooling == "mean":
            weight_BT1 = text_BT[..., None].to(x_BTD.dtype)
            x_BTD = (x_BTD * weight_BT1).sum(1, keepdim=True) / weight_BT1.sum(1, keepdim=True)
        pooled_BD = self.encoder.pooled(x_BTD)
        if dropout:
            pooled_BD = F.dropout(pooled_BD, dropout)
        logits_BK: Tensor = self.output(pooled_BD)
        return logits_BK

    def framed(self, ids_N: Tensor, starts_B: Tensor) -> tuple[Tensor, Tensor]:
        """Texts side by side between their symbols, B×T, and where there is text."""
        sizes_B1 = torch.cat([starts_B[1:], starts_B.new_tensor([len(ids_N)])]).sub(starts_B)[:, None]
        kept_B1 = sizes_B1.clamp(max=self.longest)
        rows, length, first = len(starts_B), int(kept_B1.max()), -(-self.longest // 2)
        j_L = torch.arange(length, device=ids_N.device)
        place_BL = torch.where((j_L < first) | (sizes_B1 <= self.longest), j_L, sizes_B1 - self.longest + j_L)
        text_BT = torch.arange(length + EDGES, device=ids_N.device) < kept_B1 + EDGES
        inputs_BT = ids_N.new_full((rows, length + EDGES), self.encoder.symbols.begin)
        inputs_BT[:, 1:-1] = ids_N[(starts_B[:, None] + place_BL).clamp(max=max(0, len(ids_N) - 1))]
        inputs_BT.scatter_(1, kept_B1 + 1, self.encoder.symbols.end)
        return inputs_BT.masked_fill(~text_BT, 0), text_BT

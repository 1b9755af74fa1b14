"""What `bert` and the classifier on top of it share: BERT's encoder (Devlin and others, 2019).

    x⁰ = norm(E[token] + P[place] + S[segment]),   x^l = Block(x^{l-1}),   pooled = tanh(W x^L_begin + b)

A text stands between two symbols of the model's own, begin and end; a third, the mask, takes the place of tokens that are to be
guessed. They are the last three rows of E: beside the vocabulary, or (`symbols=False`, as published) the last three ids of it.

Shapes: B rows, T places (the tokens of a text and the two symbols), D width.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple, TypeVar

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from lmlab.config import Mistake, a_share, at_least_one, one_of
from lmlab.formulas import EMBEDDING, Part, Shape, Size, joined, linear
from lmlab.layers.encoder import Affine, EncoderBlock, Norm, encoder_parts
from lmlab.layers.looking import Looks, Way
from lmlab.models.sizing import heads_of, with_settings

Preset = Literal["bert-base", "bert-large"]
PRESETS: dict[str, tuple[int, int, int]] = {"bert-base": (12, 768, 12), "bert-large": (24, 1024, 16)}
PUBLISHED_PLACES = 512
HEAD_WIDTH = 64
EDGES = 2  # symbols around a text: begin and end
OWN_SYMBOLS = EDGES + 1  # and the mask
C = TypeVar("C", bound="EncoderConfig")


@dataclass(frozen=True, kw_only=True)
class EncoderConfig:
    """Settings of an encoder; None is filled in by what suits the text and the budget."""

    preset: Preset | None = None  # the sizes of a published model, its symbols in its vocabulary, no head of any task
    layers: int | None = None  # blocks of attention and a hidden layer
    width: int | None = None  # of the vectors that blocks read and write
    heads: int | None = None  # of attention in a block; they share its width
    hidden: int | None = None  # width of the hidden layer of a block
    context: int | None = None  # places of a text, its begin and its end among them
    segments: int = 2  # kinds of text that can be told apart; texts that stand alone are of the first
    symbols: bool | None = None  # whether begin, end and mask stand beside the vocabulary, or are its last three ids
    dropout: float | None = None  # of what a block adds

    def __post_init__(self) -> None:
        sizes = {"layers": self.layers, "width": self.width, "heads": self.heads, "hidden": self.hidden}
        at_least_one("encoder", **sizes, segments=self.segments)
        a_share("encoder", dropout=self.dropout)
        if self.preset is not None:
            one_of("encoder", Preset, preset=self.preset)
        if self.context is not None and self.context <= EDGES:
            raise Mistake(
                f"encoder: context must be more than {EDGES}, its begin and its end; got {self.context}",
                code="encoder-context-too-short",
            )
        if self.width is not None and self.heads is not None and self.width % self.heads:
            raise Mistake(
                f"width {self.width} is not a multiple of heads {self.heads}; choose heads that divide it",
                code="heads-do-not-divide-width",
            )


def published(config: C) -> C:
    """With the sizes of its preset, where it names one and nothing else is set."""
    if config.preset is None:
        return config
    layers, width, heads = PRESETS[config.preset]
    sizes: dict[str, Any] = {"layers": layers, "width": width, "heads": heads, "hidden": 4 * width}
    return with_settings(replace(config, **sizes, context=PUBLISHED_PLACES, symbols=False, dropout=0.1), config)


def of_size(config: C, size: tuple[int, int], context: int) -> C:
    """The config with layers, width and places, and what follows from them."""
    layers, width = size
    chosen: dict[str, Any] = {"layers": layers, "width": width, "context": context}
    heads = heads_of(width, HEAD_WIDTH)
    return replace(config, **chosen, heads=heads, hidden=4 * width, symbols=True, dropout=0.0)


class Symbols(NamedTuple):
    """The ids of the model's own symbols."""

    begin: int
    end: int
    mask: int

    @classmethod
    def beside(cls, vocab_size: int) -> Symbols:
        """Those that stand behind a vocabulary."""
        return cls(vocab_size, vocab_size + 1, vocab_size + 2)


class Encoder(nn.Module):
    """Vectors of all places of texts, each seeing all others of its text."""

    def __init__(self, config: EncoderConfig, vocab_size: int, pooler: bool) -> None:
        super().__init__()
        layers, width, heads, hidden, context = (
            config.layers,
            config.width,
            config.heads,
            config.hidden,
            config.context,
        )
        assert layers is not None, "resolve the config first"
        assert width is not None
        assert heads is not None
        assert hidden is not None
        assert context is not None
        assert config.symbols is not None
        rows = vocab_size + (OWN_SYMBOLS if config.symbols else 0)
        self.symbols, self.context = Symbols.beside(rows - OWN_SYMBOLS), context
        self.embedding = nn.Parameter(torch.randn(rows, width) * width**-0.5)
        self.position = nn.Parameter(torch.randn(context, width) * width**-0.5)
        self.segment = nn.Parameter(torch.randn(config.segments, width) * width**-0.5)
        self.norm = Norm(width)
        self.blocks = nn.ModuleList(EncoderBlock(width, heads, hidden) for _ in range(layers))
        self.pooler = Affine(width, width) if pooler else None

    def forward(
        self,
        inputs_BT: Tensor,
        text_BT: Tensor | None = None,
        segments_BT: Tensor | None = None,
        *,
        dtype: torch.dtype = torch.float32,
        dropout: float = 0.0,
    ) -> Tensor:
        """Vectors B×T×D. text_BT: where there is text, and not padding; None: everywhere. segments_BT: None: the first."""
        x_BTD = self._embed(inputs_BT, segments_BT)
        if dropout:
            x_BTD = F.dropout(x_BTD, dropout)
        for block in self.blocks:
            x_BTD = block(x_BTD, text_BT, dtype, dropout)
        return x_BTD

    @torch.no_grad()
    def looks(self, inputs_T: Tensor) -> Iterator[Looks]:
        """What the heads of each block looked at in one text, its symbols included, one block after the other."""
        x_1TD = self._embed(inputs_T[None], None)
        for number, block in enumerate(self._stack(), start=1):
            yield Looks.of_all(f"block {number}", *block.looks(x_1TD), Way.AROUND)
            x_1TD = block(x_1TD, None, torch.float32, 0.0)

    def without_head(self, layer: int, head: int) -> AbstractContextManager[None]:
        """While it lasts, one head of one block (both from 0) is switched off."""
        return list(self._stack())[layer].without_head(head)

    def _embed(self, inputs_BT: Tensor, segments_BT: Tensor | None) -> Tensor:
        """What the first block reads."""
        assert inputs_BT.shape[1] <= self.context, "a text is no longer than the context"
        segment = self.segment[0] if segments_BT is None else F.embedding(segments_BT, self.segment)
        x_BTD: Tensor = self.norm(
            F.embedding(inputs_BT, self.embedding) + self.position[: inputs_BT.shape[1]] + segment
        )
        return x_BTD

    def _stack(self) -> Iterator[EncoderBlock]:
        for block in self.blocks:
            assert isinstance(block, EncoderBlock)
            yield block

    def pooled(self, x_BTD: Tensor) -> Tensor:
        """What the first place, the begin symbol, makes of its text: B×D."""
        assert self.pooler is not None
        return torch.tanh(self.pooler(x_BTD[:, 0]))


def parts_of(config: Any, vocab_size: Size, shape: Shape) -> list[Part]:
    """Tables, their norm and the blocks; a row of `shape` is a text of so many tokens, the symbols around it apart."""
    c, places = config, Shape(shape.rows, shape.tokens + EDGES)
    return [
        Part(EMBEDDING, (vocab_size + (OWN_SYMBOLS if c.symbols else 0)) * c.width),
        Part("positions", c.context * c.width),
        Part("segments", c.segments * c.width),
        Part("norm", 2 * c.width),
        *encoder_parts(c.width, c.hidden, c.layers, places),
    ]


def pooler_part(width: Size, rows: Size) -> Part:
    """rows: texts that are pooled."""
    return joined("pooler", linear(rows, width, width, bias=True))


LETTERS = {"layers": "L", "width": "D", "heads": "H", "hidden": "F", "context": "P", "segments": "S"}

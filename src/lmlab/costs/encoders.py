"""Encoders and encoder-decoders that others published, by their config files.

Fields and defaults are those of transformers; tests hold every family to real instances.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from lmlab.costs.family import Cache, Family, Stacked
from lmlab.costs.pieces import Attention, Network, Stack
from lmlab.formulas import EMBEDDING, HEAD, Part, Shape, Size, joined, linear, shared_out
from lmlab.layers.heads import head_part


@dataclass(frozen=True, kw_only=True)
class BERT(Stacked):
    """BERT (Devlin and others, 2019), with its pooler and without the heads of its two tasks."""

    instance = "BertModel"
    heads = ("hidden_size", "num_attention_heads")
    table = "max_position_embeddings"
    generates = False
    only: ClassVar[dict[str, Any]] = {"add_cross_attention": False}

    vocab_size: int = 30522
    hidden_size: int = 768
    num_hidden_layers: int = 12
    num_attention_heads: int = 12
    intermediate_size: int = 3072
    max_position_embeddings: int = 512
    type_vocab_size: int = 2

    @classmethod
    def stack(cls, c: Any) -> Stack:
        """Every linear map has a bias; the norms come after what they norm."""
        norm = 2 * c.hidden_size
        return Stack(
            width=c.hidden_size,
            layers=c.num_hidden_layers,
            tables={
                "positions": c.max_position_embeddings * c.hidden_size,
                "segments": c.type_vocab_size * c.hidden_size,
            },
            attention=Attention(
                heads=c.num_attention_heads,
                head=shared_out(c.hidden_size, c.num_attention_heads),
                bias=(True, True),
            ),
            networks=[(c.num_hidden_layers, Network(hidden=c.intermediate_size, bias=True))],
            norms=(norm, norm),
            first_norm=norm,
            pooler=True,
        )


@dataclass(frozen=True, kw_only=True)
class RoBERTa(BERT):
    """RoBERTa (Liu and others, 2019): BERT with other sizes. Two rows of its positions belong to no token."""

    instance = "RobertaModel"
    offset: ClassVar[int] = 2

    vocab_size: int = 50265

    @property
    def longest(self) -> int | None:
        """Tokens for which there are positions."""
        return max(1, self.max_position_embeddings - self.offset)


@dataclass(frozen=True, kw_only=True)
class XLMRoBERTa(RoBERTa):
    """XLM-RoBERTa (Conneau and others, 2020): RoBERTa for many languages."""

    instance = "XLMRobertaModel"
    vocab_size: int = 30522


@dataclass(frozen=True, kw_only=True)
class DistilBERT(Stacked):
    """DistilBERT (Sanh and others, 2019): BERT without segments and pooler."""

    instance = "DistilBertModel"
    heads = ("dim", "n_heads")
    table = "max_position_embeddings"
    generates = False

    vocab_size: int = 30522
    dim: int = 768
    n_layers: int = 6
    n_heads: int = 12
    hidden_dim: int = 3072
    max_position_embeddings: int = 512

    @classmethod
    def stack(cls, c: Any) -> Stack:
        """Every linear map has a bias; the norms come after what they norm."""
        norm = 2 * c.dim
        return Stack(
            width=c.dim,
            layers=c.n_layers,
            tables={"positions": c.max_position_embeddings * c.dim},
            attention=Attention(heads=c.n_heads, head=shared_out(c.dim, c.n_heads), bias=(True, True)),
            networks=[(c.n_layers, Network(hidden=c.hidden_dim, bias=True))],
            norms=(norm, norm),
            first_norm=norm,
        )


@dataclass(frozen=True, kw_only=True)
class ModernBERT(Stacked):
    """ModernBERT (Warner and others, 2024): no biases, gated networks, rotary positions; without the heads of its tasks."""

    instance = "ModernBertModel"
    heads = ("hidden_size", "num_attention_heads")
    generates = False
    only: ClassVar[dict[str, Any]] = {"norm_bias": False}

    vocab_size: int = 50368
    hidden_size: int = 768
    intermediate_size: int = 1152
    num_hidden_layers: int = 22
    num_attention_heads: int = 12
    max_position_embeddings: int = 8192
    attention_bias: bool = False
    mlp_bias: bool = False

    @classmethod
    def stack(cls, c: Any) -> Stack:
        """The norm behind the embedding is the one before the first attention, so it is counted there."""
        return Stack(
            width=c.hidden_size,
            layers=c.num_hidden_layers,
            attention=Attention(
                heads=c.num_attention_heads,
                head=shared_out(c.hidden_size, c.num_attention_heads),
                bias=(c.attention_bias, c.attention_bias),
            ),
            networks=[(c.num_hidden_layers, Network(hidden=c.intermediate_size, gated=True, bias=c.mlp_bias))],
            norms=(c.hidden_size, c.hidden_size),
            last_norm=c.hidden_size,
        )


@dataclass(frozen=True, kw_only=True)
class T5(Family):
    """T5 (Raffel and others, 2020): encoder and decoder, with one table of distances for each."""

    instance = "T5ForConditionalGeneration"

    vocab_size: int = 32128
    d_model: int = 512
    d_kv: int = 64
    d_ff: int = 2048
    num_layers: int = 6
    num_decoder_layers: int | None = None
    num_heads: int = 8
    relative_attention_num_buckets: int = 32
    feed_forward_proj: str = "relu"
    tie_word_embeddings: bool = True

    @classmethod
    def parts(cls, c: Any, vocab_size: Size, shape: Shape) -> list[Part]:
        """No biases; norms have one vector. The source is read by the encoder, the target by the decoder."""
        width, norm, attention = c.d_model, c.d_model, Attention(heads=c.num_heads, head=c.d_kv)
        source, decoder = Shape(shape.rows, shape.source), c.num_decoder_layers or c.num_layers
        gated = c.feed_forward_proj.startswith("gated")

        def network(side: str, places: Size, layers: Size) -> Part:
            made = Network(hidden=c.d_ff, gated=gated, name=f"{side} feed-forward")
            return made.part(width, places, vectors=norm, times=layers)

        return [
            Part(EMBEDDING, vocab_size * width),
            attention.part(width, source, vectors=norm, times=c.num_layers, name="encoder attention"),
            network("encoder", source.places, c.num_layers),
            attention.part(width, shape, vectors=norm, times=decoder, name="decoder attention"),
            attention.part(width, shape, memory=shape.source, vectors=norm, times=decoder, name="cross attention"),
            network("decoder", shape.places, decoder),
            Part("distances", c.relative_attention_num_buckets * c.num_heads, times=2),
            Part("norm", norm, times=2),
            head_part(vocab_size, width, shape, tied=c.tie_word_embeddings),
        ]

    @property
    def caches(self) -> list[Cache]:
        """Keys and values of the decoder, for a token of the target; a token of the source takes as many."""
        attention = Attention(heads=self.num_heads, head=self.d_kv)
        return [Cache(self.num_decoder_layers or self.num_layers, attention.cached)]


@dataclass(frozen=True, kw_only=True)
class TorchDecoder(Family):
    """A stack of torch.nn.TransformerDecoderLayer between two embeddings and an output layer with bias."""

    instance = "torch.nn.TransformerDecoderLayer"
    table = "positions"

    layers: int
    width: int
    hidden: int
    positions: int

    @classmethod
    def parts(cls, c: Any, vocab_size: Size, shape: Shape) -> list[Part]:
        """Each block attends to itself and to another sequence; norms have two vectors, linear maps a bias."""
        width, norm = c.width, 2 * c.width
        attention = Attention(heads=1, head=width, bias=(True, True))
        network = Network(hidden=c.hidden, bias=True)
        return [
            Part(EMBEDDING, vocab_size * width),
            Part("positions", c.positions * width),
            attention.part(width, shape, vectors=norm, times=c.layers),
            attention.part(width, shape, memory=shape.source, vectors=norm, times=c.layers, name="cross attention"),
            network.part(width, shape.places, vectors=norm, times=c.layers),
            Part("norm", norm),
            joined(HEAD, linear(shape.places, width, vocab_size, bias=True)),
        ]

    @property
    def caches(self) -> list[Cache]:
        """Keys and values of every layer, for a token of the target; a token of the source takes as many."""
        return [Cache(self.layers, 2 * self.width)]

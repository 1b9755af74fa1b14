"""Decoders like GPT-2 that others published, by their config files: OPT, GPT-NeoX, BLOOM, Falcon, MPT.

Fields and defaults are those of transformers; tests hold every family to real instances.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from lmlab.costs.family import Stacked
from lmlab.costs.pieces import WEIGHT_AND_BIAS, Attention, Head, Network, Stack
from lmlab.formulas import Size, shared_out


@dataclass(frozen=True, kw_only=True)
class GPT2(Stacked):
    """GPT-2 (Radford and others, 2019)."""

    instance = "GPT2LMHeadModel"
    heads = ("n_embd", "n_head")
    table = "n_positions"
    only: ClassVar[dict[str, Any]] = {"add_cross_attention": False}

    vocab_size: int = 50257
    n_positions: int = 1024
    n_embd: int = 768
    n_layer: int = 12
    n_head: int = 12
    n_inner: int | None = None
    tie_word_embeddings: bool = True

    @classmethod
    def stack(cls, c: Any) -> Stack:
        """Every linear map but the last has a bias; norms have two vectors."""
        norm = WEIGHT_AND_BIAS * c.n_embd
        multi_query = getattr(c, "multi_query", False)
        head = shared_out(c.n_embd, c.n_head)
        return Stack(
            width=c.n_embd,
            layers=c.n_layer,
            tables={"positions": c.n_positions * c.n_embd},
            attention=Attention(heads=c.n_head, head=head, keys=1 if multi_query else None, bias=(True, True)),
            networks=[(c.n_layer, Network(hidden=c.n_inner or 4 * c.n_embd, bias=True))],
            norms=(norm, norm),
            last_norm=norm,
            head=Head(tied=c.tie_word_embeddings),
        )


@dataclass(frozen=True, kw_only=True)
class GPTBigCode(GPT2):
    """StarCoder (Li and others, 2023): GPT-2 whose heads share one key and one value."""

    instance = "GPTBigCodeForCausalLM"
    only: ClassVar[dict[str, Any]] = {"add_cross_attention": False, "num_key_value_heads": 1}
    multi_query: bool = True


@dataclass(frozen=True, kw_only=True)
class OPT(Stacked):
    """OPT (Zhang and others, 2022). The smallest but one has an embedding that is narrower than its layers."""

    instance = "OPTForCausalLM"
    heads = ("hidden_size", "num_attention_heads")
    table = "max_position_embeddings"
    offset: ClassVar[int] = 2  # rows of the table of positions that no token has

    vocab_size: int = 50272
    hidden_size: int = 768
    num_hidden_layers: int = 12
    ffn_dim: int = 3072
    max_position_embeddings: int = 2048
    num_attention_heads: int = 12
    word_embed_proj_dim: int | None = None
    do_layer_norm_before: bool = True
    _remove_final_layer_norm: bool = False
    enable_bias: bool = True
    layer_norm_elementwise_affine: bool = True
    tie_word_embeddings: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.word_embed_proj_dim == self.hidden_size:
            object.__setattr__(self, "word_embed_proj_dim", None)  # no matrices lead from one width to the other

    @classmethod
    def stack(cls, c: Any) -> Stack:
        """Every linear map but the last has a bias; with norms after the layers there is none at the end."""
        norm = WEIGHT_AND_BIAS * c.hidden_size if c.layer_norm_elementwise_affine else 0
        last = c.do_layer_norm_before and not c._remove_final_layer_norm
        return Stack(
            width=c.hidden_size,
            layers=c.num_hidden_layers,
            inner=c.word_embed_proj_dim,
            tables={"positions": (c.max_position_embeddings + cls.offset) * c.hidden_size},
            attention=Attention(
                heads=c.num_attention_heads,
                head=shared_out(c.hidden_size, c.num_attention_heads),
                bias=(c.enable_bias, c.enable_bias),
            ),
            networks=[(c.num_hidden_layers, Network(hidden=c.ffn_dim, bias=c.enable_bias))],
            norms=(norm, norm),
            last_norm=norm if last else 0,
            head=Head(tied=c.tie_word_embeddings),
        )


@dataclass(frozen=True, kw_only=True)
class GPTNeoX(Stacked):
    """GPT-NeoX (Black and others, 2022) and Pythia (Biderman and others, 2023)."""

    instance = "GPTNeoXForCausalLM"
    heads = ("hidden_size", "num_attention_heads")

    vocab_size: int = 50432
    hidden_size: int = 6144
    num_hidden_layers: int = 44
    num_attention_heads: int = 64
    intermediate_size: int = 24576
    max_position_embeddings: int = 2048
    attention_bias: bool = True
    tie_word_embeddings: bool = False

    @classmethod
    def stack(cls, c: Any) -> Stack:
        """Attention and network stand beside each other, each with its norm; positions are rotary."""
        norm = WEIGHT_AND_BIAS * c.hidden_size
        return Stack(
            width=c.hidden_size,
            layers=c.num_hidden_layers,
            attention=Attention(
                heads=c.num_attention_heads,
                head=shared_out(c.hidden_size, c.num_attention_heads),
                bias=(c.attention_bias, c.attention_bias),
            ),
            networks=[(c.num_hidden_layers, Network(hidden=c.intermediate_size, bias=True))],
            norms=(norm, norm),
            last_norm=norm,
            head=Head(tied=c.tie_word_embeddings),
        )


@dataclass(frozen=True, kw_only=True)
class BLOOM(Stacked):
    """BLOOM (BigScience, 2022): positions are a bias of scores, without weights; a norm follows the embedding."""

    instance = "BloomForCausalLM"
    heads = ("hidden_size", "n_head")
    aliases: ClassVar[dict[str, str]] = {
        "n_embed": "hidden_size",
        "num_hidden_layers": "n_layer",
        "num_attention_heads": "n_head",
    }

    vocab_size: int = 250880
    hidden_size: int = 64
    n_layer: int = 2
    n_head: int = 8
    tie_word_embeddings: bool = True

    @classmethod
    def stack(cls, c: Any) -> Stack:
        """Every linear map but the last has a bias; networks are four times as wide."""
        norm = WEIGHT_AND_BIAS * c.hidden_size
        return Stack(
            width=c.hidden_size,
            layers=c.n_layer,
            attention=Attention(heads=c.n_head, head=shared_out(c.hidden_size, c.n_head), bias=(True, True)),
            networks=[(c.n_layer, Network(hidden=4 * c.hidden_size, bias=True))],
            norms=(norm, norm),
            first_norm=norm,
            last_norm=norm,
            head=Head(tied=c.tie_word_embeddings),
        )


@dataclass(frozen=True, kw_only=True)
class Falcon(Stacked):
    """Falcon (Almazrouei and others, 2023): attention and network stand beside each other and may share a norm."""

    instance = "FalconForCausalLM"
    heads = ("hidden_size", "num_attention_heads")
    aliases: ClassVar[dict[str, str]] = {
        "n_layer": "num_hidden_layers",
        "n_head": "num_attention_heads",
        "n_head_kv": "num_kv_heads",
    }

    vocab_size: int = 65024
    hidden_size: int = 4544
    num_hidden_layers: int = 32
    num_attention_heads: int = 71
    num_kv_heads: int | None = None
    num_ln_in_parallel_attn: int | None = None
    ffn_hidden_size: int | None = None
    new_decoder_architecture: bool = False
    multi_query: bool = True
    parallel_attn: bool = True
    bias: bool = False
    tie_word_embeddings: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        two = self.new_decoder_architecture and self.num_ln_in_parallel_attn in (None, 2)
        if self.num_kv_heads is not None and self.new_decoder_architecture:
            why = "each key must serve as many heads as the others"
            self.refuse_uneven("num_attention_heads", "num_kv_heads", why)
        object.__setattr__(self, "num_ln_in_parallel_attn", two)  # a choice, not a size that formulas have a letter for

    @classmethod
    def stack(cls, c: Any) -> Stack:
        """The later architecture has groups of heads and two norms, the earlier one a single key and one norm."""
        norm = WEIGHT_AND_BIAS * c.hidden_size
        two = c.num_ln_in_parallel_attn or not c.parallel_attn
        shared: Size | None = 1 if c.multi_query else None
        return Stack(
            width=c.hidden_size,
            layers=c.num_hidden_layers,
            attention=Attention(
                heads=c.num_attention_heads,
                head=shared_out(c.hidden_size, c.num_attention_heads),
                keys=c.num_kv_heads if c.new_decoder_architecture else shared,
                bias=(c.bias, c.bias),
            ),
            networks=[(c.num_hidden_layers, Network(hidden=c.ffn_hidden_size or 4 * c.hidden_size, bias=c.bias))],
            norms=(norm, norm if two else 0),
            last_norm=norm,
            head=Head(tied=c.tie_word_embeddings),
        )


@dataclass(frozen=True, kw_only=True)
class MPT(Stacked):
    """MPT (MosaicML, 2023): no biases at all; positions are a bias of scores, without weights."""

    instance = "MptForCausalLM"
    heads = ("d_model", "n_heads")
    nested = "attn_config"
    only: ClassVar[dict[str, Any]] = {"no_bias": True, "qk_ln": False, "attn_type": "multihead_attention"}

    vocab_size: int = 50368
    d_model: int = 2048
    n_heads: int = 16
    n_layers: int = 24
    expansion_ratio: int = 4
    tie_word_embeddings: bool = True

    @classmethod
    def stack(cls, c: Any) -> Stack:
        """Norms have one vector."""
        return Stack(
            width=c.d_model,
            layers=c.n_layers,
            attention=Attention(heads=c.n_heads, head=shared_out(c.d_model, c.n_heads)),
            networks=[(c.n_layers, Network(hidden=c.expansion_ratio * c.d_model))],
            norms=(c.d_model, c.d_model),
            last_norm=c.d_model,
            head=Head(tied=c.tie_word_embeddings),
        )

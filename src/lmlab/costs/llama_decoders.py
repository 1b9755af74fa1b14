"""LLaMA and the decoders that vary it, by their config files: Mistral, Qwen, OLMo, Gemma, Phi, StableLM.

Fields and defaults are those of transformers; tests hold every family to real instances.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from lmlab.costs.family import Stacked
from lmlab.costs.pieces import WEIGHT, WEIGHT_AND_BIAS, Attention, Head, LatentAttention, Mixture, Network, Stack
from lmlab.formulas import Size, shared_out

AS_FILED = None  # a bias that the file decides on
Biases = tuple[bool | None, bool | None]


@dataclass(frozen=True, kw_only=True)
class Llama(Stacked):
    """LLaMA (Touvron and others, 2023): the family that most later ones vary, by the class variables below."""

    instance = "LlamaForCausalLM"
    biases: ClassVar[Biases] = (AS_FILED, AS_FILED)  # as in `Attention.bias`
    norm_vectors: ClassVar[int] = WEIGHT
    layer_norms: ClassVar[tuple[int, int]] = (1, 1)  # at attention, at the network
    query_norms: ClassVar[str] = ""  # "head": of each head's width; "all": of the width of all heads
    gated: ClassVar[bool] = True
    head_bias: ClassVar[bool] = False

    vocab_size: int = 32000
    hidden_size: int = 4096
    intermediate_size: int = 11008
    num_hidden_layers: int = 32
    num_attention_heads: int = 32
    num_key_value_heads: int | None = None
    head_dim: int | None = None
    max_position_embeddings: int = 2048
    attention_bias: bool = False
    mlp_bias: bool = False
    tie_word_embeddings: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.head_dim is None:
            self.refuse_uneven("hidden_size", "num_attention_heads", "the heads must divide it")
        if self.num_key_value_heads is not None:
            why = "each key must serve as many heads as the others"
            self.refuse_uneven("num_attention_heads", "num_key_value_heads", why)

    @classmethod
    def stack(cls, c: Any) -> Stack:
        """Rotary positions; several heads may share keys and values."""
        norm = cls.norm_vectors * c.hidden_size
        return Stack(
            width=c.hidden_size,
            layers=c.num_hidden_layers,
            attention=cls.attention(c),
            networks=cls.networks(c),
            norms=(cls.layer_norms[0] * norm, cls.layer_norms[1] * norm),
            last_norm=norm,
            head=Head(tied=c.tie_word_embeddings, bias=cls.head_bias),
        )

    @classmethod
    def attention(cls, c: Any) -> Attention | LatentAttention:
        """The attention of its layers."""
        head = c.head_dim or shared_out(c.hidden_size, c.num_attention_heads)
        keys = c.num_attention_heads if c.num_key_value_heads is None else c.num_key_value_heads
        at_start, at_end = (c.attention_bias if bias is AS_FILED else bias for bias in cls.biases)
        norms = {"": 0, "head": 2 * head, "all": (c.num_attention_heads + keys) * head}
        return Attention(
            heads=c.num_attention_heads,
            head=head,
            keys=keys,
            bias=(at_start, at_end),
            norms=norms[cls.query_norms],
        )

    @classmethod
    def networks(cls, c: Any) -> list[tuple[Size, Network | Mixture]]:
        """The networks of its layers."""
        return [(c.num_hidden_layers, Network(hidden=c.intermediate_size, gated=cls.gated, bias=c.mlp_bias))]


@dataclass(frozen=True, kw_only=True)
class Mistral(Llama):
    """Mistral (Jiang and others, 2023): eight keys for all heads unless the file says otherwise, and perhaps a window."""

    instance = "MistralForCausalLM"
    intermediate_size: int = 14336
    num_key_value_heads: int | None = 8
    max_position_embeddings: int = 131072
    sliding_window: int | None = None
    layer_types: list[str] | None = None


@dataclass(frozen=True, kw_only=True)
class Qwen2(Llama):
    """Qwen 2 and 2.5 (Yang and others, 2024): queries, keys and values have biases, and nothing else has."""

    instance = "Qwen2ForCausalLM"
    biases: ClassVar[Biases] = (True, False)
    may_be_zero = frozenset({"sliding_window", "max_window_layers"})

    vocab_size: int = 151936
    intermediate_size: int = 22016
    num_key_value_heads: int | None = 32
    max_position_embeddings: int = 32768
    use_sliding_window: bool = False
    sliding_window: int | None = None
    max_window_layers: int = 28
    layer_types: list[str] | None = None


@dataclass(frozen=True, kw_only=True)
class Qwen3(Qwen2):
    """Qwen 3 (Yang and others, 2025): norms of each head's queries and keys, and no biases."""

    instance = "Qwen3ForCausalLM"
    biases: ClassVar[Biases] = (AS_FILED, AS_FILED)
    query_norms = "head"
    head_dim: int | None = 128


@dataclass(frozen=True, kw_only=True)
class SmolLM3(Llama):
    """SmolLM 3 (Hugging Face, 2025): every fourth layer is without positions, which have no weights anyway."""

    instance = "SmolLM3ForCausalLM"
    vocab_size: int = 128256
    hidden_size: int = 2048
    num_hidden_layers: int = 36
    num_attention_heads: int = 16
    num_key_value_heads: int | None = 4
    max_position_embeddings: int = 32768
    tie_word_embeddings: bool = True
    use_sliding_window: bool = False
    sliding_window: int | None = None
    layer_types: list[str] | None = None


@dataclass(frozen=True, kw_only=True)
class OLMo(Llama):
    """OLMo (Groeneveld and others, 2024): norms have no weights."""

    instance = "OlmoForCausalLM"
    norm_vectors = 0
    vocab_size: int = 50304


@dataclass(frozen=True, kw_only=True)
class OLMo2(Llama):
    """OLMo 2 (OLMo Team, 2025): norms of all queries and of all keys."""

    instance = "Olmo2ForCausalLM"
    query_norms = "all"
    vocab_size: int = 50304


@dataclass(frozen=True, kw_only=True)
class Gemma(Llama):
    """Gemma (Gemma Team, 2024): heads of a width of their own, and one matrix for embedding and head."""

    instance = "GemmaForCausalLM"
    vocab_size: int = 256000
    hidden_size: int = 3072
    intermediate_size: int = 24576
    num_hidden_layers: int = 28
    num_attention_heads: int = 16
    num_key_value_heads: int | None = 16
    head_dim: int | None = 256
    max_position_embeddings: int = 8192
    tie_word_embeddings: bool = True


@dataclass(frozen=True, kw_only=True)
class Gemma2(Gemma):
    """Gemma 2 (Gemma Team, 2024): a norm before and after each piece; every other layer sees a window."""

    instance = "Gemma2ForCausalLM"
    layer_norms = (2, 2)
    every = 2
    hidden_size: int = 2304
    intermediate_size: int = 9216
    num_hidden_layers: int = 26
    num_attention_heads: int = 8
    num_key_value_heads: int | None = 4
    sliding_window: int | None = 4096
    layer_types: list[str] | None = None


@dataclass(frozen=True, kw_only=True)
class Gemma3(Gemma2):
    """Gemma 3 (Gemma Team, 2025), its text model: norms of each head's queries and keys; every sixth layer sees all."""

    instance = "Gemma3ForCausalLM"
    query_norms = "head"
    every = 6
    vocab_size: int = 262208
    max_position_embeddings: int = 131072


@dataclass(frozen=True, kw_only=True)
class Phi3(Llama):
    """Phi 3 and 4 (Abdin and others, 2024): LLaMA, with matrices that lie side by side."""

    instance = "Phi3ForCausalLM"
    vocab_size: int = 32064
    hidden_size: int = 3072
    intermediate_size: int = 8192
    max_position_embeddings: int = 4096
    sliding_window: int | None = None
    layer_types: list[str] | None = None


@dataclass(frozen=True, kw_only=True)
class Phi(Llama):
    """Phi 1.5 and 2 (Li and others, 2023): one norm a layer; every linear map has a bias, the head too."""

    instance = "PhiForCausalLM"
    biases: ClassVar[Biases] = (True, True)
    norm_vectors = WEIGHT_AND_BIAS
    layer_norms = (1, 0)
    gated = False
    head_bias = True
    only: ClassVar[dict[str, Any]] = {"qk_layernorm": False}
    vocab_size: int = 51200
    hidden_size: int = 2048
    intermediate_size: int = 8192
    num_hidden_layers: int = 24
    mlp_bias: bool = True


@dataclass(frozen=True, kw_only=True)
class StableLM(Llama):
    """StableLM (Tow and others, 2023; Bellagamba and others, 2024): norms with two vectors."""

    instance = "StableLmForCausalLM"
    biases: ClassVar[Biases] = (AS_FILED, False)
    norm_vectors = WEIGHT_AND_BIAS
    only: ClassVar[dict[str, Any]] = {"qk_layernorm": False, "use_parallel_residual": False}
    aliases: ClassVar[dict[str, str]] = {"use_qkv_bias": "attention_bias"}
    vocab_size: int = 50304
    hidden_size: int = 2560
    intermediate_size: int = 6912
    num_key_value_heads: int | None = 32
    max_position_embeddings: int = 4096

"""Mixtures of experts that others published, by their config files.

Fields and defaults are those of transformers; tests hold every family to real instances.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from lmlab.config import Mistake
from lmlab.costs.family import Family
from lmlab.costs.llama_decoders import AS_FILED, Biases, Llama, Mistral, Qwen2
from lmlab.costs.pieces import Attention, LatentAttention, Mixture, Network
from lmlab.formulas import Size


def refuse_too_few(config: Family, experts: str, chosen: str) -> None:
    """Raise a Mistake where a token would use more experts than there are."""
    if getattr(config, chosen) > getattr(config, experts):
        raise Mistake(
            f"config: {chosen} {getattr(config, chosen)} is more than {experts} {getattr(config, experts)};"
            " a token cannot use more experts than there are",
            code="config-too-many-chosen-experts",
        )


@dataclass(frozen=True, kw_only=True)
class Mixtral(Mistral):
    """Mixtral (Jiang and others, 2024): Mistral with experts in place of every network."""

    instance = "MixtralForCausalLM"
    aliases: ClassVar[dict[str, str]] = {"num_experts": "num_local_experts"}
    num_local_experts: int = 8
    num_experts_per_tok: int = 2

    def __post_init__(self) -> None:
        super().__post_init__()
        refuse_too_few(self, "num_local_experts", "num_experts_per_tok")

    @classmethod
    def networks(cls, c: Any) -> list[tuple[Size, Network | Mixture]]:
        """Each expert is as wide as a network of Mistral."""
        experts = Mixture(experts=c.num_local_experts, chosen=c.num_experts_per_tok, hidden=c.intermediate_size)
        return [(c.num_hidden_layers, experts)]


@dataclass(frozen=True, kw_only=True)
class OLMoE(Llama):
    """OLMoE (Muennighoff and others, 2024): norms of all queries and of all keys; experts in every layer."""

    instance = "OlmoeForCausalLM"
    query_norms = "all"
    aliases: ClassVar[dict[str, str]] = {"num_local_experts": "num_experts"}
    vocab_size: int = 50304
    hidden_size: int = 2048
    intermediate_size: int = 2048
    num_hidden_layers: int = 16
    num_attention_heads: int = 16
    max_position_embeddings: int = 4096
    num_experts: int = 64
    num_experts_per_tok: int = 8

    def __post_init__(self) -> None:
        super().__post_init__()
        refuse_too_few(self, "num_experts", "num_experts_per_tok")

    @classmethod
    def networks(cls, c: Any) -> list[tuple[Size, Network | Mixture]]:
        """Experts alone."""
        experts = Mixture(experts=c.num_experts, chosen=c.num_experts_per_tok, hidden=c.intermediate_size)
        return [(c.num_hidden_layers, experts)]


@dataclass(frozen=True, kw_only=True)
class Qwen2MoE(Qwen2):
    """Qwen 1.5 and 2 with experts (Yang and others, 2024): chosen ones, and a wider one that every token uses."""

    instance = "Qwen2MoeForCausalLM"
    aliases: ClassVar[dict[str, str]] = {"num_local_experts": "num_experts"}
    only: ClassVar[dict[str, Any]] = {"decoder_sparse_step": 1, "qkv_bias": True}
    hidden_size: int = 2048
    intermediate_size: int = 5632
    num_hidden_layers: int = 24
    num_attention_heads: int = 16
    num_key_value_heads: int | None = 16
    num_experts: int = 60
    num_experts_per_tok: int = 4
    moe_intermediate_size: int = 1408
    shared_expert_intermediate_size: int | None = 5632
    mlp_only_layers: list[int] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        refuse_too_few(self, "num_experts", "num_experts_per_tok")
        plain = self.mlp_only_layers or []
        if len(set(plain)) < len(plain) or any(layer not in range(self.num_hidden_layers) for layer in plain):
            raise Mistake(
                f"config: mlp_only_layers lists layers from 0 to {self.num_hidden_layers - 1}, each once; got {plain}",
                code="config-mlp-layers",
            )

    @classmethod
    def networks(cls, c: Any) -> list[tuple[Size, Network | Mixture]]:
        """Experts in every layer, but for those that the file names."""
        plain, shared = len(c.mlp_only_layers or ()), c.shared_expert_intermediate_size
        experts = Mixture(
            experts=c.num_experts,
            chosen=c.num_experts_per_tok,
            hidden=c.moe_intermediate_size,
            shared=0 if shared is None else shared,
            shared_gate=shared is not None,
        )
        return [(plain, Network(hidden=c.intermediate_size, gated=True)), (c.num_hidden_layers - plain, experts)]


@dataclass(frozen=True, kw_only=True)
class Qwen3MoE(Qwen2MoE):
    """Qwen 3 with experts (Yang and others, 2025): none that every token uses; norms of each head's queries and keys."""

    instance = "Qwen3MoeForCausalLM"
    biases: ClassVar[Biases] = (AS_FILED, AS_FILED)
    query_norms = "head"
    only: ClassVar[dict[str, Any]] = {"decoder_sparse_step": 1}
    intermediate_size: int = 6144
    num_attention_heads: int = 32
    num_key_value_heads: int | None = 4
    num_experts: int = 128
    num_experts_per_tok: int = 8
    moe_intermediate_size: int = 768
    shared_expert_intermediate_size: int | None = None


@dataclass(frozen=True, kw_only=True)
class DeepSeekV2(Llama):
    """DeepSeek-V2 (DeepSeek-AI, 2024): latent attention; experts in all layers but the first ones."""

    instance = "DeepseekV2ForCausalLM"
    may_be_zero = frozenset({"first_k_dense_replace", "n_shared_experts"})
    only: ClassVar[dict[str, Any]] = {"moe_layer_freq": 1}
    vocab_size: int = 102400
    first_k_dense_replace: int = 0
    kv_lora_rank: int = 512
    q_lora_rank: int | None = 1536
    n_routed_experts: int = 64
    n_shared_experts: int | None = 2
    num_experts_per_tok: int = 8
    moe_intermediate_size: int = 1407
    qk_nope_head_dim: int = 128
    qk_rope_head_dim: int = 64
    v_head_dim: int = 128

    def __post_init__(self) -> None:
        Family.__post_init__(self)  # its heads need not divide its width
        refuse_too_few(self, "n_routed_experts", "num_experts_per_tok")
        if self.first_k_dense_replace > self.num_hidden_layers:
            raise Mistake(
                f"config: first_k_dense_replace {self.first_k_dense_replace} is more than"
                f" num_hidden_layers {self.num_hidden_layers}",
                code="config-dense-layers",
            )

    @classmethod
    def attention(cls, c: Any) -> Attention | LatentAttention:
        """Latent attention."""
        return LatentAttention(
            heads=c.num_attention_heads,
            latent=c.kv_lora_rank,
            queries=c.q_lora_rank,
            plain=c.qk_nope_head_dim,
            turned=c.qk_rope_head_dim,
            value=c.v_head_dim,
            bias=c.attention_bias,
        )

    @classmethod
    def networks(cls, c: Any) -> list[tuple[Size, Network | Mixture]]:
        """Plain networks first, then experts."""
        experts = Mixture(
            experts=c.n_routed_experts,
            chosen=c.num_experts_per_tok,
            hidden=c.moe_intermediate_size,
            shared=(c.n_shared_experts or 0) * c.moe_intermediate_size,
        )
        plain = c.first_k_dense_replace
        return [(plain, Network(hidden=c.intermediate_size, gated=True)), (c.num_hidden_layers - plain, experts)]


@dataclass(frozen=True, kw_only=True)
class DeepSeekV3(DeepSeekV2):
    """DeepSeek-V3 and R1 (DeepSeek-AI, 2024)."""

    instance = "DeepseekV3ForCausalLM"
    vocab_size: int = 129280
    hidden_size: int = 7168
    intermediate_size: int = 18432
    num_hidden_layers: int = 61
    num_attention_heads: int = 128
    num_key_value_heads: int | None = 128
    max_position_embeddings: int = 4096
    first_k_dense_replace: int = 3
    n_routed_experts: int = 256
    n_shared_experts: int | None = 1
    moe_intermediate_size: int = 2048

"""Weights of our encoder in models of the transformers library, name by name."""

from __future__ import annotations

from typing import Any

import torch
from transformers import BertConfig

from lmlab.models.families.encoder import Encoder, EncoderConfig


def config_of(config: EncoderConfig, rows: int, **more: Any) -> BertConfig:
    return BertConfig(
        vocab_size=rows, hidden_size=config.width, num_hidden_layers=config.layers,
        num_attention_heads=config.heads, intermediate_size=config.hidden, max_position_embeddings=config.context,
        type_vocab_size=config.segments, hidden_act="gelu", attn_implementation="eager", **more,
    )  # fmt: skip


def copy_encoder(encoder: Encoder, theirs: Any) -> None:
    """Into a BertModel."""
    with torch.no_grad():
        tables = theirs.embeddings
        tables.word_embeddings.weight.copy_(encoder.embedding)
        tables.position_embeddings.weight.copy_(encoder.position)
        tables.token_type_embeddings.weight.copy_(encoder.segment)
        copy(encoder.norm, tables.LayerNorm)
        for ours, layer in zip(encoder.blocks, theirs.encoder.layer, strict=True):
            attention = layer.attention.self
            weights, biases = ours.qkv.weight.chunk(3), ours.qkv.bias.chunk(3)  # type: ignore[union-attr, operator]
            for linear, weight, bias in zip(
                (attention.query, attention.key, attention.value), weights, biases, strict=True
            ):
                linear.weight.copy_(weight)
                linear.bias.copy_(bias)
            copy(ours.out, layer.attention.output.dense)
            copy(ours.norm_attention, layer.attention.output.LayerNorm)
            copy(ours.up, layer.intermediate.dense)
            copy(ours.down, layer.output.dense)
            copy(ours.norm_mlp, layer.output.LayerNorm)
        if encoder.pooler is not None:
            copy(encoder.pooler, theirs.pooler.dense)


def copy(ours: Any, theirs: Any) -> None:
    """A weight and a bias."""
    with torch.no_grad():
        theirs.weight.copy_(ours.weight)
        theirs.bias.copy_(ours.bias)


def shaken(model: torch.nn.Module, seed: int = 0) -> None:
    """Biases and norms off their first values too, so that leaving one out is noticed."""
    random = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for p in model.parameters():
            p.add_(torch.randn(p.shape, generator=random) * 0.2)

"""Weights of our encoder and of our translator in models of the transformers library, name by name."""

from __future__ import annotations

from typing import Any

import torch
from transformers import BertConfig, PegasusConfig, PegasusForConditionalGeneration

from lmlab.models.families.encoder import Encoder, EncoderConfig
from lmlab.models.translator import Translator


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


def pegasus_of(ours: Translator) -> PegasusForConditionalGeneration:
    """All of a translator as a Pegasus, which is built alike: pre-norm, one scaled table, fixed positions, tied output.

    It has biases, which ours has not: they are zero. Its positions are a table too, and hold ours.
    """
    c = ours.config
    sizes = {f"{side}_{name}": value for side in ("encoder", "decoder") for name, value in _sides(ours).items()}
    theirs = PegasusForConditionalGeneration(
        PegasusConfig(
            vocab_size=len(ours.embedding), d_model=c.width, max_position_embeddings=ours.context, scale_embedding=True,
            activation_function="relu2", dropout=0.0, attn_implementation="eager", **sizes,
        )
    ).eval()  # fmt: skip
    body = theirs.model
    with torch.no_grad():
        for name, parameter in theirs.named_parameters():
            if name.endswith(".bias"):
                parameter.zero_()
        theirs.lm_head.weight.copy_(ours.embedding)
        for table in (body.shared, body.encoder.embed_tokens, body.decoder.embed_tokens):
            table.weight.copy_(ours.embedding)
        for side, norm in ((body.encoder, ours.encoder_norm), (body.decoder, ours.norm)):
            side.embed_positions.weight.copy_(ours.position_CD)
            side.layer_norm.weight.copy_(norm)
        for mine, layer in zip(ours.encoder, body.encoder.layers, strict=True):
            _copy_block(mine, layer)
        for mine, cross, layer in zip(ours.decoder, ours.cross, body.decoder.layers, strict=True):
            _copy_block(mine, layer)
            _copy_attention(torch.cat([cross.query, cross.kv]), cross.out, layer.encoder_attn)  # type: ignore[list-item]
            layer.encoder_attn_layer_norm.weight.copy_(cross.norm)
    return theirs


def _sides(ours: Translator) -> dict[str, Any]:
    assert ours.config.width is not None
    return {
        "layers": ours.config.layers,
        "attention_heads": ours.config.heads,
        "ffn_dim": 4 * ours.config.width,
    }


def _copy_block(mine: Any, layer: Any) -> None:
    _copy_attention(mine.qkv, mine.out, layer.self_attn)
    layer.self_attn_layer_norm.weight.copy_(mine.norm_attention)
    layer.final_layer_norm.weight.copy_(mine.norm_mlp)
    layer.fc1.weight.copy_(mine.up)
    layer.fc2.weight.copy_(mine.down)


def _copy_attention(qkv: torch.Tensor, out: torch.Tensor, attention: Any) -> None:
    for linear, weight in zip((attention.q_proj, attention.k_proj, attention.v_proj), qkv.chunk(3), strict=True):
        linear.weight.copy_(weight)
    attention.out_proj.weight.copy_(out)

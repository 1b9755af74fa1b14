"""A `gpt` as a network that other tools know: the names of its weights there, and the config that goes with them.

Rotary positions make it a NemotronForCausalLM, learned and sinusoidal ones a GPT2LMHeadModel. Two things differ, and both have
exact solutions:

- Their softmax includes the begin symbol, since it has a row of their embedding. The normalised input n of the last norm
  sums to zero. So with u = 1/w (w: the weights of that norm), the bias b = u/‖u‖² and head rows E_v - (E_v·b) u, the logits
  are E_v·(n∘w), and a begin row of -10⁴ u has the logit -10⁴ whatever the text.
- Embeddings that `tie` scales by the root of the width are stored scaled, beside a head of their own.

The weights are float32: rounded to bf16, the differences in the head would move log-probabilities by a tenth of a nat.

Shapes: V tokens, N inputs (V and the begin symbol), D width, C context.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from lmlab.config import Mistake
from lmlab.layers.blocks import Block
from lmlab.models.gpt import GPT

EPSILON = 1e-5  # of our norms
BEGIN_LOGIT = -1e4
ACTIVATIONS = {
    "nemotron": {"relu2": "relu2", "gelu": "gelu_pytorch_tanh"},
    "gpt2": {"relu2": "relu2", "gelu": "gelu_new"},
}


@dataclass(frozen=True)
class Written:
    """A network as other tools know it."""

    config: Mapping[str, Any]  # config.json
    tensors: Mapping[str, Tensor]
    begin_id: int


def as_their_network(model: GPT) -> Written:
    """Return the weights and the config of a `gpt` in the terms of the `transformers` library.

    Raises:
        Mistake: a weight of the last norm is zero, so that the begin symbol cannot be left out.
    """
    return _nemotron(model) if model.config.positions == "rotary" else _gpt2(model)


def _shared_config(model: GPT, kind: str) -> dict[str, Any]:
    """The keys that every architecture has. Old and new versions of the library read the same file."""
    begin = model.begin_id
    return {
        "vocab_size": model.vocab_size + 1,
        "bos_token_id": begin,
        "eos_token_id": None,
        "pad_token_id": None,  # if it were the begin symbol, generate would mask that out
        "tie_word_embeddings": False,
        "torch_dtype": "float32",
        "dtype": "float32",
        "use_cache": True,
    }


def _nemotron(model: GPT) -> Written:
    heads, width = _heads(model), model.width
    tensors = {"model.embed_tokens.weight": _inputs(model)}
    for number, block in enumerate(_blocks(model)):
        at = f"model.layers.{number}."
        for name, weight in zip("qkv", block.qkv.detach().chunk(3), strict=True):
            tensors[f"{at}self_attn.{name}_proj.weight"] = weight
        tensors[f"{at}self_attn.o_proj.weight"] = block.out
        tensors[f"{at}mlp.up_proj.weight"], tensors[f"{at}mlp.down_proj.weight"] = block.up, block.down
        for name, weight in (("input", block.norm_attention), ("post_attention", block.norm_mlp)):
            tensors[f"{at}{name}_layernorm.weight"] = weight - 1.0  # their norm adds 1
            tensors[f"{at}{name}_layernorm.bias"] = torch.zeros(width)
    stored_D = model.norm.detach() - 1.0
    bias_D, head_ND = _without_begin(stored_D + 1.0, model.output_weight())
    tensors |= {"model.norm.weight": stored_D, "model.norm.bias": bias_D, "lm_head.weight": head_ND}
    rotary = {"rope_theta": 10000.0, "partial_rotary_factor": 1.0}
    config = {
        "architectures": ["NemotronForCausalLM"],
        "model_type": "nemotron",
        **_shared_config(model, "nemotron"),
        "hidden_size": width,
        "intermediate_size": 4 * width,
        "num_hidden_layers": len(model.blocks),
        "num_attention_heads": heads,
        "num_key_value_heads": heads,
        "head_dim": width // heads,
        "max_position_embeddings": model.context,
        "hidden_act": ACTIVATIONS["nemotron"][model.config.activation],
        "norm_eps": EPSILON,
        "attention_bias": False,
        "mlp_bias": False,
        "attention_dropout": 0.0,
        **rotary,
        "rope_parameters": {"rope_type": "default", **rotary},
    }
    return Written(config, _separate(tensors), model.begin_id)


def _gpt2(model: GPT) -> Written:
    width = model.width
    tensors = {"transformer.wte.weight": _inputs(model), "transformer.wpe.weight": model.position}
    for number, block in enumerate(_blocks(model)):
        at = f"transformer.h.{number}."
        maps = {"attn.c_attn": block.qkv, "attn.c_proj": block.out, "mlp.c_fc": block.up, "mlp.c_proj": block.down}
        for name, weight in maps.items():
            tensors[f"{at}{name}.weight"] = weight.T  # they store what ours multiplies, transposed
            tensors[f"{at}{name}.bias"] = torch.zeros(len(weight))
        for name, weight in (("ln_1", block.norm_attention), ("ln_2", block.norm_mlp)):
            tensors[f"{at}{name}.weight"], tensors[f"{at}{name}.bias"] = weight, torch.zeros(width)
    bias_D, head_ND = _without_begin(model.norm.detach(), model.output_weight())
    tensors |= {"transformer.ln_f.weight": model.norm, "transformer.ln_f.bias": bias_D, "lm_head.weight": head_ND}
    config = {
        "architectures": ["GPT2LMHeadModel"],
        "model_type": "gpt2",
        **_shared_config(model, "gpt2"),
        "n_embd": width,
        "n_inner": 4 * width,
        "n_layer": len(model.blocks),
        "n_head": _heads(model),
        "n_positions": model.context,
        "activation_function": ACTIVATIONS["gpt2"][model.config.activation],
        "layer_norm_epsilon": EPSILON,
        "attn_pdrop": 0.0,
        "embd_pdrop": 0.0,
        "resid_pdrop": 0.0,
    }
    return Written(config, _separate(tensors), model.begin_id)


def _heads(model: GPT) -> int:
    assert model.config.heads is not None, "a trained model has resolved settings"
    return model.config.heads


def _blocks(model: GPT) -> list[Block]:
    return [block for block in model.blocks if isinstance(block, Block)]


def _inputs(model: GPT) -> Tensor:
    """The vectors of all inputs, N×D, as the blocks read them."""
    scale = model.width**0.5 if model.config.tie else 1.0
    return model.embedding.detach() * scale


def _without_begin(norm_D: Tensor, head_VD: Tensor) -> tuple[Tensor, Tensor]:
    """Return the bias of the last norm and the head N×D with which the begin symbol has no probability.

    norm_D: the weights of the last norm, as they are read back.
    """
    if not bool((norm_D != 0).all()):
        raise Mistake(
            "a weight of the last norm is exactly zero, so the begin symbol cannot be left out of their softmax; train on"
            " and export again",
            code="export-norm-zero",
        )
    u_D, rows_VD = 1.0 / norm_D.double(), head_VD.detach().double()
    bias_D = (u_D / u_D.square().sum()).float()
    b_D = bias_D.double()
    # with the bias as it is rounded, u·b is not exactly one, so the shift divides by it
    shifted_VD = rows_VD - torch.outer(rows_VD @ b_D, u_D) / (u_D @ b_D)
    return bias_D, torch.cat([shifted_VD, BEGIN_LOGIT * u_D[None]]).float()


def _separate(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Float32 tensors that share no memory, as a safetensors file wants them."""
    return {name: value.detach().float().cpu().clone().contiguous() for name, value in tensors.items()}

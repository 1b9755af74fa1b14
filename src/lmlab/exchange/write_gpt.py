"""A `gpt` as a network that other tools know: the names of its weights there, and the config that goes with them.

Rotary positions make it a Nemotron (LayerNorm), or a LLaMA or Mistral (RMSNorm with a gated network); learned and
sinusoidal positions make it a GPT-2.

Begin symbol. An imported model begins with a token of its vocabulary, whose row gets the vector of our begin symbol; no text
holds that token. Any other model has a begin symbol beside its vocabulary, which their softmax would include. The normalised
input n of a LayerNorm sums to zero. So with u = 1/w (w: the weights of the last norm) and the bias b = u/‖u‖², the head rows
E_v + c_v u have the logits E_v·(n∘w) + E_v·b + c_v, and a begin row of -10⁴ u has -10⁴ whatever the text. The c_v are chosen so
that the logits are ours. RMSNorm has no such direction.

The weights are float32: rounded to bf16, the differences in the head would move log-probabilities by a tenth of a nat.

Shapes: V tokens, N inputs (V, or V and the begin symbol), D width.
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

BEGIN_LOGIT = -1e4
GATES = {"swiglu": "silu", "geglu": "gelu_pytorch_tanh"}
ACTIVATIONS = {"relu2": "relu2", "gelu": "gelu_pytorch_tanh", "gelu-erf": "gelu", "silu": "silu"}
LLAMA_MAPS = {"out": "self_attn.o_proj", "down": "mlp.down_proj"}
GPT2_MAPS = {"qkv": "attn.c_attn", "out": "attn.c_proj", "up": "mlp.c_fc", "down": "mlp.c_proj"}


@dataclass(frozen=True)
class Written:
    """A network as other tools know it."""

    config: Mapping[str, Any]  # config.json
    tensors: Mapping[str, Tensor]
    begin_id: int


def as_their_network(model: GPT, begin_id: int | None = None) -> Written:
    """Return the weights and the config of a `gpt` in the terms of the `transformers` library.

    Args:
        model: the model.
        begin_id: the token of the vocabulary that begins every text; None: there is none, so a row is added.

    Raises:
        Mistake: no architecture of the library computes this, with the reason.
    """
    kind = _kind(model, begin_id)
    if kind == "gpt2":
        norm, config, tensors = "transformer.ln_f", _gpt2_config(model), _gpt2_blocks(model)
        tensors["transformer.wpe.weight"] = model.position
    else:
        norm, config, tensors = "model.norm", _llama_config(model, kind), _llama_blocks(model, kind)
    outer = "transformer.wte" if kind == "gpt2" else "model.embed_tokens"
    inputs_ND = model.embedding.detach() * model.scale
    if begin_id is None:
        stored_D, bias_D, head_ND = _without_begin(model, 1.0 if kind == "nemotron" else 0.0)
        tensors |= {f"{norm}.weight": stored_D, f"{norm}.bias": bias_D, "lm_head.weight": head_ND}
        tied, begin_id = False, model.vocab_size
    else:
        tensors |= _norm(kind, norm, model.norm, model.norm_bias)
        tied = bool(model.config.tie) and model.scale == 1.0 and torch.equal(inputs_ND[begin_id], inputs_ND[-1])
        if not tied:
            tensors["lm_head.weight"] = model.output_weight()
        inputs_ND = inputs_ND[:-1].index_copy(0, torch.tensor([begin_id], device=inputs_ND.device), inputs_ND[-1:])
    tensors[f"{outer}.weight"] = inputs_ND
    shared = {
        "architectures": [ARCHITECTURES[kind]],
        "model_type": kind,
        "vocab_size": len(inputs_ND),
        "bos_token_id": begin_id,
        "eos_token_id": None,
        "pad_token_id": None,  # if it were the begin symbol, generate would mask that out
        "tie_word_embeddings": tied,
        "torch_dtype": "float32",  # of version 4 of the library; version 5 reads dtype
        "dtype": "float32",
    }
    kept = {name: value.detach().float().cpu().clone().contiguous() for name, value in tensors.items()}
    return Written(shared | config, kept, begin_id)


ARCHITECTURES = {
    "gpt2": "GPT2LMHeadModel",
    "llama": "LlamaForCausalLM",
    "mistral": "MistralForCausalLM",
    "nemotron": "NemotronForCausalLM",
}


def _kind(model: GPT, begin_id: int | None) -> str:
    """The architecture that computes what this model does."""
    c, config = model.composition, model.config
    gated, rotary = c.activation in GATES, config.positions == "rotary"

    def refused(why: str) -> Mistake:
        return Mistake(f"no architecture of transformers computes this gpt: {why}", code="export-of-composition")

    if config.output_bias and begin_id is not None:
        raise refused("none of them has a bias in its output layer")
    if not rotary:
        whole = c.kv_heads == c.heads and c.inner == c.width and c.window is None
        if gated or c.norm == "rms" or not whole:
            raise refused("with learned or sinusoidal positions there is only GPT-2, with LayerNorm and equal heads")
        return "gpt2"
    if gated != (c.norm == "rms"):
        raise refused("rotary positions go with LayerNorm and a plain network, or with RMSNorm and a gated one")
    if not gated:
        if c.window is not None:
            raise refused("none with LayerNorm has a sliding window")
        return "nemotron"
    if begin_id is None:
        raise refused(
            "norm=rms gives their softmax no way to leave the begin symbol out; train with norm=layer, or begin with an"
            " imported model"
        )
    if c.rotary_share != 1.0:
        raise refused("none with RMSNorm turns a share of each head")
    if c.window is not None:
        if c.biases != "none":
            raise refused("none with a sliding window has biases")
        return "mistral"
    return "llama"  # also for biases of queries, keys and values alone, with zeros for the output


def _llama_config(model: GPT, kind: str) -> dict[str, Any]:
    c = model.composition
    rotary = {"rope_theta": c.rotary_base, "partial_rotary_factor": c.rotary_share}
    if kind != "nemotron":
        del rotary["partial_rotary_factor"]
    config = {
        "hidden_size": c.width,
        "intermediate_size": c.hidden,
        "num_hidden_layers": c.layers,
        "num_attention_heads": c.heads,
        "num_key_value_heads": c.kv_heads,
        "head_dim": c.head_width,
        "max_position_embeddings": model.context,
        "hidden_act": ACTIVATIONS[c.activation] if kind == "nemotron" else GATES[c.activation],
        "attention_bias": c.biases != "none",
        "mlp_bias": c.biases == "all",
        "attention_dropout": 0.0,
        **rotary,
        "rope_parameters": {"rope_type": "default", **rotary},
        "norm_eps" if kind == "nemotron" else "rms_norm_eps": c.norm_epsilon,
    }
    if kind == "mistral":
        config["sliding_window"] = c.window
    return config


def _llama_blocks(model: GPT, kind: str) -> dict[str, Tensor]:
    c, tensors = model.composition, dict[str, Tensor]()
    sizes = [c.heads * c.head_width, c.kv_heads * c.head_width, c.kv_heads * c.head_width]
    ups = ["mlp.gate_proj", "mlp.up_proj"] if c.activation in GATES else ["mlp.up_proj"]
    has_bias = {"qkv": c.biases != "none", "out": c.biases != "none"}
    for number, block in enumerate(_blocks(model)):
        at = f"model.layers.{number}."
        tensors |= _norm(kind, f"{at}input_layernorm", block.norm_attention, block.norm_attention_bias)
        tensors |= _norm(kind, f"{at}post_attention_layernorm", block.norm_mlp, block.norm_mlp_bias)
        for ours in ("qkv", "out", "up", "down"):
            weight, bias = getattr(block, ours), getattr(block, f"{ours}_bias")
            if bias is None and has_bias.get(ours, c.biases == "all"):
                bias = torch.zeros(len(weight))
            parts = {"qkv": [f"self_attn.{name}_proj" for name in "qkv"], "up": ups}.get(ours) or [LLAMA_MAPS[ours]]
            cut = sizes if ours == "qkv" else [len(weight) // len(parts)] * len(parts)
            for name, rows in zip(parts, weight.split(cut), strict=True):
                tensors[f"{at}{name}.weight"] = rows
            for name, entries in zip(parts, () if bias is None else bias.split(cut), strict=False):
                tensors[f"{at}{name}.bias"] = entries
    return tensors


def _gpt2_config(model: GPT) -> dict[str, Any]:
    c = model.composition
    return {
        "n_embd": c.width,
        "n_inner": c.hidden,
        "n_layer": c.layers,
        "n_head": c.heads,
        "n_positions": model.context,
        "activation_function": ACTIVATIONS[c.activation],
        "layer_norm_epsilon": c.norm_epsilon,
        "attn_pdrop": 0.0,
        "embd_pdrop": 0.0,
        "resid_pdrop": 0.0,
    }


def _gpt2_blocks(model: GPT) -> dict[str, Tensor]:
    tensors = dict[str, Tensor]()
    for number, block in enumerate(_blocks(model)):
        at = f"transformer.h.{number}."
        tensors |= _norm("gpt2", f"{at}ln_1", block.norm_attention, block.norm_attention_bias)
        tensors |= _norm("gpt2", f"{at}ln_2", block.norm_mlp, block.norm_mlp_bias)
        for ours, theirs in GPT2_MAPS.items():
            weight, bias = getattr(block, ours), getattr(block, f"{ours}_bias")
            tensors[f"{at}{theirs}.weight"] = weight.T  # they store the transposed matrix
            tensors[f"{at}{theirs}.bias"] = torch.zeros(len(weight)) if bias is None else bias
    return tensors


def _norm(kind: str, name: str, weight_D: Tensor, bias_D: Tensor | None) -> dict[str, Tensor]:
    """A norm by their name. Nemotron adds 1 to the weights; every LayerNorm has a bias there."""
    found = {f"{name}.weight": weight_D - 1.0 if kind == "nemotron" else weight_D}
    if kind in ("nemotron", "gpt2"):
        found[f"{name}.bias"] = torch.zeros_like(weight_D) if bias_D is None else bias_D
    return found


def _blocks(model: GPT) -> list[Block]:
    return [block for block in model.blocks if isinstance(block, Block)]


def _without_begin(model: GPT, offset: float) -> tuple[Tensor, Tensor, Tensor]:
    """Return weights and bias of the last norm, and the head N×D, with which the begin symbol has no probability.

    offset: what their norm adds to its weights, so that they are taken as they will be read back.
    """
    stored_D = model.norm.detach() - offset
    read_D = stored_D + offset
    if not bool((read_D != 0).all()):
        raise Mistake(
            "a weight of the last norm is exactly zero, so the begin symbol cannot be left out of their softmax; train on"
            " and export again",
            code="export-norm-zero",
        )
    u_D, rows_VD = 1.0 / read_D.double(), model.output_weight().detach().double()
    bias_D = (u_D / u_D.square().sum()).float()
    b_D = bias_D.double()
    wanted_V = torch.zeros(len(rows_VD), dtype=torch.float64, device=rows_VD.device)
    if model.norm_bias is not None:
        wanted_V = wanted_V + rows_VD @ model.norm_bias.detach().double()
    if model.output_bias is not None:
        wanted_V = wanted_V + model.output_bias.detach().double()
    # with the bias as it is rounded, u·b is not exactly one, so the shift divides by it
    shifted_VD = rows_VD + torch.outer(wanted_V - rows_VD @ b_D, u_D) / (u_D @ b_D)
    return stored_D, bias_D, torch.cat([shifted_VD, BEGIN_LOGIT * u_D[None]]).float()

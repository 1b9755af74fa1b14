"""Networks of transformers as settings and weights of a `gpt`: what each key of their config means here.

What has no counterpart is refused with its key, never ignored: a key that changes predictions is named in a reader.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor

from lmlab.config import Mistake
from lmlab.exchange.folder_config import Folder
from lmlab.models.gpt import GPTConfig

Weights = Mapping[str, Tensor]
GATED = {"silu": "swiglu", "swish": "swiglu", "gelu_pytorch_tanh": "geglu", "gelu_new": "geglu"}
PLAIN = {
    "gelu_new": "gelu", "gelu_pytorch_tanh": "gelu", "gelu_fast": "gelu", "gelu": "gelu-erf", "relu2": "relu2",
    "silu": "silu", "swish": "silu",
}  # fmt: skip


def gpt_of(folder: Folder, network: Any, begin_id: int) -> tuple[GPTConfig, dict[str, Tensor]]:
    """Return settings and weights.

    Args:
        folder: the folder, for messages.
        network: the network with its weights.
        begin_id: the token whose row is the begin symbol.

    Raises:
        Mistake: a key of the config has no counterpart.
    """
    config, weights = network.config, {name: value.detach() for name, value in network.state_dict().items()}
    settings, tensors = READERS[folder.model_type](folder, config, weights)
    table = network.get_input_embeddings().weight.detach()
    head = network.get_output_embeddings()
    tied = head.weight is network.get_input_embeddings().weight
    rows = head.weight.shape[0]
    if table.shape[0] < rows:
        raise _refused(folder, "vocab_size", "the embedding is smaller than the output layer")
    tensors["embedding"] = torch.cat([table[:rows], table[begin_id, None]])
    if not tied:
        tensors["output"] = head.weight.detach().clone()
    if (bias := getattr(head, "bias", None)) is not None:
        tensors["output_bias"] = bias.detach().clone()
    context = folder.positions
    known: dict[str, Any] = {
        "context": context,
        "stride": max(1, context // 2),
        "dropout": 0.0,
        "embedding_scale": 1.0,
        "tie": tied,
    }
    made = GPTConfig(**known, output_bias=True if bias is not None else None, **settings)
    return made, {name: value.float().clone().contiguous() for name, value in tensors.items()}


def _refused(folder: Folder, key: str, why: str) -> Mistake:
    return Mistake(
        f"{folder.path}: {key} has no counterpart here ({why}); measure the folder as it is: lmlab eval {folder.path} TEXT",
        code="import-key-without-counterpart",
    )


def _llama_like(folder: Folder, config: Any, weights: Weights) -> tuple[dict[str, Any], dict[str, Tensor]]:
    activation = GATED.get(config.hidden_act)
    if activation is None:
        raise _refused(folder, "hidden_act", str(config.hidden_act))
    settings = _sizes(config) | _rotary(folder, config)
    settings |= {"norm": "rms", "norm_epsilon": config.rms_norm_eps, "activation": activation}
    settings["window"] = _window(folder, config)
    return _biased(config, settings, _layers(config, weights, gated=True, offset=0.0))


def _nemotron(folder: Folder, config: Any, weights: Weights) -> tuple[dict[str, Any], dict[str, Tensor]]:
    if config.hidden_act not in PLAIN:
        raise _refused(folder, "hidden_act", str(config.hidden_act))
    settings = _sizes(config) | _rotary(folder, config)
    settings |= {"norm": "layer-bias", "norm_epsilon": config.norm_eps, "activation": PLAIN[config.hidden_act]}
    return _biased(config, settings, _layers(config, weights, gated=False, offset=1.0))


def _gpt2(folder: Folder, config: Any, weights: Weights) -> tuple[dict[str, Any], dict[str, Tensor]]:
    if config.activation_function not in PLAIN:
        raise _refused(folder, "activation_function", str(config.activation_function))
    for key, usual in (
        ("scale_attn_weights", True),
        ("scale_attn_by_inverse_layer_idx", False),
        ("add_cross_attention", False),
    ):
        if getattr(config, key, usual) != usual:
            raise _refused(folder, key, str(getattr(config, key)))
    tensors = {"position": weights["transformer.wpe.weight"]} | _norm(weights, "transformer.ln_f", "norm", 0.0)
    for i in range(config.n_layer):
        at, block = f"transformer.h.{i}.", f"blocks.{i}."
        tensors |= _norm(weights, f"{at}ln_1", f"{block}norm_attention", 0.0)
        tensors |= _norm(weights, f"{at}ln_2", f"{block}norm_mlp", 0.0)
        maps = {"attn.c_attn": "qkv", "attn.c_proj": "out", "mlp.c_fc": "up", "mlp.c_proj": "down"}
        for name, ours in maps.items():
            tensors[block + ours] = weights[f"{at}{name}.weight"].T  # they store the transposed matrix
            tensors[f"{block}{ours}_bias"] = weights[f"{at}{name}.bias"]
    settings = {
        "layers": config.n_layer,
        "width": config.n_embd,
        "heads": config.n_head,
        "hidden": config.n_inner or 4 * config.n_embd,
        "positions": "learned",
        "norm": "layer-bias",
        "norm_epsilon": config.layer_norm_epsilon,
        "biases": "all",
        "activation": PLAIN[config.activation_function],
    }
    return settings, tensors


def _sizes(config: Any) -> dict[str, Any]:
    heads = config.num_attention_heads
    return {
        "layers": config.num_hidden_layers,
        "width": config.hidden_size,
        "heads": heads,
        "kv_heads": getattr(config, "num_key_value_heads", None) or heads,
        "head_width": getattr(config, "head_dim", None) or config.hidden_size // heads,
        "hidden": config.intermediate_size,
    }


def _rotary(folder: Folder, config: Any) -> dict[str, Any]:
    """Base and share of the rotary positions; other frequencies are refused."""
    given = getattr(config, "rope_parameters", None) or getattr(config, "rope_scaling", None) or {}
    kind = given.get("rope_type") or given.get("type") or "default"
    if kind != "default":
        raise _refused(folder, "rope_scaling", str(kind))
    base = given.get("rope_theta") or getattr(config, "rope_theta", None) or 10_000.0
    share = given.get("partial_rotary_factor") or getattr(config, "partial_rotary_factor", None) or 1.0
    return {"rotary_base": float(base), "rotary_share": float(share)}


def _window(folder: Folder, config: Any) -> int | None:
    """The sliding window of all layers; layers that differ are refused."""
    window = getattr(config, "sliding_window", None)
    if window is None or not getattr(config, "use_sliding_window", True):
        return None
    kinds = set(getattr(config, "layer_types", None) or ["sliding_attention"])
    if kinds == {"full_attention"} or window >= folder.positions:
        return None
    if kinds != {"sliding_attention"}:
        raise _refused(folder, "layer_types", "layers with different windows")
    return int(window)


def _layers(config: Any, weights: Weights, *, gated: bool, offset: float) -> dict[str, Tensor]:
    """The blocks and the last norm of networks that name their weights as LLaMA does. offset: added to norm weights."""
    named = {
        "qkv": ["self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"],
        "out": ["self_attn.o_proj"],
        "up": [*(["mlp.gate_proj"] if gated else []), "mlp.up_proj"],
        "down": ["mlp.down_proj"],
    }
    tensors = _norm(weights, "model.norm", "norm", offset)
    for i in range(config.num_hidden_layers):
        at, block = f"model.layers.{i}.", f"blocks.{i}."
        tensors |= _norm(weights, f"{at}input_layernorm", f"{block}norm_attention", offset)
        tensors |= _norm(weights, f"{at}post_attention_layernorm", f"{block}norm_mlp", offset)
        for ours, parts in named.items():
            tensors[block + ours] = torch.cat([weights[f"{at}{part}.weight"] for part in parts])
            biases = [weights[f"{at}{part}.bias"] for part in parts if f"{at}{part}.bias" in weights]
            if biases:
                tensors[f"{block}{ours}_bias"] = torch.cat(biases)
    return tensors


def _norm(weights: Weights, theirs: str, ours: str, offset: float) -> dict[str, Tensor]:
    found = {ours: weights[f"{theirs}.weight"] + offset}
    return found | ({f"{ours}_bias": weights[f"{theirs}.bias"]} if f"{theirs}.bias" in weights else {})


def _biased(
    config: Any, settings: dict[str, Any], tensors: dict[str, Tensor]
) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """Name the biases that there are; where only some maps beside queries, keys and values have one, the others get zeros."""
    maps = ("qkv", "out", "up", "down")
    there = {name for name in maps if f"blocks.0.{name}_bias" in tensors}
    settings["biases"] = "none" if not there else "qkv" if there == {"qkv"} else "all"
    if settings["biases"] == "all":
        for i in range(config.num_hidden_layers):
            for name in set(maps) - there:
                tensors[f"blocks.{i}.{name}_bias"] = torch.zeros(len(tensors[f"blocks.{i}.{name}"]))
    return settings, tensors


READERS: dict[str, Callable[[Folder, Any, Weights], tuple[dict[str, Any], dict[str, Tensor]]]] = {
    "gpt2": _gpt2,
    "llama": _llama_like,
    "mistral": _llama_like,
    "qwen2": _llama_like,
    "nemotron": _nemotron,
}

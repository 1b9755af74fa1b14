"""Small models of published architectures, built by transformers with random weights, and copies of them as a `gpt`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import transformers
from torch import Tensor, nn

from lmlab.models.gpt import GPT, GPTConfig

VOCABULARY, WIDTH, HEADS, LAYERS, CONTEXT = 31, 32, 4, 2, 24
BEGIN = 3  # the token of theirs that is the begin symbol of ours
SIZES = {
    "vocab_size": VOCABULARY,
    "hidden_size": WIDTH,
    "num_hidden_layers": LAYERS,
    "num_attention_heads": HEADS,
    "intermediate_size": 56,
    "max_position_embeddings": CONTEXT,
    "bos_token_id": None,
    "eos_token_id": None,
    "pad_token_id": None,
}
OURS = {
    "layers": LAYERS, "width": WIDTH, "heads": HEADS, "context": CONTEXT, "stride": CONTEXT // 2, "dropout": 0.0,
    "embedding_scale": 1.0, "tie": False,
}  # fmt: skip
LLAMA = {"norm": "rms", "norm_epsilon": 1e-6, "activation": "swiglu", "kv_heads": 2, "hidden": 56}
Pair = tuple[nn.Module, GPT]


def llama_like(config: Any, rope: dict[str, Any] | None = None, **settings: object) -> Pair:
    """A model with the names of LLaMA's weights, and its copy."""
    if rope is not None:
        config.rope_parameters = rope
    theirs = randomized(transformers.AutoModelForCausalLM.from_config(config, attn_implementation="eager"))
    return theirs, GPT.from_tensors(GPTConfig(**(OURS | LLAMA | settings)), VOCABULARY, from_llama(theirs.state_dict()))


def from_llama(theirs: dict[str, Tensor], norm_offset: float = 0.0) -> dict[str, Tensor]:
    """Weights of LLaMA, Mistral, Qwen2 or Nemotron under our names. norm_offset: is added to the weights of norms."""
    table = theirs["model.embed_tokens.weight"]
    found = {"embedding": torch.cat([table, table[BEGIN, None]]), "output": theirs["lm_head.weight"]}
    found |= norm_named(theirs, "model.norm", "norm", norm_offset)
    for i in range(LAYERS):
        at, block = f"model.layers.{i}.", f"blocks.{i}."
        found |= norm_named(theirs, at + "input_layernorm", block + "norm_attention", norm_offset)
        found |= norm_named(theirs, at + "post_attention_layernorm", block + "norm_mlp", norm_offset)
        for name, parts in {
            "qkv": ["self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"],
            "out": ["self_attn.o_proj"],
            "up": ["mlp.gate_proj", "mlp.up_proj"],
            "down": ["mlp.down_proj"],
        }.items():
            for end, suffix in ((".weight", ""), (".bias", "_bias")):
                there = [theirs[at + part + end] for part in parts if at + part + end in theirs]
                found |= {block + name + suffix: torch.cat(there)} if there else {}
    return found


def norm_named(theirs: dict[str, Tensor], name: str, ours: str, offset: float) -> dict[str, Tensor]:
    """The weight and the bias, if there is one, of a norm."""
    found = {ours: theirs[name + ".weight"] + offset}
    return found | ({ours + "_bias": theirs[name + ".bias"]} if name + ".bias" in theirs else {})


def randomized(model: nn.Module) -> nn.Module:
    """The model with weights that are far from where they began."""
    torch.manual_seed(5)
    with torch.no_grad():
        for weight in model.parameters():
            weight.add_(torch.randn_like(weight) * 0.3)
    return model.eval()


def rope(base: float, **more: float) -> dict[str, Any]:
    return {"rope_type": "default", "rope_theta": base, **more}


def llama() -> Pair:
    config = transformers.LlamaConfig(**SIZES, num_key_value_heads=2, tie_word_embeddings=False)
    return llama_like(config, rope(500.0), rotary_base=500.0)


def llama_of_wide_heads() -> Pair:
    config = transformers.LlamaConfig(**SIZES, num_key_value_heads=1, head_dim=12, tie_word_embeddings=False)
    return llama_like(config, rope(10_000.0), kv_heads=1, head_width=12)


def mistral() -> Pair:
    config = transformers.MistralConfig(**SIZES, num_key_value_heads=2, sliding_window=5, tie_word_embeddings=False)
    return llama_like(config, rope(10_000.0), window=5)


def qwen2() -> Pair:
    config = transformers.Qwen2Config(**SIZES, num_key_value_heads=2, tie_word_embeddings=False)
    return llama_like(config, rope(1_000_000.0), rotary_base=1e6, biases="qkv")


def nemotron() -> Pair:
    config = transformers.NemotronConfig(**SIZES, num_key_value_heads=2, tie_word_embeddings=False)
    config.rope_parameters = rope(10_000.0, partial_rotary_factor=0.5)
    theirs = randomized(transformers.NemotronForCausalLM(config))
    ours = GPTConfig(
        **(OURS | LLAMA | {"norm": "layer-bias", "norm_epsilon": 1e-5, "activation": "relu2", "rotary_share": 0.5})
    )
    # LayerNorm1P: its weight is what is added to one.
    return theirs, GPT.from_tensors(ours, VOCABULARY, from_llama(theirs.state_dict(), norm_offset=1.0))


def gpt2() -> Pair:
    config = transformers.GPT2Config(
        vocab_size=VOCABULARY, n_positions=CONTEXT, n_embd=WIDTH, n_layer=LAYERS, n_head=HEADS, n_inner=56,
        bos_token_id=None, eos_token_id=None, tie_word_embeddings=False,
    )  # fmt: skip
    theirs = randomized(transformers.GPT2LMHeadModel(config))
    weights = theirs.state_dict()
    table = weights["transformer.wte.weight"]
    found = {"embedding": torch.cat([table, table[BEGIN, None]]), "output": weights["lm_head.weight"]}
    found |= {"position": weights["transformer.wpe.weight"]} | norm_named(weights, "transformer.ln_f", "norm", 0.0)
    for i in range(LAYERS):
        at, block = f"transformer.h.{i}.", f"blocks.{i}."
        found |= norm_named(weights, at + "ln_1", block + "norm_attention", 0.0)
        found |= norm_named(weights, at + "ln_2", block + "norm_mlp", 0.0)
        named = {"attn.c_attn": "qkv", "attn.c_proj": "out", "mlp.c_fc": "up", "mlp.c_proj": "down"}
        for name, ours in named.items():  # stored the other way round
            found[block + ours] = weights[f"{at}{name}.weight"].T.contiguous()
            found[f"{block}{ours}_bias"] = weights[f"{at}{name}.bias"]
    composed = {"norm": "layer-bias", "activation": "gelu", "biases": "all", "hidden": 56, "positions": "learned"}
    return theirs, GPT.from_tensors(GPTConfig(**(OURS | composed)), VOCABULARY, found)


PAIRS: dict[str, Callable[[], Pair]] = {
    made.__name__: made for made in (gpt2, llama, llama_of_wide_heads, mistral, qwen2, nemotron)
}

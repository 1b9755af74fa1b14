"""The families of models whose config files are known, by the `model_type` that the files have."""

from __future__ import annotations

from lmlab.costs import decoders, encoders, mixtures
from lmlab.costs.family import Family

FAMILIES: dict[str, type[Family]] = {
    "gpt2": decoders.GPT2,
    "gpt_bigcode": decoders.GPTBigCode,
    "gpt_neox": decoders.GPTNeoX,
    "opt": decoders.OPT,
    "bloom": decoders.BLOOM,
    "falcon": decoders.Falcon,
    "mpt": decoders.MPT,
    "llama": decoders.Llama,
    "mistral": decoders.Mistral,
    "qwen2": decoders.Qwen2,
    "qwen3": decoders.Qwen3,
    "smollm3": decoders.SmolLM3,
    "olmo": decoders.OLMo,
    "olmo2": decoders.OLMo2,
    "gemma": decoders.Gemma,
    "gemma2": decoders.Gemma2,
    "gemma3_text": decoders.Gemma3,
    "phi": decoders.Phi,
    "phi3": decoders.Phi3,
    "stablelm": decoders.StableLM,
    "mixtral": mixtures.Mixtral,
    "olmoe": mixtures.OLMoE,
    "qwen2_moe": mixtures.Qwen2MoE,
    "qwen3_moe": mixtures.Qwen3MoE,
    "deepseek_v2": mixtures.DeepSeekV2,
    "deepseek_v3": mixtures.DeepSeekV3,
    "bert": encoders.BERT,
    "roberta": encoders.RoBERTa,
    "xlm-roberta": encoders.XLMRoBERTa,
    "distilbert": encoders.DistilBERT,
    "modernbert": encoders.ModernBERT,
    "t5": encoders.T5,
    "torch-decoder": encoders.TorchDecoder,
}

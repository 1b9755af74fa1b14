"""The families of models whose config files are known, by the `model_type` that the files have."""

from __future__ import annotations

from lmlab.costs import encoders, gpt_decoders, llama_decoders, mixtures
from lmlab.costs.family import Family

FAMILIES: dict[str, type[Family]] = {
    "gpt2": gpt_decoders.GPT2,
    "gpt_bigcode": gpt_decoders.GPTBigCode,
    "gpt_neox": gpt_decoders.GPTNeoX,
    "opt": gpt_decoders.OPT,
    "bloom": gpt_decoders.BLOOM,
    "falcon": gpt_decoders.Falcon,
    "mpt": gpt_decoders.MPT,
    "llama": llama_decoders.Llama,
    "mistral": llama_decoders.Mistral,
    "qwen2": llama_decoders.Qwen2,
    "qwen3": llama_decoders.Qwen3,
    "smollm3": llama_decoders.SmolLM3,
    "olmo": llama_decoders.OLMo,
    "olmo2": llama_decoders.OLMo2,
    "gemma": llama_decoders.Gemma,
    "gemma2": llama_decoders.Gemma2,
    "gemma3_text": llama_decoders.Gemma3,
    "phi": llama_decoders.Phi,
    "phi3": llama_decoders.Phi3,
    "stablelm": llama_decoders.StableLM,
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

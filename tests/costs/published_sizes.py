"""Models by the fields of their config files, with the numbers of parameters that were published.

A fact is the number of elements of the published weights. Active parameters are given as their authors round them, in
billions; some leave the embedding out, which a token only looks up.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, kw_only=True)
class Published:
    """A published model.

    active: billions of parameters that a token uses. looked_up: whether these include the embedding.
    """

    kind: str
    total: int
    sizes: dict[str, Any] = field(default_factory=dict)
    active: float | None = None
    looked_up: bool = True

    @property
    def document(self) -> dict[str, Any]:
        return {"model_type": self.kind, **self.sizes}


def _gpt2(width: int, layers: int, heads: int, **more: Any) -> dict[str, Any]:
    return {"n_embd": width, "n_layer": layers, "n_head": heads, **more}


def _bert(width: int, layers: int, heads: int, hidden: int, **more: Any) -> dict[str, Any]:
    sizes = {"hidden_size": width, "num_hidden_layers": layers, "num_attention_heads": heads}
    return {**sizes, "intermediate_size": hidden, **more}


def _opt(width: int, layers: int, heads: int, **more: Any) -> dict[str, Any]:
    sizes = {"hidden_size": width, "num_hidden_layers": layers, "num_attention_heads": heads, "ffn_dim": 4 * width}
    return {**sizes, "word_embed_proj_dim": width, **more}


def _pythia(width: int, layers: int, heads: int, vocab: int = 50304) -> dict[str, Any]:
    return _bert(width, layers, heads, 4 * width, vocab_size=vocab)


def _llama(width: int, layers: int, heads: int, hidden: int, keys: int, vocab: int, **more: Any) -> dict[str, Any]:
    return _bert(width, layers, heads, hidden, num_key_value_heads=keys, vocab_size=vocab, **more)


def _falcon(width: int, layers: int, heads: int, **more: Any) -> dict[str, Any]:
    sizes = {"hidden_size": width, "num_hidden_layers": layers, "num_attention_heads": heads}
    return {**sizes, "num_kv_heads": 8, "new_decoder_architecture": True, **more}


def _t5(width: int, layers: int, heads: int, hidden: int, **more: Any) -> dict[str, Any]:
    return {"d_model": width, "num_layers": layers, "num_heads": heads, "d_ff": hidden, **more}


TIED, ROBERTA = {"tie_word_embeddings": True}, {"max_position_embeddings": 514, "type_vocab_size": 1}


def _deepseek(**sizes: int | None) -> dict[str, Any]:
    return {"num_experts_per_tok": 6, "first_k_dense_replace": 1, **sizes}


_ALL: dict[str, tuple[str, int, dict[str, Any]]] = {
    "GPT-2": ("gpt2", 124_439_808, {}),
    "GPT-2 medium": ("gpt2", 354_823_168, _gpt2(1024, 24, 16)),
    "GPT-2 large": ("gpt2", 774_030_080, _gpt2(1280, 36, 20)),
    "GPT-2 XL": ("gpt2", 1_557_611_200, _gpt2(1600, 48, 25)),
    "SantaCoder": ("gpt_bigcode", 1_124_886_528, _gpt2(2048, 24, 16, n_positions=2048, vocab_size=49280)),
    "StarCoder": ("gpt_bigcode", 15_517_456_384, _gpt2(6144, 40, 48, n_positions=8192, vocab_size=49152)),
    "OPT-125M": ("opt", 125_239_296, {}),
    "OPT-350M": ("opt", 331_196_416, _opt(1024, 24, 16, word_embed_proj_dim=512, do_layer_norm_before=False)),
    "OPT-1.3B": ("opt", 1_315_758_080, _opt(2048, 24, 32)),
    "OPT-6.7B": ("opt", 6_658_473_984, _opt(4096, 32, 32)),
    "Pythia 70M": ("gpt_neox", 70_426_624, _pythia(512, 6, 8)),
    "Pythia 160M": ("gpt_neox", 162_322_944, _pythia(768, 12, 12)),
    "Pythia 410M": ("gpt_neox", 405_334_016, _pythia(1024, 24, 16)),
    "Pythia 1B": ("gpt_neox", 1_011_781_632, _pythia(2048, 16, 8)),
    "Pythia 1.4B": ("gpt_neox", 1_414_647_808, _pythia(2048, 24, 16)),
    "Pythia 2.8B": ("gpt_neox", 2_775_208_960, _pythia(2560, 32, 32)),
    "Pythia 6.9B": ("gpt_neox", 6_857_302_016, _pythia(4096, 32, 32, 50432)),
    "Pythia 12B": ("gpt_neox", 11_846_072_320, _pythia(5120, 36, 40, 50688)),
    "GPT-NeoX 20B": ("gpt_neox", 20_554_567_680, {}),
    "BLOOM 560M": ("bloom", 559_214_592, {"hidden_size": 1024, "n_layer": 24, "n_head": 16}),
    "BLOOM 7B1": ("bloom", 7_069_016_064, {"n_embed": 4096, "n_layer": 30, "num_attention_heads": 32}),
    "BLOOM 176B": ("bloom", 176_247_271_424, {"hidden_size": 14336, "n_layer": 70, "num_attention_heads": 112}),
    "Falcon 7B": ("falcon", 6_921_720_704, {}),
    "Falcon 40B": ("falcon", 41_303_293_952, _falcon(8192, 60, 128)),
    "Falcon 180B": ("falcon", 179_522_565_120, _falcon(14848, 80, 232, tie_word_embeddings=False)),
    "MPT 7B": ("mpt", 6_649_286_656, {"d_model": 4096, "n_heads": 32, "n_layers": 32, "vocab_size": 50432}),
    "LLaMA 7B": ("llama", 6_738_415_616, {}),
    "LLaMA 13B": ("llama", 13_015_864_320, _llama(5120, 40, 40, 13824, 40, 32000)),
    "LLaMA 65B": ("llama", 65_285_660_672, _llama(8192, 80, 64, 22016, 64, 32000)),
    "Llama-2 70B": ("llama", 68_976_648_192, _llama(8192, 80, 64, 28672, 8, 32000)),
    "Llama-3 8B": ("llama", 8_030_261_248, _llama(4096, 32, 32, 14336, 8, 128256)),
    "Llama-3 70B": ("llama", 70_553_706_496, _llama(8192, 80, 64, 28672, 8, 128256)),
    "Llama-3.1 405B": ("llama", 405_853_388_800, _llama(16384, 126, 128, 53248, 8, 128256)),
    "Llama-3.2 1B": ("llama", 1_235_814_400, _llama(2048, 16, 32, 8192, 8, 128256, **TIED)),
    "Llama-3.2 3B": ("llama", 3_212_749_824, _llama(3072, 28, 24, 8192, 8, 128256, **TIED)),
    "TinyLlama 1.1B": ("llama", 1_100_048_384, _llama(2048, 22, 32, 5632, 4, 32000)),
    "SmolLM 135M": ("llama", 134_515_008, _llama(576, 30, 9, 1536, 3, 49152, **TIED)),
    "Mistral 7B": ("mistral", 7_241_732_096, {"sliding_window": 4096}),
    "Qwen2.5 0.5B": ("qwen2", 494_032_768, _llama(896, 24, 14, 4864, 2, 151936, **TIED)),
    "Qwen2.5 7B": ("qwen2", 7_615_616_512, _llama(3584, 28, 28, 18944, 4, 152064)),
    "Qwen2.5 72B": ("qwen2", 72_706_203_648, _llama(8192, 80, 64, 29568, 8, 152064)),
    "Qwen3 0.6B": ("qwen3", 596_049_920, _llama(1024, 28, 16, 3072, 8, 151936, **TIED)),
    "Qwen3 8B": ("qwen3", 8_190_735_360, _llama(4096, 36, 32, 12288, 8, 151936)),
    "Qwen3 32B": ("qwen3", 32_762_123_264, _llama(5120, 64, 64, 25600, 8, 151936)),
    "SmolLM3 3B": ("smollm3", 3_075_098_624, {}),
    "OLMo 1B": ("olmo", 1_176_764_416, _llama(2048, 16, 16, 8192, 16, 50304, **TIED)),
    "OLMo 7B": ("olmo", 6_888_095_744, {}),
    "OLMo 2 7B": ("olmo2", 7_298_617_344, _llama(4096, 32, 32, 11008, 32, 100352)),
    "OLMo 2 13B": ("olmo2", 13_716_198_400, _llama(5120, 40, 40, 13824, 40, 100352)),
    "Gemma 2B": ("gemma", 2_506_172_416, _llama(2048, 18, 8, 16384, 1, 256000)),
    "Gemma 7B": ("gemma", 8_537_680_896, {}),
    "Gemma 2 2B": ("gemma2", 2_614_341_888, {}),
    "Gemma 2 9B": ("gemma2", 9_241_705_984, _llama(3584, 42, 16, 14336, 8, 256000)),
    "Gemma 2 27B": ("gemma2", 27_227_128_320, _llama(4608, 46, 32, 36864, 16, 256000, head_dim=128)),
    "Gemma 3 1B": ("gemma3_text", 999_885_952, _llama(1152, 26, 4, 6912, 1, 262144, sliding_window=512)),
    "Phi-1.5": ("phi", 1_418_270_720, {}),
    "Phi-2": ("phi", 2_779_683_840, _bert(2560, 32, 32, 10240)),
    "Phi-3-mini": ("phi3", 3_821_079_552, {}),
    "Phi-4": ("phi3", 14_659_507_200, _llama(5120, 40, 40, 17920, 10, 100352)),
    "StableLM 3B": ("stablelm", 2_795_443_200, {}),
    "BERT base": ("bert", 109_482_240, {}),
    "BERT large": ("bert", 335_141_888, _bert(1024, 24, 16, 4096)),
    "RoBERTa base": ("roberta", 124_645_632, ROBERTA),
    "RoBERTa large": ("roberta", 355_359_744, _bert(1024, 24, 16, 4096, **ROBERTA)),
    "XLM-R base": ("xlm-roberta", 278_043_648, {"vocab_size": 250_002, **ROBERTA}),
    "DistilBERT": ("distilbert", 66_362_880, {}),
    "ModernBERT base": ("modernbert", 149_014_272, {}),
    "ModernBERT large": ("modernbert", 394_781_696, _bert(1024, 28, 16, 2624)),
    "T5 small": ("t5", 60_506_624, {}),
    "T5 base": ("t5", 222_903_552, _t5(768, 12, 12, 3072, n_positions=512)),
    "T5 large": ("t5", 737_668_096, _t5(1024, 24, 16, 4096, n_positions=512)),
    "T5 3B": ("t5", 2_851_598_336, _t5(1024, 24, 32, 16384, d_kv=128)),
}
DENSE = {name: Published(kind=kind, total=total, sizes=sizes) for name, (kind, total, sizes) in _ALL.items()}
MIXTURES = {
    "Mixtral 8x7B": Published(kind="mixtral", total=46_702_792_704, active=12.9),
    "Mixtral 8x22B": Published(
        kind="mixtral", total=140_620_634_112, active=39, sizes=_llama(6144, 56, 48, 16384, 8, 32000)
    ),
    "OLMoE 1B-7B": Published(kind="olmoe", total=6_919_161_856, active=1.3, sizes={"intermediate_size": 1024}),
    "Qwen1.5-MoE-A2.7B": Published(kind="qwen2_moe", total=14_315_784_192, active=2.7),
    "Qwen3 30B-A3B": Published(
        kind="qwen3_moe",
        total=30_532_122_624,
        active=3.3,
        sizes={"num_hidden_layers": 48, "num_experts": 128, "head_dim": 128},
    ),
    "Qwen3 235B-A22B": Published(
        kind="qwen3_moe",
        total=235_093_634_560,
        active=22,
        sizes=_llama(4096, 94, 64, 12288, 4, 151936, head_dim=128, moe_intermediate_size=1536),
    ),
    "DeepSeek-V2-Lite": Published(
        kind="deepseek_v2",
        total=15_706_484_224,
        active=2.4,
        looked_up=False,
        sizes=_bert(2048, 27, 16, 10944, **_deepseek(q_lora_rank=None, moe_intermediate_size=1408)),
    ),
    "DeepSeek-V2": Published(
        kind="deepseek_v2",
        total=235_741_434_880,
        active=21,
        looked_up=False,
        sizes=_bert(5120, 60, 128, 12288, **_deepseek(n_routed_experts=160, moe_intermediate_size=1536)),
    ),
    "DeepSeek-V3": Published(kind="deepseek_v3", total=671_026_404_352, active=37, looked_up=False),
}
PUBLISHED = DENSE | MIXTURES

"""Published training runs: what was trained, on how many tokens, in how many device-hours, and what the hours include.

A run is here if its source gives the device, the device-hours (or devices and days), the tokens and the sizes of a
language model that was trained from the start. Left out are runs whose source gives none of these or contradicts itself:
OPT-175B and GPT-3 (tokens or devices are guesses of others), Phi-1.5 (two numbers of hours), Llama 3.2 (distilled).
"""

from __future__ import annotations

from lmlab.costs.family import Family
from lmlab.costs.gpt_decoders import BLOOM, GPT2, MPT, Falcon, GPTBigCode, GPTNeoX
from lmlab.costs.llama_decoders import Llama, Phi, Phi3, SmolLM3, StableLM
from lmlab.costs.mixtures import DeepSeekV2, DeepSeekV3
from lmlab.costs.training_run import Run

STEPS = "steps alone: the time of a step times the steps"
CLOCK = "days by the clock on all devices, restarts included"
UNSAID = "pre-training; the source does not say whether failures count"


def _llama(width: int, layers: int, heads: int, hidden: int, keys: int | None = None, vocab: int = 32000) -> Llama:
    return Llama(
        vocab_size=vocab,
        hidden_size=width,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        intermediate_size=hidden,
        num_key_value_heads=keys,
    )


def _pythia(name: str, width: int, layers: int, heads: int, hours: float, vocab: int = 50304) -> Run:
    return Run(
        name=f"Pythia {name}",
        group="EleutherAI",
        year=2023,
        source="Biderman and others, Pythia, 2023, appendix D, table 5",
        includes=STEPS,
        config=GPTNeoX(
            vocab_size=vocab,
            hidden_size=width,
            num_hidden_layers=layers,
            num_attention_heads=heads,
            intermediate_size=4 * width,
        ),
        tokens=299_892_736_000,
        length=2048,
        hours=hours,
        device="A100-40GB",
    )


def _meta(
    name: str, year: int, source: str, config: Llama, tokens: float, length: int, hours: float, device: str = "A100"
) -> Run:
    return Run(
        name=name,
        group="Meta",
        year=year,
        source=source,
        includes=UNSAID,
        config=config,
        tokens=tokens,
        length=length,
        hours=hours,
        device=device,
    )


def _deepseek(name: str, source: str, includes: str, config: Family, tokens: float, hours: float) -> Run:
    return Run(
        name=name,
        group="DeepSeek",
        year=2024,
        source=source,
        includes=includes,
        config=config,
        tokens=tokens,
        length=4096,
        hours=hours,
        device="H800",
    )


def _phi(name: str, config: Family, tokens: float, length: int, devices: int, days: int, device: str) -> Run:
    return Run(
        name=name,
        group="Microsoft",
        year=2023 if name == "Phi-2" else 2024,
        source=f"model card of {name}, section Training",
        includes="days by the clock on all devices; perhaps with fine-tuning",
        config=config,
        tokens=tokens,
        length=length,
        hours=devices * days * 24,
        device=device,
    )


LLAMA = "Touvron and others, LLaMA, 2023, table 15"
LLAMA_2 = "Touvron and others, Llama 2, 2023, table 2"
LLAMA_3 = "model card of Llama 3, section Hardware and Software"
DEEPSEEK_V2 = "DeepSeek-AI, DeepSeek-V2, 2024, section 3.2.3"
SEVEN, THIRTEEN = _llama(4096, 32, 32, 11008), _llama(5120, 40, 40, 13824)

RUNS = [
    _pythia("70M", 512, 6, 8, 510),
    _pythia("160M", 768, 12, 12, 1_030),
    _pythia("410M", 1024, 24, 16, 2_540),
    _pythia("1B", 2048, 16, 8, 4_830),
    _pythia("1.4B", 2048, 24, 16, 7_120),
    _pythia("2.8B", 2560, 32, 32, 14_240),
    _pythia("6.9B", 4096, 32, 32, 33_500, 50432),
    _pythia("12B", 5120, 36, 40, 72_300, 50688),
    _meta("LLaMA 7B", 2023, LLAMA, SEVEN, 1.0e12, 2048, 82_432),
    _meta("LLaMA 13B", 2023, LLAMA, THIRTEEN, 1.0e12, 2048, 135_168),
    _meta("LLaMA 33B", 2023, LLAMA, _llama(6656, 60, 52, 17920), 1.4e12, 2048, 530_432),
    _meta("LLaMA 65B", 2023, LLAMA, _llama(8192, 80, 64, 22016), 1.4e12, 2048, 1_022_362),
    _meta("Llama-2 7B", 2023, LLAMA_2, SEVEN, 2.0e12, 4096, 184_320),
    _meta("Llama-2 13B", 2023, LLAMA_2, THIRTEEN, 2.0e12, 4096, 368_640),
    _meta("Llama-2 34B", 2023, LLAMA_2, _llama(8192, 48, 64, 22016, 8), 2.0e12, 4096, 1_038_336),
    _meta("Llama-2 70B", 2023, LLAMA_2, _llama(8192, 80, 64, 28672, 8), 2.0e12, 4096, 1_720_320),
    _meta("Llama-3 8B", 2024, LLAMA_3, _llama(4096, 32, 32, 14336, 8, 128256), 15e12, 8192, 1.3e6, "H100"),
    _meta("Llama-3 70B", 2024, LLAMA_3, _llama(8192, 80, 64, 28672, 8, 128256), 15e12, 8192, 6.4e6, "H100"),
    _meta(
        "Llama-3.1 405B",
        2024,
        "model card of Llama 3.1, section Training Energy Use; tokens: Llama Team, The Llama 3 Herd of Models, 2024",
        _llama(16384, 126, 128, 53248, 8, 128256),
        15.6e12,
        8192,
        30.84e6,
        "H100",
    ),
    Run(
        name="BLOOM 176B",
        group="BigScience",
        year=2022,
        source="BigScience, BLOOM, 2022, section 3.4",
        includes="the whole run of 118 days by the clock, failures included",
        config=BLOOM(vocab_size=250880, hidden_size=14336, n_layer=70, n_head=112),
        tokens=366e9,
        length=2048,
        hours=1_082_990,
        device="A100",
    ),
    Run(
        name="StarCoderBase 15B",
        group="BigCode",
        year=2023,
        source="Li and others, StarCoder, 2023, section 5.7",
        includes=UNSAID,
        config=GPTBigCode(vocab_size=49152, n_positions=8192, n_embd=6144, n_layer=40, n_head=48, n_inner=24576),
        tokens=1e12,
        length=8192,
        hours=320_256,
        device="A100",
    ),
    Run(
        name="SantaCoder 1.1B",
        group="BigCode",
        year=2023,
        source="model card of SantaCoder, section Hardware",
        includes=CLOCK,
        config=GPTBigCode(vocab_size=49280, n_positions=2048, n_embd=2048, n_layer=24, n_head=16, n_inner=8192),
        tokens=236e9,
        length=2048,
        hours=96 * 6.2 * 24,
        device="V100",
    ),
    Run(
        name="PaLM 540B",
        group="Google",
        year=2022,
        source="Chowdhery and others, PaLM, 2022, appendix B",
        includes="some downtime and repeated steps, as the source says",
        config=Llama(
            vocab_size=256_000,
            hidden_size=18432,
            num_hidden_layers=118,
            num_attention_heads=48,
            num_key_value_heads=1,
            head_dim=256,
            intermediate_size=4 * 18432,
            tie_word_embeddings=True,
        ),
        tokens=780e9,
        length=2048,
        hours=6144 * 1200 + 3072 * 336,
        device="TPUv4",
    ),
    Run(
        name="GLM 130B",
        group="Zhipu",
        year=2022,
        source="Zeng and others, GLM-130B, 2022, section 2.3",
        includes="60 days of access to all devices: an upper bound",
        config=Llama(
            vocab_size=150_528,
            hidden_size=12288,
            num_hidden_layers=70,
            num_attention_heads=96,
            intermediate_size=32768,
            attention_bias=True,
            mlp_bias=True,
            tie_word_embeddings=True,
        ),
        tokens=400e9,
        length=2048,
        hours=768 * 60 * 24,
        device="A100-40GB",
    ),
    Run(
        name="BloombergGPT 50B",
        group="Bloomberg",
        year=2023,
        source="Wu and others, BloombergGPT, 2023, table 4 and section 4",
        includes=CLOCK,
        config=BLOOM(vocab_size=131_072, hidden_size=7680, n_layer=70, n_head=40),
        tokens=569e9,
        length=2048,
        hours=512 * 53 * 24,
        device="A100-40GB",
    ),
    Run(
        name="MPT 7B",
        group="MosaicML",
        year=2023,
        source="model card of MPT-7B, section Training Configuration",
        includes=CLOCK,
        config=MPT(vocab_size=50432, d_model=4096, n_heads=32, n_layers=32),
        tokens=1e12,
        length=2048,
        hours=440 * 9.5 * 24,
        device="A100-40GB",
    ),
    Run(
        name="Falcon 180B",
        group="TII",
        year=2023,
        source="Hugging Face and TII, Spread Your Wings: Falcon 180B is here, 2023",
        includes="about 7 million hours, as the source rounds them",
        config=Falcon(
            hidden_size=14848,
            num_hidden_layers=80,
            num_attention_heads=232,
            num_kv_heads=8,
            new_decoder_architecture=True,
            tie_word_embeddings=False,
        ),
        tokens=3.5e12,
        length=2048,
        hours=7.0e6,
        device="A100-40GB",
    ),
    Run(
        name="StableLM 3B-4E1T",
        group="Stability AI",
        year=2023,
        source="model card of StableLM-3B-4E1T, section Training Infrastructure",
        includes="about 30 days by the clock on all devices",
        config=StableLM(),
        tokens=4e12,
        length=4096,
        hours=256 * 30 * 24,
        device="A100-40GB",
    ),
    Run(
        name="TinyLlama 1.1B",
        group="TinyLlama",
        year=2023,
        source="Zhang and others, TinyLlama, 2024, section 2.3",
        includes=STEPS,
        config=_llama(2048, 22, 32, 5632, 4),
        tokens=300e9,
        length=2048,
        hours=3_456,
        device="A100-40GB",
    ),
    _phi("Phi-2", Phi(hidden_size=2560, num_hidden_layers=32, intermediate_size=10240), 1.4e12, 2048, 96, 14, "A100"),
    _phi("Phi-3-mini", Phi3(), 4.9e12, 4096, 512, 10, "H100"),
    _phi(
        "Phi-3-medium",
        Phi3(
            hidden_size=5120,
            num_hidden_layers=40,
            num_attention_heads=40,
            num_key_value_heads=10,
            intermediate_size=17920,
        ),
        4.8e12,
        4096,
        512,
        42,
        "H100",
    ),
    _phi(
        "Phi-4",
        Phi3(
            vocab_size=100_352,
            hidden_size=5120,
            num_hidden_layers=40,
            num_attention_heads=40,
            num_key_value_heads=10,
            intermediate_size=17920,
        ),
        9.8e12,
        4096,
        1920,
        21,
        "H100",
    ),
    _deepseek(
        "DeepSeek 67B",
        DEEPSEEK_V2,
        UNSAID,
        _llama(8192, 95, 64, 22016, 8, 102_400),
        1e12,
        300_600,
    ),
    _deepseek(
        "DeepSeek-V2",
        DEEPSEEK_V2,
        UNSAID,
        DeepSeekV2(
            hidden_size=5120,
            intermediate_size=12288,
            num_hidden_layers=60,
            num_attention_heads=128,
            first_k_dense_replace=1,
            n_routed_experts=160,
            num_experts_per_tok=6,
            moe_intermediate_size=1536,
        ),
        1e12,
        172_800,
    ),
    _deepseek(
        "DeepSeek-V3",
        "DeepSeek-AI, DeepSeek-V3, 2024, table 1",
        "pre-training alone, products in 8 bits",
        DeepSeekV3(),
        14.8e12,
        2_664_000,
    ),
    Run(
        name="SmolLM3 3B",
        group="Hugging Face",
        year=2025,
        source="Hugging Face, SmolLM3: smol, multilingual, long-context reasoner, 2025",
        includes="24 days by the clock on all devices",
        config=SmolLM3(),
        tokens=11.2e12,
        length=4096,
        hours=384 * 24 * 24,
        device="H100",
    ),
    Run(
        name="GPT-2 124M again",
        group="llm.c",
        year=2024,
        source="Karpathy, llm.c, discussion 481",
        includes="90 minutes on one node",
        config=GPT2(),
        tokens=10e9,
        length=1024,
        hours=8 * 1.5,
        device="A100",
    ),
    Run(
        name="GPT-2 1.6B again",
        group="llm.c",
        year=2024,
        source="Karpathy, llm.c, discussion 677",
        includes="24 hours on one node",
        config=GPT2(n_embd=1600, n_layer=48, n_head=25),
        tokens=32_000 * 2**20,
        length=1024,
        hours=8 * 24,
        device="H100",
    ),
]

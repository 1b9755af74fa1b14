"""Small folders as Hugging Face's libraries write them: random models of every kind, with tokenizers trained here."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from tokenizers import Tokenizer as Backend
from tokenizers import decoders, models, normalizers, pre_tokenizers, trainers

from huggingface import shaken

TEXT = (
    "The cat sat on the mat, and it didn't move. In 1984 there were 12345 cats!\n\n  Two spaces; a\ttab.\n"
    "Ça va? Zürich — naïve café. 猫が好き。 don't CAN'T we'll\r\nThe end of the cat <|endoftext|> and of <s>.\n"
)


def byte_level(*, bos: bool = False, normalized: bool = False) -> Backend:
    """Byte-level BPE. normalized: with NFKC before it, which loses characters."""
    backend = Backend(models.BPE())
    if normalized:
        backend.normalizer = normalizers.NFKC()
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    special = ["<|endoftext|>", *(["<s>"] if bos else [])]
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=300, special_tokens=special, initial_alphabet=alphabet, show_progress=False
    )
    backend.train_from_iterator([TEXT] * 3, trainer)
    return backend


def unigram() -> Backend:
    """Unigram with metaspaces and bytes for unknown characters, as in Llama 2 and T5."""
    learner = Backend(models.Unigram())
    learner.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="never")
    trainer = trainers.UnigramTrainer(vocab_size=120, special_tokens=["<unk>"], unk_token="<unk>", show_progress=False)
    learner.train_from_iterator([TEXT] * 3, trainer)
    pieces = [(piece, score) for piece, score in json.loads(learner.to_str())["model"]["vocab"] if piece != "<unk>"]
    vocab = [("<unk>", 0.0), *((f"<0x{byte:02X}>", -9.0) for byte in range(256)), *pieces]
    backend = Backend(models.Unigram(vocab, unk_id=0, byte_fallback=True))
    backend.normalizer = normalizers.Replace(" ", "▁")
    backend.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()])
    backend.add_special_tokens(["<s>", "</s>"])
    return backend


def save_tokenizer(backend: Backend, folder: Path, bos: str | None, eos: str | None) -> None:
    from transformers import PreTrainedTokenizerFast

    named = {name: token for name, token in (("bos_token", bos), ("eos_token", eos)) if token}
    PreTrainedTokenizerFast(tokenizer_object=backend, **named).save_pretrained(folder)


SMALL = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "max_position_embeddings": 24}
LLAMA = {**SMALL, "intermediate_size": 48, "num_key_value_heads": 2}


def model_of(kind: str, vocab_size: int) -> Any:
    """A random model of one architecture, in evaluation mode, far enough from its first values that every part counts."""
    import transformers as hf

    makers: dict[str, Callable[[], Any]] = {
        "gpt2": lambda: hf.GPT2LMHeadModel(
            hf.GPT2Config(vocab_size=vocab_size, n_embd=32, n_layer=2, n_head=4, n_positions=24)
        ),
        "llama": lambda: hf.LlamaForCausalLM(hf.LlamaConfig(vocab_size=vocab_size, **LLAMA)),
        "qwen2": lambda: hf.Qwen2ForCausalLM(hf.Qwen2Config(vocab_size=vocab_size, tie_word_embeddings=True, **LLAMA)),
        "mistral": lambda: hf.MistralForCausalLM(hf.MistralConfig(vocab_size=vocab_size, sliding_window=7, **LLAMA)),
        "nemotron": lambda: hf.NemotronForCausalLM(hf.NemotronConfig(vocab_size=vocab_size, **LLAMA)),
        "olmo2": lambda: hf.Olmo2ForCausalLM(hf.Olmo2Config(vocab_size=vocab_size, **LLAMA)),
        "gpt_neox": lambda: hf.GPTNeoXForCausalLM(
            hf.GPTNeoXConfig(vocab_size=vocab_size, intermediate_size=48, **SMALL)
        ),
        "gemma": lambda: hf.GemmaForCausalLM(hf.GemmaConfig(vocab_size=vocab_size, head_dim=8, **LLAMA)),
        "bert": lambda: hf.BertLMHeadModel(hf.BertConfig(vocab_size=vocab_size, intermediate_size=48, **SMALL)),
    }
    if kind == "olmo2" and not hasattr(hf, "Olmo2ForCausalLM"):
        pytest.skip("this transformers has no OLMo 2")
    torch.manual_seed(0)
    model = makers[kind]().eval()
    shaken(model)
    return model


def folder_of(
    kind: str,
    folder: Path,
    backend: Backend | None = None,
    *,
    bos: str | None = None,
    eos: str | None = "<|endoftext|>",
) -> Path:
    """A folder with a random model and a tokenizer; the head has a few rows that stand for no token."""
    backend = byte_level(bos=bos is not None) if backend is None else backend
    model = model_of(kind, backend.get_vocab_size() + 3)
    model.config.bos_token_id = model.config.eos_token_id = model.generation_config.bos_token_id = None
    model.generation_config.eos_token_id = None
    model.save_pretrained(folder, safe_serialization=True)
    save_tokenizer(backend, folder, bos, eos)
    return folder

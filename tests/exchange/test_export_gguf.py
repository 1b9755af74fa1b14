"""A GGUF file holds the weights and the tokens that llama.cpp's own converter would write for a Nemotron."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from test_export_folder import CONTEXT, TEXT, trained
from torch.nn import functional as F

import lmlab as lab
from command_line import Lmlab, done, refused

gguf = pytest.importorskip("gguf")


def computed(file: Any, ids: list[int]) -> torch.Tensor:
    """The log-probabilities after these inputs as llama.cpp's graph for nemotron computes them, from the file alone."""
    reader = gguf.GGUFReader(file)
    w = {tensor.name: torch.from_numpy(np.array(tensor.data)) for tensor in reader.tensors}

    def number(key: str) -> float:
        return reader.fields[key].parts[-1][0].item()

    heads, layers = int(number("nemotron.attention.head_count")), int(number("nemotron.block_count"))
    eps, base = number("nemotron.attention.layer_norm_epsilon"), number("nemotron.rope.freq_base")
    x_TD = w["token_embd.weight"][ids]
    length, width = x_TD.shape
    half = int(number("nemotron.rope.dimension_count")) // 2
    angle = torch.arange(length)[:, None] * base ** (-torch.arange(half) / half)
    cos, sin = angle.cos()[:, None], angle.sin()[:, None]

    def turned(v_THE: torch.Tensor) -> torch.Tensor:
        a, b = v_THE.chunk(2, dim=-1)
        return torch.cat([a * cos - b * sin, b * cos + a * sin], dim=-1)

    def norm(x: torch.Tensor, name: str) -> torch.Tensor:
        return F.layer_norm(x, (width,), w[f"{name}.weight"], w[f"{name}.bias"], eps)

    for i in range(layers):
        at = f"blk.{i}."
        n = norm(x_TD, f"{at}attn_norm")
        q, k, v = ((n @ w[f"{at}attn_{name}.weight"].T).view(length, heads, -1) for name in "qkv")
        seen = F.scaled_dot_product_attention(
            *(part.transpose(0, 1) for part in (turned(q), turned(k), v)), is_causal=True
        )
        x_TD = x_TD + seen.transpose(0, 1).reshape(length, width) @ w[f"{at}attn_output.weight"].T
        up = (norm(x_TD, f"{at}ffn_norm") @ w[f"{at}ffn_up.weight"].T).relu().square()
        x_TD = x_TD + up @ w[f"{at}ffn_down.weight"].T
    return (norm(x_TD, "output_norm") @ w["output.weight"].T).log_softmax(-1)


@pytest.mark.parametrize("tokenizer", ["char", "byte"])
def test_the_file_alone_gives_the_probabilities_of_the_run(tokenizer: str, tmp_path: Path) -> None:
    run = trained(tmp_path / "run", tokenizer)
    file = tmp_path / "m.gguf"
    lab.export(run, to="gguf", out=file)
    ids = run.tokenizer.encode(TEXT[:CONTEXT]).ids.astype(int).tolist()[:CONTEXT]
    logp_TV = computed(file, [run.model.vocab_size, *ids[:-1]])
    wanted_T = run.model.score(torch.tensor([ids]))[0]
    assert torch.allclose(-logp_TV[torch.arange(len(ids)), ids], wanted_T, atol=1e-4)
    fields = gguf.GGUFReader(file).fields
    tokens = fields["tokenizer.ggml.tokens"]
    assert len(tokens.data) == run.model.vocab_size + 1
    assert fields["tokenizer.ggml.bos_token_id"].parts[-1][0] == run.model.vocab_size


def test_llama_cpp_writes_the_same_greedy_text(tmp_path: Path) -> None:
    llama_cpp = pytest.importorskip("llama_cpp", reason="llama-cpp-python is not built here")
    run = trained(tmp_path / "run", context=128)
    lab.export(run, to="gguf", out=tmp_path / "m.gguf")
    theirs = llama_cpp.Llama(str(tmp_path / "m.gguf"), n_ctx=128, logits_all=True, verbose=False)
    (ours,) = lab.generate(run, "The", method="greedy", tokens=100)
    written = theirs("The", max_tokens=100, temperature=0.0)["choices"][0]["text"]
    assert written == ours.text


def test_what_llama_cpp_does_not_know_is_refused_with_the_reason(tmp_path: Path, lmlab: Lmlab) -> None:
    learned = trained(tmp_path / "learned", positions="learned")
    refused(lmlab("export", learned.folder, "--to", "gguf", "-o", tmp_path / "m.gguf"), "gguf-of-other-network")
    merged = trained(tmp_path / "bpe", "bpe:300")
    refused(lmlab("export", merged.folder, "--to", "gguf", "-o", tmp_path / "m.gguf"), "gguf-of-tokenizer")
    whole = trained(tmp_path / "whole")
    assert "nemotron" in done(lmlab("export", whole.folder, "--to", "gguf", "-o", tmp_path / "m.gguf"))
    refused(lmlab("export", whole.folder, "--to", "gguf", "-o", tmp_path / "m.gguf"), "out-exists")
    assert sorted(path.name for path in tmp_path.glob("*.gguf")) == ["m.gguf"]

"""A `gpt` as a GGUF file, which llama.cpp loads: rotary positions and squared ReLU, byte or character tokens.

llama.cpp computes a `nemotron` as transformers does, so the weights are those of `write_gpt`; its converter adds the 1 of the
norms beforehand. Tokens are described by what llama.cpp's own tokenizers know: bytes as byte-level BPE without merges,
characters as SentencePiece without merges, with bytes for unknown characters.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from lmlab.config import Mistake, an
from lmlab.disk.files import replace_only
from lmlab.exchange.write_gpt import Written, as_their_network
from lmlab.models.gpt import GPT
from lmlab.text.codings import byte_alphabet

if TYPE_CHECKING:
    from lmlab.learn.run import Run
    from lmlab.text.tokenizers import Tokenizer

ARCHITECTURE = "nemotron"
NORMAL, CONTROL, BYTE = 1, 3, 6  # types of tokens
BEGIN = "<|begin_of_text|>"
SPACE = "\u2581"  # how SentencePiece writes a space
NO_MERGE = ["\u4e00 \u4e01"]  # llama.cpp wants a merge; no byte is written as these
BLOCK = {
    "input_layernorm": "attn_norm", "post_attention_layernorm": "ffn_norm", "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k", "self_attn.v_proj": "attn_v", "self_attn.o_proj": "attn_output",
    "mlp.up_proj": "ffn_up", "mlp.down_proj": "ffn_down",
}  # fmt: skip
OUTER = {"model.embed_tokens": "token_embd", "model.norm": "output_norm", "lm_head": "output"}


def write_gguf(run: Run, path: Path) -> str:
    """Write a run as a GGUF file, read it again, and return its architecture.

    Raises:
        Mistake: llama.cpp has no network or no tokenizer for it, or the gguf package is missing.
    """
    if importlib.util.find_spec("gguf") is None:
        raise Mistake("a GGUF file needs the gguf package; type: pip install 'lmlab[gguf]'", code="gguf-missing")
    model, tokenizer = run.model, run.tokenizer
    if not isinstance(model, GPT):
        raise Mistake(
            f"{run.folder} cannot be a GGUF file: llama.cpp has no network that computes what {an(model.name)} does",
            code="gguf-without-counterpart",
        )
    written = as_their_network(model)
    if written.config["model_type"] != ARCHITECTURE or written.config["hidden_act"] != "relu2":
        raise Mistake(
            f"{run.folder} cannot be a GGUF file: of such models llama.cpp knows those with rotary positions and relu2; train"
            " with positions=rotary activation=relu2",
            code="gguf-of-other-network",
        )
    tokens = _tokens(run, tokenizer)
    with _whole(path) as target:
        _write(target, written, tokens, run.folder.name)
        _compare(target, written)
    return ARCHITECTURE


def _tokens(run: Run, tokenizer: Tokenizer) -> dict[str, Any]:
    """Return how llama.cpp reads and writes the tokens: kind of tokenizer, strings and types."""
    if tokenizer.spec == "byte":
        return {"model": "gpt2", "pre": "gpt-2", "tokens": byte_alphabet(), "types": [NORMAL] * 256, "merges": NO_MERGE}
    if tokenizer.spec == "char":
        first = tokenizer.fallback_ids.start
        characters = [tokenizer.piece(id) for id in range(first)]
        if SPACE in characters:
            raise Mistake(
                f"{run.folder} cannot be a GGUF file: llama.cpp writes a space as {SPACE!r}, which is a character of this"
                " model; train with byte tokens",
                code="gguf-of-metaspace",
            )
        strings = [SPACE if character == " " else character for character in characters]
        strings += [f"<0x{byte:02X}>" for byte in range(256)]
        return {"model": "llama", "tokens": strings, "types": [NORMAL] * first + [BYTE] * 256}
    raise Mistake(
        f"{run.folder} cannot be a GGUF file: llama.cpp does not know how its {tokenizer.spec} tokenizer divides a text; train"
        " with byte or char tokens",
        code="gguf-of-tokenizer",
    )


@contextmanager
def _whole(path: Path) -> Iterator[Path]:
    """Yield a path to write to, which takes the place of `path` when the block ends well."""
    replace_only(path, (".gguf",))
    unfinished = path.with_name(f".{path.name}.unfinished")
    try:
        yield unfinished
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)


def _write(path: Path, written: Written, tokens: dict[str, Any], name: str) -> None:
    from gguf import GGUFWriter

    config, begin = written.config, written.begin_id
    writer = GGUFWriter(path, ARCHITECTURE)
    writer.add_name(name)
    writer.add_context_length(config["max_position_embeddings"])
    writer.add_embedding_length(config["hidden_size"])
    writer.add_block_count(config["num_hidden_layers"])
    writer.add_feed_forward_length(config["intermediate_size"])
    writer.add_head_count(config["num_attention_heads"])
    writer.add_head_count_kv(config["num_key_value_heads"])
    writer.add_rope_dimension_count(int(config["head_dim"] * config["partial_rotary_factor"]))
    writer.add_rope_freq_base(config["rope_theta"])
    writer.add_layer_norm_eps(config["norm_eps"])
    writer.add_vocab_size(config["vocab_size"])
    writer.add_file_type(0)  # all float32
    writer.add_tokenizer_model(tokens["model"])
    if "pre" in tokens:
        writer.add_tokenizer_pre(tokens["pre"])
        writer.add_token_merges(tokens["merges"])
    begin_token = BEGIN
    while begin_token in tokens["tokens"]:
        begin_token += "_"
    writer.add_token_list([*tokens["tokens"], begin_token])
    writer.add_token_types([*tokens["types"], CONTROL])
    if tokens["model"] == "llama":
        writer.add_token_scores([0.0] * (len(tokens["tokens"]) + 1))
        writer.add_add_space_prefix(False)
        writer.add_remove_extra_whitespaces(False)
        writer.add_unk_token_id(begin)
    writer.add_bos_token_id(begin)
    writer.add_eos_token_id(begin)  # it has no probability, so nothing ends a text early
    writer.add_add_bos_token(True)
    writer.add_add_eos_token(False)
    for tensor, values in _tensors(written).items():
        writer.add_tensor(tensor, values)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def _tensors(written: Written) -> dict[str, np.ndarray]:
    """The weights by llama.cpp's names."""
    found = {}
    for name, tensor in written.tensors.items():
        stem, _, kind = name.rpartition(".")
        values = tensor.numpy()
        if "norm" in stem and kind == "weight":
            values = values + np.float32(1)
        if stem in OUTER:
            found[f"{OUTER[stem]}.{kind}"] = values
        else:
            _, _, number, inner = stem.split(".", 3)
            found[f"blk.{number}.{BLOCK[inner]}.{kind}"] = values
    return found


def _compare(path: Path, written: Written) -> None:
    """Read the file again. Raises RuntimeError if a weight is another."""
    from gguf import GGUFReader

    wanted = _tensors(written)
    read = {tensor.name: np.array(tensor.data) for tensor in GGUFReader(path).tensors}
    if set(read) != set(wanted) or any(not np.array_equal(read[name], wanted[name]) for name in wanted):
        raise RuntimeError("the written GGUF file does not hold the weights of the run")

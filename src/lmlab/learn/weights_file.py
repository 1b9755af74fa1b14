"""The weights file of a run and the hashes of its content."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from lmlab.disk.files import file_sha256
from lmlab.identity import model_hash, worked_out
from lmlab.interface import LanguageModel, Saved
from lmlab.learn.tensor_file import write_tensors
from lmlab.text.tokenizers import Tokenizer


def write_weights(model: Saved, path: Path, tokenizer: Tokenizer) -> tuple[str, dict[str, str] | None]:
    """Write the weights of a model to a file.

    Returns:
        The file's SHA-256, and for a language model its `lmlab.identity.model_hash`, computed in parallel.
    """
    if not isinstance(model, LanguageModel):
        return _written(model, path), None
    with ThreadPoolExecutor(1) as beside:
        hashing = beside.submit(model_hash, model, tokenizer)
        sha256 = _written(model, path)
        return sha256, worked_out(hashing.result(), model, tokenizer, sha256)


def _written(model: Saved, path: Path) -> str:
    write_tensors(path, model.tensors())
    return file_sha256(path)

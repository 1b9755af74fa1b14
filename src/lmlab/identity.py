"""Which model a number came from: a hash of everything that decides its probabilities."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from lmlab.interface import LanguageModel
    from lmlab.text.tokenizers import Tokenizer


def model_hash(model: LanguageModel, tokenizer: Tokenizer) -> str:
    """SHA-256 of the kind of model, its settings, its tokenizer and everything it has learned, in hexadecimal."""
    digest = hashlib.sha256(_about(model, tokenizer))
    for name, tensor in sorted(model.tensors().items()):
        digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}\n".encode())
        flat = tensor.detach().cpu().contiguous().reshape(-1)
        # torch calls one number, or none, contiguous whatever the stride, and then sees no bytes
        if flat.stride() != (1,):
            flat = torch.empty_like(flat, memory_format=torch.contiguous_format).copy_(flat)
        digest.update(flat.view(torch.uint8).numpy().data)
    return digest.hexdigest()


def worked_out(hash: str, model: LanguageModel, tokenizer: Tokenizer, weights_sha256: str) -> dict[str, str]:
    """Its `model_hash`, and what that was worked out of, to be kept beside the file of weights that has this SHA-256."""
    return {"of": _of(model, tokenizer, weights_sha256), "hash": hash}


def kept_hash(kept: Mapping[str, str], model: LanguageModel, tokenizer: Tokenizer, weights_sha256: str) -> str | None:
    """The hash that was kept, so that large tables need not be read for it; None where it is of something else."""
    return kept["hash"] if kept["of"] == _of(model, tokenizer, weights_sha256) else None


def _about(model: LanguageModel, tokenizer: Tokenizer) -> bytes:
    settings = json.dumps(asdict(model.config), sort_keys=True, default=str)
    return f"{model.name}\n{settings}\n{tokenizer.hash}\n".encode()


def _of(model: LanguageModel, tokenizer: Tokenizer, weights_sha256: str) -> str:
    return hashlib.sha256(_about(model, tokenizer) + weights_sha256.encode()).hexdigest()

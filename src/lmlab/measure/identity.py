"""Which model a number came from: a hash of everything that decides its probabilities."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict
from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from lmlab.interface import LanguageModel
    from lmlab.text.tokenizers import Tokenizer


def model_hash(model: LanguageModel, tokenizer: Tokenizer) -> str:
    """SHA-256 of the kind of model, its settings, its tokenizer and everything it has learned, in hexadecimal."""
    digest = hashlib.sha256()
    settings = json.dumps(asdict(model.config), sort_keys=True, default=str)
    digest.update(f"{model.name}\n{settings}\n{tokenizer.hash}\n".encode())
    for name, tensor in sorted(model.tensors().items()):
        digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}\n".encode())
        flat = tensor.detach().cpu().contiguous().reshape(-1)
        if flat.stride() != (
            1,
        ):  # torch calls one number, or none, contiguous whatever the stride, and then sees no bytes
            flat = torch.empty_like(flat, memory_format=torch.contiguous_format).copy_(flat)
        digest.update(flat.view(torch.uint8).numpy().data)
    return digest.hexdigest()

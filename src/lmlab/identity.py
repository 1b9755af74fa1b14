"""Which model a number came from: a hash of everything that decides its probabilities."""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import torch

from lmlab.config import recorded
from lmlab.interface import LanguageModel, Saved

if TYPE_CHECKING:
    from lmlab.text.tokenizers import Tokenizer


OURS = "lmlab.models."
# Settings that were added later, with the value that changes nothing: left out, so that earlier hashes stay the same.
ADDED = (("prune", 0),)


def model_hash(model: LanguageModel, tokenizer: Tokenizer) -> str:
    """SHA-256 of the kind of model, its settings, its tokenizer and everything it has learned, in hexadecimal."""
    return hash_of(kind_name(model), recorded(model.config), tokenizer, model.tensors())


def hash_of(kind: str, config: Mapping[str, Any], tokenizer: Tokenizer, tensors: Mapping[str, torch.Tensor]) -> str:
    """`model_hash` of a model of this kind with these settings and tensors."""
    digest = hashlib.sha256(_about(kind, config, tokenizer))
    for name, tensor in sorted(tensors.items()):
        digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}\n".encode())
        flat = tensor.detach().cpu().contiguous().reshape(-1)
        # torch calls one number, or none, contiguous whatever the stride, and then sees no bytes
        if flat.stride() != (1,):
            flat = torch.empty_like(flat, memory_format=torch.contiguous_format).copy_(flat)
        digest.update(flat.view(torch.uint8).numpy().data)
    return digest.hexdigest()


def is_ours(model: Saved) -> bool:
    """Whether the code of a model, and of every model that it holds, is the lab's own."""
    components = model.components if isinstance(model, LanguageModel) else ()
    return _is_our_class(type(model)) and all(map(is_ours, components))


def _is_our_class(cls: type) -> bool:
    """Whether a class is in a module of the lab under its own name: what a class says of its module can be made up."""
    module = sys.modules.get(cls.__module__)
    return cls.__module__.startswith(OURS) and module is not None and vars(module).get(cls.__qualname__) is cls


def kind_name(model: Saved) -> str:
    """The name of a model's kind: its own word if it is the lab's, else where its class is, as `module:Class`."""
    cls = type(model)
    return cls.name if _is_our_class(cls) else f"{cls.__module__}:{cls.__qualname__}"


def parameter_count(model: Saved) -> int:
    """How many numbers a model has learned: by its formula if it is the lab's, else as many as it saves."""
    return model.parameters_count if is_ours(model) else sum(t.numel() for t in model.tensors().values())


def worked_out(hash: str, model: LanguageModel, tokenizer: Tokenizer, weights_sha256: str) -> dict[str, str]:
    """Its `model_hash`, and what that was worked out of, to be kept beside the file of weights that has this SHA-256."""
    return {"of": _of(model, tokenizer, weights_sha256), "hash": hash}


def kept_hash(kept: Mapping[str, str], model: LanguageModel, tokenizer: Tokenizer, weights_sha256: str) -> str | None:
    """The hash that was kept, so that large tables need not be read for it; None where it is of something else."""
    return kept["hash"] if kept["of"] == _of(model, tokenizer, weights_sha256) else None


def _about(kind: str, config: Mapping[str, Any], tokenizer: Tokenizer) -> bytes:
    settings = json.dumps(
        {name: value for name, value in config.items() if (name, value) not in ADDED}, sort_keys=True, default=str
    )
    return f"{kind}\n{settings}\n{tokenizer.hash}\n".encode()


def _of(model: LanguageModel, tokenizer: Tokenizer, weights_sha256: str) -> str:
    return hashlib.sha256(
        _about(kind_name(model), recorded(model.config), tokenizer) + weights_sha256.encode()
    ).hexdigest()

"""A network of the `transformers` library with the weights of a folder, in float32; checked before memory is taken."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file

from lmlab.config import LISTED, Mistake
from lmlab.exchange.folder_config import Folder
from lmlab.hardware.memory import available_bytes
from lmlab.learn.memory_needed import FLOAT_BYTES
from lmlab.models.huggingface import quiet

if TYPE_CHECKING:
    from torch import Tensor

CAUSAL = ("ForCausalLM", "LMHeadModel")  # endings of the classes that predict the next token


def require_transformers() -> None:
    """Raise a Mistake if the `transformers` library is not installed."""
    if importlib.util.find_spec("transformers") is None:
        raise Mistake(
            "a Hugging Face folder needs the transformers library; type: pip install 'lmlab[hf]'",
            code="transformers-missing",
        )


def config_object(folder: Folder) -> Any:
    """Return the library's config of a folder.

    Raises:
        Mistake: the architecture is unknown to the library, or is no causal language model.
    """
    require_transformers()
    with quiet():
        from transformers import CONFIG_MAPPING
        from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES

    kind, path = folder.model_type, folder.path
    if kind not in CONFIG_MAPPING:
        code = " and brings Python code of its own, which lmlab does not run" if "auto_map" in folder.config else ""
        raise Mistake(
            f"{path} is of the architecture {kind[:60]!r}, which this transformers does not know{code}; a newer transformers"
            " may know it",
            code="architecture-unknown",
        )
    named = folder.config.get("architectures") or ()
    names = [name for name in named if isinstance(name, str)] if isinstance(named, list) else []
    if kind not in MODEL_FOR_CAUSAL_LM_MAPPING_NAMES or (names and not any(n.endswith(CAUSAL) for n in names)):
        raise Mistake(
            f"{path} holds {' and '.join(names) or kind}, which is no causal language model: it does not predict a text"
            " token by token",
            code="folder-not-causal",
        )
    try:
        with quiet():
            return CONFIG_MAPPING[kind].from_dict(folder.architecture)
    except Exception as error:  # the library raises whatever its own validation raises
        raise cannot_open(folder, error) from None


def load_network(folder: Folder) -> Any:
    """Return the network of a folder with its weights.

    Raises:
        Mistake: the weights do not fit the config, are not finite, or do not fit into memory.
    """
    config = config_object(folder)
    with quiet():
        from transformers import AutoModelForCausalLM
    try:
        with quiet(), torch.device("meta"):  # takes no memory
            described = AutoModelForCausalLM.from_config(config, trust_remote_code=False)
        wanted = sum(parameter.numel() for parameter in described.parameters())
    except Exception as error:
        raise cannot_open(folder, error) from None
    if wanted > folder.numbers:
        raise Mistake(
            f"{folder.path}: config.json describes {wanted:,} parameters, and the files hold {folder.numbers:,}; they are of"
            " two models, or a file is missing",
            code="config-larger-than-weights",
        )
    refuse_if_too_large(folder, wanted, described.config)
    tensors = read_tensors(folder)
    try:
        with quiet():
            network, found = type(described).from_pretrained(
                None,
                config=config,
                state_dict=tensors,
                output_loading_info=True,
                ignore_mismatched_sizes=True,  # they are named below
                **in_float32(),
            )
    except Exception as error:
        raise cannot_open(folder, error) from None
    if lost := unloaded(found):
        more = f" and {len(lost) - LISTED} more" if len(lost) > LISTED else ""
        raise Mistake(
            f"{folder.path}: the weights lack {', '.join(lost[:LISTED])}{more}, or have them in another shape; they are of"
            " another model than config.json",
            code="weights-of-other-config",
        )
    network = network.float().eval()
    for name, parameter in network.named_parameters():
        if not torch.isfinite(parameter.detach().abs().max()):
            raise Mistake(
                f"{folder.path}: the weights {name} are not all finite numbers; the folder is damaged",
                code="weights-not-finite",
            )
    return network


def unloaded(found: Mapping[str, Any]) -> list[str]:
    """Return the names of the weights that the files lack or have in another shape, from the library's loading info."""
    mismatched = [entry if isinstance(entry, str) else entry[0] for entry in found["mismatched_keys"]]
    return sorted(map(str, [*found["missing_keys"], *mismatched]))


def in_float32() -> dict[str, Any]:
    """Return the argument of `from_pretrained` that asks for float32, by the version of the library."""
    import transformers

    return {"dtype" if int(transformers.__version__.partition(".")[0]) >= 5 else "torch_dtype": torch.float32}


def read_tensors(folder: Folder) -> dict[str, Tensor]:
    """Return the tensors of the files, mapped into memory."""
    tensors: dict[str, Tensor] = {}
    for path in dict.fromkeys(stored.file for stored in folder.tensors.values()):
        try:
            tensors |= load_file(path)
        except (SafetensorError, OSError, ValueError) as error:
            raise Mistake(
                f"{path} cannot be read ({str(error).splitlines()[0]}); copy it again", code="weights-file-not-readable"
            ) from None
    return tensors


def refuse_if_too_large(folder: Folder, parameters: int, config: Any) -> None:
    """Raise a Mistake if a model with a full window does not fit into the memory that is free."""
    needed, free = needed_bytes(folder, parameters, config), available_bytes()
    if free is not None and needed > free:
        raise Mistake(
            f"{folder.path}: {parameters:,} parameters in float32 and a window of {folder.positions:,} tokens take about"
            f" {needed / 1e9:,.1f} GB, and {free / 1e9:,.1f} GB are free; take a smaller model",
            code="folder-exceeds-memory",
        )


def needed_bytes(folder: Folder, parameters: int, config: Any) -> int:
    """Predict the memory of a model: its weights and the keys and values of one full window."""
    layers = getattr(config, "num_hidden_layers", None) or 0
    heads = getattr(config, "num_key_value_heads", None) or getattr(config, "num_attention_heads", None) or 0
    width = getattr(config, "hidden_size", None) or 0
    per_head = getattr(config, "head_dim", None) or width // max(1, getattr(config, "num_attention_heads", None) or 1)
    kept = 2 * layers * heads * per_head * folder.positions
    return FLOAT_BYTES * (parameters + kept)


def cannot_open(folder: Folder, error: Exception) -> Mistake:
    """Return the mistake for a folder that the library refuses."""
    first = (str(error).strip().splitlines() or [type(error).__name__])[0][:200]
    return Mistake(f"{folder.path} cannot be opened by transformers: {first}", code="folder-not-openable")

"""What a Hugging Face folder says of its model: architecture, sizes, positions, and the symbol that begins a text."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lmlab.config import Mistake
from lmlab.exchange.folder_files import CONFIG, GENERATION, TOKENIZER_CONFIG, Stored, read_json

NOT_KEPT = ("auto_map", "torch_dtype", "dtype", "transformers_version", "attn_implementation")
"""Keys that change no prediction in float32, or name code."""
LAYERS = re.compile(r"(num|n)_((hidden|decoder|encoder)_)?layers?")
REPEATED = re.compile(r"layer|block|expert|head|group")
MOST_REPEATED = 4096  # of a key that counts parts, when the weights do not show more tensors
POSITIONS = ("max_position_embeddings", "n_positions", "n_ctx", "max_seq_len", "seq_length", "max_sequence_length")
USUAL_POSITIONS = 2048  # of an architecture that names no bound
MOST_POSITIONS = 1 << 24
GROWING = ("dynamic", "longrope", "yarn-dynamic")  # rotary scalings that depend on the length of the window


@dataclass(frozen=True)
class Folder:
    """A Hugging Face folder, as its small files describe it."""

    path: Path
    config: Mapping[str, Any]  # config.json
    tensors: Mapping[str, Stored]  # the headers of the weights
    said: Mapping[str, Any] = field(default_factory=dict)  # tokenizer_config.json
    generation: Mapping[str, Any] = field(default_factory=dict)  # generation_config.json

    @property
    def model_type(self) -> str:
        """The name of the architecture."""
        return str(self.config["model_type"])

    @property
    def architecture(self) -> dict[str, Any]:
        """config.json without what changes no prediction."""
        kept: dict[str, Any] = _kept(self.config)
        return kept

    @property
    def numbers(self) -> int:
        """How many numbers the files of the weights hold."""
        return sum(stored.numbers for stored in self.tensors.values())

    @property
    def positions(self) -> int:
        """The most inputs that a window may have."""
        given = [found for key in POSITIONS if (found := _first_number(self.config, key)) is not None]
        most = given[0] if given else USUAL_POSITIONS
        scaling = self.config.get("rope_scaling") or self.config.get("rope_parameters")
        if isinstance(scaling, Mapping) and (scaling.get("rope_type") or scaling.get("type")) in GROWING:
            before = scaling.get("original_max_position_embeddings") or self.config.get(
                "original_max_position_embeddings"
            )
            most = before if isinstance(before, int) else most
        return most

    def symbol(self, kind: str) -> str | int | None:
        """Return the token (its string or its id) that the folder calls its bos or eos token; None if it has none."""
        if f"{kind}_token" in self.said:
            named = self.said[f"{kind}_token"]
            named = named.get("content") if isinstance(named, Mapping) else named
            return named if isinstance(named, str) else None
        for document in (self.config, self.generation):
            ids = document.get(f"{kind}_token_id")
            id = ids[0] if isinstance(ids, list) and ids else ids
            if type(id) is int:
                return id
        return None


def describe(folder: Path, tensors: Mapping[str, Stored]) -> Folder:
    """Read the small files of a folder and check that their sizes can be those of its weights.

    Raises:
        Mistake: a file is damaged, or describes a model that the weights cannot be of.
    """
    config = read_json(folder, CONFIG) or {}
    kind = config.get("model_type")
    if not isinstance(kind, str):
        raise Mistake(
            f"{folder / CONFIG} does not say which model it is of: model_type is missing", code="no-model-type"
        )
    if config.get("quantization_config") is not None:
        raise Mistake(
            f"{folder} holds quantized weights; use the folder of the model that was quantized", code="folder-quantized"
        )
    for key, value in _numbers(config):
        layers = LAYERS.fullmatch(key) is not None
        most = len(tensors) if layers else max(MOST_REPEATED, len(tensors)) if REPEATED.search(key) else 1 << 40
        if abs(value) > most or (layers and value < 0):
            raise Mistake(
                f"{folder / CONFIG} says {key} {value:,}, and the weights have {len(tensors):,} tensors; they are of"
                " another model",
                code="config-of-other-weights",
            )
    found = Folder(
        folder, config, tensors, read_json(folder, TOKENIZER_CONFIG) or {}, read_json(folder, GENERATION) or {}
    )
    if not 2 <= found.positions <= MOST_POSITIONS:
        raise Mistake(
            f"{folder / CONFIG}: a window of {found.positions:,} positions is out of range", code="config-positions"
        )
    return found


def _numbers(document: Any, key: str = "") -> Iterator[tuple[str, int]]:
    """All whole numbers of a document, with their keys."""
    if isinstance(document, Mapping):
        for name, value in document.items():
            yield from _numbers(value, str(name))
    elif isinstance(document, list):
        for value in document:
            yield from _numbers(value, "")
    elif type(document) is int:
        yield key, document


def _first_number(config: Mapping[str, Any], key: str) -> int | None:
    value = config.get(key)
    return value if type(value) is int and value > 0 else None


def _kept(document: Any) -> Any:
    if isinstance(document, Mapping):
        return {
            key: _kept(value) for key, value in document.items() if key not in NOT_KEPT and not str(key).startswith("_")
        }
    return [_kept(value) for value in document] if isinstance(document, list) else document

"""Tensors in a safetensors file that is there whole or not at all."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from safetensors import SafetensorError
from safetensors.torch import save_file
from torch import Tensor

from lmlab.text.files import atomic_file


def write_tensors(path: Path, tensors: Mapping[str, Tensor], metadata: dict[str, str] | None = None) -> None:
    """From where they lie: as one piece of bytes they would lie in memory twice, and no other thread runs while it is made."""
    with atomic_file(path) as file:
        try:
            save_file({name: t.detach().cpu().contiguous() for name, t in tensors.items()}, file.name, metadata)
        except SafetensorError as error:  # a full disk, mostly, in a class of theirs
            raise OSError(f"{path} cannot be written: {error}") from None

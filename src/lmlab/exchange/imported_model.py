"""What reading the files of another tool gives: a model, its tokenizer and a line about both."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lmlab.interface import Saved
    from lmlab.text.tokenizers import Tokenizer


@dataclass(frozen=True)
class ImportedModel:
    """A model that was read from the files of another tool."""

    model: Saved
    tokenizer: Tokenizer
    config: Mapping[str, Any]  # of the model
    message: str  # one line about the files
    task: str = "next-token"

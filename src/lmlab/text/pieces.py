"""How tokens read: all that a model may know of its tokenizer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Vocabulary:
    """The text of every token, by id."""

    pieces: Sequence[str]
    words: bool = False  # whether tokens are whole words, so that a line of them is a sentence
    unknown_id: int | None = None  # stands for every word that is not among the pieces

    @property
    def size(self) -> int:
        """Number of ids."""
        return len(self.pieces)

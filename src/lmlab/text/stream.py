"""A text as token ids on disk: memory-mapped, with its document bounds and the words that had to be spelled."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np


@dataclass(frozen=True, kw_only=True)
class TokenStream:
    """The tokens of one part of a corpus, all documents end to end."""

    ids: np.ndarray  # uint16 or uint32, one-dimensional; usually a memory map
    starts: np.ndarray  # int64: where each document starts in `ids`, then len(ids)
    bytes: int  # of the original UTF-8 text
    chars: int
    words: int  # whitespace-separated
    spellings: Sequence[str] = field(default=())  # the unknown words, in order of their unknown symbols in `ids`

    @property
    def tokens(self) -> int:
        """Number of tokens."""
        return len(self.ids)

    @property
    def documents(self) -> int:
        """Number of documents."""
        return len(self.starts) - 1

    def document(self, index: int) -> np.ndarray:
        """The ids of one document."""
        return self.ids[self.starts[index] : self.starts[index + 1]]

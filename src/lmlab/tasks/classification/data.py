"""A table of texts with labels as ids, and batches of whole texts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch

from lmlab.models.families.labelling import Bags
from lmlab.text.labelled import Examples
from lmlab.text.plain_words import words_of as words_of
from lmlab.text.plain_words import words_of_each
from lmlab.text.tokenizers import Tokenizer


@dataclass(frozen=True)
class Encoded:
    """Texts as word ids, one after the other, and where each begins; with their labels where they have any."""

    ids_N: np.ndarray
    starts_B: np.ndarray  # one more than there are texts: the last is the end
    labels_B: np.ndarray

    @classmethod
    def of(
        cls, tokenizer: Tokenizer, texts: Sequence[str], labels_B: np.ndarray | None = None, *, by_words: bool = True
    ) -> Encoded:
        """Every text as its words (see `words_of`), or as it is."""
        labels_B = np.zeros(len(texts), np.int64) if labels_B is None else labels_B
        return cls.of_read(tokenizer, as_read(texts, by_words), labels_B, by_words=by_words)

    @classmethod
    def of_read(cls, tokenizer: Tokenizer, texts: Sequence[str], labels_B: np.ndarray, *, by_words: bool) -> Encoded:
        """Encode texts that are what `as_read` returns."""
        if by_words:
            together, lengths_B = tokenizer.encode_each(texts)
            joined = together.ids
        else:
            ids = [tokenizer.encode(text).ids for text in texts]
            lengths_B = np.array([len(i) for i in ids], dtype=np.int64)
            joined = np.concatenate(ids) if ids else np.zeros(0, dtype=np.int64)
        starts_B = np.concatenate([[0], np.cumsum(lengths_B, dtype=np.int64)])
        return cls(joined.astype(np.int32), starts_B, labels_B)

    def __len__(self) -> int:
        return len(self.labels_B)

    def words(self, i: int) -> np.ndarray:
        """The ids of one text."""
        return self.ids_N[self.starts_B[i] : self.starts_B[i + 1]]

    def bags(self, rows: slice = slice(None)) -> Bags:
        """Return these texts, which lie side by side, as a batch."""
        starts_B = np.append(self.starts_B[:-1][rows], self.starts_B[1:][rows][-1:])
        begin, end = (int(starts_B[0]), int(starts_B[-1])) if len(starts_B) else (0, 0)
        ids_N = self.ids_N[begin:end].astype(np.int64)
        return Bags(
            torch.from_numpy(ids_N), torch.from_numpy(starts_B[:-1] - begin), torch.from_numpy(self.labels_B[rows])
        )

    def batches(self, size: int) -> Iterator[Bags]:
        """All texts, in order, so many at a time."""
        for first in range(0, len(self), size):
            yield self.bags(slice(first, first + size))


def as_read(texts: Sequence[str], by_words: bool) -> Sequence[str]:
    """Return each text as the words that a model reads (see `words_of`), or as it is."""
    return words_of_each(texts) if by_words else texts


def encoded(tokenizer: Tokenizer, examples: Examples, by_words: bool = True) -> Encoded:
    """A part of a table."""
    return Encoded.of(tokenizer, examples.texts, examples.labels_B, by_words=by_words)

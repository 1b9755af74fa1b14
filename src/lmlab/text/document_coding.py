"""A coding with a token for the end of a document.

The end is the last id. It stands for the bytes of the separator after a document, so that the tokens of a document stand for
all its bytes. `encode` never gives it: a prompt has no end. The tokens of a whole document are those of its text and the end.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
from tokenizers import AddedToken
from tokenizers import Tokenizer as Backend

from lmlab.text.codings import Coding, Encoded

END_PIECE = "<|end|>"


class DocumentCoding(Coding):
    """Another coding, and the end of a document after its ids."""

    def __init__(self, inner: Coding, separator: str) -> None:
        self.inner, self.separator = inner, separator
        self.end_id = inner.vocab_size
        self.vocab_size = inner.vocab_size + 1
        self.unknown_id, self.fallback_ids = inner.unknown_id, inner.fallback_ids
        self.always_lossless = inner.always_lossless

    def encode(self, chunks: Iterable[str]) -> Iterator[Encoded]:
        """Encode text that does not end."""
        for encoded in self.inner.encode(chunks):
            yield Encoded(encoded.ids.astype(self.dtype, copy=False), encoded.spellings)

    def encode_each(self, texts: Sequence[str]) -> tuple[Encoded, np.ndarray]:
        """Encode many short texts that do not end."""
        return self._same_dtype(*self.inner.encode_each(texts))

    def encode_documents(self, texts: Sequence[str]) -> tuple[Encoded, np.ndarray]:
        """Many short documents without their separators: all their tokens, ends included, and how many each has."""
        encoded, lengths = self._same_dtype(*self.inner.encode_documents(texts))
        ids = np.insert(encoded.ids, np.cumsum(lengths), self.end_id)
        return Encoded(ids, encoded.spellings), lengths + 1

    def decode(self, ids: np.ndarray, spellings: Sequence[str]) -> str:
        """The documents one after the other; each end is its separator."""
        return "".join(
            self.inner.decode(text_ids, spelled) + self.separator * ended
            for text_ids, spelled, ended in self._documents(ids, spellings)
        )

    def token_bytes(self, ids: np.ndarray, spellings: Sequence[str]) -> np.ndarray:
        """UTF-8 bytes of each token; those of an end are its separator's."""
        size = len(self.separator.encode())
        found = [
            np.append(self.inner.token_bytes(text_ids, spelled), [size] * ended)
            for text_ids, spelled, ended in self._documents(ids, spellings)
        ]
        return np.concatenate([np.zeros(0, dtype=np.int64), *found]).astype(np.int64)

    def _documents(self, ids: np.ndarray, spellings: Sequence[str]) -> Iterator[tuple[np.ndarray, Sequence[str], bool]]:
        """(ids without the end, their spellings, whether it ends) of the documents in these ids."""
        start = spelled = 0
        for end in [*np.flatnonzero(ids == self.end_id).tolist(), len(ids)]:
            here = ids[start:end]
            unknown = 0 if self.unknown_id is None else int((here == self.unknown_id).sum())
            if len(here) or end < len(ids):
                yield here, spellings[spelled : spelled + unknown], end < len(ids)
            start, spelled = end + 1, spelled + unknown

    def piece(self, id: int) -> str:
        """The token as a reader may see it; the end reads <|end|>."""
        return END_PIECE if id == self.end_id else self.inner.piece(id)

    def bytes_of(self, id: int, *, first: bool = False) -> bytes:
        """Return the bytes of one token; those of the end are its separator's."""
        return self.separator.encode() if id == self.end_id else self.inner.bytes_of(id, first=first)

    def _same_dtype(self, encoded: Encoded, lengths: np.ndarray) -> tuple[Encoded, np.ndarray]:
        return Encoded(encoded.ids.astype(self.dtype, copy=False), encoded.spellings), lengths


def with_end_token(backend: Backend) -> Backend:
    """Return a copy of a library tokenizer that has the end as its last id."""
    copy = Backend.from_str(backend.to_str())
    copy.add_special_tokens([AddedToken(END_PIECE, special=True, normalized=False)])
    return copy


def without_end_token(description: dict[str, Any]) -> Backend:
    """Return the library tokenizer of a tokenizer.json, without the end."""
    kept = [token for token in description["added_tokens"] if token["content"] != END_PIECE]
    return Backend.from_str(json.dumps({**description, "added_tokens": kept}))

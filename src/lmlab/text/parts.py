"""Documents on disk and the parts of a corpus: read piece by piece, never all at once unless asked."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import final

import numpy as np

from lmlab.config import Mistake
from lmlab.text.word_table import is_simple, word_bounds

PARTS = ("train", "valid", "test")  # of whatever is learned from
BLOCK_BYTES = 1 << 20


@dataclass(frozen=True)
class Document:
    """A stretch of a UTF-8 file that was checked: bytes `start` to `stop`, both at character boundaries."""

    path: Path
    start: int
    stop: int

    @property
    def size(self) -> int:
        """Length in bytes."""
        return self.stop - self.start

    def blocks(self) -> Iterator[bytes]:
        """Its bytes in blocks of about a megabyte, each ending at a line end or, failing that, between characters."""
        with open(self.path, "rb") as file:
            file.seek(self.start)
            left, held = self.size, b""
            while left:
                block = file.read(min(BLOCK_BYTES, left))
                if not block:
                    raise Mistake(
                        f"{self.path} became shorter while it was read; it must stay as it is",
                        code="part-became-shorter",
                    )
                left -= len(block)
                block = held + block
                cut = block.rfind(b"\n") + 1 or character_boundary(block)
                held = block[cut:] if left else b""
                yield block[:cut] if left else block

    def pieces(self) -> Iterator[str]:
        """Its text, block by block."""
        return (block.decode() for block in self.blocks())

    def characters(self) -> int:
        """Length in characters."""
        return sum(count_characters(block) for block in self.blocks())

    def split_at(self, character: int) -> tuple[Document, Document]:
        """Two documents: the first `character` characters and the rest."""
        offset, left = self.start, character
        for block in self.blocks():
            starts = _character_starts(block)
            here = int(starts.sum())
            if here >= left:
                offset += int(np.flatnonzero(starts)[left]) if left < here else len(block)
                break
            offset, left = offset + len(block), left - here
        return Document(self.path, self.start, offset), Document(self.path, offset, self.stop)


@final
class Part:
    """One part of a corpus: documents in order.

    Args:
        name: Of the part.
        documents: Its text.
        block_share: The share of a text that the documents are, where they are blocks spread over all of it; None where they
            stand for themselves.
    """

    def __init__(self, name: str, documents: Sequence[Document], block_share: float | None = None) -> None:
        self.name = name
        self.documents = tuple(documents)
        self.block_share = block_share
        self.bytes = sum(document.size for document in self.documents)

    def __repr__(self) -> str:
        return f"Part({self.name!r}, documents={len(self.documents)}, bytes={self.bytes})"

    def pieces(self) -> Iterator[tuple[int, str]]:
        """(document index, text) in pieces of about a megabyte that end at line ends where there are any."""
        for index, document in enumerate(self.documents):
            for piece in document.pieces():
                yield index, piece

    def text(self) -> str:
        """All documents end to end, in memory."""
        return "".join(piece for _, piece in self.pieces())

    @cached_property
    def chars(self) -> int:
        """Unicode characters (code points)."""
        return sum(document.characters() for document in self.documents)

    @cached_property
    def words(self) -> int:
        """Words: runs without whitespace."""
        return sum(_count_words(document) for document in self.documents)

    @cached_property
    def sha256(self) -> str:
        """Of the documents end to end; for a whole file without a byte order mark, what `sha256sum` prints."""
        digest = hashlib.sha256()
        for document in self.documents:
            for block in document.blocks():
                digest.update(block)
        return digest.hexdigest()


def character_boundary(block: bytes) -> int:
    """The last place in a block of UTF-8, its end included, that is not inside a character."""
    for back in range(1, min(4, len(block)) + 1):
        byte = block[-back]
        if byte >= 0xC0:  # the first byte of a longer character: is all of it here?
            needed = 2 + (byte >= 0xE0) + (byte >= 0xF0)
            return len(block) if back == needed else len(block) - back
        if byte < 0x80:
            break
    return len(block)


def _character_starts(block: bytes) -> np.ndarray:
    return (np.frombuffer(block, dtype=np.uint8) & 0xC0) != 0x80


def count_characters(block: bytes) -> int:
    """Characters of a block of UTF-8."""
    return int(np.count_nonzero(_character_starts(block)))


def _words_in(text: str) -> int:
    return len(word_bounds(text.encode())[0]) if is_simple(text) else len(text.split())


def _count_words(document: Document) -> int:
    words, inside = 0, False
    for text in document.pieces():
        words += _words_in(text) - (inside and not text[0].isspace())
        inside = not text[-1].isspace()
    return words

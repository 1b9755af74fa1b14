"""Documents on disk and the parts of a corpus: read piece by piece, never all at once unless asked.

A document whose end is predicted ends with a separator, such as a line break, whose bytes are the document's.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import BinaryIO, final, overload

import numpy as np

from lmlab.config import Mistake
from lmlab.text.word_table import is_simple, word_bounds

PARTS = ("train", "valid", "test")  # of whatever is learned from
BLOCK_BYTES = 1 << 20


@dataclass(frozen=True)
class Document:
    """A stretch of a UTF-8 file that was checked: bytes `start` to `stop`, both at character boundaries.

    separator_bytes: how many bytes at its end are the separator after it; 0: its end is not predicted.
    """

    path: Path
    start: int
    stop: int
    separator_bytes: int = 0

    @property
    def size(self) -> int:
        """Length in bytes, the separator included."""
        return self.stop - self.start

    def piece(self, start: int, stop: int) -> Document:
        """Return bytes `start` to `stop` of the document. A piece has the document's separator if it reaches its end."""
        ends = self.separator_bytes if stop == self.size else 0
        return Document(self.path, self.start + start, self.start + stop, ends)

    def blocks(self) -> Iterator[bytes]:
        """Its bytes in blocks of about a megabyte, each ending at a line end or, failing that, between characters."""
        with open(self.path, "rb") as file:
            yield from self._blocks_in(file)

    def _blocks_in(self, file: BinaryIO) -> Iterator[bytes]:
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
class DocumentList(Sequence[Document]):
    """Many documents of few files, kept as arrays, so that millions of them fit in memory. Each ends with a separator.

    Args:
        paths: the files.
        file_D: for each document, the index of its file.
        start_D: its first byte.
        stop_D: the byte after its last.
        separator_bytes: length of the separator at the end of every document.
    """

    def __init__(
        self, paths: Sequence[Path], file_D: np.ndarray, start_D: np.ndarray, stop_D: np.ndarray, separator_bytes: int
    ) -> None:
        self._paths, self._file_D, self._start_D, self._stop_D = list(paths), file_D, start_D, stop_D
        self.separator_bytes = separator_bytes

    def __len__(self) -> int:
        return len(self._start_D)

    @overload
    def __getitem__(self, index: int) -> Document: ...
    @overload
    def __getitem__(self, index: slice) -> DocumentList: ...
    def __getitem__(self, index: int | slice) -> Document | DocumentList:
        if isinstance(index, slice):
            return self.take(np.arange(len(self))[index])
        path = self._paths[int(self._file_D[index])]
        return Document(path, int(self._start_D[index]), int(self._stop_D[index]), self.separator_bytes)

    def __iter__(self) -> Iterator[Document]:
        for file, start, stop in zip(self._file_D.tolist(), self._start_D.tolist(), self._stop_D.tolist(), strict=True):
            yield Document(self._paths[file], start, stop, self.separator_bytes)

    @property
    def size_D(self) -> np.ndarray:
        """The bytes of each document, the separator included."""
        sizes: np.ndarray = self._stop_D - self._start_D
        return sizes

    def take(self, chosen: np.ndarray) -> DocumentList:
        """Return the documents at these indices."""
        file_D, start_D, stop_D = self._file_D[chosen], self._start_D[chosen], self._stop_D[chosen]
        return DocumentList(self._paths, file_D, start_D, stop_D, self.separator_bytes)


def read_documents(documents: Iterable[Document]) -> Iterator[tuple[int, bytes]]:
    """Yield (document index, block) for all documents in order. A file stays open while its documents follow one another."""
    path, file = None, None
    try:
        for index, document in enumerate(documents):
            if file is None or document.path is not path:
                if file is not None:
                    file.close()
                path = document.path
                file = open(path, "rb", buffering=0)  # noqa: SIM115 (closed below; short reads need no buffer)
            for block in document._blocks_in(file):
                yield index, block
    finally:
        if file is not None:
            file.close()


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
        self.documents: Sequence[Document] = documents if isinstance(documents, DocumentList) else tuple(documents)
        self.block_share = block_share
        self.bytes = sum(document.size for document in self.documents)

    @property
    def has_ends(self) -> bool:
        """Whether the ends of all its documents are predicted."""
        if isinstance(self.documents, DocumentList):
            return True
        return bool(self.documents) and all(document.separator_bytes for document in self.documents)

    def __repr__(self) -> str:
        return f"Part({self.name!r}, documents={len(self.documents)}, bytes={self.bytes})"

    def pieces(self) -> Iterator[tuple[int, str]]:
        """(document index, text) in pieces of about a megabyte that end at line ends where there are any."""
        for index, block in read_documents(self.documents):
            yield index, block.decode()

    def document_texts(self) -> Iterator[tuple[int, str]]:
        """As `pieces`, without the separators."""
        documents, left = self.documents, 0
        at = -1
        for index, block in read_documents(documents):
            if index != at:
                at, document = index, documents[index]
                left = document.size - document.separator_bytes
            text = block[: max(left, 0)] if len(block) > left else block
            left -= len(block)
            yield index, text.decode()

    def blocks(self) -> Iterator[bytes]:
        """Its bytes in blocks of about a megabyte; short documents are joined."""
        held: list[bytes] = []
        size = 0
        for _, block in read_documents(self.documents):
            held.append(block)
            size += len(block)
            if size >= BLOCK_BYTES:
                yield b"".join(held)
                held, size = [], 0
        if held:
            yield b"".join(held)

    def text(self) -> str:
        """All documents end to end, in memory."""
        return "".join(piece for _, piece in self.pieces())

    @cached_property
    def chars(self) -> int:
        """Unicode characters (code points)."""
        return sum(map(count_characters, self.blocks()))

    @cached_property
    def words(self) -> int:
        """Words: runs without whitespace."""
        words, inside, document = 0, False, -1
        separated = isinstance(self.documents, DocumentList)  # by white space: documents may be counted together
        pieces = ((-1, block.decode()) for block in self.blocks()) if separated else self.pieces()
        for index, text in pieces:
            inside &= index == document
            words += _words_in(text) - (inside and not text[0].isspace())
            inside, document = not text[-1].isspace(), index
        return words

    @cached_property
    def sha256(self) -> str:
        """Of the documents end to end; for a whole file without a byte order mark, what `sha256sum` prints."""
        digest = hashlib.sha256()
        for block in self.blocks():
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

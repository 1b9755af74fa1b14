"""A text as token ids on disk: memory-mapped, with its document bounds and the words that had to be spelled."""

from __future__ import annotations

import hashlib
import json
import mmap
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, overload

import numpy as np

from lmlab.config import Mistake
from lmlab.disk.files import atomic_file, write_atomically
from lmlab.text.codings import Encoded
from lmlab.text.parts import Document, Part, read_documents

if TYPE_CHECKING:
    from lmlab.text.tokenizers import Tokenizer

SHORT_BYTES, BATCH_BYTES = 1 << 16, 1 << 20  # of documents that are tokenized together

Progress = Callable[[int, int], None]  # (bytes done, bytes in all)


@dataclass(frozen=True, kw_only=True)
class TokenStream:
    """The tokens of one part of a corpus, all documents end to end."""

    ids: np.ndarray  # uint16 or uint32, one-dimensional; usually a memory map
    starts: np.ndarray  # int64: where each document starts in `ids`, then len(ids)
    bytes: int  # of the original UTF-8 text
    chars: int
    words: int  # whitespace-separated
    spellings: Sequence[str] = field(default=())  # the unknown words, in order of their unknown symbols in `ids`
    spelling_starts: np.ndarray | None = None  # int64: as `starts`, into `spellings`; needed for several documents only
    has_ends: bool = False  # whether the last token of each document is its end

    @property
    def tokens(self) -> int:
        """Number of tokens."""
        return len(self.ids)

    @property
    def documents(self) -> int:
        """Number of documents."""
        return len(self.starts) - 1

    def put_away(self) -> None:
        """Give back the memory that reading `ids` from their file took, where the system allows it; they are read again."""
        mapped = getattr(self.ids.base, "_mmap", None)
        if mapped is not None and hasattr(mmap, "MADV_DONTNEED"):
            with suppress(OSError):
                mapped.madvise(mmap.MADV_DONTNEED)

    def document(self, index: int) -> np.ndarray:
        """The ids of one document."""
        return self.ids[self.starts[index] : self.starts[index + 1]]

    def spelling_bounds(self, index: int) -> tuple[int, int]:
        """Where among all spellings those of one document's unknown words begin and end."""
        if self.spelling_starts is None:
            assert self.documents <= 1 or not self.spellings, "spelling_starts say which document a spelling belongs to"
            return 0, len(self.spellings)
        return int(self.spelling_starts[index]), int(self.spelling_starts[index + 1])


class StoredStrings(Sequence[str]):
    """Strings in one file of UTF-8 and one of offsets, both memory-mapped, so that millions of them weigh nothing."""

    def __init__(self, text: np.ndarray, offsets: np.ndarray) -> None:
        self._text, self._offsets = text, offsets

    def __len__(self) -> int:
        return len(self._offsets) - 1

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> list[str]: ...
    def __getitem__(self, index: int | slice) -> str | list[str]:
        if isinstance(index, slice):
            first, last, step = index.indices(len(self))
            assert step == 1, "stored strings are read in order"
            bounds = self._offsets[first : max(first, last) + 1]
            block = self._text[int(bounds[0]) : int(bounds[-1])].tobytes()
            ends = (bounds - bounds[0]).tolist()
            return [block[a:b].decode() for a, b in pairwise(ends)]
        if not -len(self) <= index < len(self):
            raise IndexError(index)
        index %= len(self)
        return self._text[int(self._offsets[index]) : int(self._offsets[index + 1])].tobytes().decode()

    def __iter__(self) -> Iterator[str]:
        for first in range(0, len(self), 1 << 16):
            yield from self[first : first + (1 << 16)]


def tokenize(part: Part, tokenizer: Tokenizer, folder: Path | str, progress: Progress | None = None) -> TokenStream:
    """Tokenise a part piece by piece into files in `folder`, and map them.

    The files are used again when the text, its division into documents and the tokenizer are the same. A stop at any
    moment leaves no half-written file behind under its final name.
    """
    where = Path(folder) / _key(part, tokenizer)
    if not (where / "stream.json").exists():
        _write(part, tokenizer, where, progress)
    return _open(where)


def _key(part: Part, tokenizer: Tokenizer) -> str:
    digest = hashlib.sha256(f"{part.sha256} {tokenizer.hash} ".encode())
    digest.update(json.dumps([document.size for document in part.documents]).encode())
    if tokenizer.end_id is not None:
        digest.update(json.dumps([document.separator_bytes for document in part.documents]).encode())
    return f"{part.name}-{digest.hexdigest()[:16]}"


def _write(part: Part, tokenizer: Tokenizer, where: Path, progress: Progress | None) -> None:
    """Tokenise into `where`; stream.json comes last and says that all is there."""
    with (
        atomic_file(where / "ids.bin") as ids_file,
        atomic_file(where / "spellings.txt") as text_file,
        atomic_file(where / "spellings.offsets") as offsets_file,
    ):
        spellings = _StringWriter(text_file, offsets_file)
        starts, spelling_starts, done = [0], [0], 0
        for documents in _together(part.documents, tokenizer):
            if len(documents) == 1:
                tokens = starts[-1]
                for encoded in _encoded(documents[0], tokenizer, done, part.bytes, progress):
                    ids_file.write(encoded.ids.tobytes())
                    tokens += len(encoded.ids)
                    spellings.add(encoded.spellings)
                starts.append(tokens)
                spelling_starts.append(spellings.written)
            else:
                encoded, lengths_D = tokenizer.encode_documents(_texts(documents, tokenizer))
                ids_file.write(encoded.ids.tobytes())
                spellings.add(encoded.spellings)
                ends_D = np.cumsum(lengths_D)
                unknown = (
                    np.cumsum(encoded.ids == tokenizer.unknown_id) if encoded.spellings else np.zeros_like(encoded.ids)
                )
                spelling_starts += (spelling_starts[-1] + unknown[ends_D - 1].astype(np.int64)).tolist()
                starts += (starts[-1] + ends_D).tolist()
            done += sum(document.size for document in documents)
            if progress:
                progress(done, part.bytes)
    about = {
        "bytes": part.bytes,
        "chars": part.chars,
        "words": part.words,
        "dtype": np.dtype(tokenizer.dtype).name,
        "tokenizer": tokenizer.spec,
        "starts": starts,
        "spelling_starts": spelling_starts,
        "has_ends": tokenizer.end_id is not None and part.has_ends,
    }
    write_atomically(where / "stream.json", json.dumps(about).encode())


def _together(documents: Sequence[Document], tokenizer: Tokenizer) -> Iterator[list[Document]]:
    """Short documents that end, many at a time; others one by one."""
    held: list[Document] = []
    size = 0
    for document in documents:
        is_short = document.separator_bytes and document.size <= SHORT_BYTES and tokenizer.end_id is not None
        if held and (not is_short or size >= BATCH_BYTES):
            yield held
            held, size = [], 0
        held.append(document)
        size += document.size
        if not is_short:
            yield held
            held, size = [], 0
    if held:
        yield held


def _texts(documents: Sequence[Document], tokenizer: Tokenizer) -> list[str]:
    """The texts of short documents, without their separators."""
    return [_unended(block.decode(), tokenizer) for _, block in read_documents(documents)]


def _unended(text: str, tokenizer: Tokenizer) -> str:
    """The text without the separator at its end."""
    assert tokenizer.separator is not None, "a document that ends is read with a tokenizer that has an end"
    if not text.endswith(tokenizer.separator):
        raise Mistake(
            f"a document ends with {text[-len(tokenizer.separator) :]!r}, and those that this tokenizer was made for with"
            f" {tokenizer.separator!r}; divide them alike",
            code="document-ends-otherwise",
        )
    return text[: len(text) - len(tokenizer.separator)]


def _encoded(
    document: Document, tokenizer: Tokenizer, done: int, total: int, progress: Progress | None
) -> Iterator[Encoded]:
    """The tokens of one document, piece by piece; its end is the last of them if it is predicted."""
    ends = document.separator_bytes > 0 and tokenizer.end_id is not None
    text = document.piece(0, document.size - document.separator_bytes) if ends else document
    yield from tokenizer.encode_pieces(_watched(text, done, total, progress))
    if ends:
        _unended("".join(document.piece(text.size, document.size).pieces()), tokenizer)
        yield Encoded(np.array([tokenizer.end_id], dtype=tokenizer.dtype), [])


def _watched(document: Document, done: int, total: int, progress: Progress | None) -> Iterator[str]:
    """The pieces of a document; reports how many bytes of the part have been read so far."""
    for block in document.blocks():
        yield block.decode()
        done += len(block)
        if progress:
            progress(done, total)


class _StringWriter:
    """Writes strings end to end, and where each ends."""

    def __init__(self, text: BinaryIO, offsets: BinaryIO) -> None:
        self._text, self._offsets = text, offsets
        self.written, self._end = 0, 0
        offsets.write(np.zeros(1, np.int64).tobytes())

    def add(self, strings: Sequence[str]) -> None:
        """Append these strings."""
        if not strings:
            return
        encoded = [s.encode() for s in strings]
        ends = self._end + np.cumsum([len(e) for e in encoded], dtype=np.int64)
        self._text.write(b"".join(encoded))
        self._offsets.write(ends.tobytes())
        self.written, self._end = self.written + len(strings), int(ends[-1])


def _open(where: Path) -> TokenStream:
    """Map what `_write` wrote."""
    try:
        about = json.loads((where / "stream.json").read_bytes())
        ids = _map(where / "ids.bin", np.dtype(about["dtype"]))
        offsets = _map(where / "spellings.offsets", np.dtype(np.int64))
        whole = len(ids) == about["starts"][-1] and len(offsets) - 1 == about["spelling_starts"][-1]
    except (FileNotFoundError, ValueError, KeyError):  # a size that is no multiple of the type's is a ValueError too
        whole = False
    if not whole:
        raise Mistake(
            f"the token files in {where} are damaged; delete that folder and they are made again",
            code="token-files-damaged",
        )
    return TokenStream(
        ids=ids,
        starts=np.array(about["starts"], dtype=np.int64),
        bytes=about["bytes"],
        chars=about["chars"],
        words=about["words"],
        spellings=StoredStrings(_map(where / "spellings.txt", np.dtype(np.uint8)), offsets) if len(offsets) > 1 else (),
        spelling_starts=np.array(about["spelling_starts"], dtype=np.int64),
        has_ends=about.get("has_ends", False),
    )


def _map(path: Path, dtype: np.dtype) -> np.ndarray:
    """A file as a read-only array; an empty file cannot be mapped, so it is an empty array."""
    if not path.stat().st_size:
        return np.zeros(0, dtype)
    return np.asarray(np.memmap(path, dtype=dtype, mode="r"))  # of the plain kind, which is sliced several times faster

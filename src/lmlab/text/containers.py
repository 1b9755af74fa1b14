"""Files that hold a text in another form: gzip, zstd, columns of a parquet table, and arrays of token ids.

Each is written once as plain text into the cache, under the hash of what it was made of.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import pickle
import shutil
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from lmlab.config import Mistake, nearest
from lmlab.disk.files import atomic_file, cache_folder, file_sha256

BLOCK_BYTES = 1 << 22
TOKENS_AT_ONCE = 1 << 16
GZIP, ZSTD, PARQUET, NUMPY = b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"PAR1", b"\x93NUMPY"
TOKENIZER, META = "tokenizer.json", "meta.pkl"  # beside token ids: what each of them is
USUAL_COLUMN = "text"
BETWEEN_ROWS = "\n\n"
ENDS_OF_TEXT = ("<|endoftext|>", "</s>", "<|end_of_text|>")  # special tokens that are written as a blank line


def split_column(path: Path) -> tuple[Path, str | None]:
    """Return the file and the column that table.parquet:column names; the path itself and None if it names none."""
    name, colon, column = path.name.rpartition(":")
    file = path.with_name(name) if colon and name else path
    return (file, column) if file != path and not path.exists() and file.is_file() else (path, None)


def unpacked(path: Path, label: str, column: str | None = None) -> Path | None:
    """Return the plain text that a file holds, in the cache; None: the file is not of a form that is known here.

    Args:
        path: the file.
        label: what messages call it.
        column: the column of a table.

    Raises:
        Mistake: the file is damaged, or it does not say what its text is.
    """
    with open(path, "rb") as file:
        head = file.read(8)
    if head.startswith(GZIP):
        return _cached(path, "", lambda out: _gunzip(path, out, label))
    if head.startswith(ZSTD):
        return _cached(path, "", lambda out: _unzstd(path, out, label))
    if head.startswith(PARQUET):
        chosen = _text_column(path, label, column)
        return _cached(path, chosen, lambda out: _of_parquet(path, chosen, out))
    if column is not None:
        raise Mistake(f"{label}: only a parquet file has columns", code="column-without-parquet")
    if head.startswith(NUMPY) or (path.suffix == ".bin" and _vocabulary_file(path) is not None):
        return _of_tokens(path, label)
    return None


def _cached(path: Path, about: str, write: Callable[[BinaryIO], None]) -> Path:
    """Return the file in the cache that `write` makes of this one, which is written if it is not there."""
    named = file_sha256(path) if not about else hashlib.sha256(f"{file_sha256(path)} {about}".encode()).hexdigest()
    target = cache_folder() / "unpacked" / f"{named}.txt"
    if not target.exists():
        with atomic_file(target) as out:
            write(out)
    return target


def _gunzip(path: Path, out: BinaryIO, label: str) -> None:
    try:
        with gzip.open(path, "rb") as packed:
            shutil.copyfileobj(packed, out, BLOCK_BYTES)
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise Mistake(f"{label} is a damaged gzip file: {error}", code="text-gzip-damaged") from None


def _unzstd(path: Path, out: BinaryIO, label: str) -> None:
    import zstandard

    frame = zstandard.ZstdDecompressor().decompressobj()
    try:
        with open(path, "rb") as packed:
            while block := packed.read(BLOCK_BYTES):
                while block:
                    if frame.eof:  # a file may hold several frames
                        frame = zstandard.ZstdDecompressor().decompressobj()
                    out.write(frame.decompress(block))
                    block = frame.unused_data
        if not frame.eof:
            raise zstandard.ZstdError("it ends within a frame")
    except zstandard.ZstdError as error:
        raise Mistake(f"{label} is a damaged zstd file: {error}", code="text-zstd-damaged") from None


# --- parquet ---


def _parquet(label: str) -> Any:
    try:
        import pyarrow.parquet
    except ImportError:
        raise Mistake(
            f"{label} is a parquet file, which needs pyarrow; install it with: pip install 'lmlab[parquet]'",
            code="pyarrow-missing",
        ) from None
    return pyarrow.parquet


def _text_column(path: Path, label: str, column: str | None) -> str:
    """Return the column to read: the one that is named, `text`, or the only one that holds strings."""
    import pyarrow.types as types

    schema = _parquet(label).read_schema(path)
    texts = [field.name for field in schema if types.is_string(field.type) or types.is_large_string(field.type)]
    if column is not None:
        if column not in texts:
            raise Mistake(
                f"{label} has no column {column!r} of text; {nearest(column, texts)}", code="parquet-without-column"
            )
        return column
    if USUAL_COLUMN in texts or len(texts) == 1:
        return USUAL_COLUMN if USUAL_COLUMN in texts else texts[0]
    which = f"one of {', '.join(texts)}" if texts else "none of its columns holds text"
    raise Mistake(f"name the column of {label}, as in {path.name}:COLUMN: {which}", code="parquet-which-column")


def _of_parquet(path: Path, column: str, out: BinaryIO) -> None:
    """Write the rows of a column with a blank line between two of them; a row that is null is passed over."""
    first = True
    with _parquet(str(path)).ParquetFile(path) as table:
        for batch in table.iter_batches(columns=[column]):
            for row in batch.column(0).to_pylist():
                if row is not None:
                    out.write((row if first else BETWEEN_ROWS + row).encode())
                    first = False


# --- token ids ---


def _vocabulary_file(path: Path) -> Path | None:
    """Return the file beside token ids that says what each of them is; None: there is none."""
    return next((file for name in (TOKENIZER, META) if (file := path.with_name(name)).is_file()), None)


def _of_tokens(path: Path, label: str) -> Path:
    """Return the text of an array of token ids: a NumPy file, or the uint16 numbers of a .bin file as nanoGPT writes them."""
    vocabulary = _vocabulary_file(path)
    if vocabulary is None:
        raise Mistake(
            f"{label} holds token ids; put the {TOKENIZER} of its tokenizer, or nanoGPT's {META}, beside it",
            code="token-ids-without-vocabulary",
        )
    about = f"{vocabulary.name} {file_sha256(vocabulary)}"
    return _cached(path, about, lambda out: _write_tokens(path, vocabulary, out, label))


def _write_tokens(path: Path, vocabulary: Path, out: BinaryIO, label: str) -> None:
    ids = _ids(path, label)
    try:
        if vocabulary.name == META:
            for text in _characters(ids, vocabulary, label):
                out.write(text.encode())
        else:
            _decode(ids, vocabulary, out)
    except (KeyError, IndexError, OverflowError):
        raise Mistake(f"{label} holds ids that {vocabulary} does not know", code="token-ids-unknown") from None


def _ids(path: Path, label: str) -> np.ndarray:
    """Return the ids, in order, without reading them all."""
    if path.suffix == ".bin":
        if path.stat().st_size % 2:
            raise Mistake(f"{label} is no array of uint16 numbers: its size is odd", code="token-ids-odd")
        return np.memmap(path, dtype=np.uint16, mode="r")
    try:
        ids: np.ndarray = np.load(path, mmap_mode="r", allow_pickle=False)
    except ValueError as error:
        raise Mistake(f"{label} is no array of token ids: {error}", code="token-ids-damaged") from None
    if ids.dtype.kind not in "iu":
        raise Mistake(f"{label} holds {ids.dtype} numbers; token ids are whole numbers", code="token-ids-not-whole")
    return ids.reshape(-1)


def _characters(ids: np.ndarray, meta: Path, label: str) -> Iterator[str]:
    """Yield the text of ids of characters, as nanoGPT's meta.pkl lists them."""
    try:
        found = _PlainUnpickler(io.BytesIO(meta.read_bytes())).load()
        itos = {int(id): str(text) for id, text in found["itos"].items()}
    except (pickle.UnpicklingError, EOFError, KeyError, TypeError, AttributeError, ValueError) as error:
        raise Mistake(f"{meta} does not say what the ids of {label} are: {error}", code="token-ids-meta") from None
    for start in range(0, len(ids), TOKENS_AT_ONCE):
        yield "".join(itos[id] for id in ids[start : start + TOKENS_AT_ONCE].tolist())


class _PlainUnpickler(pickle.Unpickler):
    """Reads numbers, strings, lists and dicts alone: a pickle can otherwise run any code."""

    def find_class(self, module: str, name: str) -> Any:
        raise pickle.UnpicklingError(f"it holds a {module}.{name}, and only numbers, strings, lists and dicts are read")


def _decode(ids: np.ndarray, tokenizer: Path, out: BinaryIO) -> None:
    """Write the text of ids of a tokenizer.json. Each document is decoded as a whole; two are a blank line apart."""
    from tokenizers import Tokenizer

    backend = Tokenizer.from_file(str(tokenizer))
    size = backend.get_vocab_size(with_added_tokens=True)
    if len(ids) and int(ids.max()) >= size:
        raise KeyError(int(ids.max()))
    ends = [id for token in ENDS_OF_TEXT if (id := backend.token_to_id(token)) is not None]
    stops = np.flatnonzero(np.isin(ids, ends))
    first = True
    for start, stop in zip([0, *(stops + 1).tolist()], [*stops.tolist(), len(ids)], strict=True):
        if stop > start:
            text = backend.decode(ids[start:stop].tolist(), skip_special_tokens=False)
            out.write((text if first else BETWEEN_ROWS + text).encode())
            first = False

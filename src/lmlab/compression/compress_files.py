"""Files made small and large again: the codec with its sizes, for people."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from lmlab.compression.file_format import unpack
from lmlab.compression.text_codec import Progress, claimed_bits, compress, decompress
from lmlab.config import Mistake
from lmlab.disk.files import write_atomically
from lmlab.learn.run import Run
from lmlab.records import JsonRecord, in_json
from lmlab.text import files_and_folders
from lmlab.text.documents import split_text


@dataclass(frozen=True, kw_only=True)
class Coded(JsonRecord):
    """A text and its compressed file."""

    file: str
    output: str
    original_bytes: int
    compressed_bytes: int
    tokens: int
    seconds: float

    @property
    @in_json
    def bits_per_byte(self) -> float | None:
        """Of the text; None where it is empty."""
        return 8 * self.compressed_bytes / self.original_bytes if self.original_bytes else None

    @property
    @in_json
    def ratio(self) -> float:
        """How many times smaller the file is."""
        return self.original_bytes / self.compressed_bytes


@dataclass(frozen=True, kw_only=True)
class Compressed(Coded):
    """A text made small, and what the model had claimed. claimed_bits: None where the claim is infinite."""

    claimed_bits: float | None
    streams: int
    checked: bool
    model: str
    tokenizer: str
    fingerprint: str

    @property
    @in_json
    def excess(self) -> float | None:
        """How much larger than claimed the file is, as a share of the claim (negative: smaller)."""
        return 8 * self.compressed_bytes / self.claimed_bits - 1.0 if self.claimed_bits else None

    @property
    @in_json
    def claimed_bits_per_byte(self) -> float | None:
        """The claim per byte of the text."""
        return (
            self.claimed_bits / self.original_bytes if self.claimed_bits is not None and self.original_bytes else None
        )


def compress_file(
    file: str | Path, run: Run, out: Path, *, streams: int = 1, check: bool = False, watch: Progress | None = None
) -> Compressed:
    """Compress the text in `file` with the model of a run. check: decompress again and compare before writing."""
    text = _read_text(str(file))
    documents = split_text(text, run.rule)
    claimed = claimed_bits(run.model, run.tokenizer, text, documents)
    started = time.perf_counter()
    data = compress(run.model, run.tokenizer, text, streams=streams, documents=documents, progress=watch)
    seconds = time.perf_counter() - started
    if (
        check and decompress(run.model, run.tokenizer, data, progress=watch) != text
    ):  # not an assert: -O must not skip it
        raise RuntimeError("what was compressed does not come back; nothing was written")
    write_atomically(out, data)
    header, parts = unpack(data)
    return Compressed(
        file=str(file),
        output=str(out),
        original_bytes=header.text_bytes,
        compressed_bytes=len(data),
        tokens=header.tokens,
        seconds=seconds,
        claimed_bits=claimed if math.isfinite(claimed) else None,
        streams=len(parts),
        checked=check,
        model=run.model.name,
        tokenizer=run.tokenizer.spec,
        fingerprint=header.fingerprint.hex(),
    )


def decompress_file(file: Path, run: Callable[[], Run], out: Path, *, watch: Progress | None = None) -> Coded:
    """Bring back the text that `compress_file` made small. run: opens the run, which is only done for a sound file."""
    data = _compressed(file)
    with _naming(file):
        header, _ = unpack(data)
    opened = run()
    started = time.perf_counter()
    with _naming(file):
        text = decompress(opened.model, opened.tokenizer, data, progress=watch)
    seconds = time.perf_counter() - started
    write_atomically(out, text.encode())
    return Coded(
        file=str(file),
        output=str(out),
        original_bytes=header.text_bytes,
        compressed_bytes=len(data),
        tokens=header.tokens,
        seconds=seconds,
    )


def _compressed(file: Path) -> bytes:
    """What stands in it; "-" is standard input, as everywhere."""
    if str(file) == "-":
        return sys.stdin.buffer.read()
    if file.is_dir() or not file.exists():
        what = f"{file} is a folder" if file.is_dir() else f"there is no file {file}"
        raise Mistake(
            f"{what}; name one that lmlab compress wrote, or - for standard input", code="compressed-file-not-found"
        )
    return file.read_bytes()


@contextmanager
def _naming(file: Path) -> Iterator[None]:
    """What is wrong with the compressed file is said with its name."""
    try:
        yield
    except Mistake as error:
        raise Mistake(f"{file}: {error.template}", code=error.code, **error.settings) from None


def _read_text(file: str) -> str:
    """The whole text, checked to be UTF-8. An empty file is a text here, though not one to learn from."""
    path = Path(file).expanduser()
    if file == "-":
        document = files_and_folders.gather("-")[1][0]
    elif not path.exists():
        raise Mistake(
            f"there is no file {file}; name the text to compress, or - for standard input", code="text-file-not-found"
        )
    elif path.is_file() and path.stat().st_size == 0:
        return ""
    else:
        document = files_and_folders.checked(path)
    whole = replace(document, start=0)  # with a byte order mark, which is no text to learn, but comes back
    return "".join(whole.pieces())

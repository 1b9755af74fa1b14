"""Taking a text in: from files, folders, standard input or by name; checked to be UTF-8, with errors that help."""

from __future__ import annotations

import errno
import glob
import hashlib
import io
import os
import secrets
import sys
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, TypeGuard

from lmlab.config import Mistake, Note, nearest
from lmlab.disk.files import atomic_file, bare_name, cache_folder, is_cached
from lmlab.text import containers, sources
from lmlab.text.parts import Document, character_boundary

Text = str | Path | Sequence[str | Path]

BYTE_ORDER_MARK = b"\xef\xbb\xbf"  # as some editors begin a file: a sign of its encoding, no character of its text
MODEL_CONFIGS = "run.json", "config.json"  # one of them is in a folder with a model: of ours, and of Hugging Face
SUFFIXES = (".txt", ".text", ".md", ".rst")  # what is read from a folder; each also with .gz or .zst
BLOCK_BYTES = 1 << 22

PACKED = {
    b"PK\x03\x04": "a zip archive",
    b"\xfd7zXZ": "packed with xz",
    b"BZh": "packed with bzip2",
}


class Content(str):
    """A text itself, rather than the name of one."""

    __slots__ = ()


def strings(*texts: str | Iterable[str]) -> list[str]:
    """Texts as they are, a document each, to be given where a text is named: `train("gpt", strings(first, second), …)`.

    A string with a line break in it needs no such wrapping: no file is called like that.
    """
    given = [text for group in texts for text in ([group] if isinstance(group, str) else group)]
    if wrong := next((text for text in given if not isinstance(text, str)), None):
        raise Mistake(f"a text is a string; got {wrong!r}", code="text-not-a-string")
    return [Content(text) for text in given]


def is_content(text: object) -> TypeGuard[str]:
    """Whether a string is a text itself and no name: it was marked so, or has lines, and no file is called so."""
    return isinstance(text, Content) or (isinstance(text, str) and "\n" in text and not os.path.exists(text))


def gather(text: Text) -> tuple[str, list[Document], str | list[str]]:
    """(name, documents, the same text as it can be asked for again from any working directory)."""
    if not isinstance(text, Path) and not text:
        if text is None or isinstance(text, str):
            raise Mistake(
                "no text was given; name a file, a folder, a corpus, or - for standard input", code="text-name-empty"
            )
        raise Mistake("no text was given: the list of texts is empty", code="texts-empty-list")
    if is_content(text):
        try:
            path = spooled(io.BytesIO(text.encode()))
        except UnicodeEncodeError as error:
            raise Mistake(
                f"the text is not valid Unicode: {error.reason} at character {error.start}", code="text-not-unicode"
            ) from None
        return "text", [checked(path, "the text")], str(path)
    if isinstance(text, (str, Path)):
        if str(text) == "-":
            path = spooled(sys.stdin.buffer)
            return "stdin", [checked(path, "standard input")], str(path)
        if sources.is_named(str(text)):
            return str(text), [checked(path) for path in sources.get(str(text))], str(text)
        path = Path(text).expanduser()
        if not path.exists() and any(sign in str(path) for sign in "*?["):
            return _pattern_name(path), [checked(file) for file in _matching(path)], str(path.absolute())
        if path.is_dir():
            return path.resolve().name, [checked(file) for file in _in_folder(path)], str(path.resolve())
        if path.exists() and not path.is_file():
            copy = _from_pipe(path, str(path))
            return _pipe_name(path), [checked(copy, str(path))], str(copy)
        return bare_name(path), [checked(path)], str(path.resolve())
    if not isinstance(text, Sequence) or not all(isinstance(each, (str, Path)) for each in text):
        raise Mistake(f"a text is a string or a path, or a list of them; got {text!r}", code="text-of-another-kind")
    paths = list(text)
    gathered = [gather(path) for path in paths]
    name = gathered[0][0] if len(paths) == 1 else f"{gathered[0][0]}+{len(paths) - 1}"
    if len(paths) > 1 and all(map(is_content, paths)):
        name = f"{len(paths)} strings"  # none of them has a name that the others could be counted after
    kept = [k for _, _, again in gathered for k in ([again] if isinstance(again, str) else again)]
    return name, [document for _, documents, _ in gathered for document in documents], kept


def _in_folder(folder: Path) -> list[Path]:
    """The text files under a folder, sorted; hidden files and folders and empty files are passed over."""
    if (folder / "model.safetensors").is_file() and any((folder / name).is_file() for name in MODEL_CONFIGS):
        raise Mistake(
            f"{folder} holds a trained model, not a text; name a file or a folder of texts", code="text-is-a-model"
        )
    _refuse_locked(folder)
    endings = tuple(suffix + packed for suffix in SUFFIXES for packed in ("", ".gz", ".zst"))
    visible = sorted(
        path
        for path in folder.rglob("*")
        if not any(part.startswith(".") for part in path.relative_to(folder).parts) and path.is_file()
    )
    files = [path for path in visible if path.name.lower().endswith(endings)]
    others = [path for path in visible if path not in set(files) and _may_be_text(path)]
    if not files:
        kinds = sorted({path.suffix for path in others if path.suffix})
        instead = f"; for {kinds[0]} files name the pattern '{folder / '**' / f'*{kinds[0]}'}'" if kinds else ""
        raise Mistake(
            f"there is no text in {folder}: no file that ends in {', '.join(SUFFIXES)}, or one of these with .gz or"
            f" .zst{instead}",
            code="folder-without-text",
        )
    found = [path for path in files if path.stat().st_size]
    if not found:
        raise Mistake(f"there is no text in {folder}: every file in it is empty", code="folder-of-empty-files")
    if others:
        _tell_of(others, folder)
    return found


def _refuse_locked(folder: Path) -> None:
    """A Mistake where a folder in it cannot be looked into: whatever lists files would pass over what is in there."""

    def refuse(error: OSError) -> None:
        raise Mistake(f"{error.filename} cannot be read: {error.strerror}", code="folder-not-readable") from None

    for _, folders, _ in os.walk(folder, onerror=refuse):
        folders[:] = [name for name in folders if not name.startswith(".")]


def _may_be_text(path: Path) -> bool:
    """Whether a look at its beginning shows something, and no zero bytes."""
    try:
        with open(path, "rb") as file:
            head = file.read(1 << 10)
    except OSError:
        return False
    return bool(head) and b"\0" not in head


def _tell_of(others: Sequence[Path], folder: Path) -> None:
    """A folder is read in part: say which files were passed over, and how they would be read."""
    largest = max(others, key=lambda path: path.stat().st_size)
    size = sum(path.stat().st_size for path in others)
    which = (
        f"{len(others)} files in {folder}, such as {largest.relative_to(folder)}, were"
        if len(others) > 1
        else f"{largest} was"
    )
    pattern = folder / "**" / f"*{largest.suffix}"
    message = f"{which} not read ({size:,} bytes): of a folder only {', '.join(SUFFIXES)} are"
    warnings.warn(f"{message}; for others name a pattern, such as '{pattern}'", Note, stacklevel=2)


def _matching(pattern: Path) -> list[Path]:
    """The files that a pattern such as src/**/*.py names, sorted; empty ones are passed over."""
    if "**" in pattern.parts:
        for folder in glob.glob(str(Path(*pattern.parts[: pattern.parts.index("**")]))):
            if os.path.isdir(folder):
                _refuse_locked(Path(folder))
    named = sorted(Path(name) for name in glob.glob(str(pattern), recursive=True))
    files = [path for path in named if path.is_file() and path.stat().st_size]
    if not files:
        raise Mistake(f"no file that is not empty matches {pattern}", code="pattern-matches-nothing")
    return files


def _pattern_name(pattern: Path) -> str:
    """What a text that was named by a pattern is called: the folder before the first sign of a pattern."""
    fixed = [part for part in pattern.parent.parts if not any(sign in part for sign in "*?[")]
    return Path(*fixed).resolve().name if fixed else Path.cwd().name


def checked(path: Path, label: str | None = None) -> Document:
    """The whole file as a document, but for a byte order mark, after a look at every byte. `label`: what messages call it."""
    label = label or str(path)
    with _errors_of_reading(label):
        path, column = containers.split_column(path)
        _refuse_missing(path, label)
        if not path.is_file():
            path = _from_pipe(path, label)
        path = path.resolve()
        plain = containers.unpacked(path, label, column)
        packed, path = plain is not None, plain or path
        size = path.stat().st_size
        with open(path, "rb") as file:
            start = len(BYTE_ORDER_MARK) if file.read(len(BYTE_ORDER_MARK)) == BYTE_ORDER_MARK else 0
            if size == start:
                raise Mistake(f"{label} is empty; a text needs at least a few characters", code="text-empty")
            file.seek(0)
            _check_utf8(file, label, packed)
    return Document(path, start, size)


def look_for(text: str) -> None:
    """Mistake where nothing is called so, which `gather` would say too, once it is its turn."""
    path = Path(text).expanduser()
    is_name = not is_content(text) and text not in ("", "-") and not any(sign in text for sign in "*?[")
    if is_name and not sources.is_named(text):
        with _errors_of_reading(str(path)):
            _refuse_missing(path, str(path))


def _refuse_missing(path: Path, label: str) -> None:
    if path.exists() or containers.split_column(path)[1] is not None:
        return
    is_path = os.sep in label or path.suffix
    hint = f", and no corpus of that name; {nearest(label, sources.available())}"
    if is_path:
        hint = "; name a file, a folder, a pattern, a corpus that lmlab data lists, or - for standard input"
    if " " in label:
        hint = "; to give a text itself, in Python: lmlab.strings(text)"
    raise Mistake(f"there is no file or folder {label}{hint}", code="text-not-found")


@contextmanager
def _errors_of_reading(label: str) -> Iterator[None]:
    """Mistake where a text cannot be read; other errors stay what they are."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT) or is_cached(error.filename):
            raise  # it was read, and what was unpacked or came through a pipe cannot be kept
        raise Mistake(f"{label} cannot be read: {error.strerror or error}", code="text-not-readable") from None


def _from_pipe(path: Path, label: str) -> Path:
    """The copy in the cache of what is no regular file, such as a named pipe or `<(…)` of a shell: it is read only once."""
    with _errors_of_reading(label), open(path, "rb") as stream:
        return spooled(stream)


def _pipe_name(path: Path) -> str:
    """What a text that came through a pipe is called: as the pipe, which a shell calls pipe:[12345]."""
    return Path(path.resolve().name.partition(":")[0]).stem


def _check_utf8(file: BinaryIO, label: str, packed: bool) -> None:
    """ValueError with the place of the first byte that is not UTF-8 and what to do about it. packed: by gzip, before."""
    head = file.read(1 << 16)
    file.seek(0)
    if head.count(b"\0") > len(head) / 100 and not head.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise Mistake(f"{label} is a binary file, not text; give plain text in UTF-8", code="text-binary")
    offset, held = 0, b""
    while block := file.read(BLOCK_BYTES):
        block = held + block
        cut = character_boundary(block)
        _check_block(block[:cut], offset, label, head, packed)
        offset, held = offset + cut, block[cut:]
    _check_block(held, offset, label, head, packed, at_end=True)


def _check_block(block: bytes, offset: int, label: str, head: bytes, packed: bool, at_end: bool = False) -> None:
    try:
        block.decode()
    except UnicodeDecodeError as error:
        byte, at = block[error.start], offset + error.start
        if kind := next((kind for magic, kind in PACKED.items() if head.startswith(magic)), None):
            raise Mistake(
                f"{label} is {kind}; unpack it first (plain text, gzip and zstd are read)", code="text-packed"
            ) from None
        put = "zcat FILE | {} > NEW" if packed else "{} FILE > NEW"
        if head.startswith((b"\xff\xfe", b"\xfe\xff")):
            raise Mistake(
                f"{label} is UTF-16, not UTF-8; convert it: {put.format('iconv -f UTF-16 -t UTF-8')}", code="text-utf16"
            ) from None
        control = sum(b < 32 and b not in b"\t\n\v\f\r\x1a\x1b" for b in head)
        if control > len(head) / 100:
            raise Mistake(f"{label} is a binary file, not text; give plain text in UTF-8", code="text-binary") from None
        rest = ""
        if at_end and error.reason == "unexpected end of data":
            rest = f" begins a character that has no end. If the file was cut short: {put.format(f'head -c {at}')}"
        raise Mistake(
            f"{label} is not UTF-8: byte 0x{byte:02X} at offset {at}{rest}. If it is Latin-1 or Windows text, convert it:"
            f" {put.format('iconv -f WINDOWS-1252 -t UTF-8')}",
            code="text-not-utf8",
        ) from None


def spooled(stream: BinaryIO) -> Path:
    """What comes through a pipe, in the cache, under the hash of its content, so that it can be read again."""
    folder = cache_folder() / "piped"
    digest = hashlib.sha256()
    waiting = folder / f".incoming.{secrets.token_hex(6)}"
    try:
        with atomic_file(waiting) as out:
            while block := stream.read(BLOCK_BYTES):
                digest.update(block)
                out.write(block)
        target = folder / f"{digest.hexdigest()}.txt"
        os.replace(waiting, target)
    finally:
        waiting.unlink(missing_ok=True)
    return target

"""Files written whole or not at all, and the folder for what can be made again."""

from __future__ import annotations

import gzip
import hashlib
import os
import sys
import tempfile
import zlib
from contextlib import suppress
from pathlib import Path
from shlex import quote

from lmlab.config import Mistake
from lmlab_derive.shared.files import atomic_file as atomic_file
from lmlab_derive.shared.files import made_folder as made_folder
from lmlab_derive.shared.files import refuse_if_no_file as refuse_if_no_file
from lmlab_derive.shared.files import refuse_other_endings as refuse_other_endings
from lmlab_derive.shared.files import replace_only as replace_only
from lmlab_derive.shared.files import write_atomically as write_atomically


def cache_folder() -> Path:
    """Where fetched and derived texts are kept: $LMLAB_CACHE, or the place the operating system has for such things.

    Where nothing can be written there (a read-only home), a folder among the temporary files.
    """
    if chosen := os.environ.get("LMLAB_CACHE"):
        return Path(chosen).expanduser()
    usual = _usual_cache_folder()
    return usual if can_be_written(usual) else temporary_folder()


def temporary_folder() -> Path:
    """Among the temporary files, of this user, the same for every process."""
    return Path(tempfile.gettempdir()) / f"lmlab-{_user()}"


def is_cached(path: str | None) -> bool:
    """Whether a file lies in the cache folder, or is that folder."""
    return path is not None and Path(path).is_relative_to(cache_folder())


def _user() -> int:
    """A number that tells users apart, where the system has one: temporary files are for everybody."""
    return os.getuid() if sys.platform != "win32" else 0


def can_be_written(folder: Path) -> bool:
    """Whether the folder, or the nearest above it that is there, takes new files."""
    folder = folder.absolute()
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    return os.access(folder, os.W_OK)


def _usual_cache_folder() -> Path:
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "lmlab"
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA", Path.home() / "AppData" / "Local")) / "lmlab" / "Cache"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "lmlab"


def drop_unfinished(path: Path) -> None:
    """Remove what a kill left while `atomic_file` wrote this: as much as the file itself. For who alone may write it."""
    for left in path.parent.glob(f".{path.name}.{'[0-9a-f]' * 12}"):
        with suppress(OSError):
            left.unlink()


def append_line(path: Path, line: str) -> None:
    """Let a file grow by a line; where it cannot, the error names it, which one of a plain `write` does not."""
    try:
        with open(path, "a", encoding="utf-8") as file:
            file.write(f"{line}\n")
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from None


def free_file(out: str | Path, force: bool) -> Path:
    """Before any work is done: a Mistake if writing the file `out` would lose something."""
    if str(out) == "-":
        raise Mistake("- is standard output, which only the command line writes to; name a file", code="dash-is-stdout")
    out = Path(out)
    if out.is_dir():
        raise Mistake(f"{out} is a folder; name a file to write", code="out-is-folder")
    if out.exists() and not force:
        raise Mistake(f"{out} exists; name another file, or replace it with {{force}}", code="out-exists", force=True)
    if not can_be_written(out.parent):
        raise Mistake(
            f"{out} cannot be written: its folder takes no new files; name a file elsewhere", code="out-not-writable"
        )
    return out


def taken_by_a_file(folder: Path) -> Path | None:
    """The file that stands where the folder, or one that it is to be in, would be; None: there is none."""
    return next((path for path in (folder, *folder.parents) if path.exists() and not path.is_dir()), None)


def whole_lines(path: Path) -> list[str]:
    """The lines of a file that grows by lines, with their ends; a last one that a kill or a copy cut short is no line."""
    text = path.read_text(encoding="utf-8", errors="replace") if path.exists() else ""  # of damage the reader says more
    return [line for line in text.splitlines(keepends=True) if line.endswith("\n")]


def as_typed(name: str | Path) -> str:
    """A file or a folder as a shell takes it: quoted where it must be, and never like an option."""
    return quote(f"./{name}" if str(name).startswith("-") else str(name))


def bare_name(path: Path) -> str:
    """What a file is called, without the ending that says what is in it, and without .gz."""
    return Path(path.name.removesuffix(".gz")).stem


def file_sha256(path: Path) -> str:
    """What `sha256sum` prints for this file."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def read_text(path: Path, what: str) -> str:
    """A whole file of UTF-8, plain or gzip; Mistake, with what is wanted, where it is none."""
    try:
        content = path.read_bytes()
        if content[:2] == b"\x1f\x8b":
            content = gzip.decompress(content)
        return content.decode("utf-8-sig")
    except FileNotFoundError:
        raise Mistake(f"there is no file {path}; {what}", code="file-not-found") from None
    except IsADirectoryError:
        raise Mistake(f"{path} is a folder; {what}", code="file-is-folder") from None
    except UnicodeDecodeError as error:
        raise Mistake(f"{path} is not UTF-8 (byte {error.start}); save it as UTF-8", code="file-not-utf8") from None
    except (OSError, EOFError, zlib.error) as error:
        raise Mistake(f"{path} cannot be read: {error}", code="file-not-readable") from None

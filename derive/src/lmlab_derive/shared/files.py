"""Files written whole or not at all, and names under which nothing can be written."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from lmlab_derive.shared.mistakes import Mistake


def made_folder(folder: Path) -> Path:
    """The folder, made if it is not there; where it cannot be, the error is called by its name, not by that of a parent."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(folder)) from None
    return folder


@contextmanager
def atomic_file(path: Path) -> Iterator[BinaryIO]:
    """A file opened for writing that appears under its name only once it is complete and on disk."""
    refuse_if_no_file(path)
    made_folder(path.parent)
    temporary = path.parent / f".{path.name}.{secrets.token_hex(6)}"  # the same folder, so that renaming is atomic
    try:
        with open(temporary, "xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException as error:
        with suppress(OSError):  # where it could not be made it cannot be removed, and what happened first counts
            temporary.unlink()
        if isinstance(error, OSError) and error.errno and error.filename in (None, temporary, str(temporary)):
            raise OSError(error.errno, error.strerror, str(path)) from None  # nobody knows that other name
        raise


def refuse_if_no_file(path: Path) -> None:
    """A Mistake for a name under which no file can be."""
    if str(path) == "-":  # where standard output can be written to, the command line sees to it before
        raise Mistake(
            "- is no name for this file, which is not written to standard output; name a file", code="dash-is-no-file"
        )
    if path.is_dir():
        raise Mistake(f"{path} is a folder; name a file to write", code="out-is-folder")


def write_atomically(path: Path, content: bytes) -> None:
    """Write a whole file, or leave the old one as it was."""
    with atomic_file(path) as file:
        file.write(content)


def replace_only(path: Path, endings: tuple[str, ...]) -> None:
    """A Mistake where a file of another kind is there: what can be made again may be replaced, a text may not."""
    if path.is_file() and path.suffix.lower() not in endings:
        raise Mistake(
            f"{path} exists, and does not end in {' or '.join(endings)}; name another file", code="out-of-another-kind"
        )


def refuse_other_endings(path: Path, option: str, what: str, endings: tuple[str, ...]) -> None:
    """A Mistake where a file, named by that option and holding that, is not called so or could not be written."""
    refuse_if_no_file(path)
    replace_only(path, endings)
    if path.suffix not in endings:
        message = f"{{{option}}} is {what}, and ends in {' or '.join(endings)}; got {str(path)!r}"
        raise Mistake(message, code="out-ending", **{option: None})

"""One process at a time works in a folder."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from lmlab.config import Mistake

LOCK = ".lock"  # a file in the folder that somebody works in
_HELD: set[Path] = set()  # the locks of this process


@contextmanager
def locked(folder: Path, busy: Mistake, *, again: bool = False) -> Iterator[None]:
    """Nobody else works in the folder meanwhile, or `busy` is raised. The system lifts the lock when a process ends.

    again: it may be that this very process has locked it already, further out.
    """
    path = (folder / LOCK).resolve()
    if again and path in _HELD:
        yield
        return
    with open(path, "a+b") as file:
        if not _lock(file):
            raise busy
        _HELD.add(path)
        try:
            yield
        finally:
            _HELD.remove(path)


def _lock(file: BinaryIO) -> bool:
    """Take the lock if it is free; it is lifted when the file is closed."""
    try:
        if sys.platform == "win32":
            import msvcrt

            file.seek(0)
            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True

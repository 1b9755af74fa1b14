"""One process at a time works in a folder."""

from __future__ import annotations

import errno
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from lmlab.config import Mistake
from lmlab.disk.files import made_folder

LOCK = ".lock"  # a file in the folder that somebody works in
MOST_WAITING_S, LOOK_S = 20.0, 0.05  # for a process that may be asleep; how often it is looked whether it is done
_HELD: set[Path] = set()  # the locks of this process


@contextmanager
def locked(folder: Path, busy: Mistake, *, again: bool = False, writer: bool = True) -> Iterator[None]:
    """Let nobody else work in the folder meanwhile. The system lifts the lock when a process ends.

    Args:
        folder: Where the lock lies.
        busy: What is raised where another process holds it.
        again: Whether this very process may have locked it already, further out.
        writer: Whether this process writes. Of several that train one model, the writer holds the lock for all.
    """
    if not writer:
        yield
        return
    path = (folder / LOCK).resolve()
    if again and path in _HELD:
        yield
        return
    with _opened(path) as file:
        if not _lock(file):
            raise busy
        _HELD.add(path)
        try:
            yield
        finally:
            _HELD.remove(path)


@contextmanager
def in_turn(folder: Path) -> Iterator[None]:
    """One process after the other: who comes second waits, though not forever. Where there can be no lock nobody waits."""
    try:
        file = _opened(made_folder(folder) / LOCK)
    except OSError:
        yield
        return
    with file:
        until = time.monotonic() + MOST_WAITING_S
        while not _lock(file) and time.monotonic() < until:
            time.sleep(LOOK_S)
        yield


def _opened(path: Path) -> BinaryIO:
    """The file of a lock; where there can be none, the error names the folder: nobody knows of the file."""
    try:
        return open(path, "a+b")
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path.parent)) from None


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
    except BlockingIOError:
        return False
    except OSError as error:  # there are file systems without locks: nobody can have one then
        return error.errno not in (errno.EACCES, errno.EDEADLK)  # which is what Windows says of a lock that is held
    return True

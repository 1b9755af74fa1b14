"""Handles errors: a user's mistake prints one line on stderr with exit code 2, and a bug is reported as one."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from typing import Any, NoReturn

import typer

from lmlab.cli.flags import as_flag
from lmlab.config import Mistake, about_a_file
from lmlab.disk.files import cache_folder, is_cached
from lmlab.learn import interrupt
from lmlab_derive.shared import endings

FOLDER_IS_GONE = "the current folder no longer exists; change to one that does, such as with: cd"

# Errors that the user can correct: a Mistake, or a file that cannot be read or written. Any other is reported as a bug.
MENDABLE: tuple[type[Exception], ...] = (Mistake, OSError)


class Interrupted(Exception):
    """Ctrl-C, with a message that tells what is saved. For a KeyboardInterrupt, typer would exit without a message."""


def end_with(error: BaseException, commands: Callable[[], Mapping[str, Any]]) -> NoReturn:
    """Print an error in one line, and exit with the exit code of its type.

    commands: returns the commands with their options, by name.
    """
    if isinstance(error, endings.ClickException):
        endings.fail_by_call("lmlab", error)
    if isinstance(error, (typer.Abort, KeyboardInterrupt, Interrupted)):
        _stopped(str(error))
    if isinstance(error, SystemExit):
        # only typer and rich exit so, with code 1, when the reader of the output has closed the pipe
        if error.code != 1:
            raise error
        endings.reader_left()
    if os.environ.get("LMLAB_DEBUG"):
        raise error
    if isinstance(error, FileNotFoundError) and not error.filename and _folder_is_gone():
        fail(FOLDER_IS_GONE, 2)
    if isinstance(error, OSError) and not error.filename and error.strerror:  # an error of a stream has no file name
        nobody_reads(error)
    if isinstance(error, MENDABLE) or _is_not_unicode(error):
        fail(_line(error, commands), 2)
    if _is_out_of_memory(error):
        fail("not enough memory for this text and these settings; take a smaller text or model", 2)
    if interrupt.was_heard():  # Ctrl-C in an import can cause any error
        _stopped()
    fail(f"this is a bug in lmlab: {type(error).__name__}: {_line(error, commands)} (LMLAB_DEBUG=1 shows where)", 1)


def fail(line: str, code: int) -> NoReturn:
    """Print one line on stderr and exit."""
    endings.fail("lmlab", line, code)


def _stopped(kept: str = "") -> NoReturn:
    fail(f"stopped; {kept or 'nothing is kept, and the same command begins again'}", interrupt.exit_code())


def nobody_reads(why: OSError) -> NoReturn:
    """Exit because the output cannot be written."""
    if isinstance(why, BrokenPipeError):
        endings.reader_left()
    endings.send_stdout_nowhere()
    fail(f"the output cannot be written ({why.strerror}); send it elsewhere, such as to a disk with room", 2)


def refuse_a_folder_that_is_gone() -> None:
    """Exit with an error if the current folder was deleted; call this before any import.

    The Intel math library ends the process without a message if there is no current folder.
    """
    if _folder_is_gone():
        fail(FOLDER_IS_GONE, 2)


def _folder_is_gone() -> bool:
    """Return whether the current folder was deleted. Libraries ask for its name, some on import."""
    try:
        os.getcwd()
    except FileNotFoundError:
        return True
    return False


def _is_out_of_memory(error: BaseException) -> bool:
    """Return whether an error means lack of memory.

    Python and NumPy raise MemoryError; torch raises RuntimeError, with its own subclass only on a GPU.
    """
    is_torch = isinstance(error, RuntimeError) and "allocate" in str(error) and "memory" in str(error)
    return isinstance(error, MemoryError) or is_torch


def _is_not_unicode(error: BaseException) -> bool:
    """Return whether an error comes from a command-line byte that is not UTF-8, or from a lone surrogate."""
    return isinstance(error, UnicodeEncodeError) and "surrogates" in error.reason


def _line(error: BaseException, commands: Callable[[], Mapping[str, Any]]) -> str:
    if _is_not_unicode(error):
        return "what was typed is not valid Unicode; give text in UTF-8 (such as with PYTHONUTF8=1)"
    if isinstance(error, Mistake):
        return " ".join(error.written(as_flag(commands(), sys.argv[1:])).split())
    if isinstance(error, OSError) and error.strerror:
        if is_cached(error.filename) and not isinstance(error, FileNotFoundError):
            cache = f"the cache folder {cache_folder()} cannot be written to ({error.strerror})"
            return f"{cache}; set LMLAB_CACHE to a folder that can, with room in it"
        return about_a_file(error)
    return " ".join(str(error).split())

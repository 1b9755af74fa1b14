"""How a command ends early: one line on stderr, or no word where the reader of its output has left."""

from __future__ import annotations

import os
import sys
from typing import Any, NoReturn

import typer

# Some versions of typer stand on click and others on a copy of their own. Both export BadParameter, and both call the
# base of all mistakes in a call ClickException.
ClickException: Any = next(kind for kind in typer.BadParameter.__mro__ if kind.__name__ == "ClickException")
READER_LEFT = 128 + 13  # as of a process that was ended by SIGPIPE


def fail(program: str, line: str, code: int) -> NoReturn:
    """One line on stderr, and out."""
    print(f"{program}: {line}", file=sys.stderr)
    sys.exit(code)


def fail_by_call(program: str, error: Any) -> NoReturn:
    """A mistake in how the command was called, with where its help is."""
    where = getattr(getattr(error, "ctx", None), "command_path", program)
    fail(program, f"{' '.join(error.format_message().split())} (see {where} --help)", 2)


def reader_left() -> NoReturn:
    """Whoever read our output has seen enough (`| head`), which is no mistake: the number a shell knows it by, no word."""
    send_stdout_nowhere()
    sys.exit(READER_LEFT)


def send_stdout_nowhere() -> None:
    """What Python still wants to flush at its end must go somewhere, or it complains."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())

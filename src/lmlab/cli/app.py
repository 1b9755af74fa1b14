"""The command line. A verb's module, and everything heavy, is imported only when the verb runs."""

from __future__ import annotations

import os
import signal
import sys
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any, NoReturn

import typer

from lmlab.cli import help
from lmlab.cli.flags import as_flag
from lmlab.cli.show.plain import print_what_can_be_printed
from lmlab.config import Caution, Mistake, Note
from lmlab.version import __version__

app = typer.Typer(
    name="lmlab",
    help="A laboratory for language models: every kind, on your text, compared in bits per byte.",
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings=help.CONTEXT,
    cls=help.Verbs,
)

# Some versions of typer stand on click and others on a copy of their own. Both export BadParameter, and both call the
# base of all mistakes in a call ClickException.
ClickException: Any = next(kind for kind in typer.BadParameter.__mro__ if kind.__name__ == "ClickException")

READER_LEFT = 128 + 13  # as of a process that was ended by SIGPIPE

# What the user can mend: a Mistake, or a file that cannot be read or written. Anything else is a bug of ours, and said to be.
MENDABLE: tuple[type[Exception], ...] = (Mistake, OSError)


@app.callback(invoke_without_command=True)
def bare(
    ctx: typer.Context,
    show: bool = typer.Option(False, "--version", help="Print the version and exit.", is_eager=True),
) -> None:
    """A laboratory for language models: every kind, on your text, compared in bits per byte."""
    if show:
        print(f"lmlab {__version__}")
        raise typer.Exit
    if ctx.invoked_subcommand is None:
        print(ctx.get_help())


@cache
def command_line() -> Any:
    """Every verb with its options, as click knows commands. Once: reading all signatures takes a tenth of a second."""
    from lmlab.cli import verbs

    verbs.register(app)
    return typer.main.get_command(app)


def main() -> None:
    """The `lmlab` script: a mistake by the user is one line on stderr and exit code 2, never a traceback."""
    _see_to_closed_streams()
    print_what_can_be_printed()
    if threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        signal.signal(signal.SIGTERM, _asked_to_end)
    try:
        with _notes_as_lines():
            code = command_line()(standalone_mode=False, prog_name="lmlab")
    except ClickException as error:
        where = getattr(getattr(error, "ctx", None), "command_path", "lmlab")
        fail(f"{' '.join(error.format_message().split())} (see {where} --help)", 2)
    except (typer.Abort, KeyboardInterrupt):
        fail("stopped", 130)
    except SystemExit as end:  # no verb ends so: typer and rich do, with 1, when the reader of our output has left
        if end.code != 1:
            raise
        _reader_left()
    except Exception as error:
        if os.environ.get("LMLAB_DEBUG"):
            raise
        if isinstance(error, OSError) and not error.filename and error.strerror:  # files are named, streams are not
            _nobody_reads(error)
        if isinstance(error, MENDABLE) or _is_not_unicode(error):
            fail(_line(error), 2)
        if _is_out_of_memory(error):
            fail("not enough memory for this text and these settings; take a smaller text or model", 2)
        fail(f"this is a bug in lmlab: {type(error).__name__}: {_line(error)} (LMLAB_DEBUG=1 shows where)", 1)
    try:
        sys.stdout.flush()
    except OSError as error:
        _nobody_reads(error)
    sys.exit(code if isinstance(code, int) else 0)  # a verb's own exit code is what `app` returns


def _asked_to_end(signum: int, frame: object) -> NoReturn:
    """A polite kill is heard as Ctrl-C is: work in other processes is ended, and what there is is kept."""
    raise KeyboardInterrupt


def _see_to_closed_streams() -> None:
    """Whoever closes a stream (`>&-`) leaves None in its place, and to print there would print elsewhere or fail."""
    if sys.stdin is None:
        sys.stdin = open(os.devnull, encoding="utf-8")  # noqa: SIM115 (as long as we live)
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
    if sys.stdout is None:
        fail("standard output is closed, and results go there; send them to a file, or to /dev/null", 2)


def _nobody_reads(why: OSError) -> NoReturn:
    """What was printed cannot be written."""
    if isinstance(why, BrokenPipeError):
        _reader_left()
    _send_stdout_nowhere()
    fail(f"the output cannot be written ({why.strerror}); send it elsewhere, such as to a disk with room", 2)


def _reader_left() -> NoReturn:
    """Whoever read our output has seen enough (`| head`), which is no mistake: the number a shell knows it by, no word."""
    _send_stdout_nowhere()
    sys.exit(READER_LEFT)


def _send_stdout_nowhere() -> None:
    """What Python still wants to flush at its end must go somewhere, or it complains."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


@contextmanager
def _notes_as_lines() -> Iterator[None]:
    """What the library warns of is one line for the user; warnings of others look as they always do.

    A caution waits for the result: who is refused gets one line, which says why.
    """
    with warnings.catch_warnings():
        others = warnings.showwarning
        cautions: list[str] = []

        def show(message: Warning | str, category: type[Warning], *where: Any) -> None:
            if issubclass(category, Caution):
                cautions.append(str(message))
            elif issubclass(category, Note):
                print(f"lmlab: note: {message}", file=sys.stderr)
            else:
                others(message, category, *where)

        warnings.simplefilter("always", Note)
        warnings.showwarning = show  # type: ignore[assignment]  # where it was is passed on as it came
        yield
        for caution in cautions:
            print(f"lmlab: {caution}", file=sys.stderr)


def fail(line: str, code: int) -> NoReturn:
    """One line on stderr, and out."""
    print(f"lmlab: {line}", file=sys.stderr)
    sys.exit(code)


def _is_out_of_memory(error: Exception) -> bool:
    """Python and NumPy raise MemoryError; torch a RuntimeError, of a class of its own only on a GPU."""
    is_torch = isinstance(error, RuntimeError) and "allocate" in str(error) and "memory" in str(error)
    return isinstance(error, MemoryError) or is_torch


def _is_not_unicode(error: Exception) -> bool:
    """A byte of the command line that is not UTF-8, or half a character, got into a text."""
    return isinstance(error, UnicodeEncodeError) and "surrogates" in error.reason


def _line(error: Exception) -> str:
    if _is_not_unicode(error):
        return "what was typed is not valid Unicode; give text in UTF-8 (such as with PYTHONUTF8=1)"
    if isinstance(error, Mistake):
        return " ".join(error.written(as_flag(command_line().commands, sys.argv[1:])).split())
    if isinstance(error, OSError) and error.strerror:
        return f"{error.strerror}: {error.filename}" if error.filename else error.strerror
    return " ".join(str(error).split())

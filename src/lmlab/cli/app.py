"""The command line. A command's file and its heavy imports are loaded when the command is used."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, NoReturn

import typer

from lmlab.cli.commands import Commands
from lmlab.cli.errors import Interrupted, end_with, fail, nobody_reads, refuse_a_folder_that_is_gone
from lmlab.config import Caution, Note
from lmlab.disk.files import can_be_written, temporary_folder
from lmlab.learn import interrupt
from lmlab.version import __version__
from lmlab_derive.shared import help
from lmlab_derive.shared.plain import print_what_can_be_printed


@contextmanager
def _heard() -> Iterator[None]:
    try:
        yield
    except KeyboardInterrupt as stop:
        raise Interrupted(str(stop)) from None


class _Verbs(help.Verbs):
    """The commands, each imported when it is used. Ctrl-C ends them with a message."""

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self.commands = Commands()  # type: ignore[assignment]  # a read-only mapping

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names, without importing the commands."""
        return list(self.commands)

    def in_order(self) -> list[tuple[str, Any]]:
        """Return the commands in the order of the help."""
        return Commands().by_section()

    def make_context(self, *given: Any, **named: Any) -> Any:
        with _heard():
            return super().make_context(*given, **named)

    def invoke(self, ctx: Any) -> Any:
        with _heard():
            return super().invoke(ctx)


app = typer.Typer(
    name="lmlab",
    help="A laboratory for language models: every kind, on your text, compared in bits per byte.",
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings=help.CONTEXT,
    cls=_Verbs,
)


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
    """Return the whole command line as a click command."""
    return typer.main.get_command(app)


def main() -> None:
    """Run the `lmlab` script. A user's mistake prints one line on stderr and exits with code 2, without a traceback."""
    _see_to_closed_streams()
    print_what_can_be_printed()
    _give_matplotlib_a_place()
    with interrupt.listening():
        _run()


def _run() -> NoReturn:
    try:
        refuse_a_folder_that_is_gone()
        with _notes_as_lines():
            code = command_line()(standalone_mode=False, prog_name="lmlab")
    except BaseException as error:
        end_with(error, lambda: command_line().commands)
    try:
        sys.stdout.flush()
    except OSError as error:
        nobody_reads(error)
    sys.exit(code if isinstance(code, int) else 0)  # `app` returns the exit code of a command


def _give_matplotlib_a_place() -> None:
    """Set a temporary folder for matplotlib if the home folder is read-only.

    Without one, matplotlib prints several lines and searches for all fonts in every process.
    """
    if "MPLCONFIGDIR" not in os.environ and not can_be_written(Path("~").expanduser()):
        os.environ["MPLCONFIGDIR"] = str(temporary_folder() / "matplotlib")


def _see_to_closed_streams() -> None:
    """Open os.devnull for a closed stdin or stderr (`>&-` leaves None); exit with an error if stdout is closed."""
    if sys.stdin is None:
        sys.stdin = open(os.devnull, encoding="utf-8")  # noqa: SIM115 (open until the process ends)
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
    if sys.stdout is None:
        fail("standard output is closed, and results go there; send them to a file, or to /dev/null", 2)


@contextmanager
def _notes_as_lines() -> Iterator[None]:
    """Print each of the library's warnings as one line on stderr; other warnings keep their format.

    A `Caution` is printed after the result, so that a refused command prints only the line that tells why.
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
        warnings.showwarning = show  # type: ignore[assignment]  # the other arguments are passed on unchanged
        yield
        for caution in cautions:
            print(f"lmlab: {caution}", file=sys.stderr)

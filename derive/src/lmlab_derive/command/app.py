"""The command line `derive`: a mistake by the user is one line on stderr and exit code 2, never a traceback."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, NoReturn

import typer

from lmlab_derive.command.check import check_files, watch_files
from lmlab_derive.command.grade import grade_files
from lmlab_derive.shared import help
from lmlab_derive.shared.endings import ClickException, fail, fail_by_call, reader_left
from lmlab_derive.shared.flags import written_flag
from lmlab_derive.shared.mistakes import Mistake, about_a_file, checked_seed
from lmlab_derive.shared.plain import print_what_can_be_printed
from lmlab_derive.version import __version__

STOPPED = 128 + 2  # by Ctrl-C

app = typer.Typer(
    name="derive",
    help="Check derivations, and grade a class of them.",
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings=help.CONTEXT,
    cls=help.Verbs,
    add_completion=False,
)

Json = Annotated[bool, typer.Option("--json", help="Print one JSON document on stdout and nothing else.")]
Seed = Annotated[int, typer.Option(callback=checked_seed, help="Draws other random points.")]


@app.callback(invoke_without_command=True)
def bare(
    ctx: typer.Context,
    show: bool = typer.Option(False, "--version", help="Print the version and exit.", is_eager=True),
) -> None:
    """Check derivations, and grade a class of them."""
    if show:
        print(f"derive {__version__}")
        raise typer.Exit
    if ctx.invoked_subcommand is None:
        print(ctx.get_help())


@app.command("check", rich_help_panel="Commands")
def check(
    files: Annotated[list[str], typer.Argument(metavar="FILES...", help="Files with claims; - is standard input.")],
    json: Json = False,
    html: Annotated[str | None, typer.Option(help="Write a page here (a folder, for several files).")] = None,
    seed: Seed = 0,
    watch: Annotated[bool, typer.Option("--watch", help="Check again whenever a file is saved, until ctrl-C.")] = False,
) -> None:
    """Check derivations: which line is wrong, a counterexample, and the likely slip."""
    if watch and json:
        raise Mistake("{watch} prints for people; leave {json} out", code="watch-beside-json", watch=None, json=None)
    code = watch_files(files, html=html, seed=seed) if watch else check_files(files, json=json, html=html, seed=seed)
    raise typer.Exit(code)


@app.command("grade", rich_help_panel="Commands")
def grade(
    key: Annotated[str, typer.Argument(metavar="KEY", help="The key: the setting, the questions and right answers.")],
    sheets: Annotated[
        list[str], typer.Argument(metavar="SHEETS...", help="The students' sheets: files, or folders of them.")
    ],
    json: Json = False,
    out: Annotated[Path | None, typer.Option(help="A folder for pages and grades.csv.")] = None,
    hints: Annotated[str, typer.Option(help="What students' pages tell: none, where or what.")] = "where",
    seed: Seed = 0,
) -> None:
    """Grade a class against a key: points, a page for each student, and grades.csv."""
    raise typer.Exit(grade_files(sheets, key=key, json=json, out=out, hints=hints, seed=seed))


def main() -> None:
    """Run the command, and end with the exit code of what happened."""
    print_what_can_be_printed()
    try:
        code = typer.main.get_command(app)(standalone_mode=False, prog_name="derive")
        sys.stdout.flush()
    except BaseException as error:
        _end_with(error)
    sys.exit(code if isinstance(code, int) else 0)


def _end_with(error: BaseException) -> NoReturn:
    """Say what went wrong in one line, and leave with the exit code of its kind."""
    if isinstance(error, ClickException):
        fail_by_call("derive", error)
    if isinstance(error, (typer.Abort, KeyboardInterrupt)):
        fail("derive", "stopped", STOPPED)
    if isinstance(error, BrokenPipeError) or (isinstance(error, SystemExit) and error.code == 1):
        reader_left()
    if isinstance(error, SystemExit) or os.environ.get("DERIVE_DEBUG"):
        raise error
    if isinstance(error, Mistake):
        fail("derive", " ".join(error.written(_as_flag()).split()), 2)
    if isinstance(error, OSError):
        fail("derive", about_a_file(error) if error.strerror else str(error), 2)
    fail("derive", f"this is a bug in derive: {type(error).__name__}: {error} (DERIVE_DEBUG=1 shows where)", 1)


def _as_flag() -> Callable[[str, object], str]:
    """How `Mistake.written` writes a setting of the verb that was called."""
    commands = typer.main.get_command(app).commands  # type: ignore[attr-defined]
    verb = next((commands[word] for word in sys.argv[1:] if word in commands), None)
    parameters = {} if verb is None else {parameter.name: parameter for parameter in verb.params}
    return lambda name, value: written_flag(parameters[name], value) if name in parameters else name

"""The command line. A verb's module, and everything heavy, is imported only when the verb runs."""

from __future__ import annotations

import os
import sys
from typing import Any

import typer

from lmlab import __version__

app = typer.Typer(
    name="lmlab",
    help="A laboratory for language models: every kind, on your text, compared in bits per byte.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

# typer carries its own copy of click since 0.20-something, so its exceptions are reached through its public names.
ClickException: Any = typer.BadParameter.__bases__[0].__bases__[0]


@app.callback(invoke_without_command=True)
def version(show: bool = typer.Option(False, "--version", help="Print the version and exit.", is_eager=True)) -> None:
    """A laboratory for language models: every kind, on your text, compared in bits per byte."""
    if show:
        print(f"lmlab {__version__}")
        raise typer.Exit


def main() -> None:
    """The `lmlab` script: a mistake by the user is one line on stderr and exit code 2, never a traceback."""
    from lmlab.cli import verbs

    verbs.register(app)
    try:
        code = app(standalone_mode=False)
    except ClickException as error:
        where = getattr(getattr(error, "ctx", None), "command_path", "lmlab")
        fail(f"{' '.join(error.format_message().split())} (see {where} --help)", 2)
    except typer.Abort:
        fail("stopped", 130)
    except KeyboardInterrupt:
        fail("stopped", 130)
    except BrokenPipeError:
        os.dup2(
            os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno()
        )  # the reader left: nothing to say, nowhere to say it
        sys.exit(1)
    except MemoryError as error:
        fail(_line(error) or "not enough memory for this text and these settings; take a smaller text or model", 2)
    except (ValueError, OSError) as error:
        if os.environ.get("LMLAB_DEBUG"):
            raise
        fail(_line(error), 2)
    except Exception as error:
        if os.environ.get("LMLAB_DEBUG"):
            raise
        fail(f"this is a bug in lmlab: {type(error).__name__}: {_line(error)} (LMLAB_DEBUG=1 shows where)", 1)
    except typer.Exit as end:  # raised through when a verb chooses its own exit code
        code = end.exit_code
    sys.exit(code if isinstance(code, int) else 0)


def fail(line: str, code: int) -> None:
    """One line on stderr, and out."""
    print(f"lmlab: {line}", file=sys.stderr)
    sys.exit(code)


def _line(error: BaseException) -> str:
    if isinstance(error, OSError) and error.strerror:
        return f"{error.strerror}: {error.filename}" if error.filename else error.strerror
    return " ".join(str(error).split())

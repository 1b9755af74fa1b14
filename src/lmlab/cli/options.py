"""Options that several commands share, and functions that parse them."""

from __future__ import annotations

import json
import math
import re
import shlex
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Any, Concatenate, ParamSpec, TextIO, TypeVar

import typer

import lmlab
from lmlab.cli import completion
from lmlab.config import Budget, Caution, Mistake, Note, checked_seed
from lmlab.learn.run_advice import weights_warning
from lmlab.learn.run_folder import require_openable
from lmlab.models.registry import Way, kind_of, language_model, trainable_kind

if TYPE_CHECKING:
    from lmlab.learn.run import Run as TrainedRun

T = TypeVar("T")
P = ParamSpec("P")


def checked_run(folder: Path) -> Path:
    """Return the folder of a run.

    Raises:
        Mistake: the folder holds no run. This check precedes the import of torch, so it is fast.
    """
    require_openable(Path(folder))
    return folder


A_TEXT = "A named corpus (`lmlab data` lists them), a file, a folder, a pattern, or - for standard input."
Text = Annotated[str, typer.Argument(autocompletion=completion.texts, help=A_TEXT)]
TextOrNone = Annotated[str | None, typer.Argument(autocompletion=completion.texts, help=A_TEXT, show_default="sotu")]
Run = Annotated[
    Path,
    typer.Argument(callback=checked_run, help="The folder of a trained model.", autocompletion=completion.runs),
]
Model = Annotated[Path, typer.Option("--model", callback=checked_run, help="The folder of a trained model.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document on stdout and nothing else.")]
Seed = Annotated[int, typer.Option(callback=checked_seed, help="Seed of all random choices.")]
Split = Annotated[str, typer.Option(help="Shares of training, validation and test, such as 90,10,0.")]
SplitBy = Annotated[
    str,
    typer.Option(
        help="Unit of held-out text: documents (whole), blocks (spread over the text), tail (its end), or auto: documents"
        " if there are many, else blocks."
    ),
]
Documents = Annotated[
    str,
    typer.Option(
        help="What the documents are whose end is learned: lines, blank (divided by blank lines), jsonl:FIELD, files, none, or"
        " auto: a list and JSON lines are recognised."
    ),
]
Valid = Annotated[str | None, typer.Option(help="A file for validation; TEXT is then for training alone.")]
Test = Annotated[str | None, typer.Option(help="A file for testing; TEXT is then for training alone.")]
TokenizerOrNone = Annotated[
    str | None,
    typer.Option(
        help="byte, char, words, words:N or bpe:N, such as bpe:1k.",
        autocompletion=completion.tokenizers,
        show_default="char for language models",
    ),
]
Settings = Annotated[
    list[str],
    typer.Option(
        "--set",
        metavar="KEY=VALUE",
        help="A setting of the model. May be repeated.",
        autocompletion=completion.settings,
    ),
]
Learning = Annotated[
    list[str], typer.Option("--learn", metavar="KEY=VALUE", help="A setting of the training loop. May be repeated.")
]
Force = Annotated[bool, typer.Option("--force", help="Replace the output if it exists.")]
Device = Annotated[str, typer.Option(help="auto, cpu, cuda, a GPU such as cuda:1, or mps.")]
Html = Annotated[Path | None, typer.Option(help="Write a page to this file.")]
Svg = Annotated[Path | None, typer.Option(help="Write a picture to this file.")]
Precision = Annotated[
    str, typer.Option(help="Precision of training: auto, bf16 or float32. Scores are always float32.")
]


DEFAULT_SPLIT = "80,10,10"


def parse_split(text: str, valid: str | None = None, test: str | None = None) -> tuple[float, ...]:
    """Parse shares such as "80,10,10" or "80/10/10". Other signs or sums than usual cause a `Note` with what they make.

    Raises:
        Mistake: the shares are invalid, or have no effect because --valid or --test names the held-out text.
    """
    try:
        shares = tuple(float(share) for share in re.split(r"[,/:;]", text))
    except ValueError:
        shares = ()
    if len(shares) != 3 or not all(0 <= share < math.inf for share in shares) or shares[0] == 0:
        raise Mistake(
            f"{{split}} is three shares, such as 80,10,10, the first above 0; got {text!r}",
            code="split-not-understood",
            split=None,
        )
    if text != DEFAULT_SPLIT and (valid is not None or test is not None):
        given = "{test}" if valid is None else "{valid}"
        message = f"{{split}} divides TEXT, which {given} leaves whole for training; leave one of them out"
        raise Mistake(message, code="split-divides-nothing", split=None, valid=None, test=None)
    whole = sum(shares)
    is_usual = any(math.isclose(whole, usual) for usual in (1, 100))
    if not is_usual or "," not in text:
        parts = zip(("training", "validation", "test"), shares, strict=True)
        named = ", ".join(f"{part} {share / whole:.1%}" for part, share in parts)
        said = f"--split {text}{'' if is_usual else f' adds up to {whole:g}, which'} makes {named}"
        warnings.warn(said, Note, stacklevel=2)
    return shares


def check_text(text: str | None, model: str | None = None) -> None:
    """Raise a Mistake if the text of a language model does not exist, before torch is imported.

    Models of other tasks check their data themselves.
    """
    from lmlab.text.files_and_folders import look_for

    if text is not None and (model is None or kind_of(model).task is None):
        look_for(text)


def check_model_name(name: str) -> None:
    """Raise a Mistake with the nearest name if there is no such model. This check needs no torch, so it is fast."""
    trainable_kind(name)


def check_language_model(name: str) -> None:
    """Raise a Mistake with the nearest language model if there is no such model, or if it is none that is trained on a text."""
    language_model(name)
    trainable_kind(name)


def budget_of(model: str, typed: str | None, usual: str) -> str:
    """Return the budget of the command line, or the default one.

    A count model ignores it, with a note, so that a loop can give all models the same one.

    Raises:
        Mistake: the budget is invalid.
    """
    if typed is not None:
        Budget.parse(typed)  # report an error before torch is imported
        if kind_of(model).way is Way.COUNTS:
            warnings.warn(f"{model} reads the text once and ignores --budget", Note, stacklevel=2)
    return usual if typed is None else typed


@contextmanager
def output(out: Path, json: bool) -> Iterator[tuple[Path, TextIO]]:
    """Yield the path to write to and the stream for messages: for `-`, a temporary file and stderr.

    The temporary file is copied to standard output at the end.
    """
    if str(out) != "-":
        yield out, sys.stdout
        return
    if json:
        raise Mistake(
            "standard output cannot take both; name a file with {out}, or leave {json} out",
            code="stdout-for-two",
            out=None,
            json=True,
        )
    with TemporaryDirectory() as folder:
        yield (file := Path(folder) / "output"), sys.stderr
        sys.stdout.buffer.write(file.read_bytes())
        sys.stdout.flush()


def lines_of(file: str) -> list[str]:
    r"""Return the lines of a file or, for -, of standard input, without their ends (\n or \r\n).

    Raises:
        Mistake: there is no such file.
    """
    from lmlab.text.files_and_folders import gather

    path = Path(file)
    if file != "-" and (path.is_dir() or not path.exists()):
        raise Mistake(
            f"there is no file {file}; name one with a text on each line, or - for standard input",
            code="lines-file-not-found",
        )
    (document,) = gather(file if file == "-" else path.absolute())[1]  # not resolved, since a pipe then has no name
    lines = [line.removesuffix("\r") for line in "".join(document.pieces()).split("\n")]
    return lines if lines[-1] else lines[:-1]


def given_texts(texts: list[str] | None, wanted: str) -> list[str]:
    """Return the given texts; a single - stands for the lines of standard input that are not blank.

    wanted: the start of the error message if there is no text.
    """
    found = [line for line in lines_of("-") if line.strip()] if texts == ["-"] else texts
    if not found:
        raise Mistake(f"{wanted}; or - for standard input", code="lines-not-read")
    return found


def opened(folder: Path) -> TrainedRun:
    """Load the run in a folder, with a warning on stderr if its training was stopped early."""

    run = lmlab.load(folder)
    if warning := weights_warning(run):
        warnings.warn(warning, Caution, stacklevel=2)
    return run


def print_json(document: Any) -> None:
    """Print one JSON document on stdout."""
    json.dump(document, sys.stdout, indent=2, allow_nan=False)
    print()


def answer(json: bool, found: T, show: Callable[Concatenate[T, P], None], *args: P.args, **named: P.kwargs) -> None:
    """Print the result of a command, as one JSON document or with `show`.

    Args:
        json: print JSON.
        found: the result.
        show: prints the result for people; it also receives `args` and `named`.
    """
    if json:
        given: Any = found
        print_json([one.to_json() for one in given] if isinstance(found, Sequence) else given.to_json())
    else:
        show(found, *args, **named)


def as_typed() -> str:
    """Return the command as typed, for the report. Bytes that are not valid in the system's encoding are replaced."""
    typed = "lmlab " + shlex.join(sys.argv[1:])
    return typed.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def numbers(text: str, setting: str) -> list[float]:
    """Parse numbers separated by commas, such as "0.5,1,2". setting: the name of the option in error messages."""
    try:
        return [float(word) for word in text.split(",")]
    except ValueError:
        raise Mistake(
            f"{{{setting}}} is numbers with commas between them, such as 0.5,2; got {text!r}",
            code="numbers-not-understood",
            **{setting: None},
        ) from None


def whole_numbers(text: str, setting: str) -> list[int]:
    """Parse integers separated by commas, such as "4,64,1024". setting: the name of the option in error messages."""
    found = numbers(text, setting)
    if not all(number.is_integer() for number in found):
        raise Mistake(
            f"{{{setting}}} are whole numbers with commas between them, such as 4,64; got {text!r}",
            code="whole-numbers-not-understood",
            **{setting: None},
        )
    return [int(number) for number in found]


def words(text: str) -> list[str]:
    """Parse words separated by commas, such as "rnn,lstm"."""
    return [word.strip() for word in text.split(",") if word.strip()]

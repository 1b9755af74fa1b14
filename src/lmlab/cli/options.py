"""Options that several verbs share, and what they mean."""

from __future__ import annotations

import json
import math
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
from lmlab.learn.run_folder import required_record_file
from lmlab.models.registry import kind_of, trainable_kind

if TYPE_CHECKING:
    from lmlab.learn.run import Run as TrainedRun

T = TypeVar("T")
P = ParamSpec("P")


def checked_run(folder: Path) -> Path:
    """The folder of a run; a Mistake if it is none, before torch is imported."""
    required_record_file(Path(folder))
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
Seed = Annotated[int, typer.Option(callback=checked_seed, help="Makes everything random repeatable.")]
Split = Annotated[str, typer.Option(help="Shares of training, validation and test, such as 90,10,0.")]
SplitBy = Annotated[
    str,
    typer.Option(
        help="What is held out: documents (whole), blocks (spread over the text), tail (its end), or auto: documents"
        " where they are many, else blocks."
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
Precision = Annotated[str, typer.Option(help="Of training: auto, bf16 or float32. Scores are always float32.")]


DEFAULT_SPLIT = "80,10,10"


def parse_split(text: str, valid: str | None = None, test: str | None = None) -> tuple[float, ...]:
    """Read "80,10,10"; a Mistake if it would do nothing, since --valid or --test say what to hold out.

    8,1,1 is the same, so what adds up to neither 100 nor 1 may be meant or a slip: a Note says what it comes to.
    """
    try:
        shares = tuple(float(share) for share in text.split(","))
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
    if not any(math.isclose(whole := sum(shares), usual) for usual in (1, 100)):
        parts = zip(("training", "validation", "test"), shares, strict=True)
        named = ", ".join(f"{part} {share / whole:.1%}" for part, share in parts)
        said = f"--split {text} adds up to {whole:g}, which makes {named}"
        warnings.warn(said, Note, stacklevel=2)
    return shares


def check_text(text: str | None, model: str | None = None) -> None:
    """A Mistake if a language model is to read what is not there, before torch is imported.

    What models of other tasks read is looked for by these tasks.
    """
    from lmlab.text.files_and_folders import look_for

    if text is not None and (model is None or kind_of(model).task is None):
        look_for(text)


def check_model_name(name: str) -> None:
    """A Mistake with the nearest name; needs no torch, so a typo is answered at once."""
    trainable_kind(name)


def budget_of(model: str, typed: str | None, usual: str) -> str:
    """The budget as it was typed, or the usual one; a Mistake where it was typed for a model that has no use for any.

    In Python, where a loop gives all models the same budget, one that counts may have it too.
    """
    from lmlab.learn.settings import refuse_if_it_counts

    refuse_if_it_counts(model, budget=typed)
    if typed is not None:
        Budget.parse(typed)  # a slip is answered before torch is imported
    return usual if typed is None else typed


@contextmanager
def output(out: Path, json: bool) -> Iterator[tuple[Path, TextIO]]:
    """Where to write a file, and where to speak of it: `-` is standard output, and then we speak on stderr."""
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
    """The lines of a file or, for -, of standard input, without their ends (\\n or \\r\\n); a Mistake if it cannot be read."""
    from lmlab.text.files_and_folders import gather

    path = Path(file)
    if file != "-" and (path.is_dir() or not path.exists()):
        raise Mistake(
            f"there is no file {file}; name one with a text on each line, or - for standard input",
            code="lines-file-not-found",
        )
    (document,) = gather(file if file == "-" else path.absolute())[1]  # resolved, a pipe has no name
    lines = [line.removesuffix("\r") for line in "".join(document.pieces()).split("\n")]
    return lines if lines[-1] else lines[:-1]


def given_texts(texts: list[str] | None, wanted: str) -> list[str]:
    """Texts as they were given; a lone - stands for the lines of standard input that are not blank."""
    found = [line for line in lines_of("-") if line.strip()] if texts == ["-"] else texts
    if not found:
        raise Mistake(f"{wanted}; or - for standard input", code="lines-not-read")
    return found


def opened(folder: Path) -> TrainedRun:
    """The run in a folder; if it was stopped before its end, whoever uses its weights is told so, on stderr."""

    run = lmlab.load(folder)
    if warning := weights_warning(run):
        warnings.warn(warning, Caution, stacklevel=2)
    return run


def print_json(document: Any) -> None:
    """One JSON document on stdout."""
    json.dump(document, sys.stdout, indent=2, allow_nan=False)
    print()


def answer(json: bool, found: T, show: Callable[Concatenate[T, P], None], *args: P.args, **named: P.kwargs) -> None:
    """What a verb found: as one JSON document, or shown, by a function that may take more than that."""
    if json:
        given: Any = found
        print_json([one.to_json() for one in given] if isinstance(found, Sequence) else given.to_json())
    else:
        show(found, *args, **named)


def as_typed() -> str:
    """The command, for the page. Bytes that the system's encoding does not know came as half characters, and are made whole."""
    typed = "lmlab " + shlex.join(sys.argv[1:])
    return typed.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def numbers(text: str, setting: str) -> list[float]:
    """Read "0.5,1,2": numbers with commas between them. setting: what a Mistake calls them."""
    try:
        return [float(word) for word in text.split(",")]
    except ValueError:
        raise Mistake(
            f"{{{setting}}} is numbers with commas between them, such as 0.5,2; got {text!r}",
            code="numbers-not-understood",
            **{setting: None},
        ) from None


def whole_numbers(text: str, setting: str) -> list[int]:
    """Read "4,64,1024"."""
    found = numbers(text, setting)
    if not all(number.is_integer() for number in found):
        raise Mistake(
            f"{{{setting}}} are whole numbers with commas between them, such as 4,64; got {text!r}",
            code="whole-numbers-not-understood",
            **{setting: None},
        )
    return [int(number) for number in found]


def words(text: str) -> list[str]:
    """Read "rnn,lstm": words with commas between them."""
    return [word.strip() for word in text.split(",") if word.strip()]

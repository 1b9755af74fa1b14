"""The text a model is opened on: given in quotes, as a file, through a pipe, or a piece of what the run was tested on."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from lmlab.config import Mistake, Note
from lmlab.learn.run_folder import record_file
from lmlab.page import numbers
from lmlab.text.corpus import read
from lmlab.text.files_and_folders import SUFFIXES, gather, strings
from lmlab.text.parts import Part

if TYPE_CHECKING:
    from lmlab.learn.run import Run

MOST_BYTES = 40_000  # of a text that is looked at token by token; more is for `eval`
OWN_BYTES = 600  # of the run's own test part, where no text is given


@dataclass(frozen=True)
class Passage:
    """A text that models are opened on.

    name: where it is from. separator: the text after it that its end stands for, where the model predicts ends; else empty.
    """

    name: str
    text: str
    separator: str = ""

    @property
    def bytes(self) -> int:
        """Of the text, in UTF-8."""
        return len(self.text.encode())

    @property
    def part(self) -> Part:
        """The text as one document, as measuring wants it."""
        (document,) = read(strings(self.text + self.separator), split=(100, 0, 0)).train.documents
        return Part("whole", [replace(document, separator_bytes=len(self.separator.encode()))])


def passage(text: str | Path | None, run: Run, own_bytes: int = OWN_BYTES) -> Passage:
    """The text in a file of that name, or from standard input (-), or else the words themselves.

    None: a piece of the test part of the run's own corpus, from the beginning of a line, of about `own_bytes`.
    """
    if text is None:
        return _of_run(run, own_bytes)
    if isinstance(text, str) and _is_run(text):
        raise Mistake(
            f"{text} is a run, where a text is wanted; give a few words in quotes, or a file", code="text-is-a-run"
        )
    found = Passage("the text", str(text).removeprefix("\ufeff"))  # which is no character of a file either
    if isinstance(text, Path) or text == "-" or _is_file(text):
        name, documents, _ = gather(text)
        if len(documents) != 1:
            raise Mistake(
                f"{text} holds {len(documents)} documents; name one file, or give the words in quotes",
                code="text-of-many-documents",
            )
        found = Passage(name, "".join(documents[0].pieces()))
    elif not any(map(str.isspace, text)) and text.lower().endswith(SUFFIXES):
        warnings.warn(f"there is no file {text}: these words themselves are looked at", Note, stacklevel=2)
    if run.rule.separator is not None:  # the text is one document
        separator = run.rule.separator.decode()
        found = Passage(found.name, found.text.removesuffix(separator), separator)
    if not found.text:
        raise Mistake(
            "the text is empty, and there is nothing in it to look at; give a few words in quotes, or a file",
            code="passage-empty",
        )
    if found.bytes > MOST_BYTES:
        raise Mistake(
            f"{found.name} has {found.bytes:,} bytes, and at most {MOST_BYTES:,} are looked at token by token; cut a piece"
            " of it (for all of it there is lmlab eval)",
            code="passage-too-long",
        )
    return found


def learned(run: Run) -> dict[str, str]:
    """What a model learned from, and how well at its best; for the heading of a page."""
    inputs = run.record.inputs
    size = numbers.counted(inputs.corpus["parts"]["train"]["bytes"], "byte")
    facts = {"trained on": f"{inputs.corpus['name']}, {size} in {inputs.tokenizer} tokens"}
    if metrics := run.metrics:
        measured = f"valid_{run.unit.replace(' ', '_')}"
        found = [line[measured] for line in metrics if line.get(measured) is not None]
        facts |= {"on its validation part": f"{numbers.bits(min(found), 3)} {run.unit}"} if found else {}
    return facts


def _is_file(text: str) -> bool:
    try:
        return Path(text).is_file()
    except (OSError, ValueError):  # longer than a file's name can be, or with a zero byte in it
        return False


def _is_run(text: str) -> bool:
    try:
        return record_file(Path(text)) is not None
    except (OSError, ValueError):
        return False


def _of_run(run: Run, size: int) -> Passage:
    part = run.corpus.test
    if not part.bytes:
        raise Mistake(
            f"the test part of {run.corpus.name} is empty; give a text in quotes, or a file",
            code="part-without-passage",
        )
    if run.rule.separator is not None:
        separator = run.rule.separator.decode()
        text = next(text for _, text in part.document_texts() if text)
        return Passage(f"the test part of {run.corpus.name}", text[:size], separator if len(text) <= size else "")
    beginning = next(iter(part.documents[0].pieces()))
    text = beginning[beginning.find("\n") + 1 :][:size] or beginning[:size]
    return Passage(f"the test part of {run.corpus.name}", text[: text.rfind("\n") + 1] or text)

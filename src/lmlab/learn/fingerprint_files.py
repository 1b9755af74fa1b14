"""The files of a run that hold fingerprints of its training texts."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from lmlab.config import Mistake

if TYPE_CHECKING:
    from lmlab.text.fingerprint import Fingerprint
    from lmlab.text.parts import Part

STEM = "training_text"


def fingerprint_file(number: int) -> str:
    """Return the name of the fingerprint file of text number `number`."""
    return f"{STEM}{f'.{number}' if number else ''}.safetensors"


def fingerprints_in(folder: Path, named: Sequence[str], training_text: Callable[[], Part | None]) -> list[Fingerprint]:
    """Return the fingerprints in the folder of a run, whose record names them by SHA-256.

    A missing fingerprint is made again from the training text if the record names only one. Otherwise
    `Fingerprint.unknown` stands for a missing one, and for all if the record names none, as in older formats. The
    hashes detect exchanged or lost files. They do not protect against a forged record.

    Args:
        folder: Folder of the run.
        named: SHA-256 of each fingerprint.
        training_text: Gives the training part of the corpus; None if it is missing on disk or has changed.

    Raises:
        Mistake: a file does not have a hash that the record names.
    """
    from lmlab.text.fingerprint import Fingerprint, fingerprint_of

    found, missing = [], set(named)
    for path in sorted(folder.glob(f"{STEM}*")):
        content = path.read_bytes()
        found.append(Fingerprint.from_bytes(content))
        sha256 = hashlib.sha256(content).hexdigest()
        if named and sha256 not in named:
            raise Mistake(
                f"{path} is not the one that was trained with; the run opens without it, and says so",
                code="fingerprint-of-another-text",
            )
        missing.discard(sha256)
    if len(missing) == len(named) == 1 and (text := training_text()) is not None:
        return [fingerprint_of(text)]
    return found if named and not missing else [*found, Fingerprint.unknown()]

"""The files of a run that hold fingerprints of its training texts."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from lmlab.config import Mistake

if TYPE_CHECKING:
    from lmlab.text.fingerprint import Fingerprint

STEM = "training_text"


def fingerprint_file(number: int) -> str:
    """Return the name of the fingerprint file of text number `number`."""
    return f"{STEM}{f'.{number}' if number else ''}.safetensors"


def fingerprints_in(folder: Path, named: Sequence[str]) -> list[Fingerprint]:
    """Return the fingerprints in the folder of a run, whose record names them by SHA-256.

    `Fingerprint.unknown` stands for one that is missing, and for all if the record names none, as in older formats. The hashes
    detect exchanged or lost files. They do not protect against a forged record.

    Raises:
        Mistake: a file does not have a hash that the record names.
    """
    from lmlab.text.fingerprint import Fingerprint

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
    return found if named and not missing else [*found, Fingerprint.unknown()]

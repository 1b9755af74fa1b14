"""A note beside texts that were printed, where they hold bytes that make no character."""

from __future__ import annotations

import sys
from collections.abc import Iterable

from lmlab.page.raw_bytes import about_broken


def say_what_bytes_are(texts: Iterable[str]) -> None:
    """Of texts that were printed: a note, beside the output, if they hold bytes that make no character."""
    if note := about_broken(texts):
        print(f"lmlab: note: {note}", file=sys.stderr)

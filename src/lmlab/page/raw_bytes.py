"""What a reader is told where a text of a model, or its tokens, hold bytes that are no character."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable

BROKEN = "\ufffd"  # what stands in a text for bytes that make no character together
LONE = re.compile(r"<0x[0-9A-F]{2}>")  # how a token is written that is no character by itself


def about_broken(texts: Iterable[str]) -> str:
    """A sentence for texts that models wrote; nothing where all they wrote are characters."""
    if not any(BROKEN in text for text in texts):
        return ""
    return (
        f"{BROKEN} stands for bytes that make no character: one without a token of its own is written byte by byte,"
        " and these do not go together."
    )


def about_lone(pieces: Iterable[str]) -> str:
    """A sentence for tokens; nothing where each is made of characters."""
    found = next((match[0] for piece in pieces if (match := LONE.search(piece))), None)
    return (
        "" if found is None else f"{found} is a byte, which is no character by itself: a part of one, or none at all."
    )


def say_what_bytes_are(texts: Iterable[str]) -> None:
    """Print a note to stderr if texts that were printed hold bytes that make no character."""
    if note := about_broken(texts):
        print(f"lmlab: note: {note}", file=sys.stderr)

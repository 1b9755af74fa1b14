"""What a text plainly consists of: a list, one item a line, or lines of JSON with a text in each. Else nothing is guessed."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import islice

import numpy as np

from lmlab.text.documents import NONE, DocumentRule, json_lines
from lmlab.text.parts import Document

LOOKED_AT = 2000  # lines at the beginning
FEWEST_LINES = 200  # of a list: a shorter text has other shapes by chance
LONGEST_ITEM = 64  # bytes of a line of a list
DIFFERENT = 0.8  # of the lines of a list at least; a text with one word a line repeats its words
OF_ONE_LENGTH = 0.5  # of the lines at most; a sequence in lines of equal length is cut anywhere
USUAL_FIELDS = ("text", "content")


def guess(documents: Sequence[Document]) -> tuple[DocumentRule, str]:
    """Return how a text is plainly divided into documents, and that in words; `NONE` where it is not plain."""
    if len(documents) != 1:
        return NONE, ""
    lines = list(islice(json_lines(documents[0]), LOOKED_AT))
    if field := _json_field(lines):
        return DocumentRule(f"jsonl:{field}"), f"a document is the field {field!r} of a line of JSON"
    if _is_list(lines):
        return DocumentRule("lines"), "a document is a line"
    return NONE, ""


def _json_field(lines: Sequence[bytes]) -> str | None:
    """The field that holds the text of every line, where all lines are objects of JSON."""
    fields: set[str] | None = None
    for line in lines:
        if not line.strip():
            continue
        if not line.startswith(b"{"):
            return None
        try:
            value = json.loads(line)
        except (ValueError, RecursionError):
            return None
        strings = {key for key, each in value.items() if isinstance(each, str)}
        fields = strings if fields is None else fields & strings
    if not fields or sum(map(bool, lines)) < 2:
        return None
    usual = [name for name in USUAL_FIELDS if name in fields]
    return usual[0] if usual else next(iter(fields)) if len(fields) == 1 else None


def _is_list(lines: Sequence[bytes]) -> bool:
    """Whether the lines are single words, most of them different and of different lengths."""
    if len(lines) < FEWEST_LINES:
        return False
    sizes = np.array([len(line) for line in lines])
    if not (sizes.min() > 0 and sizes.max() <= LONGEST_ITEM):
        return False
    words = all(len(line.split()) == 1 and any(byte > 64 for byte in line) for line in lines)
    return (
        words and len(set(lines)) >= DIFFERENT * len(lines) and np.bincount(sizes).max() <= OF_ONE_LENGTH * len(lines)
    )

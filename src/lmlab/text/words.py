"""The words of a text where only its words matter: for labels, for word vectors, for pairs of words."""

from __future__ import annotations

import re

WORD = re.compile(r"\w+(?:['’]\w+)*|[^\w\s]")


def words_of(text: str) -> str:
    """The words of a text in lower case, marks as words of their own, between single spaces.

    A word at the beginning or the end of a sentence is the same word.
    """
    return " ".join(WORD.findall(text.lower()))

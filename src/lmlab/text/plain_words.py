"""The words of a text where only its words matter: for labels, for word vectors, for pairs of words."""

from __future__ import annotations

import re

WORD = re.compile(r"\w+(?:['’]\w+)*|[^\w\s]")

# Thai, Lao, Burmese, Khmer, kana, Han
UNSPACED = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff]")
LONGEST = 16  # characters of words on average, in any language; lines without spaces are longer


def are_words(characters: int, words: int) -> bool:
    """Whether what stands between the spaces of a text are words; where nobody writes spaces they are whole lines."""
    return 0 < characters <= LONGEST * words


def has_spaces(text: str) -> bool:
    """Whether words of this text stand between spaces; also of a short one, by its script."""
    return are_words(len(text), len(text.split())) and not UNSPACED.search(text)


def words_of(text: str) -> str:
    """The words of a text in lower case, marks as words of their own, between single spaces.

    A word at the beginning or the end of a sentence is the same word.
    """
    return " ".join(WORD.findall(text.lower()))

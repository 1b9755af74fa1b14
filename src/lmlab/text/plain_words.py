"""The words of a text where only its words matter: for labels, for word vectors, for pairs of words."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache

import numpy as np

WORD = re.compile(r"\w+(?:['’]\w+)*|[^\w\s]")

# Thai, Lao, Burmese, Khmer, kana, Han
UNSPACED = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff]")
AT_ONCE = 256  # texts that are divided together
WORTH_IT = 2000  # characters of these from which this is the faster way
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


def words_of_each(texts: Sequence[str]) -> list[str]:
    """Return `words_of` of each text, found for many texts at a time without a Python object for a word."""
    return [words for first in range(0, len(texts), AT_ONCE) for words in _together(texts[first : first + AT_ONCE])]


def _together(texts: Sequence[str]) -> list[str]:
    """Return `words_of` of each of some texts: all characters are looked up as arrays, between texts stands the character 0."""
    joined = "\0".join(texts).lower()
    codes_N = np.frombuffer(joined.encode("utf-16-le", errors="surrogatepass"), dtype="<u2")
    is_plain = len(codes_N) == len(joined) and joined.count("\0") == len(texts) - 1
    if len(joined) < WORTH_IT or not is_plain:
        return [words_of(text) for text in texts]
    letters, spaces = _kinds_of_characters()
    is_word_N, is_space_N, is_edge_N = letters[codes_N], spaces[codes_N], codes_N == 0
    is_apostrophe_N = (codes_N == ord("'")) | (codes_N == ord("’"))
    is_word_N[1:-1] |= is_apostrophe_N[1:-1] & is_word_N[:-2] & is_word_N[2:]
    begins_N = ~(is_space_N | is_edge_N)
    begins_N[1:] &= ~(is_word_N[1:] & is_word_N[:-1])
    spaced_N2 = np.full((len(codes_N), 2), ord(" "), dtype="<u2")
    spaced_N2[:, 1] = codes_N
    found = spaced_N2[np.stack([begins_N, ~is_space_N], axis=1)]  # each word has a space before it
    return [words[1:] for words in found.tobytes().decode("utf-16-le", errors="surrogatepass").split("\0")]


@cache
def _kinds_of_characters() -> tuple[np.ndarray, np.ndarray]:
    """Return for each of the first 65,536 characters whether the pattern takes it for a letter, and whether for a space."""
    every = "".join(map(chr, range(1 << 16)))
    found = []
    for pattern in (r"\w", r"\s"):
        is_one = np.zeros(1 << 16, dtype=bool)
        is_one[[match.start() for match in re.finditer(pattern, every)]] = True
        found.append(is_one)
    return found[0], found[1]

"""The words of a chunk by number, in C (`words.c`): the twin of what `WordTable` does with arrays."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lmlab.hardware.arrays_for_c import call
from lmlab.hardware.c_kernels import made

SOURCE = Path(__file__).with_name("words.c")
PACKED = 16  # bytes of the longest word that is looked up as two numbers
EMPTY = -1  # in the table, and of words that are not in it
SLOT = np.dtype([("low", "<u8"), ("high", "<u8"), ("number", "<i4"), ("unused", "<i4")])  # of the table of words
KNOWN_GAPS = (
    *(bytes([byte]) for byte in range(33)),
    b"\n ",
    b" \n",
    b"  ",
    b" \n ",
)  # one token each, as words.c has them
LARGE = 1 << 16  # bytes of a chunk from which a compiler is worth asking
MOST_MISSES = 1 << 12  # that are noted at a time


class Read(NamedTuple):
    """What was read: the numbers of the tokens, EMPTY where one is lacking; what was new or is lacking; where it ended."""

    numbers: NDArray[np.int32]
    misses: NDArray[np.int64]  # rows of three: the place among the numbers, start and end in the text
    end: int


def can_read(text: bytes) -> bool:
    """Whether this is a chunk for C, and there are functions in C here."""
    return len(text) >= LARGE and sys.byteorder == "little" and made(SOURCE) is not None


def padded(text: bytes) -> bytes:
    """With so many bytes after its end that the last word can be read as two numbers."""
    return text + bytes(PACKED)


def read(text: bytes, first: int, last: int, table: NDArray[np.void], room: int, new: int, gaps: list[int]) -> Read:
    """Look up the tokens of text[first:last], which is `padded` and begins and ends with a word; see words.c for the rest.

    room: how many words may be put into the table; new: the number of the first of them; gaps: of KNOWN_GAPS.
    """
    numbers, misses = np.empty(last - first, dtype=np.int32), np.empty((MOST_MISSES, 3), dtype=np.int64)
    end, found, known = np.array([first]), np.zeros(1, dtype=np.int64), np.array(gaps, dtype=np.int32)
    slots = table, np.int32(len(table).bit_length() - 1), room, np.int32(new)
    missed = call(SOURCE, "words", text, end, last, *slots, known, numbers, found, misses, len(misses))
    return Read(numbers[: found[0]], misses[:missed], int(end[0]))

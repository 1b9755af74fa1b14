"""The words of a chunk by number, in C (`words.c`): the twin of what `WordTable` does with arrays."""

from __future__ import annotations

import ctypes
import sys
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lmlab.hardware.c_kernels import decided_on, made

SOURCE = Path(__file__).with_name("words.c")
PACKED = 16  # bytes of the longest word that is looked up as two numbers
EMPTY = -1  # in the table, and of words that are not in it
SLOT = np.dtype([("low", "<u8"), ("high", "<u8"), ("number", "<i4"), ("unused", "<i4")])  # of the table of words
LINE_BREAKS = (b"\n", b"\n ", b" \n", b" \n ")  # that are one token each, as words.c numbers them
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


def read(text: bytes, first: int, last: int, table: NDArray[np.void], room: int, new: int, breaks: list[int]) -> Read:
    """Look up the tokens of text[first:last], which is `padded` and begins and ends with a word; see words.c for the rest.

    room: how many words may be put into the table; new: the number of the first of them; breaks: of LINE_BREAKS.
    """
    numbers, misses = np.empty(last - first, dtype=np.int32), np.empty((MOST_MISSES, 3), dtype=np.int64)
    end, found, known = ctypes.c_int64(first), ctypes.c_int64(), np.array(breaks, dtype=np.int32)
    function = decided_on(SOURCE).lmlab_words
    function.restype = ctypes.c_int64
    missed = function(
        ctypes.c_char_p(text), ctypes.byref(end), ctypes.c_int64(last), _address(table),
        ctypes.c_int32(len(table).bit_length() - 1), ctypes.c_int64(room), ctypes.c_int32(new), _address(known),
        _address(numbers), ctypes.byref(found), _address(misses), ctypes.c_int64(MOST_MISSES),
    )  # fmt: skip
    return Read(numbers[: found.value], misses[:missed], end.value)


def _address(array: NDArray[np.generic]) -> ctypes.c_void_p:
    return ctypes.c_void_p(array.ctypes.data)

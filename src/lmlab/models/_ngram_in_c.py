"""The functions of ngrams.c, where there are some."""

from __future__ import annotations

import ctypes
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from lmlab.hardware.c_kernels import decided_on, made

SOURCE = Path(__file__).with_name("ngrams.c")
LARGE = 1 << 18  # tokens or n-grams from which a compiler is worth asking


def worth_it(size: int) -> bool:
    """Whether so many tokens or n-grams are enough for it, and there are functions in C here."""
    return size >= LARGE and made(SOURCE) is not None


def call(name: str, *given: NDArray[np.generic] | np.int32 | int | None) -> int:
    """A function of ngrams.c: arrays as pointers, whole numbers as 64 bits, those that are 32 as that."""
    function = getattr(decided_on(SOURCE), f"lmlab_{name}")
    function.restype = ctypes.c_int64
    return int(function(*map(_for_c, given)))


def _for_c(value: NDArray[np.generic] | np.int32 | int | None) -> ctypes.c_void_p | ctypes.c_int32 | ctypes.c_int64:
    if value is None:
        return ctypes.c_void_p(None)
    if isinstance(value, np.int32):
        return ctypes.c_int32(int(value))
    return ctypes.c_int64(value) if isinstance(value, int) else ctypes.c_void_p(value.ctypes.data)

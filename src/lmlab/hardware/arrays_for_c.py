"""Calling functions in C with arrays of NumPy."""

from __future__ import annotations

import ctypes
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from lmlab.hardware.c_kernels import decided_on

Given = NDArray[np.generic] | bytes | np.int32 | int | None


def call(source: Path, name: str, *given: Given) -> int:
    """A function of a file that has been found `made`: arrays and bytes go as pointers, numbers as 64 bits, or 32 as that.

    What is given has to be contiguous and of the type that the function expects, which cannot be seen from here.
    """
    function = getattr(decided_on(source), f"lmlab_{name}")
    function.restype = ctypes.c_int64
    return int(function(*map(_for_c, given)))


def _for_c(value: Given) -> ctypes.c_void_p | ctypes.c_char_p | ctypes.c_int32 | ctypes.c_int64:
    if isinstance(value, bytes):
        return ctypes.c_char_p(value)
    if isinstance(value, np.ndarray):
        return ctypes.c_void_p(value.ctypes.data)
    if value is None:
        return ctypes.c_void_p(None)
    return ctypes.c_int32(int(value)) if isinstance(value, np.int32) else ctypes.c_int64(value)

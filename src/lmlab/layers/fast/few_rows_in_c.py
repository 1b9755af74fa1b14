"""Products of two to eight rows with a large matrix on a CPU, in C (`few_rows.c`); the plain twin is F.linear.

Libraries are made for many rows or for one. Between them some take several times the operations that there are to do: OpenBLAS
on ARM five times as many for two rows. Shapes: B rows, K inputs, N outputs.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, cast

import torch
from torch import Tensor
from torch.nn import functional as F

from lmlab.hardware.c_kernels import decided_on
from lmlab.hardware.races import Race, Work

SOURCE = Path(__file__).with_name("few_rows.c")
ROWS = range(2, 9)
PAIR = range(2, 4)  # a library may be good at these and bad at the others
LEAST = 1 << 16  # numbers of W: of fewer, the call takes what is saved
RACED_INPUTS, RACED_OUTPUTS = 384, 1536


def race_of(rows: int) -> Race:
    """The one that says whether ours is faster here with so many rows."""
    return PAIR_RACE if rows in PAIR else SOME_RACE


def product(x_BK: Tensor, weight_NK: Tensor) -> Tensor:
    """x Wᵀ of float32 numbers in memory, both laid out row by row, of so few rows."""
    (rows, inputs), outputs = x_BK.shape, len(weight_NK)
    out_BN = x_BK.new_empty(rows, outputs)
    given = x_BK.data_ptr(), weight_NK.data_ptr(), out_BN.data_ptr()
    _function()(*given, rows, inputs, outputs, torch.get_num_threads())
    return out_BN


@functools.cache
def _function() -> Callable[..., None]:
    """Its arguments are declared once: to make each of its own kind at every call takes longer than a small product."""
    function: Any = decided_on(SOURCE).lmlab_few_rows
    function.argtypes, function.restype = [ctypes.c_void_p] * 3 + [ctypes.c_int64] * 3 + [ctypes.c_int32], None
    return cast(Callable[..., None], function)


def _ways(counts: Sequence[int], dtype: torch.dtype) -> tuple[Work, Work]:
    """Into the hidden units of a block and out of them, with so many rows."""
    up_HD = torch.ones(RACED_OUTPUTS, RACED_INPUTS, dtype=dtype)
    down_DH = torch.ones(RACED_INPUTS, RACED_OUTPUTS, dtype=dtype)
    given = [torch.ones(rows, RACED_INPUTS, dtype=dtype) for rows in counts]

    def ours() -> None:
        for x_BD in given:
            product(product(x_BD, up_HD), down_DH)

    @torch.no_grad()
    def plain() -> None:
        for x_BD in given:
            F.linear(F.linear(x_BD, up_HD), down_DH)

    return ours, plain


PAIR_RACE = Race("products of two or three rows", SOURCE, functools.partial(_ways, (2, 3)), precisions=(torch.float32,))
SOME_RACE = Race(
    "products of four to eight rows", SOURCE, functools.partial(_ways, (4, 8)), precisions=(torch.float32,)
)

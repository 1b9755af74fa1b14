"""Products of two to eight rows with a large matrix on a CPU, in C (`few_rows.c`); the plain twin is F.linear.

Libraries are made for many rows or for one. Between them some take several times the operations that there are to do: OpenBLAS
on ARM five times as many for two rows. Shapes: B rows, K inputs, N outputs.
"""

from __future__ import annotations

import ctypes
from pathlib import Path

import torch
from torch import Tensor
from torch.nn import functional as F

from lmlab.hardware.c_kernels import decided_on
from lmlab.hardware.races import Race, Work

SOURCE = Path(__file__).with_name("few_rows.c")
ROWS = range(2, 9)
LEAST = 1 << 15  # numbers of W: of fewer, the call takes what is saved
RACED_ROWS, RACED_INPUTS, RACED_OUTPUTS = (2, 4, 8), 384, 1536


def product(x_BK: Tensor, weight_NK: Tensor) -> Tensor:
    """x Wᵀ of float32 numbers in memory, both laid out row by row, of so few rows."""
    out_BN = x_BK.new_empty(len(x_BK), len(weight_NK))
    sizes = (*x_BK.shape, len(weight_NK))
    decided_on(SOURCE).lmlab_few_rows(
        *(ctypes.c_void_p(tensor.data_ptr()) for tensor in (x_BK, weight_NK, out_BN)),
        *(ctypes.c_int64(size) for size in sizes),
        ctypes.c_int32(torch.get_num_threads()),
    )
    return out_BN


def _ways(dtype: torch.dtype) -> tuple[Work, Work]:
    """Into the hidden units of a block and out of them, for some numbers of rows."""
    up_HD = torch.ones(RACED_OUTPUTS, RACED_INPUTS, dtype=dtype)
    down_DH = torch.ones(RACED_INPUTS, RACED_OUTPUTS, dtype=dtype)
    given = [torch.ones(rows, RACED_INPUTS, dtype=dtype) for rows in RACED_ROWS]

    def ours() -> None:
        for x_BD in given:
            product(product(x_BD, up_HD), down_DH)

    @torch.no_grad()
    def plain() -> None:
        for x_BD in given:
            F.linear(F.linear(x_BD, up_HD), down_DH)

    return ours, plain


RACE = Race("products of few rows", SOURCE, _ways, precisions=(torch.float32,))

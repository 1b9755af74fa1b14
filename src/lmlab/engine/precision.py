"""The precision of the weights while decoding."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from lmlab.config import Mistake
from lmlab.hardware.precision import expect_slow_bf16

if TYPE_CHECKING:
    from lmlab.interface import LanguageModel

PRECISIONS = ("float32", "bf16")
_DTYPES = {"float32": torch.float32, "bf16": torch.bfloat16}


def dtype_for(model: LanguageModel, precision: str) -> torch.dtype:
    """Return the precision as torch names it.

    Raises:
        Mistake: there is no such precision, or the model cannot decode in it.
    """
    if precision not in _DTYPES:
        raise Mistake(
            f"{{precision}} of writing is float32 or bf16; got {precision!r}",
            code="writing-precision-unknown",
            precision=None,
        )
    dtype = _DTYPES[precision]
    if dtype not in model.decoding_dtypes:
        raise Mistake(
            f"{model.name} writes in float32 alone; leave {{precision}} out",
            code="writing-precision-float32-only",
            precision=precision,
        )
    if dtype is torch.bfloat16:
        expect_slow_bf16()
    return dtype

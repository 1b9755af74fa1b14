"""In which precision a text is written."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import torch

from lmlab.config import Mistake
from lmlab.hardware.precision import expect_slow_bf16

if TYPE_CHECKING:
    from lmlab.interface import LanguageModel

PRECISIONS = {"float32": torch.float32, "bf16": torch.bfloat16}


@contextmanager
def writing_in(model: LanguageModel, precision: str) -> Iterator[None]:
    """While it lasts the model's weights are rounded to this precision where it writes, and never where it scores."""
    if precision not in PRECISIONS:
        raise Mistake(
            f"{{precision}} of writing is float32 or bf16; got {precision!r}",
            code="writing-precision-unknown",
            precision=None,
        )
    dtype, before = PRECISIONS[precision], model.writing_dtype
    if dtype not in model.writing_dtypes:
        raise Mistake(
            f"{model.name} writes in float32 alone; leave {{precision}} out",
            code="writing-precision-float32-only",
            precision=precision,
        )
    if dtype is torch.bfloat16:
        expect_slow_bf16()
    model.writing_dtype = dtype
    try:
        yield
    finally:
        model.writing_dtype = before

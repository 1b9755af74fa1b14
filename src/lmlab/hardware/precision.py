"""Products in the precision they are asked for, whatever torch prefers on this machine or did before in this process."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager

import torch

ONEDNN = torch.backends.mkldnn.enabled  # before anything is multiplied


@contextmanager
def real_float32() -> Iterator[None]:
    """Products of float32 numbers are products of float32 numbers, also on a GPU, where torch rounds some of them further.

    By itself it lets cuDNN (recurrent networks) multiply with ten bits of mantissa (TF32). Scores are to agree with a CPU's.
    """
    onednn_as_at_first()
    if not torch.cuda.is_available():
        yield
        return
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("highest")
    try:
        with torch.backends.cudnn.flags(
            enabled=torch.backends.cudnn.enabled,
            benchmark=torch.backends.cudnn.benchmark,
            deterministic=torch.backends.cudnn.deterministic,
            allow_tf32=False,
        ):
            yield
    finally:
        torch.set_float32_matmul_precision(before)


def onednn_as_at_first() -> None:
    """Let oneDNN multiply again, which torch gives up for good at the first product in bf16 that a processor has no units for.

    From then on float32 would come out with other last bits, in this process alone.
    """
    if torch.backends.mkldnn.enabled != ONEDNN:
        torch.backends.mkldnn.set_flags(_enabled=ONEDNN)


def expect_slow_bf16() -> None:
    """Keep torch from telling, with a page of its stack, that a processor has no units for bf16: whoever asks is told by us."""
    warnings.filterwarnings("ignore", message="mkldnn_matmul failed")

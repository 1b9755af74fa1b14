"""Whether kernels in triton can be made here, and which."""

from __future__ import annotations

import importlib.util

import torch

HAS_TRITON = importlib.util.find_spec("triton") is not None
COPY_ENGINE = 9, 0  # the compute capability that brought it, with Hopper


def has_copy_engine() -> bool:
    """Whether kernels may fetch their tiles by it: this GPU has one, and this triton, unlike older ones, speaks to it."""
    if not HAS_TRITON or torch.cuda.get_device_capability() < COPY_ENGINE:
        return False
    return importlib.util.find_spec("triton.tools.tensor_descriptor") is not None


# All that torch.compiler.assume_constant_result does; but to call it imports the compiler: a second of every start.
has_copy_engine._dynamo_marked_constant = True  # type: ignore[attr-defined]

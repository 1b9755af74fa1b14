"""Whether kernels in triton can be made here, and which."""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Callable
from typing import Any, TypeVar

import torch

HAS_TRITON = importlib.util.find_spec("triton") is not None
Answer = TypeVar("Answer", bound=Callable[[], Any])
COPY_ENGINE = 9, 0  # the compute capability that brought it, with Hopper
# The first and the last triton whose gluon takes our kernels (which have run by the first): it changes from one to the next.
GLUON = (3, 6), (3, 9)


def marked_constant(function: Answer) -> Answer:
    """What it answers is the same for as long as the process lives: the compiler may ask it once, and look no further.

    All that torch.compiler.assume_constant_result does; but to call that imports the compiler: a second of every start.
    """
    function._dynamo_marked_constant = True  # type: ignore[attr-defined]
    return function


@marked_constant
def has_copy_engine() -> bool:
    """Whether kernels may fetch their tiles by it: this GPU has one, and this triton, unlike older ones, speaks to it.

    Other makers' GPUs have numbers like these, and no such engine.
    """
    if not HAS_TRITON or torch.version.hip is not None or torch.cuda.get_device_capability() < COPY_ENGINE:
        return False
    return importlib.util.find_spec("triton.tools.tensor_descriptor") is not None


@marked_constant
def has_trades() -> bool:
    """Whether kernels can be made whose warps have different trades: this GPU is a Hopper, and triton's gluon is known.

    Not newer ones: what multiplies there is told so in another way.
    """
    is_hopper = has_copy_engine() and torch.cuda.get_device_capability()[0] == COPY_ENGINE[0]
    return is_hopper and GLUON[0] <= version() <= GLUON[1]


def version() -> tuple[int, int]:
    """Of triton; 0.0 where there is none or it does not tell."""
    if not HAS_TRITON:
        return 0, 0
    import triton

    found = re.match(r"(\d+)\.(\d+)", str(triton.__version__))
    return (0, 0) if found is None else (int(found[1]), int(found[2]))

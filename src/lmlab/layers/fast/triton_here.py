"""Whether kernels in triton can be made here, and which."""

from __future__ import annotations

import importlib.metadata
import importlib.util
from collections.abc import Callable
from typing import Any, TypeVar

import torch

HAS_TRITON = importlib.util.find_spec("triton") is not None
Answer = TypeVar("Answer", bound=Callable[[], Any])
COPY_ENGINE = 9, 0  # the compute capability that brought it, with Hopper
GLUON = (
    (3, 6),
    (3, 9),
)  # the first and the last triton whose gluon is known to take our kernels: it changes from one to the next


def marked_constant(function: Answer) -> Answer:
    """What it answers is the same for as long as the process lives: the compiler may ask it once, and look no further.

    All that torch.compiler.assume_constant_result does; but to call that imports the compiler: a second of every start.
    """
    function._dynamo_marked_constant = True  # type: ignore[attr-defined]
    return function


@marked_constant
def has_copy_engine() -> bool:
    """Whether kernels may fetch their tiles by it: this GPU has one, and this triton, unlike older ones, speaks to it."""
    if not HAS_TRITON or torch.cuda.get_device_capability() < COPY_ENGINE:
        return False
    return importlib.util.find_spec("triton.tools.tensor_descriptor") is not None


@marked_constant
def has_trades() -> bool:
    """Whether kernels can be made whose warps have different trades: this GPU is a Hopper, and triton's gluon is known.

    Not newer ones: what multiplies there is told so in another way.
    """
    if not has_copy_engine() or torch.cuda.get_device_capability()[0] != COPY_ENGINE[0]:
        return False
    major, minor = importlib.metadata.version("triton").split(".")[:2]
    return GLUON[0] <= (int(major), int(minor)) <= GLUON[1]

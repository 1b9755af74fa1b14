"""The functions of ngrams.c, where there are some."""

from __future__ import annotations

from pathlib import Path

from lmlab.hardware import arrays_for_c
from lmlab.hardware.arrays_for_c import Given
from lmlab.hardware.c_kernels import made

SOURCE = Path(__file__).with_name("ngrams.c")
LARGE = 1 << 18  # tokens or n-grams from which a compiler is worth asking


def worth_it(size: int) -> bool:
    """Whether so many tokens or n-grams are enough for it, and there are functions in C here."""
    return size >= LARGE and made(SOURCE) is not None


def call(name: str, *given: Given) -> int:
    """One of them."""
    return arrays_for_c.call(SOURCE, name, *given)

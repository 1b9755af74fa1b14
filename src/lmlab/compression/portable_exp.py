"""e to the x, to the last bit the same on every machine.

A sum or product of float64 numbers has one right result, which IEEE 754 asks for and every processor gives. The exponential
has none: libraries round it this way or that, and choose by the processor how they compute it. A file that
was coded on one machine and opened on another needs the very same numbers, so here it is made of operations that have one
right result: multiply, add, round to a whole number, and scale by a power of two, each of whole arrays by itself, so that no
compiler can fuse two of them into one with another rounding.

    e^x = 2^k · e^r,   k = round(x / ln 2),   r = x - k ln 2,   |r| <= ln 2 / 2

e^r is its Taylor series up to r^13 / 13!, whose remainder is less than 2^-56 there; k ln 2 is subtracted in two parts, of which
the first has so few bits that its product with k is exact (Cody & Waite 1980).
"""

from __future__ import annotations

import math

import numpy as np

_TERMS = [1.0 / math.factorial(n) for n in range(14)]
_PER_LN2 = float.fromhex("0x1.71547652b82fep+0")  # 1 / ln 2
_LN2_HIGH = float.fromhex("0x1.62e42fee00000p-1")  # the first 32 bits of ln 2
_LN2_LOW = float.fromhex("0x1.a39ef35793c76p-33")  # what is left of it
_LEAST = -700.0  # below this the result is 0: no share of 2^32 parts can tell


def exponential(x: np.ndarray) -> np.ndarray:
    """e to each x of an array (float64), x <= 1 or so; 0 where x is below -700; what is not a number stays so."""
    x = np.asarray(x, dtype=np.float64)
    r = np.maximum(x, _LEAST)
    k = r * _PER_LN2
    np.rint(k, out=k)
    result = k * _LN2_HIGH  # where sums are kept until there is a result: every array more is memory to fetch
    r -= result
    np.multiply(k, _LN2_LOW, out=result)
    r -= result
    result.fill(_TERMS[-1])
    for term in reversed(_TERMS[:-1]):
        result *= r
        result += term
    with np.errstate(invalid="ignore"):  # what is not a number has no power of two either, and stays what it is
        np.ldexp(result, k.astype(np.int32), out=result)
    result[x < _LEAST] = 0.0
    return result

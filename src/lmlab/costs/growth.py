"""How operations grow with length and width: counted while attention runs, fitted as powers, beside the theory.

Vaswani 2017: attention from n queries to m tokens of width k costs O(n k² + m k² + n m k): in an encoder n = m = M, in a
decoder n = m = N, between them n = N and m = M. Writing N tokens one after the other reads, without a cache, every beginning
anew, which costs one power of N more. Nothing is computed: tensors have sizes alone (torch's meta device).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch.utils.flop_counter import FlopCounterMode

LENGTHS, WIDTHS = tuple(2**i for i in range(12, 17)), tuple(2**i for i in range(8, 13))
SHORT, NARROW = 8, 16  # tokens where width grows; width where length grows
WRITTEN = (256, 512, 1024)  # tokens that are written one by one


def attention(queries: int, memory: int, width: int, *, made: int | None = None) -> int:
    """Operations of one attention with its four projections. made: of how many tokens keys and values must be made."""
    with FlopCounterMode(display=False) as counter, torch.device("meta"):
        w = torch.empty(width, width)
        q_NK = torch.empty(queries, width) @ w
        made_MK = torch.empty(memory if made is None else made, width)
        _ = made_MK @ w, made_MK @ w  # keys and values
        keys_MK, values_MK = torch.empty(memory, width), torch.empty(memory, width)
        _ = ((q_NK @ keys_MK.T).softmax(-1) @ values_MK) @ w
    return int(counter.get_total_flops())


def writing(tokens: int, width: int, *, cache: bool) -> int:
    """Operations of writing so many tokens one by one: with a cache each makes one key; without, all are made again."""
    if cache:
        return sum(attention(1, t, width, made=1) for t in range(1, tokens + 1))
    return sum(attention(t, t, width) for t in range(1, tokens + 1))


@dataclass(frozen=True)
class Growth:
    """Operations at some sizes, the power that fits them best, and the power of the theory."""

    name: str
    along: str  # what grows
    sizes: Sequence[int]
    operations: Sequence[int]
    theory: float

    @property
    def power(self) -> float:
        """The slope of the straight line through logarithms, by least squares."""
        return fitted_power(self.sizes, self.operations)


def fitted_power(sizes: Sequence[float], costs: Sequence[float]) -> float:
    """Of sizes in costs."""
    x, y = [math.log(s) for s in sizes], [math.log(c) for c in costs]
    mean_x, mean_y = sum(x) / len(x), sum(y) / len(y)
    return sum((a - mean_x) * (b - mean_y) for a, b in zip(x, y, strict=True)) / sum((a - mean_x) ** 2 for a in x)


def growths() -> list[Growth]:
    """Encoder, cross and decoder attention along each length and the width; and writing, with and without a cache."""

    def along(name: str, what: str, sizes: Sequence[int], cost: Callable[[int], int], theory: float) -> Growth:
        return Growth(name, what, sizes, [cost(size) for size in sizes], theory)

    return [
        along("encoder", "M", LENGTHS, lambda m: attention(m, m, NARROW), 2),
        along("encoder", "k", WIDTHS, lambda k: attention(SHORT, SHORT, k), 2),
        along("cross", "N", LENGTHS, lambda n: attention(n, LENGTHS[0], NARROW), 1),
        along("cross", "M", LENGTHS, lambda m: attention(LENGTHS[0], m, NARROW), 1),
        along("cross", "k", WIDTHS, lambda k: attention(SHORT, SHORT, k), 2),
        along("decoder", "N", LENGTHS, lambda n: attention(n, n, NARROW), 2),
        along("decoder", "k", WIDTHS, lambda k: attention(SHORT, SHORT, k), 2),
        along("writing with a cache", "N", WRITTEN, lambda n: writing(n, 4, cache=True), 2),
        along("writing without a cache", "N", WRITTEN, lambda n: writing(n, 4, cache=False), 3),
    ]


def crossing(width: int) -> int:
    """The length from which scores and averages (4 N² k) cost more than the four projections (8 N k²), found by counting."""
    low, high = 1, 64 * width
    while low < high:
        middle = (low + high) // 2
        pairs = attention(middle, middle, width) - 8 * middle * width**2
        low, high = (low, middle) if pairs >= 8 * middle * width**2 else (middle + 1, high)
    return low

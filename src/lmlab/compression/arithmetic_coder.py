"""Arithmetic coding: a sequence of symbols becomes one number, in as many bits as their probabilities say.

The coder keeps an interval [low, low + range) of 64-bit integers and narrows it to each symbol's share (Rissanen &
Langdon 1979; in whole bytes, as Martin 1979). A carry out of the 64 bits runs back through the bytes already written,
so nothing is lost to avoiding it. The range never falls below 2^56 and shares are counted in units of 2^-32 of it, so
that rounding costs less than 2^-24 of a bit a symbol.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import final

import numpy as np

from lmlab.config import Mistake

TOTAL_BITS = 32
TOTAL = 1 << TOTAL_BITS  # the shares of all symbols together
SUM_TOLERANCE = 0.01  # far more than rounding brings about: beyond it a model is broken
_FULL_BITS = 64
_FULL = 1 << _FULL_BITS
_LEAST = 1 << (_FULL_BITS - 8)


class OutOfStep(ValueError):
    """The decoder met what no encoder writes: the bytes, or the probabilities, are not those of the encoder."""


@final
class Table:
    """The shares of V symbols: whole numbers, each at least 1, that sum to `TOTAL` and follow the probabilities.

    At least 1, so that even a symbol of probability zero can be sent (for 32 bits); to the others that costs
    V / 2^32 of their share. A share is made only when asked for, since of a large vocabulary few are.
    """

    def __init__(self, cumulative_V: np.ndarray) -> None:
        """cumulative_V: running sum of the probabilities (float64), which sum to one as nearly as float32 can say."""
        self._cumulative_V = cumulative_V
        self._size = len(cumulative_V)
        assert 0 < self._size < TOTAL
        total = cumulative_V.item(-1)
        if not abs(total - 1.0) < SUM_TOLERANCE:
            raise Mistake(
                f"these probabilities sum to {total}, not to 1: the model is broken; train it again",
                code="probabilities-not-one",
            )
        self._scale = (TOTAL - self._size) / total

    def start(self, symbol: int) -> int:
        """The shares of all symbols before this one."""
        if symbol == self._size:
            return TOTAL
        # Grows by at least 1 a symbol: each rounding here is monotone.
        return symbol + int(self._cumulative_V.item(symbol - 1) * self._scale) if symbol else 0

    def find(self, target: int) -> int:
        """The symbol whose share holds this place, 0 <= target < TOTAL."""
        return bisect_right(range(1, self._size), target, key=self.start)


@final
class Encoder:
    """Symbols to bytes."""

    def __init__(self) -> None:
        self._low, self._range = 0, _FULL
        self._out = bytearray()

    def encode(self, table: Table, symbol: int) -> None:
        """Narrow the interval to the share of `symbol`."""
        start = table.start(symbol)
        unit = self._range >> TOTAL_BITS
        self._low += unit * start
        self._range = unit * (table.start(symbol + 1) - start)
        self._carry()
        while self._range < _LEAST:
            self._out.append(self._low >> (_FULL_BITS - 8))
            self._low = (self._low << 8) & (_FULL - 1)
            self._range <<= 8

    def finish(self) -> bytes:
        """The shortest bytes that, followed by zeros, name a number in the interval."""
        if self._low:
            self._low, end = -(-self._low // _LEAST) * _LEAST, self._low + self._range
            assert self._low < end, "the range holds a multiple of its least value"
            if end > _FULL:
                self._low = _FULL
            self._carry()
            if self._low:
                self._out.append(self._low >> (_FULL_BITS - 8))
        return bytes(self._out)

    def _carry(self) -> None:
        """Add what overflows `low` to the number written so far."""
        if self._low < _FULL:
            return
        self._low -= _FULL
        last = len(self._out) - 1
        while self._out[last] == 0xFF:
            self._out[last] = 0
            last -= 1
        self._out[last] += 1  # there is one: the whole number stays below 1


@final
class Decoder:
    """Bytes to symbols: the same narrowing, with the number's distance from `low` in place of `low`."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._read = _FULL_BITS // 8
        self._range = _FULL
        self._offset = int.from_bytes(data[: self._read].ljust(self._read, b"\0"), "big")

    def decode(self, table: Table) -> int:
        """The next symbol."""
        unit = self._range >> TOTAL_BITS
        target = self._offset // unit
        if target >= TOTAL:
            raise OutOfStep("the number lies outside every symbol's share")
        symbol = table.find(target)
        start = table.start(symbol)
        self._offset -= unit * start
        self._range = unit * (table.start(symbol + 1) - start)
        while self._range < _LEAST:
            byte = self._data[self._read] if self._read < len(self._data) else 0
            self._offset = self._offset << 8 | byte
            self._range <<= 8
            self._read += 1
        if self._consumed > len(self._data):
            raise OutOfStep("more symbols were asked for than the bytes hold")
        return symbol

    def finish(self) -> None:
        """OutOfStep unless all bytes were needed."""
        if self._consumed < len(self._data) - 1:
            raise OutOfStep("the bytes hold more than was asked for")

    @property
    def _consumed(self) -> int:
        """Bytes that the encoder had written at this point."""
        return self._read - _FULL_BITS // 8

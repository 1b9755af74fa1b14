"""The natural logarithm of a whole number, to the last bit the same on every machine."""

from __future__ import annotations

from decimal import Decimal
from functools import cache


@cache
def natural_log(number: int) -> float:
    """ln of a whole number from 1 up: rounded once, by decimal arithmetic, where math libraries round as they like."""
    return float(Decimal(number).ln())

"""Numbers read the same everywhere."""

from __future__ import annotations

import math

import pytest

from lmlab.page import numbers


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (None, ""),
        (3.14159, "3.1"),
        (99.96, "100.0"),
        (1234.4, "1,234"),
        (12_345.0, "12.3k"),
        (3.2e12, "3.2T"),
        (1e30, "1.0e+30"),
    ],
)
def test_large_numbers_stay_short(value: float | None, shown: str) -> None:
    assert numbers.short(value) == shown


def test_what_is_infinite_is_said_to_be_so() -> None:
    assert numbers.bits(None) == numbers.bits(math.inf) == "infinite"
    assert numbers.bits(1.23456) == "1.2346"
    assert numbers.interval(None) == numbers.plus_minus(math.nan) == ""

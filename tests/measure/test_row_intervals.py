"""Intervals over rows: by hand, and how often they cover; narrower ones are caught."""

from __future__ import annotations

import math

import numpy as np
import pytest

from lmlab.measure.row_intervals import of_mean, of_quotient, over_rows, quotient
from lmlab.measure.student import t_quantile
from lmlab.results import Figure


def test_of_a_symmetric_sample_it_is_students() -> None:
    values = np.array([-3.0, -1.0, 0.0, 1.0, 3.0])
    found = of_mean(values)
    half = t_quantile(4) * values.std(ddof=1) / math.sqrt(5)
    assert (found.value, found.low, found.high) == pytest.approx((0.0, -half, half))


def test_it_reaches_further_where_the_rare_large_values_are() -> None:
    values = np.array([1.0] * 30 + [9.0])
    found = of_mean(values)
    assert found.high - found.value > 1.5 * (found.value - found.low)
    turned = of_mean(-values)
    assert (turned.low, turned.high) == pytest.approx((-found.high, -found.low))


def test_a_quotient_of_sums_is_not_a_mean_of_quotients() -> None:
    found = of_quotient(np.array([1.0, 30.0]), np.array([1.0, 10.0]))
    assert found.value == pytest.approx(31 / 11)


def test_one_row_tells_nothing_of_others_and_no_interval_leaves_what_can_be() -> None:
    assert of_mean(np.array([2.0]), least=0.0) == Figure(value=2.0, low=0.0, high=math.inf)
    assert of_mean(np.array([0.0, 0.0, 0.0, 1.0]), least=0.0).low == 0.0
    assert over_rows(quotient, np.array([[0.9, 1.0], [1.0, 1.0], [1.0, 1.0]]), most=1.0).high == 1.0
    assert of_mean(np.zeros(4)) == Figure(value=0.0, low=0.0, high=0.0)


def coverage(narrower: float = 1.0) -> float:
    """Of means of a skewed population, by 20 and 200 rows; narrower: what the half widths are multiplied by."""
    random, covered = np.random.default_rng(1), []
    for rows in (20, 200):
        for values in random.gamma(0.5, 2.0, (500, rows)):
            found = of_mean(values, least=0.0)
            low, high = (found.value + narrower * (edge - found.value) for edge in (found.low, found.high))
            covered.append(low <= 1.0 <= high)
    return float(np.mean(covered))


def test_they_cover_as_often_as_they_say_and_one_of_the_same_rows_that_is_too_narrow_does_not() -> None:
    assert 0.93 <= coverage() <= 0.97
    assert coverage(narrower=0.4) < 0.7

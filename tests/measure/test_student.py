from __future__ import annotations

import numpy as np
import pytest

from lmlab.measure.student import mixture_quantile, t_quantile, t_within


@pytest.mark.parametrize(
    ("freedom", "level", "expected"),
    [
        (1, 0.95, 12.7062),
        (2, 0.95, 4.3027),
        (5, 0.9, 2.0150),
        (12, 0.95, 2.1788),
        (24, 0.99, 2.7969),
        (200, 0.95, 1.9719),
    ],
)
def test_quantiles_are_those_of_the_tables(freedom: int, level: float, expected: float) -> None:
    assert t_quantile(freedom, level) == pytest.approx(expected, abs=1e-4)
    assert t_within(np.array([expected]), freedom)[0] == pytest.approx(level, abs=1e-4)


def test_a_mixture_of_one_scale_is_student_and_of_two_lies_between_them() -> None:
    one = mixture_quantile(np.array([[3.0]]), np.array([[1.0]]), 12, 0.95)[0]
    assert one == pytest.approx(3.0 * t_quantile(12, 0.95), rel=1e-6)
    two = mixture_quantile(np.array([[1.0, 3.0]]), np.array([[0.5, 0.5]]), 12, 0.95)[0]
    assert t_quantile(12) < two < one


def test_no_scale_at_all_has_no_width() -> None:
    assert mixture_quantile(np.zeros((1, 2)), np.full((1, 2), 0.5), 12, 0.95)[0] == pytest.approx(0.0, abs=1e-300)

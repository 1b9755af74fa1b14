from __future__ import annotations

import math

import numpy as np
import pytest

from lmlab.measure.luck import NO_LUCK, Luck


def test_one_seed_knows_nothing_of_luck_and_says_so() -> None:
    found = Luck.measured([[2.0], [], [2.5]])
    assert found == NO_LUCK
    assert not found.known
    assert found.variance(np.array([0]), np.array([1])).tolist() == [0.0]
    assert "trained once" in found.sentence
    assert "says nothing of the kinds" in found.sentence


def test_several_seeds_measure_it_pooled_and_relative_to_the_bits() -> None:
    found = Luck.measured([[2.0, 2.2], [1.0, 1.0], []])
    relative = math.sqrt((2 * (0.1 / 2.1) ** 2 + 0.0) / 2)
    assert found.freedom == 2
    assert found.relative == pytest.approx(relative)
    assert found.errors == pytest.approx((relative * 2.1 / math.sqrt(2), relative * 1.0 / math.sqrt(2), 0.0))
    assert found.variance(np.array([0]), np.array([2]))[0] == pytest.approx(found.errors[0] ** 2)
    assert "measured here" in found.sentence


def test_infinite_runs_are_left_out() -> None:
    found = Luck.measured([[2.0, 2.2], [1.0, math.inf]])
    assert found.freedom == 1
    assert found.errors[1] == 0.0

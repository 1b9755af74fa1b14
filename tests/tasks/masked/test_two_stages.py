"""Masked losses vary with the windows that are read and with the tokens that are masked: intervals hold both."""

from __future__ import annotations

import math

import numpy as np
import pytest

from lmlab.measure import interval
from lmlab.measure.interval import Interval
from lmlab.measure.interval_units import Units
from lmlab.tasks.masked.two_stages import TwoStages

WINDOWS, TOKENS = 200, 80


def population(seed: int = 0) -> np.ndarray:
    """Nats of every token, masked (2 models): windows differ, and their tokens differ much more."""
    random = np.random.default_rng(seed)
    hard_W1 = random.gamma(20.0, 0.1, (WINDOWS, 1))
    one = random.gamma(0.7, hard_W1, (WINDOWS, TOKENS))
    return np.stack([one, one + random.normal(0.2, 1.0, (WINDOWS, TOKENS)).clip(-one, None)])


def drawn(nats_KWT: np.ndarray, read: int, random: np.random.Generator) -> TwoStages:
    """So many windows, one out of each stratum of neighbours, and 15% of their tokens."""
    chosen = np.floor((np.arange(read) + random.random(read)) * (WINDOWS / read)).astype(int)
    masked = np.sort(random.choice(read * TOKENS, read * TOKENS * 3 // 20, replace=False))
    nats_KN = nats_KWT[:, chosen].reshape(2, -1)[:, masked]
    window_N = masked // TOKENS
    units = Units(
        nats_KU=np.stack([np.bincount(window_N, nats_N, minlength=read) for nats_N in nats_KN]),
        bytes_KU=np.tile(np.bincount(window_N, minlength=read).astype(float), (2, 1)),
        document_U=np.zeros(read, dtype=np.int64),
        share=read / WINDOWS,
    )
    return TwoStages(units, nats_KN)


@pytest.mark.parametrize("read", [40, 120, 190])
def test_intervals_cover_what_masking_over_and_over_gives_and_no_second_stage_does_not(read: int) -> None:
    nats_KWT, random = population(), np.random.default_rng(1)
    truth = nats_KWT.mean((1, 2)) / math.log(2)
    covered, narrow, widths, found_values = [], [], [], []
    for _ in range(300):
        sample = drawn(nats_KWT, read, random)
        own, pair = sample.own_intervals()[0], sample.difference(0, 1)
        covered.append((_holds(own, truth[0]), _holds(pair, truth[0] - truth[1])))
        narrow.append(_holds(interval.own_intervals(sample.units)[0], truth[0]))
        widths.append(own.high - own.low)  # type: ignore[operator]
        found_values.append(own.estimate)
    assert (np.mean(covered, axis=0) >= 0.9).all()  # of 300: 0.95 less four standard errors
    assert np.mean(widths) <= 1.3 * 2 * 1.96 * np.std(found_values)
    if read == 190:
        assert np.mean(narrow) < 0.6  # the variance of the masks is shrunk as if all tokens had been masked


def test_an_interval_for_other_text_stays_as_it_is() -> None:
    sample = drawn(population(), 200, np.random.default_rng(2))
    assert sample.own_intervals()[0] == interval.own_intervals(sample.units)[0]


def _holds(one: Interval, truth: float) -> bool:
    assert one.low is not None
    assert one.high is not None
    return one.low <= truth <= one.high

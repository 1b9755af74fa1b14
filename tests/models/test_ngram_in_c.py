"""Counting and smoothing in C: whatever the text, the same n-grams, counts and probabilities, to the last bit."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lmlab.hardware.c_kernels import no_c_kernels, why_not
from lmlab.hardware.openmp import set_threads
from lmlab.models import _ngram_count_in_c, _ngram_in_c, _ngram_smooth
from lmlab.models._ngram_blocks import Counts, Ids
from lmlab.models._ngram_count import count_ngrams, with_begins
from lmlab.models._ngram_in_c import SOURCE
from lmlab.models._ngram_smooth import kneser_ney

pytestmark = pytest.mark.skipif(bool(why_not(SOURCE)), reason=why_not(SOURCE))


@pytest.fixture(autouse=True)
def for_short_texts_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """And in stretches so small that most texts have several."""
    monkeypatch.setattr(_ngram_in_c, "LARGE", 0)
    monkeypatch.setattr(_ngram_count_in_c, "BLOCK", 7)
    monkeypatch.setattr(_ngram_smooth, "BLOCK", 7)


def both_ways(tokens: Ids, restarts_V: np.ndarray, order: int) -> tuple[list[Counts], list[Counts]]:
    V = len(restarts_V)
    with no_c_kernels():
        plain = list(count_ngrams(tokens, restarts_V, V, order))
    return plain, list(count_ngrams(tokens, restarts_V, V, order))


def the_same(ones: list[object], others: list[object]) -> None:
    assert len(ones) == len(others)
    for one, other in zip(ones, others, strict=True):
        for field in dataclasses.fields(one):  # type: ignore[arg-type]
            a, b = getattr(one, field.name), getattr(other, field.name)
            assert np.asarray(a).dtype == np.asarray(b).dtype, field.name
            np.testing.assert_array_equal(a, b, err_msg=field.name)


def check(tokens: Ids, restarts_V: np.ndarray, order: int) -> None:
    plain, in_c = both_ways(tokens, restarts_V, order)
    the_same([*plain], [*in_c])
    V = len(restarts_V)
    with no_c_kernels():
        levels, n_of_n = kneser_ney(plain, V)
    others, n_of_n_in_c = kneser_ney(in_c, V)
    the_same([*levels], [*others])
    np.testing.assert_array_equal(n_of_n, n_of_n_in_c)


@given(
    documents=st.lists(st.lists(st.integers(0, 4), max_size=60), max_size=4),
    restarts=st.sets(st.integers(0, 4)),
    order=st.integers(1, 6),
)
@settings(deadline=None)
def test_the_same_for_any_text(documents: list[list[int]], restarts: set[int], order: int) -> None:
    restarts_V = np.isin(np.arange(5), list(restarts))
    ids = np.array([token for document in documents for token in document], dtype=np.uint16)
    starts = np.cumsum([0, *map(len, documents)])
    check(with_begins(ids, starts, 5), restarts_V, order)


@pytest.mark.parametrize("vocab_size", [1, 2, 300, 70_000])
@pytest.mark.parametrize("threads", [1, 3])
def test_the_same_for_long_texts(vocab_size: int, threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Groups of all sizes: sorted by insertion, and with digits of 8 and of 11 bits."""
    monkeypatch.setattr(_ngram_count_in_c, "BLOCK", 5000)
    monkeypatch.setattr(_ngram_smooth, "BLOCK", 5000)
    draw = np.random.Generator(np.random.PCG64(vocab_size))
    ids = (draw.random(40_000) ** 6 * vocab_size).astype(np.uint32)
    set_threads(threads)
    try:
        starts = np.array([0, 0, 11, 20_000, 40_000])
        check(with_begins(ids, starts, vocab_size), draw.random(vocab_size) < 0.1, 4)
    finally:
        set_threads(1)


def test_a_token_outside_the_vocabulary_is_refused() -> None:
    with pytest.raises(ValueError, match="token 850 is none"):
        list(count_ngrams(np.array([100, 850], dtype=np.int32), np.zeros(100, dtype=bool), 100, 2))


def test_counts_that_were_changed_too_early_are_refused() -> None:
    tokens = np.array([3, 1, 2, 1, 1, 2], dtype=np.int32)
    counting = count_ngrams(tokens, np.zeros(3, dtype=bool), 3, 3)
    next(counting)
    next(counting).counts[:] = 1000
    with pytest.raises(ValueError, match="before the next order"):
        next(counting)


def test_discounts_of_many_digits_come_to_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """A tiny discount among large ones: sums that are made one by one would depend on their order."""
    monkeypatch.setattr(_ngram_smooth, "BLOCK", 1 << 18)
    m = 60_001
    c = np.array([3] * (4 * m - 1) + [2] * 3 * m + [1] * 6 * m, dtype=np.int32)
    draw = np.random.Generator(np.random.PCG64(0))
    counts = Counts(
        keys=np.arange(len(c), dtype=np.int64),
        counts=c,
        suffix=np.arange(len(c), dtype=np.int32),
        begins=len(c),
    )
    discount = np.array([0.0, 0.5, 1 / (2 * m), 3.0], dtype=np.float32)
    below = draw.random(len(c), dtype=np.float32)
    with no_c_kernels():
        plain = _ngram_smooth._interpolate([], counts, len(c), discount, below)
    np.testing.assert_array_equal(_ngram_smooth._interpolate([], counts, len(c), discount, below), plain)


def test_no_memory_for_it_is_no_wrong_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        _ngram_count_in_c, "call", lambda name, *given: 1 if name == "extend" else _ngram_in_c.call(name, *given)
    )
    with pytest.raises(MemoryError):
        list(count_ngrams(np.array([3, 1, 2, 1], dtype=np.int32), np.zeros(3, dtype=bool), 3, 2))

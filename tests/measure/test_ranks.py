from __future__ import annotations

import math
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lmlab.measure.interval_units import Units
from lmlab.measure.letters import letters_of
from lmlab.measure.luck import NO_LUCK, Luck
from lmlab.measure.ranks import Ranking, ranking
from thinning import examples, thinned


def models(means: list[float], noise: float, seed: int, count: int = 60, share: float = 0.1) -> Units:
    """Models on one text of `count` stretches, with these mean nats a stretch of 32 bytes, independent of each other."""
    random = np.random.default_rng(seed)
    hard = random.normal(0, 10, count)
    nats = np.array(means)[:, None] + hard + random.normal(0, noise, (len(means), count))
    size = np.full(nats.shape, 32.0)
    return Units(nats_KU=nats, bytes_KU=size, document_U=np.zeros(count, dtype=np.int64), share=share)


def sound(found: Ranking) -> None:
    """Ranks, letters and intervals say the same."""
    better = found.better_KK
    assert not (better & better.T).any()
    for i, j in combinations(range(len(found.bits_K)), 2):
        apart = bool(found.apart_KK[i, j])
        assert apart == (not found.low_KK[i, j] <= 0.0 <= found.high_KK[i, j])
        assert apart != bool(set(found.letters[i]) & set(found.letters[j]))
        if found.ranks[i] == found.ranks[j]:
            assert not apart
        if apart:
            assert (found.bits_K[i] < found.bits_K[j]) == (found.ranks[i] < found.ranks[j])
    composed = (better.astype(int) @ better.astype(int)) > 0
    assert not (composed & ~better).any()  # a strict order
    for best, worst in found.ranges:
        assert 1 <= best <= worst <= len(found.bits_K)


@pytest.mark.parametrize("count", thinned([2, 5, 11], [5]))
def test_equal_models_are_told_apart_in_at_most_one_family_of_twenty(count: int) -> None:
    families = 200
    apart = sum(
        bool(ranking(models([40.0] * count, 3.0, seed, 24), seed=seed).apart_KK.any()) for seed in range(families)
    )
    assert apart / families <= 0.05 + 2 * math.sqrt(0.05 * 0.95 / families)


def test_looking_at_every_pair_by_itself_would_be_seen_here() -> None:
    """The planted mistake: each pair at its own 95%."""
    from lmlab.measure.interval import difference

    apart = 0
    for seed in range(100):
        text = models([40.0] * 11, 3.0, seed)
        apart += any(not difference(text, i, j).includes_zero for i, j in combinations(range(11), 2))
    assert apart > 30


def test_models_that_differ_are_told_apart() -> None:
    found = ranking(models([50, 40, 40, 60, 40], 1.0, seed=0))
    assert found.ranks == [4, 1, 1, 5, 1]
    assert found.letters == ("b", "a", "a", "c", "a")
    assert found.ranges[0] == (4, 4)
    assert found.ranges[1] == (1, 3)
    sound(found)


def test_being_tied_is_no_order_and_letters_show_it() -> None:
    """The middle one is tied with both others, which are not tied with each other."""
    for seed in range(50):
        found = ranking(models([40.0, 40.9, 41.8], 2.4, seed), seed=seed)
        sound(found)
        if found.letters == ("a", "ab", "b"):
            assert found.ranges == [(1, 2), (1, 3), (2, 3)]
            break
    else:
        pytest.fail("no family of fifty had a model between two others")


@given(
    means=st.lists(st.floats(38, 42), min_size=1, max_size=9),
    noise=st.sampled_from([0.0, 0.3, 3.0]),
    seed=st.integers(0, 1000),
)
@settings(max_examples=examples(60), deadline=None)
def test_ranks_letters_and_intervals_never_contradict_each_other(means: list[float], noise: float, seed: int) -> None:
    sound(ranking(models(means, noise, seed)))


def test_a_noisy_model_between_does_not_break_the_order() -> None:
    """One model whose differences are known badly: what follows from the others is still said."""
    for seed in range(20):
        random = np.random.default_rng(seed)
        text = models([40, 41, 42, 41], 0.5, seed)
        text.nats_KU[3] += random.normal(0, 30, 60)
        sound(ranking(text, seed=seed))


def test_models_that_hold_the_text_impossible_come_last_together() -> None:
    text = models([40, 50, 10, 20], 0.1, seed=0)
    text.nats_KU[2:, 5] = math.inf
    found = ranking(text)
    assert found.ranks == [1, 2, 3, 3]
    assert found.letters == ("a", "b", "c", "c")


def test_equal_numbers_everywhere_are_one_rank() -> None:
    text = models([40], 1.0, seed=0)
    twice = Units(
        nats_KU=np.repeat(text.nats_KU, 3, axis=0),
        bytes_KU=np.repeat(text.bytes_KU, 3, axis=0),
        document_U=text.document_U,
        share=0.1,
    )
    assert ranking(twice).letters == ("a", "a", "a")


def test_too_short_a_text_tells_nobody_apart_and_says_why() -> None:
    found = ranking(models([40, 60], 0.1, seed=0, count=10))
    assert found.letters == ("a", "a")
    assert "too short" in found.note


def test_luck_in_training_widens_what_was_learned_and_nothing_else() -> None:
    text = models([40.0, 40.3, 41.0], 0.1, seed=0)
    alone = ranking(text)
    assert alone.ranks == [1, 2, 3]
    lucky = ranking(text, luck=Luck(errors=(0.02, 0.02, 0.0), freedom=6))
    assert lucky.letters[0] == lucky.letters[1]
    assert lucky.high_KK[0, 1] - lucky.low_KK[0, 1] > alone.high_KK[0, 1] - alone.low_KK[0, 1]


@pytest.mark.slow
def test_equal_kinds_of_model_are_told_apart_in_at_most_one_family_of_twenty() -> None:
    """Five kinds, three seeds each: the numbers differ by luck, and the text tells the trained models apart."""
    families, apart, ignored = 200, 0, 0
    for seed in range(families):
        bits = np.random.default_rng(seed).normal(2.0, 0.02, (5, 3))
        text = models((bits.mean(axis=1) * 32 * math.log(2)).tolist(), 0.1, seed)
        apart += bool(ranking(text, luck=Luck.measured(bits.tolist()), seed=seed).apart_KK.any())
        ignored += bool(ranking(text, luck=NO_LUCK, seed=seed).apart_KK.any())
    assert apart / families <= 0.05 + 2 * math.sqrt(0.05 * 0.95 / families)
    assert ignored > 0.9 * families


def test_letters_are_shared_exactly_where_models_are_tied() -> None:
    apart = np.zeros((4, 4), dtype=bool)
    apart[0, 2] = apart[0, 3] = apart[1, 3] = True
    apart |= apart.T
    assert letters_of(apart, [0, 1, 2, 3]) == ("a", "ab", "bc", "c")
    assert letters_of(np.zeros((1, 1), dtype=bool), [0]) == ("a",)
    assert letters_of(np.zeros((0, 0), dtype=bool), []) == ()


@given(st.integers(0, 10**6), st.integers(1, 9))
@settings(max_examples=examples(100), deadline=None)
def test_letters_fit_any_table_of_ties(seed: int, count: int) -> None:
    apart = np.triu(np.random.default_rng(seed).random((count, count)) < 0.5, 1)
    apart |= apart.T
    letters = letters_of(apart, list(range(count)))
    for i, j in combinations(range(count), 2):
        assert bool(set(letters[i]) & set(letters[j])) != bool(apart[i, j])
    assert all(letters)

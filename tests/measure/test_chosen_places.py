from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from lmlab.measure.chosen_places import LEAST_PLACE_BYTES, draw_places
from thinning import examples

SIZES = np.array([500, 40_000, 3, 9_000, 0, 200_000, 1_200, 70_000])


@given(
    sizes=st.lists(st.integers(0, 60_000), min_size=1, max_size=30).filter(any),
    limit=st.integers(1, 300_000),
    seed=st.integers(0, 5),
)
@settings(max_examples=examples(150), deadline=None)
def test_places_lie_in_order_inside_their_documents_and_never_overlap(sizes: list[int], limit: int, seed: int) -> None:
    places = draw_places(np.array(sizes), limit, seed)
    assert np.all(places.starts_U < places.stops_U)
    assert np.all(places.stops_U <= np.array(sizes)[places.document_U])
    offset = (np.cumsum(sizes) - sizes)[places.document_U]
    assert np.all((offset + places.starts_U)[1:] >= (offset + places.stops_U)[:-1])
    assert 0.0 < places.share <= 1.0


def test_a_limit_as_large_as_the_text_takes_all_of_it() -> None:
    places = draw_places(SIZES, int(SIZES.sum()), seed=0)
    assert places.share == 1.0
    assert int((places.stops_U - places.starts_U).sum()) == SIZES.sum()


def test_about_as_many_bytes_are_drawn_as_were_asked_for() -> None:
    for limit in (24_000, 60_000, 120_000):
        drawn = [draw_places(SIZES, limit, seed) for seed in range(20)]
        sizes = [int((p.stops_U - p.starts_U).sum()) for p in drawn]
        assert abs(np.mean(sizes) / limit - 1) < 0.1


def test_every_byte_has_the_same_chance_to_be_drawn() -> None:
    hits = np.zeros(int(SIZES.sum()))
    offsets = np.cumsum(SIZES) - SIZES
    draws = 600
    for seed in range(draws):
        places = draw_places(SIZES, 60_000, seed)
        for document, start, stop in zip(places.document_U, places.starts_U, places.stops_U, strict=True):
            hits[offsets[document] + start : offsets[document] + stop] += 1 / draws
    share = draw_places(SIZES, 60_000, 0).share
    assert np.abs(hits - share).max() < 5 * np.sqrt(share * (1 - share) / draws)


def test_places_are_spread_evenly_over_long_documents_and_over_all_of_many() -> None:
    long = draw_places(np.array([1_000_000]), 100_000, seed=3)
    quarters = np.bincount(long.starts_U * 4 // 1_000_000, minlength=4)
    assert quarters.max() - quarters.min() <= 2
    many = draw_places(np.full(40, 10_000), 120_000, seed=3)
    assert len(np.unique(many.document_U)) >= 38


def test_another_seed_draws_other_places_and_the_same_seed_the_same() -> None:
    first, again, other = (draw_places(np.array([1_000_000]), 50_000, seed) for seed in (1, 1, 2))
    assert np.array_equal(first.starts_U, again.starts_U)
    assert not np.array_equal(first.starts_U, other.starts_U)


def test_a_small_limit_makes_few_places_rather_than_tiny_ones() -> None:
    places = draw_places(np.array([1_000_000]), 10_000, seed=0)
    assert (places.stops_U - places.starts_U).min() >= LEAST_PLACE_BYTES // 2
    assert len(places.starts_U) <= 12

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import measure_models as planted
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lmlab.measure import paired_difference, rank, score_part
from lmlab.measure.interval import _cell_nats, block_length, bootstrap, cell_bounds, correlation_length, interval
from lmlab.models.uniform import Uniform, UniformConfig


def series(count: int, length: int, rho: float, seed: int) -> np.ndarray:
    """Stationary AR(1) series with mean 70 and standard deviation 20, one a row: nats of neighbouring cells."""
    random = np.random.default_rng(seed)
    noise = random.standard_normal((length, count))
    x = np.empty_like(noise)
    x[0] = noise[0]
    for t in range(1, length):
        x[t] = rho * x[t - 1] + math.sqrt(1 - rho**2) * noise[t]
    return 70 + 20 * x.T


@pytest.mark.parametrize(("length", "rho"), [(400, 0.0), (1000, 0.5), (3000, 0.8)])
def test_ninety_five_percent_intervals_cover_the_truth_about_that_often(length: int, rho: float) -> None:
    bytes_n = np.full(length, 32)
    truth = 70 / 32 / math.log(2)
    found = [bootstrap(nats_n, bytes_n, seed=s) for s, nats_n in enumerate(series(200, length, rho, seed=7))]
    covered = np.mean([f.low <= truth <= f.high for f in found])  # type: ignore[operator]
    assert 0.90 <= covered <= 0.99


def test_intervals_of_correlated_text_are_as_wide_as_they_must_be() -> None:
    length, rho = 2000, 0.8
    lags = np.arange(1, length)
    error = 20 * math.sqrt((1 + 2 * ((1 - lags / length) * rho**lags).sum()) / length) / 32 / math.log(2)
    found = [bootstrap(nats_n, np.full(length, 32), seed=0) for nats_n in series(50, length, rho, seed=3)]
    width = np.mean([f.high - f.low for f in found])  # type: ignore[operator]
    assert 0.95 <= width / (2 * 1.96 * error) <= 1.25  # Student's t for twelve blocks is a tenth wider than the normal
    one_by_one = 2 * 1.96 * 20 / math.sqrt(length) / 32 / math.log(2)
    assert width > 2 * one_by_one  # what drawing cells one by one would have claimed


def test_the_correlation_length_is_that_of_the_source() -> None:
    assert np.mean([correlation_length(x) for x in series(30, 1000, 0.0, seed=1)]) < 4
    for rho in (0.5, 0.8):
        best = (1.5 * (2 * rho / (1 - rho**2)) ** 2 * 1000) ** (1 / 3)  # the rule with the true autocovariances
        found = np.mean([correlation_length(x) for x in series(30, 1000, rho, seed=1)])
        assert found == pytest.approx(best, rel=0.35)


def test_there_are_at_most_twelve_blocks_and_fewer_where_cells_depend_on_distant_ones() -> None:
    assert [block_length(x) for x in series(3, 1000, 0.0, seed=1)] == [84, 84, 84]
    assert np.mean([block_length(x) for x in series(20, 120, 0.9, seed=1)]) > 20
    assert block_length(np.cumsum(series(1, 90, 0.0, seed=1)[0] - 70)) == 30


def test_uneven_cells_weigh_as_much_as_their_bytes() -> None:
    random = np.random.default_rng(0)
    bytes_n = random.integers(1, 200, size=800)
    found = bootstrap(1.5 * bytes_n, bytes_n)  # every byte costs the same, so there is nothing to be unsure of
    assert found.estimate == pytest.approx(1.5 / math.log(2))
    assert found.low == pytest.approx(found.estimate)
    assert found.high == pytest.approx(found.estimate)


def test_the_same_seed_gives_the_same_interval() -> None:
    nats_n = series(1, 500, 0.5, seed=2)[0]
    assert bootstrap(nats_n, np.full(500, 32), seed=4) == bootstrap(nats_n, np.full(500, 32), seed=4)
    assert bootstrap(nats_n, np.full(500, 32), seed=4) != bootstrap(nats_n, np.full(500, 32), seed=5)


def test_a_higher_level_makes_a_wider_interval() -> None:
    nats_n = series(1, 500, 0.5, seed=2)[0]
    widths = []
    for level in (0.5, 0.9, 0.95, 0.99):
        found = bootstrap(nats_n, np.full(500, 32), level=level)
        widths.append(found.high - found.low)  # type: ignore[operator]
    assert widths == sorted(widths)
    with pytest.raises(ValueError, match=r"between 0 and 1, such as 0\.95; got 95"):
        bootstrap(nats_n, np.full(500, 32), level=95)


def test_a_text_too_short_to_vary_has_no_interval() -> None:
    found = bootstrap(np.ones(15), np.full(15, 32))
    assert (found.low, found.high) == (None, None)
    assert found.includes_zero


@dataclass
class FakePart:
    documents: list[Any]
    sha256: str = "same"


def fake(documents: list[int], ends: list[int], nats: list[float]) -> Any:
    """As much of a `Scored` as intervals look at."""
    return SimpleNamespace(
        part=FakePart([SimpleNamespace(size=size) for size in documents]),
        byte_ends=np.array(ends, dtype=np.int64),
        nats_per_token=np.array(nats, dtype=np.float32),
        total_nats=float(np.sum(nats)),
        bits_per_byte=float(np.sum(nats)) / math.log(2) / sum(documents),
    )


@given(data=st.data(), shortest=st.sampled_from([0, 1]))
@settings(max_examples=150, deadline=None)
def test_cells_share_tokens_by_bytes_and_lose_nothing(data: st.DataObject, shortest: int) -> None:
    sizes = data.draw(st.lists(st.integers(shortest, 12), min_size=1, max_size=60).filter(any))
    nats = data.draw(st.lists(st.integers(0, 40), min_size=len(sizes), max_size=len(sizes)))
    cuts = data.draw(st.sets(st.integers(1, sum(sizes)), max_size=10))
    bounds = np.array(sorted({0, sum(sizes)} | cuts))
    cells = _cell_nats(fake([sum(sizes)], np.cumsum(sizes).tolist(), nats), bounds)
    assert cells.sum() == pytest.approx(sum(nats))
    if shortest:  # a token of no bytes may fall on either side of a cut
        per_byte = np.repeat(np.array(nats) / np.array(sizes), sizes)
        assert cells == pytest.approx(np.add.reduceat(per_byte, bounds[:-1]), abs=1e-4)


def test_no_cell_reaches_over_the_end_of_a_document() -> None:
    documents = [5, 1000, 3, 64, 40, 777]
    bounds = cell_bounds(fake(documents, [], []))
    assert set(np.cumsum(documents)) <= set(bounds.tolist())
    assert bounds[0] == 0
    assert np.all(np.diff(bounds) > 0)
    assert np.diff(bounds).max() <= 48


def test_models_with_different_tokenizers_are_compared_on_the_same_cells(tmp_path: Path) -> None:
    part = planted.part_of(tmp_path, planted.some_text(4000), planted.some_text(300, seed=4))
    scored = [
        score_part(planted.Chain.random(tokenizer), tokenizer, part)
        for tokenizer in map(planted.tokenizer_for, ("byte", "bpe:300"))
    ]
    difference = paired_difference(*scored)
    assert difference.estimate == pytest.approx(scored[0].bits_per_byte - scored[1].bits_per_byte)
    assert difference.low is not None
    assert difference.high is not None
    assert difference.low <= difference.estimate <= difference.high
    mirrored = paired_difference(scored[1], scored[0])
    assert mirrored.estimate == pytest.approx(-difference.estimate)


def test_pairing_makes_the_interval_narrower_than_the_models_own() -> None:
    hard = np.abs(series(1, 2000, 0.8, seed=1)[0])
    ends = list(range(32, 32 * 2001, 32))
    random = np.random.default_rng(0)
    a = fake([32 * 2000], ends, (hard + random.normal(0, 1, 2000)).tolist())
    b = fake([32 * 2000], ends, (hard + 1 + random.normal(0, 1, 2000)).tolist())
    difference = paired_difference(a, b)
    assert difference.high is not None
    assert difference.high < 0
    own = interval(a)
    assert own.high is not None
    assert own.high > b.bits_per_byte  # alone, the two could not be told apart
    assert rank([b, a]) == [2, 1]


def test_different_texts_are_not_compared() -> None:
    a, b = fake([64], [64], [1.0]), fake([64], [64], [1.0])
    b.part.sha256 = "other"
    with pytest.raises(ValueError, match="only on the same text"):
        paired_difference(a, b)


def models_around(means: list[float], noise: float, seed: int = 0) -> list[Any]:
    random = np.random.default_rng(seed)
    ends = list(range(32, 32 * 501, 32))
    return [fake([32 * 500], ends, (mean + random.normal(0, noise, 500)).tolist()) for mean in means]


def test_models_that_cannot_be_told_apart_share_a_rank() -> None:
    assert rank(models_around([50, 40, 40, 60, 40], noise=0.0)) == [4, 1, 1, 5, 1]
    assert rank(models_around([40, 40.001, 45, 45.001], noise=3.0)) == [1, 1, 3, 3]
    assert rank([]) == []


def test_ranks_never_contradict_the_bits_per_byte() -> None:
    for seed in range(20):
        means = np.random.default_rng(seed).normal(40, 0.3, 8).tolist()
        models = models_around(means, noise=3.0, seed=seed)
        in_order = [r for _, r in sorted(zip([m.bits_per_byte for m in models], rank(models), strict=True))]
        assert in_order == sorted(in_order)
        assert in_order[0] == 1


def test_equal_models_share_a_rank_nineteen_times_of_twenty() -> None:
    shared = sum(rank(models_around([40, 40], noise=3.0, seed=seed)) == [1, 1] for seed in range(200))
    assert 180 <= shared <= 199


def test_models_that_hold_the_text_impossible_come_last_together() -> None:
    finite = models_around([40, 50], noise=0.0)
    impossible = models_around([10, 20], noise=0.0)
    for model in impossible:
        model.nats_per_token[3] = math.inf
        model.total_nats = model.bits_per_byte = math.inf
    assert rank([impossible[0], finite[1], impossible[1], finite[0]]) == [3, 2, 3, 1]
    found = interval(impossible[0])
    assert (found.low, found.high) == (math.inf, math.inf)
    both = paired_difference(impossible[0], impossible[1])
    assert both.includes_zero


def test_a_constant_cost_has_an_interval_of_no_width(tmp_path: Path) -> None:
    tokenizer = planted.tokenizer_for("byte")
    model = Uniform(UniformConfig(), tokenizer.vocab_size)
    scored = score_part(model, tokenizer, planted.part_of(tmp_path, planted.some_text(500)))
    found = interval(scored)
    assert found.low == pytest.approx(8.0, rel=1e-6)
    assert found.high == pytest.approx(8.0, rel=1e-6)

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import measure_models as planted
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lmlab.config import Mistake
from lmlab.measure import drift as drift_module
from lmlab.measure import paired_difference, score_part
from lmlab.measure.chosen_places import draw_places
from lmlab.measure.interval import difference, interval, own_intervals, sums_within
from lmlab.measure.interval_units import About, Units
from lmlab.models.uniform import Uniform, UniformConfig
from thinning import examples

MEAN, SPREAD, BYTES = 70.0, 20.0, 32  # nats of a unit, how much they vary, and the bytes of it


def series(count: int, length: int, rho: float, seed: int) -> np.ndarray:
    """Stationary AR(1) series, one a row: nats of neighbouring units."""
    noise = np.random.default_rng(seed).standard_normal((length, count))
    x = np.empty_like(noise)
    x[0] = noise[0]
    for t in range(1, length):
        x[t] = rho * x[t - 1] + math.sqrt(1 - rho**2) * noise[t]
    return MEAN + SPREAD * x.T


def units(nats_KU: np.ndarray, document_U: np.ndarray | None = None, share: float = 1.0) -> Units:
    """Models on one text whose units have equal bytes; one document, unless they are named."""
    U = nats_KU.shape[1]
    document_U = np.zeros(U, dtype=np.int64) if document_U is None else document_U
    return Units(nats_KU=nats_KU, bytes_KU=np.full(nats_KU.shape, float(BYTES)), document_U=document_U, share=share)


def covered(measured: list[Units], about: About | None = None, truth: float = MEAN) -> float:
    """The share of intervals that contain the truth."""
    bits = truth / BYTES / math.log(2)
    found = [found for u in measured for found in own_intervals(u, about=about)]
    return float(np.mean([i.low is not None and i.low <= bits <= (i.high or 0) for i in found]))


def around(rho: float, count: int = 300, length: int = 1000) -> tuple[float, float]:
    """(coverage where an interval is given, how often it is) of series whose middle fifth is measured."""
    texts = series(count, 5 * length, rho, seed=7)
    truths = texts.mean(axis=1) / BYTES / math.log(2)
    measured = own_intervals(units(texts[:, 2 * length : 3 * length]))
    found = [one.low <= truth <= (one.high or 0) for one, truth in zip(measured, truths, strict=True) if one.low]
    return float(np.mean(found)), len(found) / count


@pytest.mark.parametrize("rho", [0.0, 0.8, 0.98])
def test_the_text_around_a_stretch_is_covered(rho: float) -> None:
    """1,000 units that forget after one, and up to 50 of them, which is a twentieth of the stretch."""
    coverage, given = around(rho)
    assert coverage >= 0.92
    assert given >= 0.6


def test_a_stretch_of_one_slow_wave_tells_nothing_of_the_text_around_it() -> None:
    slow = MEAN + SPREAD * np.cos(np.arange(1000) / 1000 * math.pi) + series(1, 1000, 0.0, seed=1)[0] / 100
    found = own_intervals(units(slow[None]))[0]
    assert found.low is None
    assert "nothing of the text around it" in found.note


def test_a_method_that_looks_only_a_little_way_back_would_be_seen_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """The planted mistake: no drift is thought of, so only what happens within a 24th of the text is seen."""
    monkeypatch.setattr(drift_module, "WEIGHTS", (1.0, *([1e-300] * (len(drift_module.WEIGHTS) - 1))))
    assert around(0.998)[0] < 0.7


def clustered(seed: int, documents: int = 24) -> Units:
    """Documents of unequal length that differ from each other as much as their units do among themselves."""
    random = np.random.default_rng(seed)
    lengths = random.integers(10, 30, documents)
    document_U = np.repeat(np.arange(documents), lengths)
    level_D = random.normal(0, SPREAD, documents)
    nats_U = MEAN + level_D[document_U] + random.normal(0, SPREAD, len(document_U))
    return units(nats_U[None], document_U)


def test_text_of_many_documents_is_covered_as_a_kind() -> None:
    measured = [clustered(seed) for seed in range(400)]
    assert all(u.about == "kind" for u in measured)
    assert 0.91 <= covered(measured) <= 0.98


def test_ignoring_documents_would_be_seen_here() -> None:
    """The planted mistake: every unit is taken for a document of its own."""
    measured = []
    for seed in range(400):
        u = clustered(seed)
        measured.append(units(u.nats_KU, np.arange(u.nats_KU.shape[1])))
    assert covered(measured) < 0.7


def population(seed: int = 0) -> np.ndarray:
    """A text of 400,000 bytes with passages of all lengths that are harder or easier: nats up to each byte."""
    slow = np.repeat(series(1, 400, 0.97, seed)[0] - MEAN, 1000)
    fast = np.repeat(series(1, 4_000, 0.5, seed + 1)[0], 100)
    return np.concatenate([[0.0], np.cumsum((0.3 * slow + fast) / BYTES)])


def measured_places(nats_N: np.ndarray, limit: int, seed: int) -> Units:
    """Places spread over the population."""
    places = draw_places(np.array([len(nats_N) - 1]), limit, seed)
    size = (places.stops_U - places.starts_U).astype(np.float64)
    nats = nats_N[places.stops_U] - nats_N[places.starts_U]
    return Units(nats_KU=nats[None], bytes_KU=size[None], document_U=places.document_U, share=places.share)


@pytest.mark.parametrize("limit", [24_000, 120_000, 240_000])
def test_stretches_spread_over_a_part_cover_the_whole_of_it(limit: int) -> None:
    nats_N = population()
    truth = nats_N[-1] / (len(nats_N) - 1) * BYTES
    drawn = [measured_places(nats_N, limit, seed) for seed in range(400)]
    assert all(u.about == "part" for u in drawn)
    assert 0.91 <= covered(drawn, truth=truth) <= 0.985


def measured_blocks(nats_N: np.ndarray, blocks: int, seed: int) -> Units:
    """A tenth of the population in blocks, one from each stratum, each cut into four units."""
    random, length = np.random.default_rng(seed), (len(nats_N) - 1) // blocks
    starts_D = np.arange(blocks) * length + random.integers(0, length - length // 10, blocks)
    edges_U5 = starts_D[:, None] + np.linspace(0, length // 10, 5).astype(int)
    nats, size = np.diff(nats_N[edges_U5], axis=1).ravel(), np.diff(edges_U5, axis=1).ravel().astype(np.float64)
    document_U = np.repeat(np.arange(blocks), 4)
    return Units(nats_KU=nats[None], bytes_KU=size[None], document_U=document_U, block_share=0.1)


@pytest.mark.parametrize("blocks", [16, 24, 64])
def test_blocks_spread_over_a_file_cover_the_whole_of_it(blocks: int) -> None:
    nats_N = population()
    truth = nats_N[-1] / (len(nats_N) - 1) * BYTES
    drawn = [measured_blocks(nats_N, blocks, seed) for seed in range(400)]
    assert all(u.about == "file" for u in drawn)
    assert 0.92 <= covered(drawn, truth=truth) <= 0.985


def test_units_inside_a_block_taken_for_blocks_would_not_cover_the_file() -> None:
    """The planted mistake: every quarter of a block is taken for a block of its own."""
    nats_N = population()
    truth = nats_N[-1] / (len(nats_N) - 1) * BYTES
    drawn = [measured_blocks(nats_N, 16, seed) for seed in range(400)]
    assert covered([replace(u, document_U=np.arange(len(u.document_U))) for u in drawn], truth=truth) < 0.91


def test_a_piece_taken_from_one_place_would_not_cover_the_whole() -> None:
    """The planted mistake: the first bytes of the text, or any others in one piece, with an interval for all of it."""
    nats_N = population()
    truth = nats_N[-1] / (len(nats_N) - 1) * BYTES
    pieces = []
    for start in range(0, 376_000, 4000):
        edges = np.arange(start, start + 24_001, 1000)
        pieces.append(
            Units(
                nats_KU=np.diff(nats_N[edges])[None],
                bytes_KU=np.full((1, 24), 1000.0),
                document_U=np.zeros(24, dtype=np.int64),
                share=0.06,
            )
        )
    assert covered(pieces, "part", truth) < 0.6


def test_what_was_measured_whole_leaves_nothing_open_about_the_part() -> None:
    found = own_intervals(units(series(1, 500, 0.5, seed=1)), about="part")[0]
    assert found.low == found.high == pytest.approx(found.estimate)


def test_the_more_of_a_part_is_measured_the_narrower_its_interval() -> None:
    nats = series(1, 100, 0.0, seed=1)
    widths = [
        (found.high or 0) - (found.low or 0)
        for share in (0.01, 0.3, 0.6, 0.9)
        for found in own_intervals(units(nats, share=share), about="part")
    ]
    assert widths == sorted(widths, reverse=True)
    assert widths[3] == pytest.approx(widths[0] * math.sqrt(0.1 / 0.99))


def test_an_interval_says_what_it_is_for() -> None:
    one = series(1, 100, 0.0, seed=1)
    assert own_intervals(units(one))[0].about == "around"
    assert own_intervals(units(one, share=0.3))[0].about == "part"
    assert own_intervals(units(one, np.arange(100) // 4))[0].about == "kind"
    assert own_intervals(units(one, np.arange(100) // 30))[0].about == "around"
    one_giant = np.concatenate([np.zeros(80, dtype=np.int64), np.arange(1, 21)])
    assert own_intervals(units(one, one_giant))[0].about == "around"  # twenty-one documents, but one is nearly all
    assert "other text of this kind" in own_intervals(units(one, np.arange(100) // 4))[0].note
    assert "the text around this stretch" in own_intervals(units(one))[0].note
    blocks = replace(units(one, np.arange(100) // 4), block_share=0.1)
    assert own_intervals(blocks)[0].about == "file"


def test_a_text_too_short_to_vary_has_no_interval_but_a_sentence(tmp_path: Path) -> None:
    found = own_intervals(units(np.full((1, 15), 20.0)))[0]
    assert (found.low, found.high) == (None, None)
    assert found.includes_zero
    assert found.note == "the text is too short for a confidence interval (480 bytes)"
    tokenizer = planted.tokenizer_for("byte")
    part = planted.part_of(tmp_path, planted.some_text(60))
    scored = score_part(planted.Chain.random(tokenizer), tokenizer, part)
    assert interval(scored).low is None


def test_uneven_units_weigh_as_much_as_their_bytes() -> None:
    size = np.random.default_rng(0).integers(1, 200, size=(1, 800)).astype(np.float64)
    for share, documents in ((1.0, 1), (0.5, 1), (1.0, 40)):
        text = Units(nats_KU=1.5 * size, bytes_KU=size, document_U=np.arange(800) * documents // 800, share=share)
        found = own_intervals(text)[0]  # every byte costs the same, so there is nothing to be unsure of
        assert found.estimate == pytest.approx(1.5 / math.log(2))
        assert found.low == pytest.approx(found.estimate)
        assert found.high == pytest.approx(found.estimate)


def test_no_interval_begins_below_nothing_but_those_of_differences() -> None:
    """A few pieces, one of which costs all there is: by itself the interval would reach far below 0."""
    nats_KU = np.zeros((2, 64))
    nats_KU[0, 3], nats_KU[1, 4] = 400.0, 390.0
    found = own_intervals(units(nats_KU))
    assert [one.low for one in found] == [0.0, 0.0]
    assert all(one.high is not None and one.high > one.estimate > 0 for one in found)
    between = difference(units(nats_KU), 0, 1)
    assert between.low is not None
    assert between.low < 0 < between.estimate


def test_a_higher_level_makes_a_wider_interval() -> None:
    text = units(series(1, 500, 0.5, seed=2))
    for about in ("around", "part", "file", "kind"):
        measured = Units(nats_KU=text.nats_KU, bytes_KU=text.bytes_KU, document_U=np.arange(500) // 20, share=0.5)
        found = [own_intervals(measured, about=about, level=level)[0] for level in (0.5, 0.9, 0.95, 0.99)]  # type: ignore[arg-type]
        widths = [(i.high or 0) - (i.low or 0) for i in found]
        assert widths == sorted(widths)
    with pytest.raises(Mistake, match=r"between 0 and 1, such as 0\.95"):
        own_intervals(text, level=95)


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
        counted=None,
        bits_per_byte=float(np.sum(nats)) / math.log(2) / sum(documents),
    )


@given(data=st.data())
@settings(max_examples=examples(150), deadline=None)
def test_stretches_that_cover_a_text_count_every_token_once(data: st.DataObject) -> None:
    sizes = data.draw(st.lists(st.integers(0, 12), min_size=1, max_size=60).filter(any))
    nats = data.draw(st.lists(st.integers(0, 40), min_size=len(sizes), max_size=len(sizes)))
    cuts = data.draw(st.sets(st.integers(1, sum(sizes)), max_size=10))
    bounds = np.array(sorted({0, sum(sizes)} | cuts))
    found, size = sums_within(np.cumsum(sizes), np.array(nats, dtype=np.float32), bounds[:-1], bounds[1:])
    assert found.sum() == sum(nats)
    assert size.sum() == sum(sizes)


def test_models_with_different_tokenizers_are_compared_on_the_same_cells(tmp_path: Path) -> None:
    part = planted.part_of(tmp_path, planted.some_text(4000), planted.some_text(300, seed=4))
    tokenizers = [planted.tokenizer_for(spec) for spec in ("byte", "bpe:300")]
    scored = [score_part(planted.Chain.random(tokenizer), tokenizer, part) for tokenizer in tokenizers]
    found = paired_difference(*scored)
    assert found.estimate == pytest.approx(scored[0].bits_per_byte - scored[1].bits_per_byte)
    assert found.low is not None
    assert found.high is not None
    assert found.low <= found.estimate <= found.high
    mirrored = paired_difference(scored[1], scored[0])
    assert mirrored.estimate == pytest.approx(-found.estimate)
    assert mirrored.low == pytest.approx(-found.high)


def test_pairing_makes_the_interval_narrower_than_the_models_own() -> None:
    hard = np.abs(series(1, 2000, 0.8, seed=1)[0])
    random = np.random.default_rng(0)
    text = units(np.array([hard + shift + random.normal(0, 1, 2000) for shift in (0.0, 1.0)]))
    found = difference(text, 0, 1)
    assert found.high is not None
    assert found.high < 0
    own = own_intervals(text)[0]
    assert own.high is not None
    assert own.high > text.bits_K[1]  # alone, the two could not be told apart


def test_different_texts_are_not_compared() -> None:
    a, b = fake([64], [64], [1.0]), fake([64], [64], [1.0])
    b.part.sha256 = "other"
    with pytest.raises(Mistake, match="only on the same text"):
        paired_difference(a, b)


def test_infinite_bits_have_no_interval_and_spoil_no_other() -> None:
    nats = series(3, 200, 0.0, seed=1)
    nats[1:, 3] = math.inf
    text = units(nats)
    found = own_intervals(text)
    assert (found[1].low, found[1].high) == (math.inf, math.inf)
    alone = own_intervals(units(nats[:1]))[0]
    assert (found[0].estimate, found[0].low) == pytest.approx((alone.estimate, alone.low))
    assert difference(text, 1, 2).includes_zero
    assert difference(text, 0, 1).high == -math.inf


def test_a_constant_cost_has_an_interval_of_no_width(tmp_path: Path) -> None:
    tokenizer, part = planted.tokenizer_for("byte"), planted.part_of(tmp_path, planted.some_text(500))
    scored = score_part(Uniform(UniformConfig(), tokenizer.vocab_size), tokenizer, part)
    found = interval(scored)
    assert found.low == pytest.approx(8.0, rel=1e-6)
    assert found.high == pytest.approx(8.0, rel=1e-6)

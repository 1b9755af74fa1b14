"""What ranks and letters mean, in words: also where they seem to contradict the intervals beside them."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from lmlab.comparison.findings import Compared, Entry, RankingFound, SeedSpread
from lmlab.comparison.ranking_lines import lines, what_ranks_mean
from lmlab.comparison.score_found import Score


def found(
    first: tuple[float, float], second: tuple[float, float], *, apart: bool, about: str = "stretch", seeds: int = 1
) -> Any:
    pair = Compared(a="ngram", b="lstm", difference=-0.5, low=-1.0, high=-0.1 if apart else 0.1, apart=apart)
    entries = [
        SimpleNamespace(name=name, result=SimpleNamespace(interval=ends))
        for name, ends in (("ngram", first), ("lstm", second))
    ]
    ranking = RankingFound(about=about, level=0.95, note="for text like this very stretch", models={}, pairs=(pair,))
    luck = SeedSpread(deviations={}, seeds=seeds, measured=seeds > 1)
    return SimpleNamespace(entries=entries, ranking=ranking, luck=luck)


@pytest.mark.parametrize(
    ("first", "second", "apart", "said"),
    [
        ((1.9, 2.1), (2.5, 3.0), False, "share a letter: each of these holds for one model alone"),
        ((1.9, 2.6), (2.5, 3.0), True, "are told apart: what is hard for one of them"),
    ],
)
def test_what_seems_to_contradict_the_intervals_is_explained(
    first: tuple[float, float], second: tuple[float, float], apart: bool, said: str
) -> None:
    assert said in what_ranks_mean(found(first, second, apart=apart))


def test_what_is_as_it_seems_needs_no_explaining() -> None:
    for words in (
        what_ranks_mean(found((1.9, 2.1), (2.5, 3.0), apart=True)),
        what_ranks_mean(found((1.9, 2.6), (2.5, 3.0), apart=False)),
    ):
        assert "and yet" not in words


def test_luck_is_spoken_of_only_where_it_was_measured() -> None:
    assert "other seeds" in what_ranks_mean(found((1.9, 2.1), (2.5, 3.0), apart=False, seeds=3))
    assert "other seeds" not in what_ranks_mean(found((1.9, 2.1), (2.5, 3.0), apart=False))


def test_a_model_that_failed_after_it_was_measured_says_why_it_has_no_rank() -> None:
    result = Score({"bits_per_byte": 2.5, "interval": None, "certified": True})
    entry = Entry(
        name="gru", model="gru", tokenizer="char", status="failed", error="out of memory", rank=None, seconds=1.0,
        peak_memory_bytes=1, reused=False, result=result,
    )  # fmt: skip
    corpus = SimpleNamespace(entropy_bits_per_byte=None)
    (line,) = lines(SimpleNamespace(entries=[entry], yardsticks=[], ranking=None, corpus=corpus))  # type: ignore[arg-type]
    assert line.kind == "failed"
    assert line.bits_per_byte == 2.5
    assert "2.5000 bits per byte" in line.detail
    assert "out of memory" in line.detail

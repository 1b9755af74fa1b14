"""A curve that was still falling steeply when the budget ended is called so, and one that had flattened is not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import lmlab
from lmlab.learn.clock import Spent
from lmlab.learn.undertrained import Undertrained, too_short_to_tell, undertrained
from lmlab.records import from_json

UNIT = "bits per byte"


def lines(*values: float | None, start: int = 0, train: float = 9.0) -> list[dict[str, Any]]:
    return [
        {"step": start + 10 * (i + 1), "valid_bits_per_byte": value, "train_bits_per_byte": train - i}
        for i, value in enumerate(values)
    ]


def test_what_the_second_half_gained_decides() -> None:
    steep = undertrained(lines(4.0, 3.0, 2.6, 2.4, 2.2, 2.0), UNIT)
    assert steep is not None
    assert steep.gained == pytest.approx(0.6 / 2.6)
    assert steep.fell == pytest.approx(0.6)
    assert str(steep) == (
        "undertrained: the second half of its budget, a doubling of its training,"
        " still lowered its loss by 0.6 bits per byte (23%)"
    )
    assert undertrained(lines(4.0, 3.0, 2.05, 2.03, 2.01, 2.0), UNIT) is None
    assert undertrained(lines(2.0, 1.9, 1.8, 1.9, 2.0, 2.1), UNIT) is None  # it got worse


def test_a_record_of_an_older_version_says_the_share_alone() -> None:
    old = from_json(Undertrained, {"gained": 0.12, "wanted": "240s"})
    assert str(old).endswith("still lowered its loss by 12%")


def test_two_points_far_apart_are_enough_where_the_fall_between_them_was_steep() -> None:
    far_apart = lines(6.049, 5.203)  # what a busy machine left of a gpt in eight seconds
    far_apart[0]["step"], far_apart[1]["step"] = 2, 31
    found = undertrained(far_apart, UNIT)
    assert found is not None
    assert found.gained == pytest.approx(0.04, abs=0.002)  # a straight line would say 8 %
    flat = lines(6.049, 5.7)
    flat[0]["step"], flat[1]["step"] = 2, 31
    assert undertrained(flat, UNIT) is None


def test_a_curve_that_begins_in_the_second_half_cannot_tell() -> None:
    late = lines(5.255, 5.109)  # what two seconds of a large gru left: neither steep nor flat
    late[0]["step"], late[1]["step"] = 16, 21
    assert undertrained(late, UNIT) is None
    assert too_short_to_tell(late)
    assert too_short_to_tell(lines(4.0))
    assert not too_short_to_tell(lines(4.0, 3.0))
    assert not too_short_to_tell([])  # it counts
    went_on = [*lines(4.0, 3.0), *lines(3.0, 2.9, start=20)]
    assert not too_short_to_tell(went_on, Spent(steps=20, tokens=20, seconds=1.0))
    went_on[2]["step"] = 35
    assert too_short_to_tell(went_on, Spent(steps=20, tokens=20, seconds=1.0))


def test_one_point_says_nothing_and_without_validation_training_speaks() -> None:
    assert undertrained(lines(4.0), UNIT) is None
    assert undertrained(lines(None, None, None, None), UNIT) is not None
    assert undertrained(lines(None, None, None, None, train=1e6), UNIT) is None


def test_a_run_that_went_on_is_judged_by_the_budget_it_got_last() -> None:
    before = lines(4.0, 3.0, 2.5, 2.0)
    after = lines(2.0, 1.995, 1.99, 1.99, start=40)
    assert undertrained(before + after, UNIT, Spent(steps=40)) is None
    assert undertrained(before, UNIT) is not None


def test_of_a_run_that_went_on_the_fall_is_that_of_the_extension() -> None:
    after = lines(4.0, 3.0, 2.08, 2.05, 2.02, 2.0, start=40)
    found = undertrained(lines(5.0, 4.5, 4.2, 4.1) + after, UNIT, Spent(steps=40, seconds=6.3))
    assert found is not None
    assert found.fell == pytest.approx(0.08)


def test_a_run_of_one_look_says_that_it_cannot_tell(
    small_text: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = {"context": 4, "embedding_width": 8, "width": 8}
    lmlab.train("feedforward", small_text, out=tmp_path / "one", budget="1steps", settings=settings, progress=True)
    assert "too short to tell whether" in capsys.readouterr().err
    assert "too short to tell whether" in (tmp_path / "one" / "page.html").read_text()


@pytest.mark.slow
def test_real_runs_a_short_one_is_called_undertrained_and_a_long_one_is_not(small_text: Path, tmp_path: Path) -> None:
    settings = {"context": 4, "embedding_width": 16, "width": 32, "dropout": 0.0}
    rate = {"learning_rate": 0.02}
    short = lmlab.train(
        "feedforward", small_text, out=tmp_path / "short", budget="20steps", settings=settings, learning=rate
    )
    found = short.record.result.undertrained
    assert found is not None
    assert lmlab.load(tmp_path / "short").record.result.undertrained == found
    assert "undertrained" in (tmp_path / "short" / "page.html").read_text()
    long = lmlab.train(
        "feedforward", small_text, out=tmp_path / "long", budget="640steps", settings=settings, learning=rate
    )
    assert long.record.result.undertrained is None


def test_a_loss_of_nothing_has_nothing_to_gain() -> None:
    assert undertrained(lines(0.0, 0.0, 0.0, 0.0), UNIT) is None

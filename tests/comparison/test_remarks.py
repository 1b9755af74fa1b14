"""What a comparison says beside its numbers: said exactly where it is so."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from lmlab.comparison.findings import Baseline, CurvePoint, Findings, Score, Training
from lmlab.comparison.remarks import (
    beaten,
    calibrated,
    copied,
    diverged,
    over_budget,
    repeated,
    reused,
    undertrained,
    unequal,
    unknown,
    unlike_the_rest,
    untold,
)


def model(
    name: str,
    bits: float,
    *,
    valid: float | None = None,
    still_falling: float | None = None,
    untold: bool = False,
    reused: bool = False,
    allowed_s: float | None = None,
) -> Any:
    curve = (
        () if valid is None else (CurvePoint(seconds=1, bits_per_byte=9.0), CurvePoint(seconds=2, bits_per_byte=valid))
    )
    training = Training(tokens=1, seconds=1.0, steps=1, still_falling=still_falling, untold=untold, allowed_s=allowed_s)
    return SimpleNamespace(name=name, model=name, bits_per_byte=bits, curve=curve, training=training, reused=reused)


def found(
    entries: Sequence[Any], yardsticks: Sequence[Baseline] = (), shares: Mapping[str, float] | None = None
) -> Findings:
    made = SimpleNamespace(
        entries=entries, measured_entries=entries, trusted_entries=entries, yardsticks=yardsticks, shares=shares or {}
    )
    return made  # type: ignore[return-value]


def test_models_that_were_undertrained_are_named_with_what_a_doubling_brought() -> None:
    entries = [model("gpt", 2.0, still_falling=0.31), model("bigram", 3.0), model("gru", 2.5, still_falling=0.8)]
    assert "still lowered the loss by so many bits per byte: gru 0.8, gpt 0.31." in undertrained(found(entries))
    assert undertrained(found(entries[1:2])) == ""


def test_models_whose_curves_are_too_short_to_tell_are_named() -> None:
    entries = [
        model("gpt", 2.0, still_falling=0.31),
        model("gru", 2.5, untold=True),
        model("rnn-attention", 2.6, untold=True),
    ]
    assert untold(found(entries)).endswith("in the second half of their time: gru, rnn-attention.")
    assert untold(found(entries[:1])) == ""


def test_models_that_had_less_time_than_others_are_named() -> None:
    entries = [model("ngram", 2.0), model("gru", 2.5, allowed_s=8.9), model("gpt", 7.5, allowed_s=4.4)]
    said = unequal(found(entries))
    assert "than the others (8.9 s), because time was lost before their turn: gpt (4.4 s)." in said
    assert unequal(found(entries[:2])) == ""
    assert unequal(found([*entries[:2], model("gpt", 3.0, allowed_s=8.1)])) == ""
    assert unequal(found(entries, shares={"gpt": 0.5})) == ""


def test_models_of_an_earlier_comparison_are_named() -> None:
    assert reused(found([model("gpt", 2.0, reused=True), model("gru", 2.5)])).endswith("in part: gpt.")
    assert reused(found([model("gru", 2.5)])) == ""


def test_a_comparison_that_took_longer_than_its_budget_says_so() -> None:
    assert over_budget(SimpleNamespace(budget_s=60.0, seconds=62.0)) == ""  # type: ignore[arg-type]
    assert over_budget(SimpleNamespace(budget_s=None, seconds=62.0)) == ""  # type: ignore[arg-type]
    assert over_budget(SimpleNamespace(budget_s=60.0, seconds=75.0)).startswith("Took 75 s of a budget of 60 s")  # type: ignore[arg-type]


@pytest.mark.parametrize(("bits", "is_said"), [(2.36, True), (5.4, False)])
def test_a_compressor_that_needs_less_than_every_model_is_named(bits: float, is_said: bool) -> None:
    stick = Baseline(name="xz", bits_per_byte=bits, seconds=0.1, detail="shown the last 120,832 training bytes")
    said = beaten(found([model("ngram", 5.329), model("gpt", 8.12)], [stick]))
    assert ("xz, a compressor (shown the last 120,832 training bytes), needs 2.360 bits" in said) == is_said
    assert bool(said) == is_said


def test_a_test_part_of_another_kind_is_told_by_all_models_that_learned() -> None:
    worse = model("gru", 5.3, valid=4.1)
    said = unlike_the_rest(found([model("ngram", 5.0), worse, model("gpt", 8.1, valid=5.2)]))
    assert "gru needs 4.10 bits per byte in validation and 5.30 there" in said
    assert unlike_the_rest(found([worse, model("gpt", 5.3, valid=5.2)])) == ""  # one of them is as good there
    assert unlike_the_rest(found([model("ngram", 5.0)])) == ""  # nothing was validated


@pytest.mark.parametrize("several", [True, False])
def test_the_factor_of_a_model_with_several_seeds_is_said_to_be_that_of_the_first(several: bool) -> None:
    training = Training(tokens=1, seconds=1.0, steps=1, calibrated=0.8)
    made: Any = SimpleNamespace(entries=[SimpleNamespace(name="gpt", training=training)], several_seeds=several)
    said = calibrated(made)
    assert "gpt (0.80)" in said
    assert ("first seed" in said) == several


def test_models_that_diverged_are_named_with_how_many_of_their_runs_did() -> None:
    def entry(name: str, diverged: int, runs: int) -> Any:
        training = Training(tokens=1, seconds=1.0, steps=1, diverged=diverged)
        return SimpleNamespace(name=name, training=training, seeds=(0,) * runs)

    said = "Diverged before their time was up, and measured with the best weights before that: gpt, gru (2 of 3 runs)."
    assert diverged(found([entry("gpt", 1, 1), entry("lstm", 0, 1), entry("gru", 2, 3)])) == said
    assert diverged(found([entry("lstm", 0, 1)])) == ""


def measured(verdict: str, share: float, why: str = "") -> Any:
    """A comparison of one model on a text of which that share also stands in the training part."""
    result = Score({"held_out": {"verdict": verdict, "copied": None, "detail": why}})
    entry = SimpleNamespace(name="ngram", result=result)
    return SimpleNamespace(measured_entries=[entry], corpus=SimpleNamespace(shared={"valid": 0.9, "test": share}))


def test_what_of_the_test_part_was_trained_on_word_for_word_is_said_though_repeating_is_usual_in_this_text() -> None:
    said = repeated(measured("held out", 1 / 3))
    assert said.startswith("33% of the test part also occurs in the training part, in pieces of 50 bytes or more")
    assert repeated(measured("held out", 0.002)) == ""
    known = measured("not held out", 1.0)
    assert copied(known)  # which says more
    assert repeated(known) == ""


def test_where_nobody_can_tell_whether_the_text_was_held_out_that_is_said() -> None:
    said = unknown(measured("unknown", 1.0, "100% of the training text occurs in it more than once"))
    assert said == (
        "Not certified and not ranked: of every model it is not known whether the text was held out (100% of the training"
        " text occurs in it more than once)."
    )
    assert unknown(measured("held out", 0.0)) == unknown(measured("not held out", 0.0)) == ""

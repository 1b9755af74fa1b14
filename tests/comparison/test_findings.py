from __future__ import annotations

import sys
from dataclasses import replace
from types import ModuleType

import pytest

from lmlab.comparison.display import EntryProgress, Lines
from lmlab.comparison.mixes import EntryMix, MixedPart
from lmlab.comparison.score_found import Score


def mix_of(**weights: float) -> EntryMix:
    return EntryMix(
        tokenizer="char",
        parts=tuple(MixedPart(name=name, weight=weight) for name, weight in weights.items()),
        weighting="constant",
        result=Score({"bits_per_byte": 1.4, "certified": True}),
        seconds=1.0,
        best="ngram",
        saved_bits_per_byte=0.02,
        saved_interval=(0.01, 0.03),
    )


def test_a_mix_names_the_parts_that_weigh_something_and_counts_the_others() -> None:
    assert mix_of(lstm=0.15, ngram=0.85).made_of == "ngram 85%, lstm 15%"
    assert mix_of(ngram=0.9, gru=0.002, cnn=0.097, rnn=0.001).made_of == (
        "ngram 90%, cnn 10% and 2 with less than 0.5% each"
    )


def test_a_mix_that_is_one_of_its_parts_says_that_the_others_add_nothing() -> None:
    assert "saves 0.0200 [0.0100, 0.0300] against ngram alone" in mix_of(lstm=0.15, ngram=0.85).sentence
    alone = mix_of(ngram=0.999, bag=0.001).sentence
    assert "the others add nothing to ngram" in alone
    assert "saves" not in alone
    few = replace(mix_of(ngram=0.999, bag=0.001), untried=("gpt", "lstm"))
    assert few.sentence.endswith(
        "what was mixed with it adds nothing to ngram, which has all of the weight. Not tried in it: gpt, lstm."
    )
    assert replace(mix_of(lstm=0.15, ngram=0.85), untried=("gpt",)).sentence.endswith("Not tried in it: gpt.")


def test_a_mix_that_is_worse_than_its_best_part_says_that_it_costs_more() -> None:
    worse = replace(mix_of(lstm=0.15, ngram=0.85), saved_bits_per_byte=-0.0148, saved_interval=(-0.0182, -0.0113))
    assert ", which costs 0.0148 [0.0113, 0.0182] more than ngram alone; to train" in worse.sentence
    assert "saves" not in worse.sentence
    assert replace(worse, saved_interval=None).against_best == "costs 0.0148 more than ngram alone"


def test_a_notebook_has_one_line_of_progress(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "ipykernel", ModuleType("ipykernel"))
    display = Lines()
    entries = [
        EntryProgress(name="bag", status="ranked", bits_per_byte=2.0),
        EntryProgress(name="gpt", status="training"),
    ]
    display.show(entries, 31.4, "training gpt")
    display.show(entries, 30.0, "measuring gpt")
    said = capsys.readouterr().err
    assert said.count("\r") == 2
    assert "\n" not in said
    assert "1 of 2 models done" in said
    assert "30 s left" in said

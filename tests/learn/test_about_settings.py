"""Every setting is described, and what it is said to come to is what a run then has."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any, Literal

import pytest

import lmlab
from lmlab.config import settings_of
from lmlab.learn import prepare_text
from lmlab.learn.about_settings import meanings
from lmlab.learn.settings import LEARNING
from lmlab.models.registry import model_class, trainable


@pytest.mark.parametrize("model", trainable())
def test_every_setting_of_every_model_says_what_it_is(model: str) -> None:
    found = lmlab.settings(model)
    assert [s.name for s in found.settings] == settings_of(model_class(model).Config)
    assert [s.name for s in [*found.settings, *found.learning] if not s.meaning] == []
    assert [s.name for s in found.learning] in ([], LEARNING)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Config:
    """Of somebody else's model."""

    depth: int = 2  # how deep it is
    shape: Literal["round", "square"] = "round"  # what it looks like
    plain: float | None = None


def test_the_meaning_is_the_comment_beside_the_field() -> None:
    assert meanings(Config) == {"depth": "how deep it is", "shape": "what it looks like", "plain": ""}


@pytest.mark.parametrize("model", ["gpt", "lstm", "ngram"])
def test_what_it_comes_to_is_what_the_run_then_has(model: str, small_text: Path, tmp_path: Path) -> None:
    given = {"budget": "3steps", "tokenizer": "bpe:280"}
    learning = {} if model == "ngram" else {"rows": 3}
    found = lmlab.settings(model, small_text, learning=learning, **given)
    run = lmlab.train(model, small_text, out=tmp_path / "run", learning=learning, **given)
    here, config = {s.name: s.here for s in found.settings}, run.record.model.config
    assert {name: here[name] for name in config} == config
    assert all(s.here == s.default for s in found.settings if s.name not in config)  # records leave these out
    assert found.parameters == run.record.model.parameters
    if learning:
        here = {s.name: s.here for s in found.learning}
        assert here["rows"] == 3
        assert here["rows"] * here["length"] * 3 == run.record.result.tokens


def test_epochs_are_a_budget_as_any_other(small_text: Path) -> None:
    given = {"tokenizer": "bpe:280", "learning": {"rows": 3}}
    tokens = lmlab.settings("gpt", small_text, budget="0.5epochs", **given)
    assert tokens.budget == "0.5epochs"
    assert {s.name: s.here for s in tokens.settings}["width"] is not None


def test_rows_that_follow_from_the_seconds_are_those_a_run_would_take(
    small_text: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    honest = prepare_text.sized

    def with_few_rows(*given: Any, **named: Any) -> Any:
        config, plan = honest(*given, **named)
        assert plan is not None
        return config, dataclasses.replace(plan, rows=0.25)

    usual = {s.name: s.here for s in lmlab.settings("rnn", small_text, budget="10steps", device="cpu").learning}
    monkeypatch.setattr(prepare_text, "sized", with_few_rows)
    fewer = {s.name: s.here for s in lmlab.settings("rnn", small_text, budget="1s", device="cpu").learning}
    assert fewer["rows"] == usual["rows"] // 4

"""Every setting is described, and what it is said to come to is what a run then has."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Literal

import pytest

import lmlab
from lmlab.config import settings_of
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
    assert {s.name: s.here for s in found.settings} == run.record.model.config
    assert found.parameters == run.record.model.parameters
    if learning:
        here = {s.name: s.here for s in found.learning}
        assert here["rows"] == 3
        assert here["rows"] * here["length"] * 3 == run.record.result.tokens

"""A model that memory cannot hold is refused by formula, before anything of it is made."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import lmlab
from command_line import Lmlab, refused
from lmlab.config import Budget, TextFacts, make
from lmlab.costs.memory import Step, predict
from lmlab.formulas import Shape
from lmlab.learn import memory_needed
from lmlab.learn.memory_needed import training_bytes
from lmlab.models.gpt import GPT
from lmlab.models.registry import Way, kind_of, predicting
from mistakes import mistake

GIANT = ["--set", "layers=100000"]


@pytest.fixture
def little_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine with a gigabyte free, on which no gpt can be made."""
    monkeypatch.setattr(memory_needed, "available_bytes", lambda: 10**9)

    def made(*_: Any) -> None:
        raise AssertionError("made before it was refused")

    monkeypatch.setattr(GPT, "__init__", made)


@pytest.mark.parametrize("kind", [name for name in predicting() if kind_of(name).way is Way.LEARNS])
def test_the_formula_lies_below_what_a_pretended_step_needs_and_not_far_below(kind: str) -> None:
    cls: Any = kind_of(kind).load()
    facts = TextFacts(train_tokens=10**7, train_bytes=10**7, vocab_size=256)
    asked = {"width": 128} if "width" in cls.Config.__dataclass_fields__ else {}
    config = cls.resolve(make(cls.Config, asked, kind), facts, Budget(steps=1000))
    rows, length = cls(config, 256).batch_shape
    step = predict(Step(model=cls, config=config, vocab_size=256, shape=Shape(rows, length)))
    needed = training_bytes(cls.parts(config, 256), rows * length)
    assert 0.25 * step.peak < needed < step.peak + step.weights  # and the best weights so far


@pytest.mark.usefixtures("little_memory")
@pytest.mark.parametrize(
    "verb",
    [
        ["train", "gpt", "small.txt", "--budget", "2s", "--out", "run"],
        ["train", "gpt", "small.txt", "--budget", "2steps", "--out", "run"],
        ["settings", "gpt", "small.txt", "--budget", "2s"],
        ["contract", "gpt"],
    ],
)
def test_every_verb_that_makes_a_model_refuses_it_in_one_line(lmlab: Lmlab, small_text: Path, verb: list[str]) -> None:
    refused(lmlab(*verb, *GIANT), "model-exceeds-memory")
    assert not Path("run").exists()


@pytest.mark.usefixtures("little_memory")
def test_a_comparison_goes_on_without_a_model_that_memory_cannot_hold(small_text: Path, tmp_path: Path) -> None:
    found = lmlab.compare(
        small_text, models=["bag", "gpt"], settings={"gpt": {"layers": 100_000}}, budget="3s", out=tmp_path / "out"
    )
    failed = next(entry for entry in found.entries if entry.model == "gpt")
    assert failed.status == "failed"
    assert "GB of memory" in failed.error


def test_a_step_of_many_tokens_counts_too(monkeypatch: pytest.MonkeyPatch, small_text: Path, tmp_path: Path) -> None:
    monkeypatch.setattr(memory_needed, "available_bytes", lambda: 10**8)
    asked: dict[str, Any] = {"settings": {"layers": 2, "width": 64}, "budget": "2steps", "device": "cpu"}
    with mistake("model-exceeds-memory"):
        lmlab.train("gpt", small_text, out=tmp_path / "many", learning={"rows": 10_000}, **asked)
    lmlab.train("gpt", small_text, out=tmp_path / "few", learning={"rows": 4}, **asked)

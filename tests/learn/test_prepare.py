"""One way from a request to what the loop runs, and a task that comes from outside: one plug-in, and every verb knows it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from test_task import Disc, DiscConfig, InTheDisc

import lmlab
from interrupts import InterruptAt
from lmlab.config import Budget
from lmlab.learn import loop
from lmlab.learn.plugin import TaskPlugin
from lmlab.learn.prepare import prepare
from lmlab.learn.prepare_text import fresh_model
from lmlab.learn.prepared import PreparedCount, PreparedLearner
from lmlab.learn.request import TrainingRequest
from lmlab.learn.run import Run
from lmlab.models.bert import BERT
from lmlab.models.registry import KINDS, Kind, Role, kind_of, register
from lmlab.results import OtherResult
from lmlab.text.tokenizers import train_tokenizer
from mistakes import mistake

GPT = {"layers": 1, "width": 16, "heads": 2, "context": 16}


class Square:
    """The data of the disc: there is one square."""

    name = "square"

    def spec(self) -> dict[str, Any]:
        parts = {part: {"bytes": 0, "sha256": ""} for part in ("train", "valid", "test")}
        division = {"valid": None, "test": None, "split": [80, 10, 10], "seed": 0}
        return {"name": self.name, "text": "square", "parts": parts, **division}


class SixtyFour(InTheDisc):
    """What the loop learns, in batches of so many points."""

    rows = 64


class Discs(TaskPlugin):
    """Points in a disc, as a task of the lab."""

    def prepare(self, request: TrainingRequest) -> PreparedLearner:
        words, hardware = train_tokenizer("byte", ["a"]), request.hardware("eager")
        return PreparedLearner(
            request=request,
            data=Square(),
            tokenizer=words,
            config=request.model_config,
            training=request.training(request.budget),
            model=fresh_model(Disc, request.model_config, words, request.seed),
            task=SixtyFour(),
            loop=request.loop,
            hardware=hardware,
        )

    def measure(self, run: Run, data: Any = None, *, part: str = "test", seed: int = 0, device: str = "auto") -> Any:
        return OtherResult(model=run.record.model.name, data="square", part=part)

    def show(self, result: Any) -> None:
        print(f"measured on {result.where}")


@pytest.fixture
def discs() -> Iterator[None]:
    register(Kind(name="disc", where="test_task:Disc", about="points", role=Role.CLASSIFIER, task=Discs(), data="-"))
    yield
    del KINDS["disc"]


@pytest.mark.usefixtures("discs")
def test_a_task_from_outside_is_trained_measured_and_resumed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loop, "SHOW_EVERY_S", 0.0)
    given: Any = {"budget": "40steps", "device": "cpu", "settings": {"width": 8}}
    whole = lmlab.train("disc", out=tmp_path / "whole", **given)
    broken = lmlab.train("disc", out=tmp_path / "broken", **given, watch=InterruptAt(20))
    assert (whole.status, broken.status) == ("finished", "unfinished")
    resumed = lmlab.resume(tmp_path / "broken")
    assert resumed.record.model.sha256 == whole.record.model.sha256
    assert lmlab.load(whole.folder).record.task == "disc"
    assert lmlab.evaluate(whole).data == "square"
    with mistake("more-of-no-language-model"):
        lmlab.resume(whole, budget="+5steps")


def test_a_request_without_a_folder_prepares_and_writes_nothing(small_text: Path, tmp_path: Path) -> None:
    request = TrainingRequest(model="gpt", data=small_text, budget=Budget(steps=5), settings=GPT, device="cpu")
    prepared = prepare(request)
    assert isinstance(prepared, PreparedLearner)
    assert (prepared.loop.budget, prepared.config.width) == (Budget(steps=5), 16)
    assert isinstance(prepare(TrainingRequest(model="ngram", data=small_text, budget=Budget(steps=5))), PreparedCount)


def test_a_model_is_prepared_alike_for_training_and_for_resuming(small_text: Path, tmp_path: Path) -> None:
    run = lmlab.train("gpt", small_text, out=tmp_path / "run", budget="2steps", settings=GPT, device="cpu")
    asked = TrainingRequest(model="gpt", data=small_text, budget=Budget(steps=2), settings=GPT, device="cpu")
    new, again = prepare(asked), prepare(TrainingRequest.to_resume(run, asked.watch))
    assert isinstance(new, PreparedLearner)
    assert isinstance(again, PreparedLearner)
    assert (new.config, new.task.rows) == (again.config, again.task.rows)
    weights = zip(new.model.parameters(), again.model.parameters(), strict=True)
    assert all(torch.equal(a, b) for a, b in weights)


class MyEncoder(BERT):
    """An encoder of one's own."""


class Aimless(Disc):
    """Learns, and nobody knows what."""

    Config = DiscConfig


def test_a_class_derived_from_a_model_of_a_task_learns_that_task(small_text: Path, tmp_path: Path) -> None:
    settings = {"layers": 1, "width": 16, "heads": 2, "context": 16}
    name = f"{__name__}:MyEncoder"
    assert kind_of(name).task is KINDS["bert"].task
    run = lmlab.train(name, small_text, out=tmp_path / "run", budget="2steps", settings=settings, device="cpu")
    assert run.record.task == "masked-token"


def test_a_learner_without_a_task_is_refused(small_text: Path, tmp_path: Path) -> None:
    with mistake("model-without-task"):
        lmlab.train(f"{__name__}:Aimless", small_text, out=tmp_path / "run")


def test_two_kinds_of_one_name_are_refused() -> None:
    with pytest.raises(AssertionError, match="called bert"):
        register(KINDS["bert"])

"""The loop knows nothing of tokens: a classifier of points in the plane is trained, checkpointed and resumed like any model."""

from __future__ import annotations

import json
import math
import os
import signal
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from lmlab.config import Budget
from lmlab.hardware.choice import Hardware
from lmlab.interface import Learner, Loss
from lmlab.learn.clock import Clock
from lmlab.learn.curve_figures import loss_curve
from lmlab.learn.loop import Trainer
from lmlab.learn.onlookers import Silent
from lmlab.learn.settings import TrainConfig
from lmlab.learn.task import Batch, PartName, Task

CPU = Hardware(device=torch.device("cpu"), dtype=torch.float32)


@dataclass(frozen=True)
class Points:
    xy_B2: Tensor
    inside_B: Tensor

    @property
    def count(self) -> int:
        return len(self.inside_B)

    @property
    def rows(self) -> int:
        return len(self.inside_B)

    def select(self, rows: slice) -> Points:
        return Points(self.xy_B2[rows], self.inside_B[rows])

    def to(self, device: torch.device) -> Points:
        return Points(self.xy_B2.to(device), self.inside_B.to(device))


def points(number: int, seed: int) -> Points:
    """Some of the square, and whether they lie in a disc."""
    xy_B2 = 2 * torch.rand(number, 2, generator=torch.Generator().manual_seed(seed)) - 1
    return Points(xy_B2, (xy_B2.square().sum(1) < 0.5).float())


@dataclass(frozen=True, kw_only=True)
class DiscConfig:
    width: int = 16


class Disc(Learner):
    """A classifier, and no language model: two layers, dropout, and a penalty that is part of its loss."""

    name = "disc"
    Config = DiscConfig
    default_learning_rate = 0.02

    def __init__(self, config: DiscConfig, vocab_size: int = 0) -> None:
        super().__init__(config, vocab_size)
        self.up, self.down = nn.Linear(2, config.width), nn.Linear(config.width, 1)

    @classmethod
    def resolve(cls, config: Any, facts: Any, budget: Any) -> Any:
        return config

    def loss(self, batch: Points) -> Loss:
        hidden = F.dropout(torch.tanh(self.up(4 * batch.xy_B2)), 0.1, self.training)
        nats_B = F.binary_cross_entropy_with_logits(self.down(hidden)[:, 0], batch.inside_B, reduction="none")
        penalty = 1e-3 * self.down.weight.square().sum() * len(nats_B)
        parts = {"guess": nats_B.sum(), "penalty": penalty}
        return Loss(total=nats_B.sum() + penalty, count=len(nats_B), parts=parts)


class InTheDisc(Task):
    """Whether a point lies in the disc."""

    name, thing, unit = "disc", "point", "bits per point"

    def batch(self, seed: int, step: int) -> Points:
        return points(64, seed * 1_000_003 + step)

    def validation(self) -> Iterable[Batch]:
        return [points(50, 7), points(30, 8)]

    def measured(self, nats: float, part: PartName) -> Mapping[str, float]:
        return {"bits_per_point": nats / math.log(2)}

    @property
    def worst_nats(self) -> float:
        return 3.0


class Told(Silent):
    def __init__(self, interrupt_at: int | None = None) -> None:
        self.seen: list[tuple[float, float | None, str]] = []
        self.interrupt_at = interrupt_at

    def update(self, clock: Clock, train: float, valid: float | None, unit: str) -> None:
        self.seen.append((train, valid, unit))
        if self.interrupt_at is not None and clock.steps >= self.interrupt_at:
            os.kill(os.getpid(), signal.SIGINT)


def trainer(folder: Path, watch: Silent, **settings: Any) -> Trainer:
    torch.manual_seed(0)
    config = TrainConfig(budget=Budget(steps=150), **settings)
    return Trainer(Disc(DiscConfig()), InTheDisc(), config, CPU, folder, watch)


def lines(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]


@pytest.mark.usefixtures("drawn_curves")
def test_a_classifier_learns_and_shows_its_own_unit(tmp_path: Path) -> None:
    watch = Told()
    outcome = trainer(tmp_path, watch).run()
    assert (outcome.status, outcome.progress.steps) == ("finished", 150)
    assert {unit for _, _, unit in watch.seen} == {"bits per point"}
    first, last = lines(tmp_path)[0], lines(tmp_path)[-1]
    assert last["valid_bits_per_point"] < 0.6 * first["valid_bits_per_point"]
    whole = last["train_bits_per_point"] * math.log(2)
    assert last["train_guess"] + last["train_penalty"] == pytest.approx(whole, rel=1e-4)
    assert "bits per point" in loss_curve(lines(tmp_path), "disc", "bits per point")


def test_a_classifier_resumes_bit_for_bit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lmlab.learn.loop.SHOW_EVERY_S", 0.0)
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    for folder in (whole, broken):
        folder.mkdir()
    undisturbed = trainer(whole, Silent())
    undisturbed.run()
    assert trainer(broken, Told(interrupt_at=67)).run().status == "interrupted"
    resumed = trainer(broken, Silent())
    assert resumed.run().status == "finished"
    for name, tensor in undisturbed.model.tensors().items():
        assert torch.equal(tensor, resumed.model.tensors()[name]), name
    kept = [{k: v for k, v in line.items() if k != "seconds"} for line in lines(broken)]
    assert kept == [{k: v for k, v in line.items() if k != "seconds"} for line in lines(whole)]


def test_a_classifier_that_diverges_says_so_in_its_own_words(tmp_path: Path) -> None:
    outcome = trainer(tmp_path, Silent(), learning_rate=1e4).run()
    assert outcome.status == "diverged"
    assert "nats per point" in outcome.message

"""Settings of training that people know from other programs: warm-up, decay, accumulation, clipping, weight decay."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
import torch

import lmlab as lab
from command_line import Lmlab, done, refused

LSTM: dict[str, Any] = {"settings": {"width": 16, "embedding_width": 8, "tie": False}, "device": "cpu"}


def factors(text: Path, out: Path, **learning: Any) -> list[float]:
    settings = {"context": 2, "width": 8, "embedding_width": 4}
    asked: dict[str, Any] = {"settings": settings, "learning": {"validations": 4, **learning}, "device": "cpu"}
    run = lab.train("feedforward", text, out=out, budget="40steps", **asked)
    return [line["learning_rate_factor"] for line in run.metrics]


def test_a_run_trains_with_the_schedule_that_is_asked_for(small_text: Path, tmp_path: Path) -> None:
    constant = factors(small_text, tmp_path / "constant", decay="constant", warmup=0.5)
    assert constant == pytest.approx([0.5, 1.0, 1.0, 1.0])
    cosine = factors(small_text, tmp_path / "cosine", decay="cosine", decay_to=0.1, warmup=0.0)
    assert cosine == pytest.approx([0.1 + 0.45 * (1 + math.cos(math.pi * f)) for f in (0.25, 0.5, 0.75, 1.0)])
    assert lab.load(tmp_path / "cosine").record.training.learning["decay"] == "cosine"


def test_clipping_changes_the_weights_only_below_the_norm_of_the_gradients(small_text: Path, tmp_path: Path) -> None:
    def weights(name: str, **learning: Any) -> dict[str, torch.Tensor]:
        learning |= {"optimizer": "adagrad"}  # Adam divides by the size of the gradients
        run = lab.train("lstm", small_text, out=tmp_path / name, budget="5steps", learning=learning, **LSTM)
        norms = [line["gradient_norm"] for line in run.metrics]
        assert 1e-3 < max(norms) < 1e3
        return run.model.tensors()

    usual, none, strong = weights("usual", clip=1e4), weights("none", clip=math.inf), weights("strong", clip=1e-4)
    assert all(torch.equal(usual[name], none[name]) for name in usual)
    assert not all(torch.equal(usual[name], strong[name]) for name in usual)


def test_names_of_other_programs_are_taken_or_lead_to_ours(lmlab: Lmlab, small_text: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    learn = ("--learn", "grad_clip=0.5", "--learn", "lr_scheduler_type=cosine", "--learn", "wd=0.2")
    done(lmlab("train", "bigram", small_text, "--budget", "2steps", "--out", out, "--device", "cpu", *learn))
    assert lab.load(out).record.training.learning == {"clip": 0.5, "decay": "cosine", "weight_decay": 0.2}
    for theirs, ours in (
        ("warmup_iters", "warmup=0.02"),
        ("min_lr", "decay_to=0.1"),
        ("grad_accum", "micro_batches=4"),
    ):
        refused(lmlab("train", "bigram", small_text, "--learn", f"{theirs}=100"), ours)


@pytest.mark.parametrize(
    ("setting", "code"),
    [
        ("warmup=1", "setting-not-a-share"),
        ("decay=square", "setting-not-a-choice"),
        ("decay_to=2", "decay-to-not-a-share"),
        ("clip=0", "clip-setting-not-positive"),
    ],
)
def test_impossible_settings_are_refused(setting: str, code: str, lmlab: Lmlab, small_text: Path) -> None:
    refused(lmlab("train", "lstm", small_text, "--learn", setting), code)


def test_the_command_takes_them(lmlab: Lmlab, small_text: Path, tmp_path: Path) -> None:
    learn = [word for s in ("warmup=0.1", "decay=stable", "clip=0.5", "micro_batches=2") for word in ("--learn", s)]
    words = ("train", "lstm", small_text, "--budget", "4steps", "--out", tmp_path / "run", "--set", "width=16")
    done(lmlab(*words, "--device", "cpu", *learn))
    kept = lab.load(tmp_path / "run").record.training.learning
    assert kept == {"warmup": 0.1, "decay": "stable", "clip": 0.5, "micro_batches": 2}

"""A run pauses after a share of its budget, and goes on as if it had not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

import lmlab as lab
from mistakes import mistake

LSTM: dict[str, Any] = {"settings": {"width": 16, "embedding_width": 8, "tie": False}, "device": "cpu"}


def test_a_run_that_pauses_twice_has_the_weights_of_one_that_does_not(small_text: Path, tmp_path: Path) -> None:
    whole = lab.train("lstm", small_text, out=tmp_path / "whole", budget="60steps", **LSTM)
    run = lab.train("lstm", small_text, out=tmp_path / "run", budget="60steps", until=0.2, **LSTM)
    assert (run.status, run.paused) == ("unfinished", True)
    first = run.metrics[-1]
    run = lab.resume(tmp_path / "run", until=0.5)
    assert (run.status, run.paused) == ("unfinished", True)
    assert first["step"] < run.metrics[-1]["step"] < 40
    assert first["valid_bits_per_byte"] > run.metrics[-1]["valid_bits_per_byte"]
    run = lab.resume(tmp_path / "run")
    assert (run.status, run.paused) == ("finished", False)
    for name, tensor in whole.model.tensors().items():
        assert torch.equal(tensor, run.model.tensors()[name]), name


def test_a_share_is_above_nothing_and_at_most_all(small_text: Path, tmp_path: Path) -> None:
    with mistake("until-not-a-share"):
        lab.train("lstm", small_text, out=tmp_path / "run", until=0.0)

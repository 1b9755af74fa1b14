"""Checkpoints that are written beside the training."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from lmlab.learn.checkpoint import Checkpoints


def test_the_thread_that_writes_is_on_the_gpu_that_trains(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of several, a thread begins with the first. The GPUs are imagined."""
    chosen: list[int] = []
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 3)
    monkeypatch.setattr(torch.cuda, "set_device", chosen.append)
    pool = Checkpoints(tmp_path / "checkpoint.safetensors", beside=True)._pool
    assert pool is not None
    with pool:
        pool.submit(int).result()
    assert chosen == [3]

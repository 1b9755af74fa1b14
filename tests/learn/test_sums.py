"""Losses added up while a device is still busy with them."""

from __future__ import annotations

import pytest
import torch

from lmlab.interface import Loss
from lmlab.learn.sums import Sums

DEVICES = [
    "cpu",
    pytest.param("cuda", marks=pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device here")),
]


def loss(nats: float, count: int, device: str) -> Loss:
    return Loss(total=torch.tensor(nats, device=device), count=count)


@pytest.mark.parametrize("device", DEVICES)
def test_what_is_known_lately_is_a_mean_of_steps_that_are_done(device: str) -> None:
    sums = Sums(torch.device(device))
    assert sums.recent_mean() is None
    sums.add(loss(6.0, 2, device))
    at_once = sums.recent_mean()
    assert at_once == (3.0 if device == "cpu" else None)
    if device == "cuda":
        torch.cuda.synchronize()
    sums.add(loss(14.0, 2, device))
    assert sums.recent_mean() == (5.0 if device == "cpu" else 3.0)  # of the steps that were taken when it was asked
    if device == "cuda":
        torch.cuda.synchronize()
    assert sums.recent_mean() == sums.mean == 5.0


@pytest.mark.parametrize("device", DEVICES)
def test_what_was_known_before_is_the_latest_until_more_is(device: str) -> None:
    """Where there is much validating, a GPU may never know anything else of a sum before it is over."""
    sums = Sums(torch.device(device), known=4.0)
    assert sums.recent_mean() == 4.0
    sums.add(loss(6.0, 2, device))
    if device == "cuda":
        assert sums.recent_mean() == 4.0
        torch.cuda.synchronize()
    assert sums.recent_mean() == sums.mean == 3.0

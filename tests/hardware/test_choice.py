"""Which device a process takes. The GPUs are imagined."""

from __future__ import annotations

import pytest
import torch

from lmlab.hardware import choice
from lmlab.hardware.choice import choose_device
from mistakes import mistake


@pytest.fixture
def two_gpus(monkeypatch: pytest.MonkeyPatch) -> list[torch.device]:
    """A machine with two GPUs, and which of them were made the current one."""
    current: list[torch.device] = []
    monkeypatch.delenv("LOCAL_RANK", raising=False)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setattr(torch.cuda, "set_device", current.append)
    monkeypatch.setattr(choice, "devices", lambda: ["cuda", "cpu"])
    return current


def test_a_gpu_is_named_by_its_index_and_becomes_the_current_one(two_gpus: list[torch.device]) -> None:
    assert choose_device("cuda:1") == torch.device("cuda:1")
    assert two_gpus == [torch.device("cuda:1")]


def test_without_a_launcher_the_current_gpu_stays(two_gpus: list[torch.device]) -> None:
    assert choose_device("auto") == choose_device("cuda") == torch.device("cuda")
    assert two_gpus == []


@pytest.mark.parametrize(("local_rank", "index"), [("0", 0), ("1", 1), ("3", 1)])
def test_a_process_of_a_launcher_takes_its_own_gpu(
    local_rank: str, index: int, two_gpus: list[torch.device], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOCAL_RANK", local_rank)
    assert choose_device("auto") == choose_device("cuda") == torch.device("cuda", index)
    assert choose_device("cuda:0") == two_gpus[-1] == torch.device("cuda:0")


@pytest.mark.usefixtures("two_gpus")
@pytest.mark.parametrize("device", ["cuda:", "cuda:x", "cuda:-1", "cpu:0", "mps:1", "gpu", "auto:1"])
def test_what_names_no_device_is_refused(device: str) -> None:
    with mistake("device-unknown"):
        choose_device(device)


@pytest.mark.usefixtures("two_gpus")
def test_a_gpu_that_is_not_there_is_refused() -> None:
    with mistake("gpu-not-there"):
        choose_device("cuda:2")

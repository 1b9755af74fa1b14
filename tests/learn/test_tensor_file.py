"""Files of tensors against those of the library whose format they have."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file, save
from torch import Tensor

from lmlab.learn import tensor_file
from lmlab.learn.tensor_file import NAMES, write_tensors
from mistakes import mistake

DEVICES = [
    "cpu",
    pytest.param("cuda", marks=pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device here")),
]


def examples(device: str) -> dict[str, Tensor]:
    numbers = torch.arange(1, 25).reshape(4, 6)
    tensors = {f"of {str(dtype).removeprefix('torch.')}": numbers.to(dtype) for dtype in NAMES}
    tensors |= {
        "one": torch.tensor(2.5),
        "one of many": torch.tensor(3.5).expand(1),
        "many of one": torch.tensor(3.5).expand(4),
        "none": torch.empty(0, 3),
        "turned": numbers.float().T,
        'größe "β"': numbers[1].clone(),
    }
    return {name: tensor.to(device) for name, tensor in tensors.items()}


@pytest.mark.parametrize("metadata", [None, {"progress": '{"steps": 3, "ü": "\\n"}'}])
@pytest.mark.parametrize("device", DEVICES)
def test_the_library_reads_what_was_written(
    device: str, metadata: dict[str, str] | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tensor_file, "PIECE_BYTES", 40)  # so that most are fetched in several pieces
    tensors = examples(device)
    write_tensors(tmp_path / "mine", tensors, metadata)
    theirs = save({name: tensor.cpu().contiguous() for name, tensor in tensors.items()}, metadata)
    assert (tmp_path / "mine").stat().st_size == len(theirs)
    loaded = load_file(tmp_path / "mine")
    assert loaded.keys() == tensors.keys()
    for name, tensor in tensors.items():
        assert loaded[name].dtype == tensor.dtype
        assert torch.equal(loaded[name], tensor.cpu()), name
    with safe_open(tmp_path / "mine", framework="pt") as file:
        assert file.metadata() == metadata


def test_numbers_that_the_format_does_not_know_are_refused_in_words(tmp_path: Path) -> None:
    with mistake("tensor-kind-unknown", "phase is complex128"):
        write_tensors(tmp_path / "mine", {"phase": torch.ones(2, dtype=torch.complex128)})
    assert not list(tmp_path.iterdir())

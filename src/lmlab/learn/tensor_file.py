"""A writer of safetensors files that is atomic and streams tensors from a GPU.

The safetensors library writes from main memory. It would copy all tensors of a GPU there first and block the training steps
meanwhile. This writer copies and writes `PIECE_BYTES` at a time.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from lmlab.config import Mistake
from lmlab.disk.files import atomic_file

PIECE_BYTES = 1 << 26  # copied from a GPU at a time

NAMES = {
    torch.float64: "F64",
    torch.float32: "F32",
    torch.float16: "F16",
    torch.bfloat16: "BF16",
    torch.int64: "I64",
    torch.int32: "I32",
    torch.int16: "I16",
    torch.int8: "I8",
    torch.uint64: "U64",
    torch.uint32: "U32",
    torch.uint16: "U16",
    torch.uint8: "U8",
    torch.bool: "BOOL",
    torch.complex64: "C64",
    torch.float8_e4m3fn: "F8_E4M3",
    torch.float8_e5m2: "F8_E5M2",
}


def write_tensors(path: Path, tensors: Mapping[str, Tensor], metadata: Mapping[str, str] | None = None) -> None:
    """Write tensors to a safetensors file: the header length, the JSON header, then the data of all tensors.

    Tensors are ordered by element size, the largest first, so that all are aligned. The file is replaced atomically.

    Raises:
        Mistake: the format has no name for the dtype of a tensor.
    """
    ordered = sorted(tensors.items(), key=lambda item: (-item[1].element_size(), item[0]))
    header: dict[str, Any] = {"__metadata__": dict(metadata)} if metadata else {}
    end = 0
    for name, tensor in ordered:
        if tensor.dtype not in NAMES:
            kinds = ", ".join(str(dtype).removeprefix("torch.") for dtype in NAMES)
            raise Mistake(
                f"{name} is {str(tensor.dtype).removeprefix('torch.')}, which {path} cannot hold; make it one of {kinds}",
                code="tensor-kind-unknown",
            )
        begin, end = end, end + tensor.nbytes
        header[name] = {"dtype": NAMES[tensor.dtype], "shape": list(tensor.shape), "data_offsets": [begin, end]}
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    text += b" " * (-len(text) % 8)
    with atomic_file(path) as file:
        file.write(len(text).to_bytes(8, "little") + text)
        for _, tensor in ordered:
            for piece in _pieces(_bytes(tensor)):
                file.write(piece)


def _bytes(tensor: Tensor) -> Tensor:
    numbers_N = tensor.detach().reshape(-1)
    if numbers_N.stride() != (1,):  # a single number may have any stride, and `view` then fails
        numbers_N = numbers_N.clone(memory_format=torch.contiguous_format)
    return numbers_N.view(torch.uint8)


def _pieces(numbers_N: Tensor) -> Iterator[memoryview]:
    """Yield the bytes of a tensor in main memory. Each view is valid until the next one is requested."""
    if numbers_N.device.type != "cuda":
        yield numbers_N.cpu().numpy().data
        return
    room_N = torch.empty(min(PIECE_BYTES, len(numbers_N)), dtype=torch.uint8, pin_memory=True)
    for some_N in numbers_N.split(PIECE_BYTES):
        fetched_N = room_N[: len(some_N)]
        fetched_N.copy_(some_N, non_blocking=True)
        torch.cuda.current_stream(some_N.device).synchronize()
        yield fetched_N.numpy().data

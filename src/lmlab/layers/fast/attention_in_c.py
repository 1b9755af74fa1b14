"""Attention for training on a CPU as one function in C, forward and backward (`attention.c`).

torch's kernel wants queries, keys and values apart, and its derivative joins them again; with the rotation before it that is as
much work as attention itself. Here a head is turned, looked through and averaged while it lies in the cache. Its plain twins
are the calls of torch's kernel in `layers/attention.py`. Shapes: B rows, T positions, H heads, D width of a head.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from lmlab.hardware.c_kernels import decided_on
from lmlab.hardware.tensors_for_c import can_take, pretends
from lmlab.layers.fast.once import only_once
from lmlab.layers.positions import Rotation

SOURCE = Path(__file__).with_name("attention.c")
WIDTHS = range(16, 513, 16)  # of a head, that the kernel takes
LONGEST = 4096  # positions: of more, a head no longer stays in the cache


class _Work(ctypes.Structure):
    _fields_ = [
        *((name, ctypes.c_void_p) for name in ("qkv", "out", "logs", "grad_out", "grad_qkv", "cosines", "sines")),
        *((name, ctypes.c_void_p) for name in ("text", "room")),
        *((name, ctypes.c_int64) for name in ("rows", "length", "heads", "width")),
        *((name, ctypes.c_int32) for name in ("causal", "narrow", "threads")),
    ]


def fits(qkv_BT3HD: Tensor) -> bool:
    """Whether the kernel takes this; whether there is one here, its race knows (`layers/attention.py`)."""
    _, length, _, _, width = qkv_BT3HD.shape
    right = (
        can_take(qkv_BT3HD) and qkv_BT3HD.device.type == "cpu" and qkv_BT3HD.dtype in (torch.float32, torch.bfloat16)
    )
    return right and width in WIDTHS and length <= LONGEST


def attention_in_c(
    qkv_BT3HD: Tensor, rotation: Rotation | None, *, causal: bool = True, text_BT: Tensor | None = None
) -> Tensor:
    """Every position attends to itself and those before it, or to all that hold text (all, if None). Returns B×T×(H·D)."""
    rows, length, _, _, width = qkv_BT3HD.shape
    tables = (None, None) if rotation is None else (t.float().expand(length, width).contiguous() for t in rotation)
    cos_TD, sin_TD = tables
    if text_BT is not None:  # the kernel reads one byte for every position
        assert text_BT.dtype == torch.bool, text_BT.dtype
        text_BT = text_BT.expand(rows, length).contiguous()
    apply: Callable[..., Tensor] = _Attention.apply
    return apply(qkv_BT3HD, cos_TD, sin_TD, causal, text_BT)


class _Attention(torch.autograd.Function):
    """Keeps what went in, what came out, and the log of the sum of every softmax."""

    @staticmethod
    def forward(
        ctx: Any, qkv_BT3HD: Tensor, cos_TD: Tensor | None, sin_TD: Tensor | None, causal: bool, text_BT: Tensor | None
    ) -> Tensor:
        qkv_BT3HD = qkv_BT3HD.contiguous()
        rows, length, _, heads, width = qkv_BT3HD.shape
        out_BTHD = qkv_BT3HD.new_empty(rows, length, heads, width)
        logs_BHT = torch.empty(rows, heads, length, dtype=torch.float32)
        _run(qkv_BT3HD, cos_TD, sin_TD, text_BT, causal, out=out_BTHD, logs=logs_BHT)
        ctx.save_for_backward(qkv_BT3HD, cos_TD, sin_TD, text_BT, out_BTHD, logs_BHT)
        ctx.causal = causal
        return out_BTHD.flatten(2)

    @staticmethod
    @only_once
    def backward(ctx: Any, *grads: Any) -> tuple[Tensor, None, None, None, None]:
        qkv_BT3HD, cos_TD, sin_TD, text_BT, out_BTHD, logs_BHT = ctx.saved_tensors
        grad_qkv, grad_out = torch.empty_like(qkv_BT3HD), grads[0].contiguous()
        given = {"out": out_BTHD, "logs": logs_BHT, "grad_out": grad_out, "grad_qkv": grad_qkv}
        _run(qkv_BT3HD, cos_TD, sin_TD, text_BT, ctx.causal, **given)
        return grad_qkv, None, None, None, None


def _run(
    qkv_BT3HD: Tensor,
    cos_TD: Tensor | None,
    sin_TD: Tensor | None,
    text_BT: Tensor | None,
    causal: bool,
    **given: Tensor,
) -> None:
    """Forward, or backward where there is a gradient."""
    library = decided_on(SOURCE)
    rows, length, _, heads, width = qkv_BT3HD.shape
    threads = max(1, min(torch.get_num_threads(), rows * heads))
    library.lmlab_attention_room.restype = ctypes.c_int64
    size = library.lmlab_attention_room(ctypes.c_int64(length), ctypes.c_int64(width))
    room = torch.empty(threads * size, dtype=torch.float32)  # whatever torch makes by default
    if pretends(qkv_BT3HD):
        return
    tensors = {"qkv": qkv_BT3HD, "cosines": cos_TD, "sines": sin_TD, "text": text_BT, "room": room, **given}
    work = _Work(
        **{name: None if tensor is None else tensor.data_ptr() for name, tensor in tensors.items()},
        rows=rows,
        length=length,
        heads=heads,
        width=width,
        causal=causal,
        narrow=qkv_BT3HD.dtype == torch.bfloat16,
        threads=threads,
    )
    library.lmlab_attention(ctypes.byref(work), "grad_out" in given)

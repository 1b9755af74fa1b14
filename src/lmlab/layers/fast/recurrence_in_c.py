"""The steps of `recurrence.py` as one function in C for all of them (`recurrence.c`).

A thread takes some rows through all steps. Asking for a product and for what comes after it, step by step, would take as long
as both where models are small. Its plain twin is `recurrence_by_steps.py`, which has the shapes.
"""

from __future__ import annotations

import ctypes
from pathlib import Path

import torch
from torch import Tensor

from lmlab.hardware.c_kernels import decided_on
from lmlab.hardware.tensors_for_c import pretends
from lmlab.hardware.versions import usable_cores
from lmlab.layers.fast.recurrence_by_steps import Stretch

SOURCE = Path(__file__).with_name("recurrence.c")
TOGETHER = 16  # units that the kernel takes at once
KEPT_NEAR = 1 << 20  # numbers of U, 4 MB: about what the caches of one core hold
ROWS_OF_A_CORE = 8  # that the kernel takes at once


class _Work(ctypes.Structure):
    _fields_ = [
        *((name, ctypes.c_void_p) for name in ("gates", "states", "u", "kept", "grad_h", "grads", "grad_begin")),
        *((name, ctypes.c_void_p) for name in ("panels", "room")),
        *((name, ctypes.c_int64) for name in ("rows", "steps", "width")),
        *((name, ctypes.c_int32) for name in ("kind", "narrow", "threads")),
    ]


def fits(state_GH: Tensor, rows: int) -> bool:
    """Whether the kernel is for so many rows of cells with such a U; whether it is here, its race knows (`recurrence.py`).

    Every thread reads all of U at every step. One that no core can keep near is better shared among them, as torch's products
    share it, unless a core has rows enough for what it reads. It is cores that count, not the threads of the moment, which
    change while a run learns.
    """
    right = state_GH.dtype in (torch.float32, torch.bfloat16) and state_GH.shape[1] % TOGETHER == 0
    near = state_GH.numel() <= KEPT_NEAR or rows >= ROWS_OF_A_CORE * usable_cores()
    return right and near


def forward(stretch: Stretch) -> None:
    """As its twin."""
    _run(stretch)


def backward(stretch: Stretch, grad_TBH: Tensor, to_begin: bool) -> tuple[Tensor, Tensor | None]:
    """As its twin."""
    steps, rows, width = grad_TBH.shape
    grads_TBR = grad_TBH.new_empty(steps, rows, 4 * width if stretch.gated else width)
    begin_BH = torch.empty_like(grad_TBH[0]) if to_begin else None
    _run(stretch, grad_h=grad_TBH, grads=grads_TBR, grad_begin=begin_BH)
    return grads_TBR, begin_BH


def _run(stretch: Stretch, **given: Tensor | None) -> None:
    """Forward, or backward where there is a gradient."""
    library = decided_on(SOURCE)
    steps, rows, _ = stretch.gates_TBG.shape
    width = stretch.u_GH.shape[1]
    gates = len(stretch.u_GH) // width
    sizes = ctypes.c_int64(gates), ctypes.c_int64(width)
    library.lmlab_recurrence_panels.restype = library.lmlab_recurrence_room.restype = ctypes.c_int64
    panels = torch.empty(library.lmlab_recurrence_panels(*sizes), dtype=torch.float32)
    room = torch.empty(rows * library.lmlab_recurrence_room(*sizes), dtype=torch.float32)
    if pretends(stretch.states_SBH):
        return
    names = ("gates", "states", "u", "kept")
    tensors = dict(zip(names, stretch, strict=True)) | {"panels": panels, "room": room, **given}
    work = _Work(
        **{name: None if tensor is None else tensor.data_ptr() for name, tensor in tensors.items()},
        rows=rows,
        steps=steps,
        width=width,
        kind=gates,
        narrow=stretch.states_SBH.dtype == torch.bfloat16,
        threads=max(1, min(torch.get_num_threads(), rows)),
    )
    library.lmlab_recurrence(ctypes.byref(work), ctypes.c_int32("grad_h" in given))

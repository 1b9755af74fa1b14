"""What lies between the products of a training step on a CPU, each in one pass over memory (`passes.c`).

In bf16 torch takes several passes where one would do: a norm and then its rounding, a change widened and then added. Their
plain twins are in `layers/blocks.py`. Shapes: N rows, D width.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from lmlab.hardware.c_kernels import decided_on, made
from lmlab.hardware.races import Race, Work
from lmlab.hardware.tensors_for_c import can_take, pretends
from lmlab.layers import fast
from lmlab.layers.fast.once import only_once

SOURCE = Path(__file__).with_name("passes.c")
TOGETHER = 16  # numbers that a kernel takes at once
CHUNK = 64  # rows whose gradients are summed up together, as in passes.c


def learning_here(x: Tensor) -> bool:
    """Whether there are kernels for learning with this, faster than torch's here: on a CPU, rows of whole sixteens."""
    wanted = fast.enabled and torch.is_grad_enabled() and not torch.compiler.is_compiling()
    right = wanted and can_take(x) and x.device.type == "cpu" and x.dtype in (torch.float32, torch.bfloat16)
    fits = right and x.shape[-1] % TOGETHER == 0 and x.is_contiguous()
    return fits and made(SOURCE, shared=True) is not None and RACE.won(x.dtype)


def can_norm(x: Tensor, weight_D: Tensor, dtype: torch.dtype) -> bool:
    """Whether `normed` takes these: a kernel believes what it is told of precisions and sizes, and writes beyond the end."""
    right = x.dtype == weight_D.dtype == torch.float32 and dtype == torch.bfloat16 and weight_D.shape == x.shape[-1:]
    return right and weight_D.is_contiguous() and can_take(weight_D) and learning_here(x)


def can_add(x: Tensor, change: Tensor) -> bool:
    """Whether `added` takes these."""
    right = x.dtype == torch.float32 and change.dtype == torch.bfloat16 and x.shape == change.shape
    return right and learning_here(x) and learning_here(change)


def normed(x: Tensor, weight_D: Tensor, dtype: torch.dtype) -> Tensor:
    """Layer norm without a bias of a float32 stream, rounded to `dtype`: ask `can_norm` first."""
    apply: Callable[..., Tensor] = _Norm.apply
    return apply(x, weight_D, dtype)


def added(x: Tensor, change: Tensor) -> Tensor:
    """A float32 stream and a change in bf16: ask `can_add` first."""
    apply: Callable[..., Tensor] = _Added.apply
    return apply(x, change)


def squares(x: Tensor) -> Tensor:
    """max(x, 0)²; x itself becomes max(x, 0)."""
    squared = torch.empty_like(x)
    _call("squares", x, squared, _narrow(x), x.numel())
    return squared


def squares_back_(grad: Tensor, positive: Tensor) -> None:
    """Its derivative in place of the gradient: grad · 2 max(x, 0)."""
    positive = positive.to(grad.dtype)  # which differ where only one of the two passes ran under torch.autocast
    _call("squares_back", grad, positive, _narrow(grad), grad.numel())


class _Norm(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight_D: Tensor, dtype: torch.dtype) -> Tensor:
        out, stats_N2 = torch.empty_like(x, dtype=dtype), x.new_empty(x.numel() // x.shape[-1], 2)
        _call("norm", x, weight_D, out, _narrow(out), stats_N2, len(stats_N2), x.shape[-1])
        ctx.save_for_backward(x, weight_D, stats_N2)
        return out

    @staticmethod
    @only_once
    def backward(ctx: Any, *grads: Any) -> tuple[Tensor, Tensor, None]:
        x, weight_D, stats_N2 = ctx.saved_tensors
        grad = grads[0].contiguous()
        grad_x, parts_CD = torch.empty_like(x), x.new_empty(-(-len(stats_N2) // CHUNK), x.shape[-1])
        sizes = len(stats_N2), x.shape[-1]
        _call("norm_back", grad, _narrow(grad), x, weight_D, stats_N2, grad_x, parts_CD, *sizes)
        return grad_x, parts_CD.sum(0), None


class _Added(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, change: Tensor) -> Tensor:
        out = torch.empty_like(x)
        _call("added", x, change, out, x.numel())
        ctx.dtype = change.dtype
        return out

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> tuple[Tensor, Tensor]:
        return grads[0], grads[0].to(ctx.dtype)


def _ways(dtype: torch.dtype) -> tuple[Work, Work]:
    """What lies between the products of a block, forward and backward, here and as torch would do it: 2,048 tokens."""
    rows, width, hidden = 2048, 192, 768
    generator = torch.Generator().manual_seed(0)
    x_ND = torch.randn(rows, width, generator=generator).requires_grad_()
    change_ND, inner_NH = x_ND.detach().to(dtype), torch.randn(rows, hidden, generator=generator).to(dtype)
    weight_D = torch.ones(width, requires_grad=True)
    widened = dtype != torch.float32  # else a norm and a sum are torch's in any case

    def ours() -> None:
        if widened:
            normed_ND = normed(added(x_ND, change_ND), weight_D, dtype)
            torch.autograd.grad(normed_ND, (x_ND, weight_D), change_ND)
        squares_back_(squares(inner_NH), inner_NH)

    def plain() -> None:
        if widened:
            stream_ND = x_ND + change_ND.to(x_ND.dtype)
            normed_ND = F.layer_norm(stream_ND, (width,), weight_D).to(dtype)
            torch.autograd.grad(normed_ND, (x_ND, weight_D), change_ND)
        inner_NH.relu_().square().mul_(inner_NH)

    return ours, plain


RACE = Race("what lies between products in training", SOURCE, _ways)


class _Flag(int):
    """A number that C takes as 32 bits; all others are 64."""


def _narrow(tensor: Tensor) -> _Flag:
    return _Flag(tensor.dtype == torch.bfloat16)


def _call(name: str, first: Tensor, *given: Tensor | int) -> None:
    """A function of passes.c: tensors as pointers, then sizes, then the number of threads."""
    library = decided_on(SOURCE)
    if pretends(first):
        return
    threads = ctypes.c_int32(torch.get_num_threads())
    getattr(library, f"lmlab_{name}")(*map(_for_c, (first, *given)), threads)


def _for_c(value: Tensor | int) -> ctypes.c_void_p | ctypes.c_int32 | ctypes.c_int64:
    if isinstance(value, Tensor):
        return ctypes.c_void_p(value.data_ptr())
    return ctypes.c_int32(value) if isinstance(value, _Flag) else ctypes.c_int64(value)

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

from lmlab.hardware.c_kernels import decided_on
from lmlab.hardware.races import Race, Work
from lmlab.hardware.tensors_for_c import can_take, pretends
from lmlab.layers import fast
from lmlab.layers.fast.once import only_once

SOURCE = Path(__file__).with_name("passes.c")
TOGETHER = 16  # numbers that a kernel takes at once
CHUNK = 64  # rows whose gradients are summed up together, as in passes.c


def can_square(x: Tensor) -> bool:
    """Whether `squares` and `squares_back_` are to be taken for products in the precision of x, in rows of whole sixteens."""
    return _learning_here(x) and SQUARES.taken(x.dtype)


def can_norm(x: Tensor, weight_D: Tensor, dtype: torch.dtype) -> bool:
    """Whether `normed` takes these: a kernel believes what it is told of precisions and sizes, and writes beyond the end."""
    right = x.dtype == weight_D.dtype == torch.float32 and dtype == torch.bfloat16 and weight_D.shape == x.shape[-1:]
    return right and weight_D.is_contiguous() and can_take(weight_D) and _learning_here(x) and STREAM.taken(dtype)


def can_add(x: Tensor, change: Tensor) -> bool:
    """Whether `added` takes these."""
    right = x.dtype == torch.float32 and change.dtype == torch.bfloat16 and x.shape == change.shape
    return right and _learning_here(x) and _learning_here(change) and STREAM.taken(change.dtype)


def _learning_here(x: Tensor) -> bool:
    """Whether there may be kernels for learning with this: on a CPU, float32 or bf16."""
    wanted = fast.enabled and torch.is_grad_enabled() and not torch.compiler.is_compiling()
    right = wanted and can_take(x) and x.device.type == "cpu" and x.dtype in (torch.float32, torch.bfloat16)
    return right and x.shape[-1] % TOGETHER == 0 and x.is_contiguous()


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


ROWS, WIDTH, HIDDEN = 1024, 192, 768  # of a race: some windows of a small model


def _ways_to_square(dtype: torch.dtype) -> tuple[Work, Work]:
    """Forward and backward, here and as `networks.py` does it without; gradients stay as large as they are."""
    half_NH, one_NH, grad_NH = (torch.full((ROWS, HIDDEN), number, dtype=dtype) for number in (0.5, 1.0, 1.0))
    down_DH = torch.ones(WIDTH, HIDDEN, dtype=dtype)

    def ours() -> None:
        squares(half_NH)
        squares_back_(grad_NH, half_NH)

    def plain() -> None:
        one_NH.relu_().square()
        torch.mul(down_DH, 2)
        grad_NH.mul_(one_NH)

    return ours, plain


def _ways_along_the_stream(dtype: torch.dtype) -> tuple[Work, Work]:
    """A change that is added, and the norm of what comes out, forward and backward, here and as `blocks.py` does it without."""
    generator = torch.Generator().manual_seed(0)
    x_ND = torch.randn(ROWS, WIDTH, generator=generator, dtype=torch.float32).requires_grad_()
    weight_D = torch.ones(WIDTH, dtype=torch.float32).requires_grad_()
    change_ND = x_ND.detach().to(dtype)

    def ours() -> object:
        return torch.autograd.grad(normed(added(x_ND, change_ND), weight_D, dtype), (x_ND, weight_D), change_ND)

    def plain() -> object:
        out_ND = F.layer_norm(x_ND + change_ND.to(x_ND.dtype), (WIDTH,), weight_D).to(dtype)
        return torch.autograd.grad(out_ND, (x_ND, weight_D), change_ND)

    return ours, plain


SQUARES = Race("squares in training", SOURCE, _ways_to_square)
STREAM = Race("sums and norms in training", SOURCE, _ways_along_the_stream, precisions=(torch.bfloat16,))


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

"""What PyTorch's own dispatcher counts while a model runs, with the formulas it lacks.

`torch.utils.flop_counter` knows products of matrices and the attention kernels of GPUs. What it lacks stands here: products
with a vector, attention on a CPU, recurrent cells that run as one kernel. Tests hold each of these to the count of the same
thing done step by step, which needs none of them.

A multiply-add is two operations. Every pair of positions counts, whether a mask hides it or not, as in PyTorch's own
formulas. A fused backward pass counts as its derivative does: scores that are made once more to save memory do not count.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import FlopCounterMode

from lmlab.formulas import Shape, Work, product
from lmlab.hardware.c_kernels import no_c_kernels
from lmlab.layers import fast
from lmlab.layers.blocks import attention_work
from lmlab.layers.recurrent import recurrent_work

Dimensions = Sequence[int]


def matrix_vector(matrix: Dimensions, *_: Any, **__: Any) -> int:
    """Of a matrix with a vector."""
    return 2 * math.prod(matrix)


def added_products(_sum: Dimensions, left: Dimensions, right: Dimensions, *_: Any, **__: Any) -> int:
    """Of a batch of products that are added to something in place."""
    return 2 * math.prod(left) * right[-1]


def attention(q: Dimensions, k: Dimensions, v: Dimensions, *_: Any, **__: Any) -> int:
    """Scores and averages of all heads."""
    return int(_attention(q, k, v).forward)


def attention_back(_grad: Dimensions, q: Dimensions, k: Dimensions, v: Dimensions, *_: Any, **__: Any) -> int:
    """Of the backward pass."""
    return int(_attention(q, k, v).backward)


def _attention(q: Dimensions, k: Dimensions, v: Dimensions) -> Work:
    rows, heads, queries, width = q
    assert width == v[3], "keys and values are equally wide here"
    return attention_work(queries, k[2], width, rows * heads)


def recurrent(x: Dimensions, w: Dimensions, u: Dimensions, *_: Any, **__: Any) -> int:
    """Of a layer that runs as one kernel, x being T×B×X: both matrices of all gates, for every row and step."""
    return int(_recurrent(x, w, u).forward)


def recurrent_back(x: Dimensions, w: Dimensions, u: Dimensions, *_: Any, **__: Any) -> int:
    """Of its backward pass."""
    return int(_recurrent(x, w, u).backward)


def _recurrent(x: Dimensions, w: Dimensions, u: Dimensions) -> Work:
    steps, rows, width = x
    return product(steps * rows, width, w[0]) + recurrent_work(u[1], u[0], Shape(rows, steps))


aten = torch.ops.aten
LACKING: Mapping[Any, Callable[..., int]] = {
    aten.mv: matrix_vector,
    aten.baddbmm_: added_products,
    aten._scaled_dot_product_flash_attention_for_cpu: attention,
    aten._scaled_dot_product_flash_attention_for_cpu_backward: attention_back,
    aten.mkldnn_rnn_layer: recurrent,
    aten.mkldnn_rnn_layer_backward: recurrent_back,
}


class TooLong(Exception):
    """Counting asks for more kernels than anybody would wait for."""


class Patience(TorchDispatchMode):
    """Within it, TooLong after so many kernels: of a thousand layers, or of a recurrence over a long text, there are many."""

    def __init__(self, kernels: int) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.left = kernels

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        self.left -= 1
        if self.left < 0:
            raise TooLong
        return func(*args, **(kwargs or {}))


def counted(loss: Callable[[], Tensor]) -> Work:
    """Operations of making this loss and of its backward pass, counted while both run without hand-written kernels."""
    with fast.plain():
        return counted_as_run(loss)


def counted_as_run(loss: Callable[[], Tensor], *, backward: bool = True) -> Work:
    """The same, by whatever kernels the lab would use, but for those in C, which no dispatcher sees."""
    with no_c_kernels(), FlopCounterMode(display=False, custom_mapping=dict(LACKING)) as counter:
        total = loss()
        forward = int(counter.get_total_flops())
        if backward:
            total.backward()
    return Work(forward, int(counter.get_total_flops()) - forward)

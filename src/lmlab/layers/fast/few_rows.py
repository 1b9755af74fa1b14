"""Products of a few rows with a large matrix on a CPU, as texts that are written side by side ask for them.

Of two to eight rows a kernel of ours may be faster (`few_rows_in_c.py`). Of some more, x Wᵀ and (W xᵀ)ᵀ are the same numbers,
but a library may share the one among threads well and the other badly: some share the rows of the first factor. Which is faster
here was measured (`hardware/rates.py`). The plain twin of both is F.linear.

Shapes: B rows, in as many dimensions as it likes, K inputs, N outputs.
"""

from __future__ import annotations

import functools

import torch
from torch import Tensor
from torch.nn import functional as F

from lmlab.hardware.choice import turns_few_rows
from lmlab.hardware.kept_figures import known
from lmlab.hardware.tensors_for_c import can_take, pretends
from lmlab.layers import fast
from lmlab.layers.fast import few_rows_in_c

FEW = range(16, 57)  # rows: of fewer the library knows that they are few, of more there are enough to share
LEAST = 1 << 18  # numbers of W: of fewer, laying down what comes out takes what is saved


def linear(x_BK: Tensor, weight_NK: Tensor, bias_N: Tensor | None = None) -> Tensor:
    """As F.linear, x Wᵀ + b, which it is for steps of learning and for many rows."""
    inputs = x_BK.shape[-1]
    if torch.compiler.is_compiling() or torch.is_grad_enabled() or not fast.enabled:
        return F.linear(x_BK, weight_NK, bias_N)
    if _can_multiply(x_BK, weight_NK):
        made_BN = few_rows_in_c.product(x_BK.reshape(-1, inputs), weight_NK)
    elif _can_turn(x_BK, weight_NK):
        made_BN = torch.mm(weight_NK, x_BK.reshape(-1, inputs).t()).t().contiguous()
    else:
        return F.linear(x_BK, weight_NK, bias_N)
    made_BN = made_BN if bias_N is None else made_BN + bias_N
    return made_BN.view(*x_BK.shape[:-1], len(weight_NK))


def _can_multiply(x_BK: Tensor, weight_NK: Tensor) -> bool:
    """Whether there is a kernel of ours for these, and faster."""
    right = _rows(x_BK) in few_rows_in_c.ROWS and weight_NK.numel() >= few_rows_in_c.LEAST
    right = right and x_BK.is_contiguous() and weight_NK.is_contiguous() and x_BK.shape[-1] == weight_NK.shape[-1]
    right = right and not (torch.jit.is_tracing() or x_BK.is_neg() or weight_NK.is_neg())
    return right and _in_memory(x_BK, weight_NK) and few_rows_in_c.race_of(_rows(x_BK)).taken(x_BK.dtype)


def _can_turn(x_BK: Tensor, weight_NK: Tensor) -> bool:
    """Whether the other way is open, and faster. With one thread there is nothing to share."""
    right = _rows(x_BK) in FEW and weight_NK.numel() >= LEAST and torch.get_num_threads() > 1
    return right and _in_memory(x_BK, weight_NK) and _faster_turned(torch.get_num_threads())


def _rows(x_BK: Tensor) -> int:
    return x_BK.numel() // max(x_BK.shape[-1], 1)


def _in_memory(x_BK: Tensor, weight_NK: Tensor) -> bool:
    """Whether both are float32 numbers that lie in memory, and are to be multiplied as such."""
    given = (x_BK, weight_NK)
    right = weight_NK.ndim == 2 and all(g.device.type == "cpu" and g.dtype == torch.float32 for g in given)
    in_memory = right and all(g.layout == torch.strided and can_take(g) and not pretends(g) for g in given)
    return in_memory and not torch.is_autocast_enabled("cpu")


@functools.cache
def _faster_turned(threads: int) -> bool:
    """With so many threads, those of now: looked up once, and never measured here, in the middle of a model's work."""
    found = known("cpu")
    return found is not None and turns_few_rows(found)

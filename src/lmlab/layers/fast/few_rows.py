"""Products of a few rows with a large matrix on a CPU, as texts that are written side by side ask for them.

x Wᵀ and (W xᵀ)ᵀ are the same numbers, but a library may share the one among threads well and the other badly: some share the
rows of the first factor. Which is faster here was measured (`hardware/rates.py`). The plain twin is F.linear.

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

FEW = range(16, 57)  # rows: of fewer the library knows that they are few, of more there are enough to share
LEAST = 1 << 18  # numbers of W: of fewer, laying down what comes out takes what is saved


def linear(x_BK: Tensor, weight_NK: Tensor, bias_N: Tensor | None = None) -> Tensor:
    """As F.linear, x Wᵀ + b, which it is for steps of learning and for many rows."""
    inputs = x_BK.shape[-1]
    if torch.compiler.is_compiling() or not _can_turn(x_BK, weight_NK):
        return F.linear(x_BK, weight_NK, bias_N)
    made_BN = torch.mm(weight_NK, x_BK.reshape(-1, inputs).t()).t().contiguous()
    made_BN = made_BN if bias_N is None else made_BN + bias_N
    return made_BN.view(*x_BK.shape[:-1], len(weight_NK))


def _can_turn(x_BK: Tensor, weight_NK: Tensor) -> bool:
    """Whether the other way is open, and faster. With one thread there is nothing to share."""
    rows, large = x_BK.numel() // max(x_BK.shape[-1], 1), weight_NK.numel() >= LEAST
    usual = rows in FEW and large and fast.enabled and not torch.is_grad_enabled() and torch.get_num_threads() > 1
    given = (x_BK, weight_NK)
    right = usual and weight_NK.ndim == 2 and all(g.device.type == "cpu" and g.dtype == torch.float32 for g in given)
    in_memory = right and all(g.layout == torch.strided and can_take(g) and not pretends(g) for g in given)
    return in_memory and not torch.is_autocast_enabled("cpu") and _faster_turned(torch.get_num_threads())


@functools.cache
def _faster_turned(threads: int) -> bool:
    """With so many threads, those of now: looked up once, and never measured here, in the middle of a model's work."""
    found = known("cpu")
    return found is not None and turns_few_rows(found)

"""AdamW in one pass over memory, by a kernel that torch keeps to itself; `plain_adamw` in `learn/optimizer.py` is its twin.

torch.optim.AdamW(fused=True) calls the same kernel, but keeps its state where a flat checkpoint cannot have it, and does not
divide the gradients on the way. Where a version of torch has no such kernel, `fused_adamw` is None and the twin serves.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

_kernel: Callable[..., Any] | None = getattr(torch, "_fused_adamw_", None)


def _fused(
    parameters: Sequence[Tensor],
    grads: Sequence[Tensor],
    firsts: Sequence[Tensor],
    seconds: Sequence[Tensor],
    *,
    steps: int | Tensor,
    rate: float | Tensor,
    betas: tuple[float, float],
    epsilon: float,
    weight_decay: float,
    divisor: Tensor,
) -> None:
    """One step with these moments, all in place; the gradients are divided by `divisor`."""
    assert _kernel is not None
    count = steps if isinstance(steps, Tensor) else torch.tensor(float(steps), device=parameters[0].device)
    _kernel(
        list(parameters),
        list(grads),
        list(firsts),
        list(seconds),
        [],
        [count] * len(parameters),
        lr=rate,
        beta1=betas[0],
        beta2=betas[1],
        weight_decay=weight_decay,
        eps=epsilon,
        amsgrad=False,
        maximize=False,
        grad_scale=divisor,
    )


fused_adamw = None if _kernel is None else _fused

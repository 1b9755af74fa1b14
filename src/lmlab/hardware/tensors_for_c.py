"""Which tensors a kernel in C can be given."""

from __future__ import annotations

import torch


def can_take(tensor: torch.Tensor) -> bool:
    """Whether a kernel can be given this: numbers in memory, or what pretends to be that (`pretends`).

    Not inside torch.func, where a tensor of the usual kind stands for others.
    """
    plain = type(tensor) in (torch.Tensor, torch.nn.Parameter)
    return (plain and not torch._C._functorch.is_functorch_wrapped_tensor(tensor)) or pretends(tensor)


def pretends(tensor: torch.Tensor) -> bool:
    """Whether it has a shape but no memory, as where a step is gone through to see what it would take: no kernel runs then."""
    return type(tensor).__module__ == "torch._subclasses.fake_tensor"

"""Derivatives written by hand have no derivatives themselves."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

import torch

Found = TypeVar("Found")


def only_once(backward: Callable[..., Found]) -> Callable[..., Found]:
    """A backward pass that refuses to be part of a graph (`create_graph=True`).

    torch's own `once_differentiable` says nothing when a gradient is asked for by `torch.autograd.grad`: the part of it that
    goes through the kernel is then missing.
    """

    @functools.wraps(backward)
    def refusing(ctx: Any, *grads: Any) -> Found:
        if torch.is_grad_enabled():
            raise RuntimeError("a kernel written by hand has no second derivatives: take lmlab.layers.fast.plain()")
        return backward(ctx, *grads)

    return refusing

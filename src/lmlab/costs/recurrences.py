"""What a fused recurrence takes of memory, of which torch's own pretending knows nothing: the library itself is asked.

A kernel for all steps of a recurrent layer keeps something for its backward pass, and takes room that it gives back. How much,
only the library knows. It grows evenly with the steps, so the library runs once at each of two short lengths, on zeros.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch._subclasses.fake_tensor import unset_fake_temporarily
from torch.utils._pytree import tree_leaves, tree_map_only

from lmlab.costs.requests import bytes_of, is_tensor, peak_requests

aten = torch.ops.aten
MKLDNN, MKLDNN_BACK = aten.mkldnn_rnn_layer.default, aten.mkldnn_rnn_layer_backward.default
CUDNN, CUDNN_BACK = aten._cudnn_rnn.default, aten._cudnn_rnn_backward.default
FUSED = (MKLDNN, MKLDNN_BACK, CUDNN, CUDNN_BACK)
KEPT_FROM = 3  # of what a forward pass returns: the outputs and the two states come before what it keeps
SHORT = {"cpu": (2, 4), "cuda": (16, 32)}  # steps; on a GPU the shortest are computed in another way than long ones


@dataclass(frozen=True)
class Pretended:
    """What a call would return, as tensors without contents, and the bytes that it takes meanwhile."""

    out: Any
    scratch: int


def pretended(func: Any, args: Sequence[Any]) -> Pretended:
    """One of FUSED with these arguments, on tensors without contents."""
    return {
        MKLDNN: _mkldnn,
        MKLDNN_BACK: _mkldnn_back,
        CUDNN: _cudnn,
        CUDNN_BACK: _cudnn_back,
    }[func](args)


def _mkldnn(args: Sequence[Any]) -> Pretended:
    """A layer on a CPU. T×B×X; it takes nothing beside what it returns."""
    out = MKLDNN(*args)

    def kept(length: int) -> list[int]:
        with torch.enable_grad():  # without gradients it would keep nothing
            found = MKLDNN(*_real(args, length, time=0, sequences=args[:1]))
        return [bytes_of(tensor) for tensor in found[KEPT_FROM:]]

    sizes = _at_length(kept, args[0].shape[0], "cpu")
    return Pretended((*out[:KEPT_FROM], *(torch.empty(size, dtype=torch.uint8) for size in sizes)), 0)


def _mkldnn_back(args: Sequence[Any]) -> Pretended:
    """Its backward pass: what it returns torch knows."""
    sequences = [tensor for tensor in args if is_tensor(tensor) and tensor.ndim == 3]

    def taken(length: int) -> list[int]:
        real = _real(args[:-1], length, time=0, sequences=sequences)
        reverse, mode, width, layers, biases, train, both_ways, sizes, batch_first = args[13:22]
        again = (reverse, sizes, mode, width, layers, biases, both_ways, batch_first, train)
        with torch.enable_grad():
            workspace = MKLDNN(*real[:7], *again)[KEPT_FROM]  # as large as this length wants it
        with peak_requests(torch.device("cpu")) as requests:
            out = MKLDNN_BACK(*real, workspace)
        return [requests[0] - _size(out)]

    return Pretended(MKLDNN_BACK(*args), _at_length(taken, args[0].shape[0], "cpu")[0])


def _cudnn(args: Sequence[Any]) -> Pretended:
    """A layer on a GPU. It copies the weights into one block, and what it returns lies step by step in memory."""
    x, hx, cx, batch_first = args[0], args[4], args[5], args[10]
    time = 1 if batch_first else 0

    def taken(length: int) -> list[int]:
        real = _real(args, length, time=time, sequences=(x,))
        with peak_requests(x.device) as requests:
            out = CUDNN(*real)
        return [bytes_of(out[3]), bytes_of(out[4]), requests[0] - _size(out)]

    reserve, weights, scratch = _at_length(taken, x.shape[time], "cuda")
    y = hx.new_empty(x.shape[time], x.shape[1 - time], hx.shape[2])
    out = (
        y.transpose(0, 1) if batch_first else y,
        torch.empty_like(hx),
        hx.new_empty(0) if cx is None else torch.empty_like(cx),
        x.new_empty(reserve, dtype=torch.uint8),
        x.new_empty(weights // x.element_size()),
    )
    return Pretended(out, scratch)


def _cudnn_back(args: Sequence[Any]) -> Pretended:
    """Its backward pass: the gradients of the weights are one block too."""
    x, weights, block, hx, cx, batch_first = args[0], args[1], args[3], args[4], args[5], args[14]
    time = 1 if batch_first else 0
    forward = (*args[:3], None, hx, cx, *args[10:20])

    def taken(length: int) -> list[int]:
        real = _real(forward, length, time=time, sequences=(x,))
        y, hy, cy, reserve, real_block = CUDNN(*real)  # what a forward pass of this length leaves behind
        given = [
            None if grad is None else torch.zeros_like(of) for grad, of in zip(args[7:10], (y, hy, cy), strict=True)
        ]
        with peak_requests(x.device) as requests:
            out = CUDNN_BACK(*real[:3], real_block, *real[4:6], y, *given, *real[6:], reserve, args[21])
        return [requests[0] - _size(out)]

    dx = x.new_empty(x.shape[time], x.shape[1 - time], x.shape[2])
    gradients = block.new_empty(max(block.numel(), sum(weight.numel() for weight in weights)))
    parts, place = [], 0
    for weight in weights:
        parts.append(gradients[place : place + weight.numel()].view(weight.shape))
        place += weight.numel()
    out = (
        dx.transpose(0, 1) if batch_first else dx,
        torch.empty_like(hx),
        hx.new_empty(0) if cx is None else torch.empty_like(cx),
        parts,
    )
    return Pretended(out, _at_length(taken, x.shape[time], "cuda")[0])


def _at_length(asked: Callable[[int], list[int]], steps: int, device: str) -> list[int]:
    """Sizes at so many steps, from those that the library has at two short lengths."""
    short, longer = SHORT[device]
    with unset_fake_temporarily(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # on a GPU torch remarks that the weights are not one block of memory
        pairs = list(zip(asked(short), asked(longer), strict=True))
    return [max(0, a + (b - a) * (steps - short) // (longer - short)) for a, b in pairs]


def _real(args: Sequence[Any], length: int, time: int, sequences: Sequence[Tensor]) -> list[Any]:
    """Zeros as large as these tensors, or where one is among the sequences, as it would be at another length."""

    def zeros(tensor: Tensor) -> Tensor:
        shape = list(tensor.shape)
        if any(tensor is sequence for sequence in sequences):
            shape[time] = length
        return torch.zeros(shape, dtype=tensor.dtype, device=tensor.device)

    return list(tree_map_only(Tensor, zeros, list(args)))


def _size(out: Any) -> int:
    """Bytes of all storages of what a call returned."""
    found = {t.untyped_storage().data_ptr(): bytes_of(t) for t in tree_leaves(out) if is_tensor(t)}
    return sum(found.values())

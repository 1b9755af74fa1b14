"""Double-precision arithmetic with torch, and derivatives by its autograd."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import torch
from torch import Tensor

from lmlab.checker.numbers.evaluate import Frame, Ops, evaluate
from lmlab.checker.numbers.quadrature import expectation
from lmlab.checker.shapes.infer import scalar_like
from lmlab.checker.tree import Derivative, Expectation

F64 = torch.float64

_UNARY: dict[str, Any] = {
    "exp": torch.exp, "log": torch.log, "sqrt": torch.sqrt, "sin": torch.sin, "cos": torch.cos, "tan": torch.tan,
    "sinh": torch.sinh, "cosh": torch.cosh, "sigmoid": torch.sigmoid, "tanh": torch.tanh, "relu": torch.relu,
    "abs": torch.abs, "sign": torch.sign, "erf": torch.erf, "log1p": torch.log1p, "expm1": torch.expm1,
    "square": torch.square, "softplus": lambda x: torch.logaddexp(x, torch.zeros_like(x)),
    "silu": lambda x: x * torch.sigmoid(x), "floor": torch.floor, "ceil": torch.ceil, "round": torch.round,
}  # fmt: skip
_KINKED = ("relu", "abs", "sign", "sqrt")
_COMPARE = {">": torch.gt, "<": torch.lt, ">=": torch.ge, "<=": torch.le, "==": torch.eq, "!=": torch.ne}


class TorchOps(Ops):
    """Float64 tensors on the CPU. `margin` is not kept inside a quadrature."""

    touched = False  # an argument lay exactly on a kink
    batched = False  # inside a quadrature, which evaluates many points at once
    error: float = 0.0  # the largest relative error of a quadrature so far
    blur: float = 0.0  # the largest error of an expectation inside, relative to the size of what it averages
    sampled: bool = False  # whether an expectation was estimated by random samples

    def _near(self, distance: Tensor) -> None:
        """Note how near a kink is. Exactly on it is noted apart: at random points that is the formula's own doing."""
        if self.batched or not distance.numel():
            return
        away = distance.detach().abs().numpy()
        self.touched |= bool((away == 0).any())
        self.margin = min(self.margin, float(away.min(initial=np.inf, where=away > 0)))

    def number(self, value: Fraction | str) -> Tensor:
        """A 0-d tensor."""
        return torch.tensor(math.pi if value == "pi" else float(value), dtype=F64)

    def negate(self, value: Tensor) -> Tensor:
        """-value."""
        return -value

    def binary(self, op: str, left: Tensor, right: Tensor) -> Tensor:
        """Torch's operators mean what NumPy's do."""
        match op:
            case "+":
                return left + right
            case "-":
                return left - right
            case "*":
                return left * right
            case "/":
                return left / right
            case "@":
                return left @ right
        return torch.pow(left, right)

    def power(self, base: Tensor, exponent: Fraction) -> Tensor:
        """A constant exponent, so that the derivative at negative bases is right."""
        if exponent.denominator == 1:
            return base ** int(exponent)
        if exponent.denominator == 2:
            self._near(base)
        return base ** float(exponent)

    def compare(self, op: str, left: Tensor, right: Tensor) -> Tensor:
        """0 and 1 as doubles, without derivative."""
        self._near(left - right)
        return _COMPARE[op](left, right).to(F64)

    def elementwise(self, name: str, value: Tensor) -> Tensor:
        """One function of every entry."""
        if name in _KINKED:
            self._near(value)
        elif name in ("floor", "ceil"):
            self._near(value - torch.round(value))
        elif name == "round":
            self._near(value - torch.floor(value) - 0.5)
        return _UNARY[name](value)

    def reduce(self, name: str, value: Tensor, axis: int | None, keepdims: bool) -> Tensor:
        """Over everything when axis is None."""
        if not value.ndim:
            value = value.reshape(1)
            return self.reduce(name, value, 0, False)
        axes = tuple(range(value.ndim)) if axis is None else (axis % value.ndim,)
        match name:
            case "sum":
                return value.sum(dim=axes, keepdim=keepdims)
            case "mean":
                return value.mean(dim=axes, keepdim=keepdims)
            case "max" | "min":
                return self._extreme(name, value, axes, keepdims)
            case "norm":
                out = torch.sqrt((value * value).sum(dim=axes, keepdim=keepdims))
                self._near(out)
                return out
            case "logsumexp":
                return torch.logsumexp(value, dim=axes, keepdim=keepdims)
            case "var":
                return value.var(dim=axes, keepdim=keepdims, correction=0)
            case "std":
                out = torch.sqrt(value.var(dim=axes, keepdim=keepdims, correction=0))
                self._near(out)
                return out
        return self._product(value, axes, keepdims)

    def _extreme(self, name: str, value: Tensor, axes: tuple[int, ...], keepdims: bool) -> Tensor:
        sign = 1.0 if name == "max" else -1.0
        if not self.batched:
            ordered = torch.sort(_last(value.detach(), axes) * sign, dim=-1, descending=True).values
            if ordered.shape[-1] > 1:
                self._near(ordered[..., 0] - ordered[..., 1])
        return torch.amax(value * sign, dim=axes, keepdim=keepdims) * sign

    def _product(self, value: Tensor, axes: tuple[int, ...], keepdims: bool) -> Tensor:
        out = torch.prod(_last(value, axes), dim=-1)
        if keepdims:
            out = out.reshape([1 if i in axes else n for i, n in enumerate(value.shape)])
        return out

    def along(self, name: str, value: Tensor, axis: int) -> Tensor:
        """Keeps the shape."""
        function = {"softmax": torch.softmax, "log_softmax": torch.log_softmax, "cumsum": torch.cumsum}[name]
        return function(value, dim=axis)

    def pair(self, name: str, left: Tensor, right: Tensor) -> Tensor:
        """The larger or smaller of two arrays, entry by entry."""
        self._near(left - right)
        return (torch.maximum if name == "maximum" else torch.minimum)(*torch.broadcast_tensors(left, right))

    def choose(self, condition: Tensor, yes: Tensor, no: Tensor) -> Tensor:
        """Entries of `yes` where the condition is not 0."""
        return torch.where(condition != 0, yes, no)

    def matrix(self, name: str, value: Tensor) -> Tensor:
        """Functions of one matrix (or vector, for diag)."""
        match name:
            case "transpose":
                return value.permute(*range(value.ndim - 1, -1, -1)) if value.ndim > 1 else value
            case "trace":
                return torch.diagonal(value).sum()
            case "det":
                return torch.linalg.det(value)
            case "inv":
                return torch.linalg.inv_ex(value).inverse
            case "diag":
                return torch.diag_embed(value) if value.ndim == 1 else torch.diagonal(value)
            case "tril" | "triu":
                return (torch.tril if name == "tril" else torch.triu)(value)
        return value.reshape(-1)

    def outer(self, left: Tensor, right: Tensor) -> Tensor:
        """Flattens both, as NumPy does."""
        return torch.outer(left.reshape(-1), right.reshape(-1))

    def kron(self, left: Tensor, right: Tensor) -> Tensor:
        """Block by block; torch.kron refuses some transposed matrices with one row."""
        rank = max(left.ndim, right.ndim)
        left = left.reshape((1,) * (rank - left.ndim) + tuple(left.shape))
        right = right.reshape((1,) * (rank - right.ndim) + tuple(right.shape))
        shape = [a * b for a, b in zip(left.shape, right.shape, strict=True)]
        spread_left = left.reshape([n for size in left.shape for n in (size, 1)])
        spread_right = right.reshape([n for size in right.shape for n in (1, size)])
        return (spread_left * spread_right).reshape(shape)

    def full(self, shape: Sequence[int], value: int) -> Tensor:
        """Zeros or ones."""
        return torch.full(tuple(shape), float(value), dtype=F64)

    def eye(self, size: int) -> Tensor:
        """The identity."""
        return torch.eye(size, dtype=F64)

    def concat(self, parts: Sequence[Tensor], axis: int) -> Tensor:
        """Join along an axis."""
        return torch.cat(tuple(parts), dim=axis)

    def stack(self, parts: Sequence[Tensor]) -> Tensor:
        """A new first axis."""
        return torch.stack(tuple(parts))

    def reshape(self, value: Tensor, shape: Sequence[int]) -> Tensor:
        """Row by row."""
        return value.reshape(tuple(shape))

    def index(self, value: Tensor, items: tuple[int | slice, ...]) -> Tensor:
        """Positions and slices."""
        return value[items]

    def swap(self, value: Tensor, first: int, second: int) -> Tensor:
        """Two axes exchanged."""
        return value.transpose(first, second)

    def from_numpy(self, raw: Any) -> Tensor:
        """A copy, so that points stay what they are; a tensor passes, so that one can differentiate by it."""
        return raw if isinstance(raw, Tensor) else torch.tensor(raw, dtype=F64)

    def derivative(self, node: Derivative, frame: Frame) -> Tensor:
        """By autograd. A second derivative is the derivative of the first."""
        name = node.by[-1]
        here = frame.value(name)
        assert not self.batched, "autograd's leaves are not allowed inside vmap; see expect.Leaf"
        with torch.enable_grad():
            leaf = here.view_as(here) if here.requires_grad else here.detach().clone().requires_grad_()
            return self._jacobian(self._top(node, frame.child({name: leaf}, graph=True)), leaf, frame.graph)

    def _top(self, node: Derivative, frame: Frame) -> Tensor:
        """What is differentiated last: the top itself, or its derivative by all names but the last."""
        if len(node.by) > 1:
            return self.derivative(Derivative(node.top, node.by[:-1], node.strict), frame)
        top = evaluate(node.top, frame)
        return top.reshape(()) if not node.strict and scalar_like(frame.setting.shape(node.top)) else top

    def _jacobian(self, top: Tensor, leaf: Tensor, create_graph: bool) -> Tensor:
        if not top.requires_grad:
            return torch.zeros(top.shape + leaf.shape, dtype=F64)
        rows = []
        entries = top.reshape(-1)
        for i in range(entries.numel()):
            (row,) = torch.autograd.grad(
                entries[i],
                leaf,
                retain_graph=create_graph or i + 1 < entries.numel(),
                create_graph=create_graph,
                allow_unused=True,
            )
            rows.append(torch.zeros_like(leaf) if row is None else row)
        return torch.stack(rows).reshape(top.shape + leaf.shape)

    def expectation(self, node: Expectation, frame: Frame) -> Tensor:
        """By quadrature or enumeration."""
        return expectation(node, frame)


def _last(value: Tensor, axes: tuple[int, ...]) -> Tensor:
    """The reduced axes, flattened, as the last one."""
    kept = [i for i in range(value.ndim) if i not in axes]
    moved = value.permute(*kept, *axes)
    return moved.reshape(*[value.shape[i] for i in kept], -1)

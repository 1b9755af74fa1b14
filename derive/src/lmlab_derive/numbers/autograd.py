"""Double-precision arithmetic with torch, and derivatives by its autograd."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import torch
from torch import Tensor

from lmlab_derive.functions import Entrywise, Kink
from lmlab_derive.limits import Deadline, NoExactValue
from lmlab_derive.numbers.accuracy import Accuracy
from lmlab_derive.numbers.doubles import FloatOps
from lmlab_derive.numbers.evaluate import COMPARISONS, Frame, Ops
from lmlab_derive.numbers.expectations import average
from lmlab_derive.numbers.points import Point, Raw, make_frame
from lmlab_derive.numbers.quadrature import Leaf
from lmlab_derive.numbers.scores import moves_means, without_derivatives
from lmlab_derive.shapes.setting import Setting
from lmlab_derive.tree import Derivative, Expectation, Node

F64 = torch.float64


class TorchOps(Ops):
    """Float64 tensors on the CPU."""

    library = torch
    way = "torch"
    notes_kinks = True

    def __init__(self, doubles: Callable[[], FloatOps] | None = None) -> None:
        super().__init__()
        self.accuracy = Accuracy()
        self.doubles = doubles  # for means that need no torch

    def to_numpy(self, value: Tensor) -> Any:
        """Without its history."""
        return value.detach().numpy()

    def number(self, value: Fraction | str) -> Tensor:
        """A 0-d tensor."""
        return torch.tensor(math.pi if value == "pi" else float(value), dtype=F64)

    def from_numpy(self, raw: Any) -> Tensor:
        """A copy, so that points stay what they are; a tensor passes, so that one can differentiate by it."""
        return raw if isinstance(raw, Tensor) else torch.tensor(raw, dtype=F64)

    def entrywise(self, function: Entrywise, value: Tensor) -> Tensor:
        """As torch has it."""
        if function.kink is not Kink.NONE:
            self.near(function.kink_distance(torch, value), function.kink is Kink.EDGE)
        return function.computed("torch", torch, value)

    def compare(self, op: str, left: Tensor, right: Tensor) -> Tensor:
        """0 and 1 as doubles, without derivative."""
        self.near(left - right)
        return COMPARISONS[op](left, right).to(F64)

    def divide(self, left: Tensor, right: Tensor) -> Tensor:
        """nan where the denominator is 0: 1 / (1 / 0) is no number. Integrals have inf at their ends."""
        return self._but_nan(right == 0, left / right)

    def _but_nan(self, lost: Tensor, value: Tensor) -> Tensor:
        return value if self.collected is not None or not lost.any() else torch.where(lost, math.nan, value)

    def raise_to(self, left: Tensor, right: Tensor) -> Tensor:
        """nan for negative bases, and for what divides by 0."""
        return self._but_nan((left == 0) & (right < 0), torch.pow(left, right))

    def power(self, base: Tensor, exponent: Fraction) -> Tensor:
        """A constant exponent, so that the derivative at negative bases is right."""
        if exponent.denominator == 2:
            self.near(base, edge=True)
        power = base ** (int(exponent) if exponent.denominator == 1 else float(exponent))
        return self._but_nan(base == 0, power) if exponent < 0 else power

    def determinant(self, value: Tensor) -> Tensor:
        """By torch."""
        return torch.linalg.det(value)

    def inverse(self, value: Tensor) -> Tensor:
        """By torch, which does not raise here."""
        return torch.linalg.inv_ex(value).inverse

    def cholesky(self, value: Tensor) -> Tensor:
        """By torch, which does not raise here."""
        return torch.linalg.cholesky_ex(value).L

    def full(self, shape: tuple[int, ...], value: int) -> Tensor:
        """In doubles."""
        return torch.full(shape, float(value), dtype=F64)

    def eye(self, size: int) -> Tensor:
        """In doubles."""
        return torch.eye(size, dtype=F64)

    def derivative(self, node: Derivative, frame: Frame) -> Tensor:
        """By autograd. A second derivative is the derivative of the first; that of a mean is a mean, where that is known."""
        if self.doubles and not frame.graph and moves_means(node, frame.setting):
            try:
                plain = without_derivatives(node, frame.setting)
            except NoExactValue:
                pass
            else:
                return self.accuracy.known(lambda: self._written_out(plain, frame))
        name = node.by[-1]
        here = frame.value(name)
        assert self.collected is None, "autograd's leaves are not allowed inside vmap; see quadrature.Leaf"
        with torch.enable_grad():
            leaf = here.view_as(here) if here.requires_grad else here.detach().clone().requires_grad_()
            return _jacobian(self.top(node, frame.child({name: leaf}, graph=True)), leaf, frame.graph)

    def _written_out(self, plain: Node, frame: Frame) -> tuple[Tensor, Any, float]:
        """The derivative of a mean as a formula: its value, how far the errors of the means in it move it, and its size."""
        assert self.doubles is not None
        means = Accuracy(effort=self.accuracy.effort)
        found = []
        for accuracy in (means, means.again(1), means.again(-1)):
            doubles = self.doubles()
            doubles.accuracy = accuracy
            found.append(frame.translated(doubles).evaluate(plain))
            if means.diverges or not np.isfinite(found[0]).all():
                raise NoExactValue  # the mean may still have a derivative
            self.margin, self.touched = min(self.margin, doubles.margin), self.touched or doubles.touched
        self.accuracy.sampled |= means.sampled
        error = max(float(np.abs(moved - found[0]).max()) for moved in found[1:])
        return self.from_numpy(found[0]), error, means.size

    def expectation(self, node: Expectation, frame: Frame) -> Tensor:
        """As doubles have it, unless derivatives stand inside that are no formulas, or are taken of the whole."""
        if self.doubles and not frame.graph:
            try:
                plain = without_derivatives(node, frame.setting)
                assert isinstance(plain, Expectation)
                if not any(isinstance(inner, Derivative) for inner in frame.setting.opened(plain)):
                    doubles = self.doubles()
                    doubles.accuracy = self.accuracy
                    return self.from_numpy(frame.translated(doubles).evaluate(plain))
            except NoExactValue:
                pass

        def leaf(inner: Node, over: frozenset[str]) -> Tensor:
            mean = Leaf(inner, over, frame, self.accuracy)
            return self.accuracy.known(mean.mean, mean.coarser if frame.graph else None)

        mean: Tensor = average(node, frame, leaf)
        return mean


def slopes_of_excess(
    setting: Setting, high: Node, low: Node, point: Point, names: list[str], deadline: Deadline
) -> dict[str, Raw]:
    """The derivative of how far `high` exceeds `low`, relative to their size at the entry where it is most, by the raw
    numbers of these givens; none where it has none. Relative: or the way up would lead to where both are small."""
    tensors = {name: torch.tensor(point.raw[name], dtype=F64, requires_grad=True) for name in names}
    with torch.enable_grad():
        frame = make_frame(setting, Point(point.sizes, {**point.raw, **tensors}), TorchOps(), deadline)
        frame.graph = True
        pair: list[Tensor] = [frame.evaluate(side) for side in (high, low)]
        gap = pair[0] - pair[1]
        if not gap.requires_grad:
            return {}
        if all(side.any() for side in pair):
            size = torch.maximum(*torch.broadcast_tensors(*(side.abs() for side in pair)))
            gap = gap / torch.where(size == 0, 1.0, size)
        slopes = torch.autograd.grad(gap.max(), list(tensors.values()), allow_unused=True)
    return {name: slope.numpy() for name, slope in zip(names, slopes, strict=True) if slope is not None}


def _jacobian(top: Tensor, leaf: Tensor, create_graph: bool) -> Tensor:
    if not top.requires_grad:
        return torch.zeros(top.shape + leaf.shape, dtype=F64)
    rows = []
    entries = top.reshape(-1)
    for i in range(entries.numel()):
        keep = create_graph or i + 1 < entries.numel()
        (row,) = torch.autograd.grad(entries[i], leaf, None, keep, create_graph, allow_unused=True)
        rows.append(torch.zeros_like(leaf) if row is None else row)
    return torch.stack(rows).reshape(top.shape + leaf.shape)

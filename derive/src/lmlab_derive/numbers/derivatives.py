"""Doubles that know derivatives: arithmetic with dual arrays, which carry their slopes along."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from lmlab_derive.functions import Entrywise
from lmlab_derive.functions.record import Array
from lmlab_derive.limits import Deadline, NoExactValue
from lmlab_derive.numbers.accuracy import Accuracy
from lmlab_derive.numbers.doubles import FloatOps
from lmlab_derive.numbers.duals import (
    Dual,
    Hidden,
    chain,
    determinant,
    dual,
    inverse,
    lifted,
    value_of,
    with_slopes,
)
from lmlab_derive.numbers.evaluate import COMPARISONS, Frame
from lmlab_derive.numbers.expectations import average
from lmlab_derive.numbers.points import Point, Raw, make_frame
from lmlab_derive.numbers.quadrature import Leaf
from lmlab_derive.numbers.scores import moves_means, without_derivatives
from lmlab_derive.shapes.scope import Scope
from lmlab_derive.shapes.setting import Setting, build
from lmlab_derive.tree import Derivative, Expectation, Name, Node

_NEVER = Deadline(math.inf)  # one for all slopes: to make one reads the clock


class DualOps(FloatOps):
    """Doubles with slopes. `hidden`: the hidden axes of the derivatives and rules of points around what is computed."""

    def __init__(self, doubles: Callable[[], FloatOps] | None = None) -> None:
        super().__init__()
        self.doubles = doubles  # for means that are not differentiated
        self.hidden: Hidden = ()

    @contextmanager
    def along(self, slopes: bool) -> Iterator[None]:
        """Inside: one more hidden axis, of slopes or of points."""
        outside, self.hidden = self.hidden, (*self.hidden, slopes)
        try:
            yield
        finally:
            self.hidden = outside

    def at_points(self, rows: Any) -> Array:
        """An array that has the values of these rows, one for each point, along the hidden axis to come."""
        return dual(rows.reshape(len(rows), *(1,) * len(self.hidden), *rows.shape[1:]), (*self.hidden, False))

    def total(self, weighted: Array) -> Array:
        """The sum over the points of the hidden axis that is left."""
        return dual(lifted(weighted, (*self.hidden, False)).sum(axis=0), self.hidden)

    def directions(self, value: Array, first: int, count: int) -> Array:
        """What one differentiates by: its entries are the directions from `first` on, of so many, of the axis to come."""
        units = np.eye(count)[:, first : first + math.prod(value.shape)]
        units = units.reshape(count, *(1,) * len(self.hidden), *value.shape)
        hidden = (*self.hidden, True)
        return with_slopes(value, dual(units, hidden), len(self.hidden), hidden)

    def slopes(self, value: Array, count: int) -> Array:
        """The slopes in so many directions of the hidden axis that is left, along a last axis."""
        data = lifted(value, (*self.hidden, True))[1:]
        return dual(np.moveaxis(data, 0, -1), self.hidden) if len(data) else np.zeros((*value.shape, count))

    def wrap(self, value: Any) -> Array:
        """Numbers become arrays."""
        return value if isinstance(value, Dual) else super().wrap(value)

    def to_numpy(self, value: Array) -> Any:
        """Without slopes."""
        plain = value_of(value)
        return plain.data if isinstance(plain, Dual) else plain

    def from_numpy(self, raw: Any) -> Array:
        """As it is."""
        return raw if isinstance(raw, Dual) else super().from_numpy(raw)

    def entrywise(self, function: Entrywise, value: Array) -> Array:
        """By the chain rule, with the slope that the record has."""
        if not isinstance(value, Dual):
            return super().entrywise(function, value)
        self.bends(function, value_of(value))
        return chain(functools.partial(function.computed, "numpy", np), functools.partial(self._slope, function), value)

    def _slope(self, function: Entrywise, value: Array, argument: Array) -> Array:
        """What the record says of the slope; its kinks are those of the function, which are noted."""
        frame = Frame(_no_setting(), self, {}, {"v": value, "u": argument}, _NEVER)
        with self.collecting():
            return frame.evaluate(_slope_formula(function))

    def compare(self, op: str, left: Array, right: Array) -> Array:
        """0 and 1, without slopes."""
        self.near(self.wrap(left - right))
        return self.wrap(self.wrap(COMPARISONS[op](left, right)).astype(float))

    def determinant(self, value: Array) -> Array:
        """By NumPy, its slopes by cofactors."""
        return self.wrap(determinant(value))

    def inverse(self, value: Array) -> Array:
        """By NumPy; nan when there is none."""
        return inverse(value)

    def derivative(self, node: Derivative, frame: Frame) -> Array:
        """By dual arrays. A second derivative is the derivative of the first; that of a mean is a mean, where that is known."""
        if self.doubles and not frame.graph and moves_means(node, frame.setting):
            try:
                plain = without_derivatives(node, frame.setting)
            except NoExactValue:
                pass
            else:
                return self.accuracy.known(lambda: self._written_out(plain, frame))
        name = node.by[-1]
        here = frame.value(name)
        count = math.prod(here.shape)
        leaf = self.directions(here, 0, count)
        with self.along(slopes=True):
            top = self.top(node, frame.child({name: leaf}, graph=True))
        return self.slopes(top, count).reshape((*top.shape, *here.shape))

    def _written_out(self, plain: Node, frame: Frame) -> tuple[Array, Any, float]:
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
        return found[0], error, means.size

    def expectation(self, node: Expectation, frame: Frame) -> Array:
        """As doubles have it, unless derivatives stand inside that are no formulas, or are taken of the whole."""
        if self.doubles and not frame.graph:
            try:
                plain = without_derivatives(node, frame.setting)
                assert isinstance(plain, Expectation)
                if not any(isinstance(inner, Derivative) for inner in frame.setting.opened(plain)):
                    doubles = self.doubles()
                    doubles.accuracy = self.accuracy
                    return frame.translated(doubles).evaluate(plain)
            except NoExactValue:
                pass

        def leaf(inner: Node, over: frozenset[str]) -> Array:
            mean = Leaf(inner, over, frame, self.accuracy)
            return self.accuracy.known(mean.mean, mean.coarser if frame.graph else None)

        return average(node, frame, leaf)


@functools.cache
def _no_setting() -> Setting:
    return build(Scope())


@functools.cache
def _slope_formula(function: Entrywise) -> Node:
    """The derivative of a function from its value v and its argument u."""
    assert function.slope is not None
    return function.slope(Name("v"), Name("u"))


def slopes_of_excess(
    setting: Setting, high: Node, low: Node, point: Point, names: list[str], deadline: Deadline
) -> dict[str, Raw]:
    """The derivative of how far `high` exceeds `low`, relative to their size at the entry where it is most, by the raw
    numbers of these givens; none where it has none. Relative: or the way up would lead to where both are small."""
    ops, raw, first = DualOps(), dict(point.raw), 0
    count = sum(point.raw[name].size for name in names)
    for name in names:
        raw[name] = ops.directions(np.asarray(point.raw[name], dtype=float), first, count)
        first += point.raw[name].size
    with np.errstate(all="ignore"), ops.along(slopes=True):
        frame = make_frame(setting, Point(point.sizes, raw), ops, deadline)
        frame.graph = True
        pair = [frame.evaluate(side) for side in (high, low)]
        gap = pair[0] - pair[1]
        if not isinstance(gap, Dual):
            return {}
        if all(ops.to_numpy(side).any() for side in pair):
            size = np.maximum(*(np.where(value_of(side) < 0, -side, side) for side in pair))
            gap = gap / np.where(value_of(size) == 0, 1.0, size)
        largest = gap.max()
    slopes = ops.slopes(largest, count)
    ends = np.cumsum([point.raw[name].size for name in names])
    return {
        name: part.reshape(point.raw[name].shape) for name, part in zip(names, np.split(slopes, ends[:-1]), strict=True)
    }

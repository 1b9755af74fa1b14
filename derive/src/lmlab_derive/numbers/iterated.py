"""Integrals one inside the other, over random variables on which an expression depends entry by entry."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import mpmath
import numpy as np

from lmlab_derive.distributions import Distribution
from lmlab_derive.functions.record import Array
from lmlab_derive.numbers.accuracy import Accuracy
from lmlab_derive.numbers.evaluate import Frame
from lmlab_derive.numbers.integrals import Integral, integrate, largest_finite
from lmlab_derive.tree import Node

NESTED = 1e-12  # relative precision of integrals inside others
FAINT = 1e-12  # of the largest: an integral inside another that is so small does not count
OTHERWISE = 0.381966  # of a panel: where another one ends, for a second opinion
BLOCK, BLOCKS = 120, 12  # terms of a sum without end: so many at a time, and at most so many times


def _otherwise(edges: tuple[float, ...]) -> tuple[float, ...]:
    """The same range in other panels: two rules that agree on one by chance, across a jump, will not on the other."""
    within = [low + OTHERWISE * (high - low) for low, high in pairwise(edges)]
    return (edges[0], *within, edges[-1])


class _Functions:
    """log and lgamma of arrays, as the records of distributions want them."""

    def __init__(self, long: bool) -> None:
        self.pi: Any = +mpmath.pi if long else math.pi
        self.root2: Any = mpmath.sqrt(2) if long else math.sqrt(2)
        if long:
            self.log: Any = np.frompyfunc(lambda x: mpmath.log(x) if x > 0 else mpmath.nan, 1, 1)
            self.lgamma: Any = np.frompyfunc(lambda x: mpmath.re(mpmath.loggamma(x)) if x > 0 else mpmath.nan, 1, 1)
            self.exp: Any = np.frompyfunc(mpmath.exp, 1, 1)
            self.expm1: Any = np.frompyfunc(mpmath.expm1, 1, 1)
            self.erfc: Any = np.frompyfunc(mpmath.erfc, 1, 1)
        else:
            self.log, self.exp, self.expm1 = np.log, np.exp, np.expm1
            self.erfc = np.vectorize(math.erfc, otypes=[float])
            self.lgamma = np.vectorize(lambda x: math.lgamma(x) if x > 0 else math.nan, otypes=[float])


@dataclass
class Inside:
    """What integrals inside another one tell of it."""

    error: float = 0.0  # the largest
    largest: float = 0.0  # of their sizes, which have the densities of all variables in them
    lost: bool = False  # one of them has no value, and is not too small to count

    def seen(self, inner: Integral) -> tuple[Array, None, Array]:
        """Take note of some of them; gives what the outer one is taken of."""
        self.error = max(self.error, largest_finite(inner.error))
        self.largest = max(self.largest, largest_finite(inner.size))
        self.lost |= bool((inner.diverges & ~(inner.size <= FAINT * self.largest)).any())
        return inner.value, None, inner.size


@dataclass
class Variable:
    """One variable to integrate over, and what it is the value of."""

    name: str
    family: Distribution
    arguments: Callable[[Frame], list[Array]]


class Integration:
    """Integrals one inside the other, over variables on which an expression depends entry by entry."""

    def __init__(self, node: Node, variables: list[Variable], frame: Frame, accuracy: Accuracy, rank: int) -> None:
        self.node, self.variables, self.frame, self.accuracy = node, variables, frame, accuracy
        self.rank = max(rank, frame.trailing)
        self.digits = mpmath.mp.dps if frame.ops.way == "long" else 0
        self.functions = _Functions(bool(self.digits))
        self.inside = Inside()

    def run(self) -> Integral:
        """The whole integral, as one of a single owner."""
        with np.errstate(all="ignore"):
            found = self._level([], 1)
        found.diverges |= self.inside.lost
        return found

    def _level(self, outer: list[Array], owners: int) -> Integral:
        """The integral over one variable for every point (z of each outer variable) of those outside it."""
        variable = self.variables[len(outer)]
        last = len(outer) + 1 == len(self.variables)

        def integrand(z: Array, owner: Array) -> tuple[Array, Array | None, Array | None]:
            self.frame.deadline.check()
            points = [values[owner] for values in outer] + [z]
            if last:
                return *self._values(points), None
            found = self.inside.seen(self._level(points, len(z)))
            self.accuracy.inside = max(self.accuracy.inside, self.inside.error)
            return found

        if variable.family.counts:
            return self._counted(integrand, owners)
        precision = 1e-15 if len(self.variables) == 1 else NESTED
        edges = variable.family.edges if self.accuracy.effort == 1 else _otherwise(variable.family.edges)
        return integrate(integrand, edges, owners, self.digits, precision)

    def _counted(self, integrand: Any, owners: int) -> Integral:
        """A sum over 0, 1, 2, ... as far as its terms matter."""
        total: Any = 0
        size, error, diverges = np.zeros(owners), np.zeros(owners), np.zeros(owners, dtype=bool)
        floor, rounding = (10.0 ** (4 - self.digits), 0.0) if self.digits else (1e-17, 1e-16)
        for block in range(BLOCKS):
            z = np.tile(np.arange(block * BLOCK, (block + 1) * BLOCK, dtype=float), owners)
            if self.digits:
                z = np.frompyfunc(mpmath.mpf, 1, 1)(z)
            values, _, inside = integrand(z, np.repeat(np.arange(owners), BLOCK))
            values = values.reshape(owners, BLOCK, *values.shape[1:])
            sizes = abs(values) if inside is None else inside
            sizes = np.asarray(sizes.reshape(owners, BLOCK, -1).max(axis=2), dtype=float)
            total, size = total + values.sum(axis=1), size + sizes.sum(axis=1)
            self.inside.largest = max(self.inside.largest, largest_finite(size))
            last = sizes[:, -1]
            falls = last <= 0.9 * sizes[:, -2]
            error = np.where(falls, 20 * last, np.where(last > 0, np.inf, 0.0)) + max(floor, rounding) * size
            diverges = ~falls & (last > 1e-9 * size)
            if bool((falls & (20 * last <= floor * self.inside.largest) & (size > 0)).all()):  # 0 so far: go on
                break
        return Integral(total, error, size, diverges)

    def _values(self, points: list[Array]) -> tuple[Array, Array | None]:
        """The expression times the density at many points, and how far the kinks are."""
        count = len(points[0])
        frame = self.frame.child({})
        weight: Any = 0
        values: dict[str, Array] = {}
        for variable, z in zip(self.variables, points, strict=True):
            z = z.reshape(count, *[1] * self.rank)
            arguments = variable.arguments(frame)
            assert variable.family.log_weight is not None
            for i in variable.family.positive:
                arguments[i] = np.where(arguments[i] > 0, arguments[i], math.nan)
            weight = weight + variable.family.log_weight(self.functions, z, arguments)
            values[variable.name] = self.frame.ops.wrap(variable.family.place(z, arguments))
            frame = self.frame.child(values)
            frame.trailing = self.rank + 1
        with self.frame.ops.collecting() as distances:
            value = frame.evaluate(self.node)
        weight = self.functions.exp(weight)
        value = np.asarray(value * weight)
        value = np.where(weight == 0, weight * 0, value)  # inf where nothing is: nothing
        value = np.broadcast_to(value, (count, *value.shape[1:])) if value.shape[0] != count else value
        kinks = [np.broadcast_to(d, (count, *d.shape[1:])).reshape(count, -1) for d in distances if d.ndim > self.rank]
        return value, np.concatenate(kinks, axis=1) if kinks else None

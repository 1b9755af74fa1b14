"""Expectations in doubles: enumeration of finite outcomes, Gauss quadrature, and quasi-random samples for the rest."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from lmlab.checker.limits import Refusal
from lmlab.checker.numbers.evaluate import Frame
from lmlab.checker.numbers.expectations import average, degree, elementwise_in, has_kink, is_finite
from lmlab.checker.tree import Derivative, Expectation, Kind, Node

GRID = 40_000  # nodes of a product rule at most
SLOW_GRID = 400  # the same, where derivatives inside must be taken node by node
SAMPLES = 65_536  # a power of two, as Sobol sequences want
REPLICATES = 16  # sequences scrambled independently: how they differ tells the error of their mean
ROUNDED = 1e-13  # a mean this small against the mean size of what is averaged is what rounding leaves of 0
ROOM = 4_000_000  # numbers in the largest array over all nodes: 32 MB
MAX_RANDOM = 200
_F64 = torch.float64
Floats = np.ndarray[Any, np.dtype[np.float64]]
Rule = tuple[Floats, Floats]  # nodes and weights


@dataclass
class Accuracy:
    """How well the expectations of a point are known."""

    error: float = 0.0  # the largest error so far, relative to the value
    blur: float = 0.0  # and relative to the size of what is averaged
    sampled: bool = False  # whether one was estimated from random samples
    batched: bool = False  # inside a quadrature, which evaluates many points at once


@functools.cache
def normal_rule(count: int) -> Rule:
    """Gauss-Hermite nodes and weights for the standard normal."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(count)
    return nodes, weights / weights.sum()


@functools.cache
def uniform_rule(count: int) -> Rule:
    """Gauss-Legendre nodes and weights for the uniform distribution on (0, 1)."""
    nodes, weights = np.polynomial.legendre.leggauss(count)
    return (nodes + 1) / 2, weights / 2


@functools.cache
def fine_rule(family: str, count: int) -> Rule:
    """Equally spaced nodes, for functions with kinks in one dimension."""
    if family == "normal":
        nodes = np.linspace(-9, 9, count)
        weights = np.exp(-nodes * nodes / 2)
        return nodes, weights / weights.sum()
    nodes = (np.arange(count) + 0.5) / count
    return nodes, np.full(count, 1 / count)


def expectation(node: Expectation, frame: Frame, accuracy: Accuracy) -> Tensor:
    """E[...] or Var[...] with torch; how well it is known is added to `accuracy`."""
    mean: Tensor = average(node, frame, lambda inner, over: Leaf(inner, over, frame, accuracy).mean())
    return mean


class Leaf:
    """The average of one expression over the entries of some random names."""

    def __init__(self, node: Node, over: frozenset[str], frame: Frame, accuracy: Accuracy) -> None:
        self.node, self.frame, self.setting, self.accuracy = node, frame, frame.setting, accuracy
        self.names = [name for name in self.setting.givens if name in over]
        self.over = over
        self.shared = elementwise_in(node, over, self.setting)
        self.slow = any(isinstance(inner, Derivative | Expectation) for inner in self.setting.opened(node))
        self.kinds: dict[str, Kind] = {}
        self.shapes: dict[str, tuple[int, ...]] = {}
        for name in self.names:
            kind = self.setting.distribution(name)
            assert kind is not None
            self.kinds[name] = kind
            shape = tuple(axis.value(frame.sizes) for axis in self.setting.givens[name].shape)
            if kind.name == "onehot":
                shape = shape[:-1]
                self.shared = False
            self.shapes[name] = shape

    def mean(self) -> Tensor:
        """The average by the best rule that is affordable."""
        columns = [(name, self.kinds[name]) for name in self.names for _ in range(self._entries(name))]
        exact = degree(self.node, self.over, self.setting)
        if len(columns) > MAX_RANDOM:
            what = f"an expectation over {len(columns)} random numbers is too large"
            raise Refusal(f"{what}; at most {MAX_RANDOM} are allowed")
        continuous = [column for column in columns if not is_finite(column[1])]
        outcomes = math.prod(self._outcomes(kind) for _, kind in columns if is_finite(kind))
        grid = min(SLOW_GRID if self.slow else GRID, ROOM // self._widest())
        room = grid // max(1, outcomes)
        roomy = ROOM // self._widest() // max(1, outcomes)
        if not continuous or (exact is not None and (exact // 2 + 1) ** len(continuous) <= roomy):
            if outcomes > grid:
                return self._sampled()
            return self._grid([self._rule(kind, (exact or 0) // 2 + 1) for _, kind in columns])[0]
        if has_kink(self.node, self.over, self.setting) and (len(continuous) == 1 or not self.slow):
            if len(continuous) > 1:
                return self._sampled()  # product rules for smooth functions miss the bends
            return self._estimated(lambda n: [self._fine(kind, n) for _, kind in columns], min(room, 20_000))
        most = 14 if self.slow else 48
        count = min(most, int(max(room, 1) ** (1 / len(continuous)))) if outcomes <= grid else 0
        if count >= 8:
            return self._estimated(lambda n: [self._rule(kind, n) for _, kind in columns], count)
        return self._sampled()

    def _widest(self) -> int:
        """Entries of the largest array in the expression: what one node of a rule costs in memory."""
        shapes = [self.setting.shape(inner) for inner in self.setting.opened(self.node)]
        shapes += [self.setting.givens[name].shape for name in self.names]
        return max(math.prod(axis.value(self.frame.sizes) for axis in shape) for shape in shapes)

    def _entries(self, name: str) -> int:
        return 1 if self.shared else math.prod(self.shapes[name])

    def _outcomes(self, kind: Kind) -> int:
        if kind.name in ("bernoulli", "rademacher"):
            return 2
        if kind.name in ("categorical", "onehot"):
            return int(self.frame.evaluate(kind.arguments[0]).shape[0])
        return len(kind.outcomes)

    def _rule(self, kind: Kind, count: int) -> Rule:
        if is_finite(kind):
            return np.arange(self._outcomes(kind), dtype=float), np.ones(self._outcomes(kind))
        return normal_rule(count) if kind.name == "normal" else uniform_rule(count)

    def _fine(self, kind: Kind, count: int) -> Rule:
        return self._rule(kind, 1) if is_finite(kind) else fine_rule(kind.name, count)

    def _estimated(self, rules: Callable[[int], list[Rule]], count: int) -> Tensor:
        """A rule and a coarser one; their difference tells the error."""
        (value, size), (coarse, _) = self._grid(rules(count)), self._grid(rules(max(4, count * 3 // 4)))
        value = torch.where(value.abs() <= ROUNDED * size, value - value.detach(), value)
        coarse = torch.where(coarse.abs() <= ROUNDED * size, 0.0, coarse)
        self._note(float((value - coarse).detach().abs().max()), value, float(size))
        return value

    def _note(self, error: float, value: Tensor, size: float) -> None:
        """Keep the largest error so far, relative to the value, and relative to the size of what was averaged."""
        scale = float(value.detach().abs().max()) or size or 1.0
        self.accuracy.error = max(self.accuracy.error, error / scale, 1e-12)
        self.accuracy.blur = max(self.accuracy.blur, error / (size or 1.0))

    def _grid(self, rules: list[Rule]) -> tuple[Tensor, Tensor]:
        """The product rule, every combination of nodes: the mean, and the mean size of the largest entry."""
        grids = np.meshgrid(*[nodes for nodes, _ in rules], indexing="ij")
        codes = np.stack([grid.reshape(-1) for grid in grids], axis=1)
        weights = functools.reduce(np.multiply.outer, [w for _, w in rules]).reshape(-1)
        values, chances = self._evaluated(torch.tensor(codes, dtype=_F64))
        total = (torch.tensor(weights, dtype=_F64) * chances).reshape(-1, *[1] * (values.ndim - 1))
        return (total * values).sum(0), (total * values).detach().abs().sum(0).max()

    def _evaluated(self, codes_PM: Tensor) -> tuple[Tensor, Tensor]:
        """The expression and the chance at every row of codes; one by one where derivatives are inside."""
        if self.slow:
            rows = [self._at(codes_M) for codes_M in codes_PM]
            return torch.stack([value for value, _ in rows]), torch.stack([chance for _, chance in rows])
        outside, self.accuracy.batched = self.accuracy.batched, True
        try:
            values, chances = torch.func.vmap(self._at)(codes_PM)
        finally:
            self.accuracy.batched = outside
        return values, chances

    def _at(self, codes_M: Tensor) -> tuple[Tensor, Tensor]:
        """The expression and the probability of the finite outcomes at one row of codes."""
        chance = torch.ones((), dtype=_F64)
        inner = self.frame.child({})
        values: dict[str, Tensor] = {}
        for name in self._ordered():
            start = sum(map(self._entries, self.names[: self.names.index(name)]))
            codes = codes_M[start : start + self._entries(name)]
            shape = self.shapes[name]
            codes = codes.expand(max(1, math.prod(shape))) if self.shared else codes
            value, probability = self._value(self.kinds[name], codes.reshape(shape), inner)
            chance = chance * (probability.reshape(-1)[:1] if self.shared else probability).prod()
            values[name] = value.expand(shape) if self.kinds[name].name != "onehot" else value
            inner = self.frame.child(values)
        return inner.evaluate(self.node), chance

    def _ordered(self) -> list[str]:
        """Names whose parameters are random come after those parameters."""
        done: list[str] = []
        waiting = list(self.names)
        while waiting:
            ready = [n for n in waiting if not self._parents(n) & set(waiting) - {n}]
            if not ready:
                raise Refusal("the distributions of the random names depend on each other in a circle")
            done += ready
            waiting = [n for n in waiting if n not in ready]
        return done

    def _parents(self, name: str) -> set[str]:
        return {n for node in self.kinds[name].arguments for n in self.setting.depends(node)}

    def _value(self, kind: Kind, codes: Tensor, frame: Frame) -> tuple[Tensor, Tensor]:
        """The value a code stands for, and its probability (1 for the continuous, whose weights are in the rule)."""
        arguments = [frame.evaluate(node) for node in kind.arguments]
        one = torch.ones((), dtype=_F64)
        match kind.name:
            case "normal":
                return arguments[0] + arguments[1] * codes, one
            case "uniform" if arguments:
                return arguments[0] + (arguments[1] - arguments[0]) * codes, one
            case "rademacher":
                return 2 * codes - 1, torch.full_like(codes, 0.5)
            case "bernoulli":
                return codes, torch.where(codes == 1, arguments[0], 1 - arguments[0])
            case "categorical":
                return codes, arguments[0][codes.long()]
            case "onehot":
                width = arguments[0].shape[0]
                return torch.eye(width, dtype=_F64)[codes.long()], arguments[0][codes.long()]
        table = torch.stack([frame.evaluate(value).expand(()) for value, _ in kind.outcomes])
        weights = [one / len(kind.outcomes) if w is None else frame.evaluate(w) for _, w in kind.outcomes]
        return table[codes.long()], torch.stack(weights)[codes.long()]

    def _sampled(self) -> Tensor:
        """Scrambled Sobol points; the error kept is such that the tolerance becomes six standard errors."""
        count = min(SAMPLES, ROOM // self._widest(), SLOW_GRID * 4 if self.slow else SAMPLES)
        if count < 1_000 and not self.slow:
            raise Refusal("the expectation runs over too many numbers; use smaller sizes")
        each = 2 ** int(math.log2(max(2, count // REPLICATES)))
        kinds = [self.kinds[name] for name in self.names for _ in range(self._entries(name))]
        sobol: Any = torch.quasirandom.SobolEngine
        engines = [sobol(len(kinds), scramble=True, seed=i) for i in range(REPLICATES)]
        points = torch.cat([engine.draw(each, dtype=_F64) for engine in engines])
        codes = torch.stack([self._code(kind, points[:, i]) for i, kind in enumerate(kinds)], dim=1)
        values, _ = self._evaluated(codes)
        means = values.reshape(REPLICATES, each, *values.shape[1:]).mean(1)
        mean = means.mean(0)
        deviation = float((means.detach().std(0) / math.sqrt(REPLICATES)).max())
        self._note(0.3 * deviation, mean, float(values.detach().abs().mean(0).max()))
        self.accuracy.sampled = True
        return mean

    def _code(self, kind: Kind, uniform_P: Tensor) -> Tensor:
        """Codes of a distribution from numbers spread evenly over (0, 1)."""
        inside = uniform_P.clamp(1e-12, 1 - 1e-12)
        if kind.name == "normal":
            return math.sqrt(2) * torch.erfinv(2 * inside - 1)
        if not is_finite(kind):
            return inside
        with torch.no_grad():
            _, chances = self._value(kind, torch.arange(self._outcomes(kind), dtype=_F64), self.frame)
        steps = torch.cumsum(chances / chances.sum(), 0)
        return torch.searchsorted(steps[:-1], inside, right=True).to(_F64)

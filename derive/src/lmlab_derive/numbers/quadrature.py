"""Means over many numbers at once, or with derivatives inside or outside: torch evaluates all points of a rule together."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from lmlab_derive.distributions import DISTRIBUTIONS, is_finite
from lmlab_derive.limits import NoExactValue, Refusal
from lmlab_derive.numbers.accuracy import Accuracy
from lmlab_derive.numbers.evaluate import Frame
from lmlab_derive.numbers.expectations import degree, elementwise_in, has_kink, is_smooth
from lmlab_derive.numbers.integrals import Integral, integrate
from lmlab_derive.numbers.iterated import NESTED, Inside
from lmlab_derive.numbers.means import folded, ordered, parents
from lmlab_derive.tree import Derivative, Expectation, Kind, Node

GRID = 40_000  # nodes of a product rule at most
SLOW_GRID = 400  # the same, where derivatives inside must be taken node by node
SAMPLES = 65_536  # a power of two, as Sobol sequences want
REPLICATES = 16  # sequences scrambled independently: how they differ tells the error of their mean
DEVIATIONS = 3.0  # standard errors that count as the error of a mean of samples
ROOM = 4_000_000  # numbers in the largest array over all nodes: 32 MB
MAX_RANDOM = 200
_F64 = torch.float64
Rule = tuple[Any, Any]  # nodes and weights


class Leaf:
    """The average of one expression over the entries of some random names."""

    def __init__(self, node: Node, over: frozenset[str], frame: Frame, accuracy: Accuracy) -> None:
        self.node, self.frame, self.setting, self.accuracy = node, frame, frame.setting, accuracy
        self.names = ordered(self.setting, over)
        self.over = over
        self.rule = 0  # 1 or -1: a coarser one
        self.shared = elementwise_in(node, over, self.setting)
        self.slow = any(isinstance(inner, Derivative | Expectation) for inner in self.setting.opened(node))
        self.kinds: dict[str, Kind] = {}
        self.shapes: dict[str, tuple[int, ...]] = {}
        for name in self.names:
            self.kinds[name] = kind = self.setting.family(name)[1]
            shape = tuple(axis.value(frame.sizes) for axis in self.setting.givens[name].shape)
            varied = not self.setting.family(name)[0].shifts and any(map(self.setting.shape, kind.nodes))
            if kind.name in ("onehot", "dirichlet") or varied or self.setting.covaries(name):
                self.shared = False
            self.shapes[name] = shape[:-1] if kind.name == "onehot" else shape

    def mean(self) -> tuple[Tensor, Any, float]:
        """The average by the best rule that is affordable: value, error, size."""
        columns = [(name, self.kinds[name]) for name in self.names for _ in range(self._entries(name))]
        if len(columns) > MAX_RANDOM:
            what = f"an expectation over {len(columns)} random numbers is too large"
            raise Refusal(f"{what}; at most {MAX_RANDOM} are allowed")
        exact = degree(self.node, self.over, self.frame)
        continuous = [kind for _, kind in columns if not is_finite(kind)]
        outcomes = math.prod(self._outcomes(kind) for _, kind in columns if is_finite(kind))
        grid = min(SLOW_GRID if self.slow else GRID, ROOM // self._widest())
        gauss = all(DISTRIBUTIONS[kind.name].gauss is not None for kind in continuous)
        count = (exact or 0) // 2 + 1
        if not continuous or (gauss and exact is not None and count ** len(continuous) * outcomes <= ROOM):
            if outcomes > grid:
                return self._sampled()
            value, size = self._grid([self._rule(kind, count) for _, kind in columns])
            return value, 1e-14 * size, size
        if self.frame.graph and not all(DISTRIBUTIONS[kind.name].standard for kind in continuous):
            raise NoExactValue  # nor through a choice of samples
        bends = has_kink(self.node, self.over, self.setting)
        if self.frame.graph and bends:
            raise NoExactValue  # a derivative does not pass through a jump, and no rule is smooth enough for one at an edge
        if len(continuous) == len(columns) <= 2 and not self.slow and not self.frame.graph:
            return self._nested(len(columns))
        room = int((grid // max(1, outcomes)) ** (1 / len(continuous)))
        if bends and len(continuous) == 1 and gauss:
            return self._estimated(columns, min(room, 8_000), fine=True)
        count = min(14 if self.slow else 48, room)
        if count >= 8 and gauss and (not bends or self.slow):
            return self._estimated(columns, count)
        return self._sampled()

    def coarser(self, rule: int) -> Tensor:
        """The average by a coarser rule, with its own slopes; samples have none that would tell an error."""
        sampled, self.rule = self.accuracy.sampled, rule
        self.accuracy.sampled = False
        value = self.mean()[0]
        value = value.detach() if self.accuracy.sampled else value
        self.accuracy.sampled |= sampled
        return value

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

    def _rule(self, kind: Kind, count: int, fine: bool = False) -> Rule:
        if is_finite(kind):
            return np.arange(self._outcomes(kind), dtype=float), np.ones(self._outcomes(kind))
        family = DISTRIBUTIONS[kind.name]
        assert family.gauss is not None
        assert family.log_weight is not None
        if not fine:
            return family.gauss(count)
        nodes = np.linspace(max(family.edges[0], -9.0), min(family.edges[-1], 40.0), count)
        nodes = (nodes[1:] + nodes[:-1]) / 2
        weights = np.exp(family.log_weight(_Constants, nodes, ()))
        return nodes, weights / weights.sum()

    def _estimated(self, columns: list[tuple[str, Kind]], count: int, fine: bool = False) -> tuple[Tensor, Any, float]:
        """A rule and two coarser ones; how they differ tells the error."""
        counts = (count, max(4, count * 3 // 4), max(4, count * 7 // 8))
        found = [self._grid([self._rule(kind, n, fine) for _, kind in columns]) for n in counts]
        (value, size), others = found[0], found[1:]
        if self.rule:
            return found[self.rule][0], 0.0, size
        error = max(float((value - other).detach().abs().max()) for other, _ in others)
        return value, error + 1e-14 * size, size

    def _nested(self, count: int) -> tuple[Tensor, Any, float]:
        """One or two integrals, one inside the other, split where the expression bends."""
        edges = [DISTRIBUTIONS[self.kinds[name].name].edges for name in self.names for _ in range(self._entries(name))]
        if not all(edges) or any(kind.name == "dirichlet" for kind in self.kinds.values()):
            return self._sampled()
        inside = Inside()

        def level(outer: list[Any], owners: int) -> Integral:
            def integrand(z: Any, owner: Any) -> tuple[Any, Any, Any]:
                self.frame.deadline.check()
                points = [values[owner] for values in outer] + [z]
                if len(points) == count:
                    return *self._weighted(np.stack(points, axis=1)), None
                return inside.seen(level(points, len(z)))

            return integrate(integrand, edges[len(outer)], owners, precision=NESTED)

        with np.errstate(all="ignore"):
            found = level([], 1)
        lost = inside.lost or bool(found.diverges[0])
        self.accuracy.diverges |= lost
        value = torch.tensor(found.value[0] * (math.nan if lost else 1.0), dtype=_F64)
        plain = all(DISTRIBUTIONS[kind.name].standard for kind in self.kinds.values())
        at_least = folded(count, plain and is_smooth(self.node, self.over, self.setting)) * float(found.size[0])
        return value, float(found.error[0]) + inside.error + at_least, float(found.size[0])

    def _weighted(self, codes: Any) -> tuple[Any, Any]:
        """The expression times the density at many points, and how far the kinks are."""
        width = 0

        def at(codes_M: Tensor) -> tuple[Tensor, Tensor, Tensor]:
            nonlocal width
            with self.frame.ops.collecting() as distances:
                value, chance = self._at(codes_M)
            width = value.ndim
            kinks = [d.reshape(-1) for d in distances]
            return value, chance, torch.cat(kinks) if kinks else torch.zeros(0, dtype=_F64)

        value, weight, kinks = torch.func.vmap(at)(torch.tensor(codes, dtype=_F64))
        weight = weight.reshape(-1, *[1] * width)
        weighted = torch.where(weight == 0, 0.0, value * weight)
        return weighted.numpy(), kinks.numpy() if kinks.shape[-1] else None

    def _grid(self, rules: list[Rule]) -> tuple[Tensor, float]:
        """The product rule, every combination of nodes: the mean, and the mean size of the largest entry."""
        grids = np.meshgrid(*[nodes for nodes, _ in rules], indexing="ij")
        codes = np.stack([grid.reshape(-1) for grid in grids], axis=1)
        weights = functools.reduce(np.multiply.outer, [w for _, w in rules]).reshape(-1)
        values, chances = self._evaluated(torch.tensor(codes, dtype=_F64))
        total = (torch.tensor(weights, dtype=_F64) * chances).reshape(-1, *[1] * (values.ndim - 1))
        return (total * values).sum(0), float((total * values).detach().abs().sum(0).max())

    def _evaluated(self, codes_PM: Tensor) -> tuple[Tensor, Tensor]:
        """The expression and the chance at every row of codes; one by one where derivatives are inside."""
        if self.slow:
            rows = [self._at(codes_M, weigh=False) for codes_M in codes_PM]
            return torch.stack([value for value, _ in rows]), torch.stack([chance for _, chance in rows])
        with self.frame.ops.collecting():
            values, chances = torch.func.vmap(lambda codes_M: self._at(codes_M, weigh=False))(codes_PM)
        return values, chances

    def _at(self, codes_M: Tensor, weigh: bool = True) -> tuple[Tensor, Tensor]:
        """The expression at one row of codes, and the chance of it: of finite outcomes, and, to `weigh`, the density."""
        inner, chance = self._placed(codes_M, weigh)
        return inner.evaluate(self.node), chance

    def _placed(self, codes_M: Tensor, weigh: bool) -> tuple[Frame, Tensor]:
        """The frame in which the names have the values of a row of codes, as far as it goes, and the chance of it."""
        chance = torch.ones((), dtype=_F64)
        inner = self.frame.child({})
        values: dict[str, Tensor] = {}
        start = 0
        for name in self.names:
            count, shape = self._entries(name), self.shapes[name]
            codes = codes_M[start : start + count]
            if not len(codes):
                break
            start += count
            codes = codes.expand(max(1, math.prod(shape))) if self.shared else codes
            value, probability = self._value(name, codes.reshape(shape), inner, weigh)
            chance = chance * (probability.reshape(-1)[:1] if self.shared else probability).prod()
            values[name] = value.expand(shape) if self.kinds[name].name != "onehot" else value
            inner = self.frame.child(values)
        return inner, chance

    def _value(self, name: str, codes: Tensor, frame: Frame, weigh: bool) -> tuple[Tensor, Tensor]:
        """The value a code stands for, and its probability (the density, to `weigh`)."""
        kind, family = self.kinds[name], self.setting.family(name)[0]
        arguments = [frame.evaluate(node) for node in kind.arguments]
        one = torch.ones((), dtype=_F64)
        if not is_finite(kind):
            density = one
            if weigh and family.log_weight is not None:
                density = torch.exp(family.log_weight(_Constants, codes, arguments))
            return frame.placed(name, codes, arguments), density
        match kind.name:
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

    def _sampled(self) -> tuple[Tensor, Any, float]:
        """Scrambled Sobol points (random ones, where a distribution has no quantiles at hand)."""
        count = min(SAMPLES, ROOM // self._widest(), SLOW_GRID * 4 if self.slow else SAMPLES)
        if count < 1_000 and not self.slow:
            raise Refusal("the expectation runs over too many numbers; use smaller sizes")
        each = 2 ** int(math.log2(max(2, count // REPLICATES)))
        total = sum(map(self._entries, self.names))
        sobol: Any = torch.quasirandom.SobolEngine
        offset = 1000 * self.accuracy.effort
        parts = []
        for i in range(REPLICATES):
            points = sobol(total, scramble=True, seed=offset + i).draw(each, dtype=_F64)
            parts.append(self._codes(points, np.random.default_rng([offset, i])))
        values, _ = self._evaluated(torch.cat(parts))
        means = values.reshape(REPLICATES, each, *values.shape[1:]).mean(1)
        deviation = float((means.detach().std(0) / math.sqrt(REPLICATES)).max())
        self.accuracy.sampled = True
        return means.mean(0), DEVIATIONS * deviation, float(values.detach().abs().mean(0).max())

    def _codes(self, uniform_PM: Tensor, rng: np.random.Generator) -> Tensor:
        """Codes of every name from numbers spread evenly over (0, 1)."""
        codes_PM = uniform_PM[:, :0]
        for name in self.names:
            start, count = codes_PM.shape[1], self._entries(name)
            inside = uniform_PM[:, start : start + count].clamp(1e-12, 1 - 1e-12)
            kind, family = self.kinds[name], self.setting.family(name)[0]
            if is_finite(kind):
                codes = self._drawn(name, inside, codes_PM)
            elif kind.name == "normal":
                codes = math.sqrt(2) * torch.erfinv(2 * inside - 1)
            elif kind.name == "uniform":
                codes = inside
            else:
                assert family.sample is not None
                shape = (len(inside), *(self.shapes[name] if not self.shared else (1,)))
                arguments = self._rows(name, codes_PM, self._parameters, shape) if not family.standard else []
                if any((arguments[i] <= 0).any() for i in family.positive if arguments):
                    codes = torch.full((len(inside), count), math.nan, dtype=_F64)
                else:
                    codes = torch.tensor(family.sample(rng, shape, arguments), dtype=_F64).reshape(-1, count)
            codes_PM = torch.cat([codes_PM, codes], dim=1)
        return codes_PM

    def _parameters(self, name: str, frame: Frame) -> list[Tensor]:
        return [frame.evaluate(node) for node in self.kinds[name].arguments]

    def _chances(self, name: str, frame: Frame) -> list[Tensor]:
        """Of every outcome, at every entry."""
        shape = self.shapes[name] if not self.shared else ()
        outcomes = range(self._outcomes(self.kinds[name]))
        full = [torch.full(shape, float(outcome), dtype=_F64) for outcome in outcomes]
        return [self._value(name, codes, frame, weigh=False)[1].expand(shape) for codes in full]

    def _drawn(self, name: str, inside: Tensor, codes_PM: Tensor) -> Tensor:
        """Outcomes by their chances, which may depend on the names before."""
        shape = (len(inside), *(self.shapes[name] if not self.shared else (1,)))
        chances = [torch.tensor(c).expand(shape) for c in self._rows(name, codes_PM, self._chances, shape)]
        steps = torch.cumsum(torch.stack(chances), 0)
        below = steps[:-1] <= inside.reshape(shape) * steps[-1]
        return below.sum(0).to(_F64).reshape(len(inside), -1)

    def _rows(
        self, name: str, codes_PM: Tensor, of: Callable[[str, Frame], list[Tensor]], shape: tuple[int, ...]
    ) -> list[Any]:
        """What hangs on the names before this one, for every row of codes (once, where it hangs on none), as arrays."""
        with self.frame.ops.collecting(), torch.no_grad():
            if parents(self.setting, name) & self.over:
                found = list(torch.func.vmap(lambda row: tuple(of(name, self._placed(row, False)[0])))(codes_PM))
            else:
                found = [value[None] for value in of(name, self.frame)]
        missing = [len(shape) - value.ndim for value in found]
        return [v.reshape(v.shape[0], *[1] * n, *v.shape[1:]).numpy() for v, n in zip(found, missing, strict=True)]


class _Constants:
    """log and lgamma for the records of distributions, of numbers and of tensors."""

    pi = math.pi

    @staticmethod
    def log(x: Any) -> Any:
        """Of a number, or of every entry."""
        return torch.log(x) if isinstance(x, Tensor) else np.log(x)

    @staticmethod
    def lgamma(x: Any) -> Any:
        """Of every entry."""
        return torch.lgamma(x)

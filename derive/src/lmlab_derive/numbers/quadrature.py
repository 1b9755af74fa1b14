"""Means over many numbers at once, or with derivatives inside or outside: dual arrays hold all points of a rule."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import numpy as np

from lmlab_derive.distributions import DISTRIBUTIONS, is_finite
from lmlab_derive.functions import FUNCTIONS, Entrywise
from lmlab_derive.functions.record import Array
from lmlab_derive.limits import NoExactValue, Refusal
from lmlab_derive.numbers.accuracy import Accuracy
from lmlab_derive.numbers.duals import Dual, value_of
from lmlab_derive.numbers.evaluate import Frame
from lmlab_derive.numbers.expectations import degree, elementwise_in, has_kink, is_smooth
from lmlab_derive.numbers.integrals import Integral, integrate
from lmlab_derive.numbers.iterated import NESTED, Inside
from lmlab_derive.numbers.means import folded, ordered, parents
from lmlab_derive.tree import Derivative, Expectation, Kind, Node

GRID = 40_000  # nodes of a product rule at most
SLOW_GRID = 400  # the same, where derivatives or means inside take long at each
SAMPLES = 65_536
REPLICATES = 16  # sequences shifted independently: how they differ tells the error of their mean
DEVIATIONS = 3.0  # standard errors that count as the error of a mean of samples
ROOM = 4_000_000  # numbers in the largest array over all nodes: 32 MB
MAX_RANDOM = 200
Rule = tuple[Any, Any]  # nodes and weights


class Leaf:
    """The average of one expression over the entries of some random names."""

    def __init__(self, node: Node, over: frozenset[str], frame: Frame, accuracy: Accuracy) -> None:
        self.node, self.frame, self.setting, self.accuracy = node, frame, frame.setting, accuracy
        self.names = ordered(self.setting, over)
        self.over = over
        self.ops: Any = frame.ops  # DualOps, whose file imports this one
        self.rule = 0  # 1 or -1: a coarser one
        self.shared = elementwise_in(node, over, self.setting)
        inside = list(self.setting.opened(node))
        self.has_means = any(isinstance(inner, Expectation) for inner in inside)
        self.slow = self.has_means or any(isinstance(inner, Derivative) for inner in inside)
        self.kinds: dict[str, Kind] = {}
        self.shapes: dict[str, tuple[int, ...]] = {}
        for name in self.names:
            self.kinds[name] = kind = self.setting.family(name)[1]
            shape = tuple(axis.value(frame.sizes) for axis in self.setting.givens[name].shape)
            varied = not self.setting.family(name)[0].shifts and any(map(self.setting.shape, kind.nodes))
            if kind.name in ("onehot", "dirichlet") or varied or self.setting.covaries(name):
                self.shared = False
            self.shapes[name] = shape[:-1] if kind.name == "onehot" else shape

    def mean(self) -> tuple[Array, Any, float]:
        """The average by the best rule that is affordable: value, error, size."""
        columns = [(name, self.kinds[name]) for name in self.names for _ in range(self._entries(name))]
        if len(columns) > MAX_RANDOM:
            what = f"an expectation over {len(columns)} random numbers is too large"
            raise Refusal(f"{what}; at most {MAX_RANDOM} are allowed", code="too-many-random-numbers")
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

    def coarser(self, rule: int) -> Array:
        """The average by a coarser rule, with its own slopes; samples have none that would tell an error."""
        sampled, self.rule = self.accuracy.sampled, rule
        self.accuracy.sampled = False
        value = self.mean()[0]
        value = value_of(value) if self.accuracy.sampled else value
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
        weights = np.exp(family.log_weight(_Constants(self.ops), nodes, ()))
        return nodes, weights / weights.sum()

    def _estimated(self, columns: list[tuple[str, Kind]], count: int, fine: bool = False) -> tuple[Array, Any, float]:
        """A rule and two coarser ones; how they differ tells the error."""
        counts = (count, max(4, count * 3 // 4), max(4, count * 7 // 8))
        found = [self._grid([self._rule(kind, n, fine) for _, kind in columns]) for n in counts]
        (value, size), others = found[0], found[1:]
        if self.rule:
            return found[self.rule][0], 0.0, size
        error = max(_largest(value - other) for other, _ in others)
        return value, error + 1e-14 * size, size

    def _nested(self, count: int) -> tuple[Array, Any, float]:
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
        value = np.asarray(found.value[0] * (math.nan if lost else 1.0))
        plain = all(DISTRIBUTIONS[kind.name].standard for kind in self.kinds.values())
        at_least = folded(count, plain and is_smooth(self.node, self.over, self.setting)) * float(found.size[0])
        return value, float(found.error[0]) + inside.error + at_least, float(found.size[0])

    def _weighted(self, codes_PM: Array) -> tuple[Array, Array | None]:
        """The expression times the density at many points, and how far the kinks are."""
        ops, count = self.ops, len(codes_PM)
        codes = ops.at_points(codes_PM)
        with ops.along(slopes=False), ops.collecting() as distances:
            value, weight = self._at(codes)
        weighted = np.where(weight == 0, 0.0, value * weight)
        kinks = [_at_each(distance, count).reshape(count, -1) for distance in distances]
        return _at_each(weighted, count), np.concatenate(kinks, axis=1) if kinks else None

    def _grid(self, rules: list[Rule]) -> tuple[Array, float]:
        """The product rule, every combination of nodes: the mean, and the mean size of the largest entry."""
        grids = np.meshgrid(*[nodes for nodes, _ in rules], indexing="ij")
        codes = np.stack([grid.reshape(-1) for grid in grids], axis=1)
        weights = functools.reduce(np.multiply.outer, [w for _, w in rules]).reshape(-1)
        return self._summed(codes, weights, by_chance=True)

    def _summed(self, codes_PM: Array, weights_P: Array, by_chance: bool) -> tuple[Array, float]:
        """The weighted sum of the expression over the rows of codes, and that of the size of its largest entry."""
        once = [(codes_PM, weights_P)]
        if self.has_means:  # which have points of their own
            once = list(zip(codes_PM[:, None], weights_P[:, None], strict=True))
        parts = [self._part(codes, weights, by_chance) for codes, weights in once]
        return sum(value for value, _ in parts), _largest(sum(size for _, size in parts))

    def _part(self, codes_PM: Array, weights_P: Array, by_chance: bool) -> tuple[Array, Array]:
        ops = self.ops
        codes, weights = ops.at_points(codes_PM), ops.at_points(weights_P)
        with ops.along(slopes=False), nullcontext() if self.slow else ops.collecting():
            value, chance = self._at(codes, weigh=False)
        weighted = value * (weights * chance if by_chance else weights)
        return ops.total(weighted), ops.total(abs(value_of(weighted)))

    def _at(self, codes_M: Array, weigh: bool = True) -> tuple[Array, Array]:
        """The expression at one row of codes, and the chance of it: of finite outcomes, and, to `weigh`, the density."""
        inner, chance = self._placed(codes_M, weigh)
        return inner.evaluate(self.node), chance

    def _placed(self, codes_M: Array, weigh: bool) -> tuple[Frame, Array]:
        """The frame in which the names have the values of a row of codes, as far as it goes, and the chance of it."""
        chance: Array = np.ones(())
        inner = self.frame.child({})
        values: dict[str, Array] = {}
        start = 0
        for name in self.names:
            count, shape = self._entries(name), self.shapes[name]
            codes = codes_M[start : start + count]
            if not codes.shape[0]:
                break
            start += count
            codes = np.broadcast_to(codes, (max(1, math.prod(shape)),)) if self.shared else codes
            value, probability = self._value(name, codes.reshape(shape), inner, weigh)
            chance = chance * (probability.reshape(-1)[:1] if self.shared else probability).prod()
            values[name] = np.broadcast_to(value, shape) if self.kinds[name].name != "onehot" else value
            inner = self.frame.child(values)
        return inner, chance

    def _value(self, name: str, codes: Array, frame: Frame, weigh: bool) -> tuple[Array, Array]:
        """The value a code stands for, and its probability (the density, to `weigh`)."""
        kind, family = self.kinds[name], self.setting.family(name)[0]
        arguments = [frame.evaluate(node) for node in kind.arguments]
        one = np.ones(())
        if not is_finite(kind):
            density: Array = one
            if weigh and family.log_weight is not None:
                density = np.exp(family.log_weight(_Constants(self.ops), codes, arguments))
            return frame.placed(name, codes, arguments), density
        match kind.name:
            case "rademacher":
                return 2 * codes - 1, codes * 0 + 0.5
            case "bernoulli":
                return codes, np.where(codes == 1, arguments[0], 1 - arguments[0])
            case "categorical":
                return codes, _picked(codes, arguments[0])
            case "onehot":
                chosen = codes[..., None] == np.arange(arguments[0].shape[0])
                return chosen.astype(float), _picked(codes, arguments[0])
        table = np.stack([frame.evaluate(value).reshape(()) for value, _ in kind.outcomes])
        weights = [one / len(kind.outcomes) if w is None else frame.evaluate(w) for _, w in kind.outcomes]
        return _picked(codes, table), _picked(codes, np.stack(weights))

    def _sampled(self) -> tuple[Array, Any, float]:
        """Points spread evenly (random ones, where a distribution has no quantiles at hand), shifted at random."""
        count = min(SAMPLES, ROOM // self._widest(), SLOW_GRID * 4 if self.slow else SAMPLES)
        if count < 1_000 and not self.slow:
            raise Refusal("the expectation runs over too many numbers; use smaller sizes", code="expectation-too-large")
        each = max(2, count // REPLICATES)
        total = sum(map(self._columns, self.names))
        found = []
        for i in range(REPLICATES):
            rng = np.random.default_rng([1000 * self.accuracy.effort, i])
            codes = self._codes(_even_points(each, total, rng), rng)
            found.append(self._summed(codes, np.full(each, 1 / each), by_chance=False))
        means = np.stack([mean for mean, _ in found])
        deviation = _largest(np.std(self.ops.to_numpy(means), axis=0, ddof=1)) / math.sqrt(REPLICATES)
        self.accuracy.sampled = True
        return means.sum(axis=0) / REPLICATES, DEVIATIONS * deviation, float(np.mean([size for _, size in found]))

    def _columns(self, name: str) -> int:
        """How many numbers between 0 and 1 the codes of a name are made of: normal ones of two each."""
        return self._entries(name) * (2 if self.kinds[name].name == "normal" else 1)

    def _codes(self, even_PM: Array, rng: np.random.Generator) -> Array:
        """Codes of every name from numbers spread evenly over (0, 1)."""
        codes_PM, start = even_PM[:, :0], 0
        for name in self.names:
            count, columns = self._entries(name), self._columns(name)
            inside = np.clip(even_PM[:, start : start + columns], 1e-12, 1 - 1e-12)
            start += columns
            kind, family = self.kinds[name], self.setting.family(name)[0]
            if is_finite(kind):
                codes = self._drawn(name, inside, codes_PM)
            elif kind.name == "normal":
                codes = np.sqrt(-2 * np.log(inside[:, :count])) * np.cos(2 * math.pi * inside[:, count:])
            elif kind.name == "uniform":
                codes = inside
            else:
                assert family.sample is not None
                shape = (len(inside), *(self.shapes[name] if not self.shared else (1,)))
                arguments = self._rows(name, codes_PM, self._parameters, shape) if not family.standard else []
                if any((arguments[i] <= 0).any() for i in family.positive if arguments):
                    codes = np.full((len(inside), count), math.nan)
                else:
                    codes = np.asarray(family.sample(rng, shape, arguments), dtype=float).reshape(-1, count)
            codes_PM = np.concatenate([codes_PM, codes], axis=1)
        return codes_PM

    def _parameters(self, name: str, frame: Frame) -> list[Array]:
        return [frame.evaluate(node) for node in self.kinds[name].arguments]

    def _chances(self, name: str, frame: Frame) -> list[Array]:
        """Of every outcome, at every entry."""
        shape = self.shapes[name] if not self.shared else ()
        outcomes = range(self._outcomes(self.kinds[name]))
        full = [np.full(shape, float(outcome)) for outcome in outcomes]
        return [np.broadcast_to(self._value(name, codes, frame, weigh=False)[1], shape) for codes in full]

    def _drawn(self, name: str, inside: Array, codes_PM: Array) -> Array:
        """Outcomes by their chances, which may depend on the names before."""
        shape = (len(inside), *(self.shapes[name] if not self.shared else (1,)))
        chances = [np.broadcast_to(c, shape) for c in self._rows(name, codes_PM, self._chances, shape)]
        steps = np.cumsum(np.stack(chances), 0)
        below = steps[:-1] <= inside.reshape(shape) * steps[-1]
        return below.sum(0).astype(float).reshape(len(inside), -1)

    def _rows(
        self, name: str, codes_PM: Array, of: Callable[[str, Frame], list[Array]], shape: tuple[int, ...]
    ) -> list[Array]:
        """What hangs on the names before this one, for every row of codes (once, where it hangs on none), as arrays."""
        ops = self.ops
        with ops.collecting():
            if parents(self.setting, name) & self.over:
                codes = ops.at_points(codes_PM)
                with ops.along(slopes=False):
                    found = [_at_each(value, len(codes_PM)) for value in of(name, self._placed(codes, False)[0])]
            else:
                found = [ops.to_numpy(value)[None] for value in of(name, self.frame)]
        missing = [len(shape) - value.ndim for value in found]
        return [v.reshape(v.shape[0], *[1] * n, *v.shape[1:]) for v, n in zip(found, missing, strict=True)]


def _picked(codes: Array, table: Array) -> Array:
    """The entries of a table at these places."""
    return np.where(codes[..., None] == np.arange(table.shape[0]), table, 0.0).sum(axis=-1)


def _at_each(value: Array, count: int) -> Array:
    """The values at each of so many points, along the first axis."""
    plain = value_of(value)
    rows = plain.data.reshape(-1, *plain.shape) if isinstance(plain, Dual) else plain[None]
    return np.broadcast_to(rows, (count, *rows.shape[1:]))


def _largest(value: Array) -> float:
    """The largest entry in size, of the values alone."""
    plain = value_of(value)
    return float(np.abs(plain.data if isinstance(plain, Dual) else plain).max())


def _even_points(count: int, columns: int, rng: np.random.Generator) -> Array:
    """Points that fill the unit cube evenly (multiples of the roots of primes; Richtmyer 1951), shifted at random."""
    return (np.arange(1, count + 1)[:, None] * np.sqrt(_primes(columns)) + rng.random(columns)) % 1


def _primes(count: int) -> Array:
    limit = 20 * (count + 2)
    is_prime = np.ones(limit, dtype=bool)
    for i in range(2, math.isqrt(limit) + 1):
        is_prime[i * i :: i] = False
    return np.nonzero(is_prime)[0][2 : count + 2]  # after 0 and 1


class _Constants:
    """log and lgamma for the records of distributions, of numbers and of arrays."""

    pi = math.pi

    def __init__(self, ops: Any) -> None:
        self.ops = ops

    def log(self, x: Any) -> Array:
        """Of a number, or of every entry."""
        return self._of("log", x)

    def lgamma(self, x: Any) -> Array:
        """Of every entry."""
        return self._of("lgamma", x)

    def _of(self, name: str, x: Any) -> Array:
        function = FUNCTIONS[name]
        assert isinstance(function, Entrywise)
        return self.ops.entrywise(function, self.ops.wrap(x))

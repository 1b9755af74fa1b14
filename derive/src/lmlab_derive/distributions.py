"""The distributions of random givens, one record each: reading, points, exact moments, integrals and densities use it.

A value is `place(z, arguments)` of a standard variable z, whose own distribution is as plain as can be: z of a
normal is standard normal, that of a uniform lies in (0, 1). Integrals run over z, and so do the moments of polynomials.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from lmlab_derive.small_formulas import ONE, TWO, call, minus, over, plus, power, times
from lmlab_derive.tree import Constant, Given, Kind, Negate, Node

Array = Any
Args = Sequence[Any]
_FAR = (1.0, 2.0, 4.0, 8.0, 16.0)


def _nothing(z: Array, args: Args) -> Array:
    return z


def _shifted(z: Array, args: Args) -> Array:
    return args[0] + args[1] * z


@dataclass(frozen=True, eq=False)
class Distribution:
    """A distribution of the language.

    `arguments`: how many it may take. `edges`: where the first panels of an integral over z end; none for the finite.
    `log_weight(m, z, args)`: log density of z, with m the functions log and lgamma, and pi. `moment(powers, args)`: the
    mean of a product of powers of the z of one row (of one z, unless `joint`). `density(x, args)`: log density of the
    value, as a formula. `draw`: some z, for a point outside of any expectation. `positive`: arguments that must be.
    """

    name: str
    arguments: tuple[int, ...]
    written: str
    place: Callable[[Array, Args], Array] = _nothing
    edges: tuple[float, ...] = ()
    log_weight: Callable[[Any, Array, Args], Array] | None = None
    moment: Callable[[Sequence[int], Args], Any] | None = None
    density: Callable[[Node, Args], Node] | None = None
    draw: Callable[[np.random.Generator, tuple[int, ...]], Any] = lambda rng, shape: rng.uniform(0.02, 0.98, shape)
    gauss: Callable[[int], tuple[Any, Any]] | None = None  # nodes and weights exact for polynomials
    sample: Callable[[np.random.Generator, tuple[int, ...], Args], Any] | None = None  # z as it is distributed
    positive: tuple[int, ...] = ()
    log_below: Callable[[Any, Array], Array] | None = None  # log probability of less than z, with erfc and expm1 in m
    log_above: Callable[[Any, Array], Array] | None = None  # and of more
    joint: bool = False  # the entries of a row are drawn together
    counts: bool = False  # z is 0, 1, 2, ... without end

    @property
    def shifts(self) -> bool:
        """Whether a value is a shift and a scale of z, whose own distribution has no parameters."""
        return self.name in ("normal", "uniform", "laplace")

    @property
    def standard(self) -> bool:
        """Whether the distribution of z has no parameters: samples of z then serve all of them."""
        return self.shifts or self.name == "exponential"

    @property
    def is_finite(self) -> bool:
        """Whether it has finitely many outcomes."""
        return self.moment is None


def _double_factorial(powers: Sequence[int], args: Args) -> int:
    power_ = powers[0]
    return 0 if power_ % 2 else math.prod(range(power_ - 1, 0, -2))


def _rising(start: Any, count: int) -> Any:
    return math.prod([start + i for i in range(count)], start=1)


def _poisson_moment(powers: Sequence[int], args: Args) -> Any:
    """Touchard: the sum of Stirling numbers times powers of the rate."""
    row = [1]
    for _ in range(powers[0]):
        row = [(row[j - 1] if j else 0) + (j * row[j] if j < len(row) else 0) for j in range(len(row) + 1)]
    return sum(count * args[0] ** j for j, count in enumerate(row))


def _dirichlet_moment(powers: Sequence[int], args: Args) -> Any:
    top = math.prod([_rising(a, k) for a, k in zip(args[0], powers, strict=True)], start=1)
    return top / _rising(sum(args[0]), sum(powers))


def _dirichlet_sample(rng: np.random.Generator, shape: tuple[int, ...], args: Args) -> Any:
    gammas = rng.gamma(args[0], 1.0, shape)
    return gammas / gammas.sum(axis=-1, keepdims=True)


def _log_beta(m: Any, a: Array, b: Array) -> Array:
    return m.lgamma(a) + m.lgamma(b) - m.lgamma(a + b)


def _normal_density(x: Node, args: Sequence[Node]) -> Node:
    z = over(minus(x, args[0]), args[1])
    return minus(minus(Negate(over(power(z, 2), TWO)), call("log", args[1])), _HALF_LOG_2PI)


def _gamma_density(x: Node, args: Sequence[Node]) -> Node:
    shape, rate = args
    scaled = plus(times(shape, call("log", rate)), times(minus(shape, ONE), call("log", x)))
    return minus(minus(scaled, times(rate, x)), call("lgamma", shape))


def _beta_density(x: Node, args: Sequence[Node]) -> Node:
    a, b = args
    powers = plus(times(minus(a, ONE), call("log", x)), times(minus(b, ONE), call("log", minus(ONE, x))))
    return minus(plus(powers, call("lgamma", plus(a, b))), plus(call("lgamma", a), call("lgamma", b)))


def _poisson_density(x: Node, args: Sequence[Node]) -> Node:
    return minus(minus(times(x, call("log", args[0])), args[0]), call("lgamma", plus(x, ONE)))


_HALF_LOG_2PI = over(call("log", times(TWO, Constant("pi"))), TWO)
_LINE = (*(-e for e in (38.0, *_FAR[::-1])), 0.0, *_FAR, 38.0)
_HALF_LINE = (0.0, 0.25, *_FAR, 32.0, 64.0, 128.0, 256.0, 512.0, 700.0)
_UNIT = (0.0, 0.125, 0.5, 0.875, 1.0)


def _laguerre(count: int) -> tuple[Any, Any]:
    nodes, weights = np.polynomial.laguerre.laggauss(count)
    return nodes, weights / weights.sum()


def _hermite(count: int) -> tuple[Any, Any]:
    nodes, weights = np.polynomial.hermite_e.hermegauss(count)
    return nodes, weights / weights.sum()


def _legendre(count: int) -> tuple[Any, Any]:
    nodes, weights = np.polynomial.legendre.leggauss(count)
    return (nodes + 1) / 2, weights / 2


_ALL = [
    Distribution(
        "normal",
        (2,),
        "normal(mean, standard deviation), or normal(mean, covariance) for a vector",
        _shifted,
        _LINE,
        lambda m, z, args: -z * z / 2 - m.log(2 * m.pi) / 2,
        _double_factorial,
        _normal_density,
        lambda rng, shape: rng.normal(0, 1, shape) * rng.uniform(0.6, 1.4),
        _hermite,
        lambda rng, shape, args: rng.normal(0, 1, shape),
        log_below=lambda m, z: m.log(m.erfc(-z / m.root2) / 2),
        log_above=lambda m, z: m.log(m.erfc(z / m.root2) / 2),
    ),
    Distribution(
        "uniform",
        (0, 2),
        "uniform(a, b) or uniform{1, 2, 3}",
        lambda z, args: args[0] + (args[1] - args[0]) * z,
        _UNIT,
        lambda m, z, args: z * 0,
        lambda powers, args: 1 / (args[0] * 0 + powers[0] + 1),
        lambda x, args: Negate(call("log", minus(args[1], args[0]))),
        gauss=_legendre,
        sample=lambda rng, shape, args: rng.random(shape),
        log_below=lambda m, z: m.log(z),
        log_above=lambda m, z: m.log(1 - z),
    ),
    Distribution(
        "exponential",
        (1,),
        "exponential(rate)",
        lambda z, args: z / args[0],
        _HALF_LINE,
        lambda m, z, args: -z,
        lambda powers, args: math.factorial(powers[0]),
        lambda x, args: minus(call("log", args[0]), times(args[0], x)),
        lambda rng, shape: rng.exponential(1.0, shape) + 0.02,
        _laguerre,
        lambda rng, shape, args: rng.exponential(1.0, shape),
        positive=(0,),
        log_below=lambda m, z: m.log(-m.expm1(-z)),
        log_above=lambda m, z: -z,
    ),
    Distribution(
        "laplace",
        (2,),
        "laplace(mean, scale)",
        _shifted,
        (*(-e for e in reversed(_HALF_LINE)), *_HALF_LINE[1:]),
        lambda m, z, args: -abs(z) - m.log(m.pi / m.pi * 2),
        lambda powers, args: 0 if powers[0] % 2 else math.factorial(powers[0]),
        lambda x, args: minus(Negate(over(call("abs", minus(x, args[0])), args[1])), call("log", times(TWO, args[1]))),
        lambda rng, shape: rng.laplace(0, 1.0, shape),
        sample=lambda rng, shape, args: rng.laplace(0, 1.0, shape),
        positive=(1,),
    ),
    Distribution(
        "gamma",
        (2,),
        "gamma(shape, rate)",
        lambda z, args: z / args[1],
        _HALF_LINE,
        lambda m, z, args: (args[0] - 1) * m.log(z) - z - m.lgamma(args[0]),
        lambda powers, args: _rising(args[0], powers[0]),
        _gamma_density,
        lambda rng, shape: rng.exponential(1.0, shape) + 0.02,
        sample=lambda rng, shape, args: rng.gamma(args[0], 1.0, shape),
        positive=(0, 1),
    ),
    Distribution(
        "beta",
        (2,),
        "beta(a, b)",
        _nothing,
        _UNIT,
        lambda m, z, args: (args[0] - 1) * m.log(z) + (args[1] - 1) * m.log(1 - z) - _log_beta(m, args[0], args[1]),
        lambda powers, args: _rising(args[0], powers[0]) / _rising(args[0] + args[1], powers[0]),
        _beta_density,
        sample=lambda rng, shape, args: rng.beta(args[0], args[1], shape),
        positive=(0, 1),
    ),
    Distribution(
        "poisson",
        (1,),
        "poisson(rate)",
        log_weight=lambda m, z, args: z * m.log(args[0]) - args[0] - m.lgamma(z + 1),
        moment=_poisson_moment,
        density=_poisson_density,
        draw=lambda rng, shape: rng.integers(0, 5, shape).astype(float),
        sample=lambda rng, shape, args: rng.poisson(args[0], shape).astype(float),
        positive=(0,),
        counts=True,
    ),
    Distribution(
        "dirichlet",
        (1,),
        "dirichlet(alpha)",
        moment=_dirichlet_moment,
        draw=lambda rng, shape: rng.dirichlet(np.ones(shape[-1]), shape[:-1]),
        sample=_dirichlet_sample,
        positive=(0,),
        joint=True,
    ),
    Distribution("finite", (0,), "finite{1: 1/3, 2: 2/3}"),
    Distribution("bernoulli", (1,), "bernoulli(p)"),
    Distribution("categorical", (1,), "categorical(p)"),
    Distribution("rademacher", (0,), "rademacher"),
    Distribution("onehot", (0, 1), "onehot(p)"),
]


def extreme_of(family: Distribution, count: int, largest: bool) -> Distribution | None:
    """The distribution of the largest or smallest of `count` independent values, in the same standard variable."""
    others, own = family.log_below if largest else family.log_above, family.log_weight
    if others is None or own is None:
        return None
    return replace(
        family,
        moment=None,
        log_weight=lambda m, z, args: m.log(m.pi / m.pi * count) + own(m, z, args) + (count - 1) * others(m, z),
    )


DISTRIBUTIONS = {record.name: record for record in _ALL}


def random_kind(given: Given) -> Kind | None:
    """The kind that makes a given random, if it has one; `onehot` alone is a fixed row."""
    for kind in given.kinds:
        if kind.name in DISTRIBUTIONS and (kind.name != "onehot" or kind.arguments):
            return kind
    return None


def is_finite(kind: Kind) -> bool:
    """Whether a distribution has finitely many outcomes."""
    return DISTRIBUTIONS[kind.name].is_finite or bool(kind.outcomes)


def log_density(kind: Kind, x: Node) -> Node | None:
    """The log density (or log probability) of a random given at x, as a formula; None where it is none."""
    density = DISTRIBUTIONS[kind.name].density
    if kind.name == "bernoulli":
        p = kind.arguments[0]
        return plus(times(x, call("log", p)), times(minus(ONE, x), call("log", minus(ONE, p))))
    if kind.name in ("onehot", "categorical"):
        return call("log", call("sum", times(x, kind.arguments[0]))) if kind.name == "onehot" else None
    return density(x, kind.arguments) if density is not None and kind.arguments else None

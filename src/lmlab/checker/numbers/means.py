"""The mean of an expression over random names: exact where it has a closed form, else an integral with its error.

In this order: finite outcomes are enumerated; polynomials have exact moments; a linear combination of normals is one normal;
what then depends entry by entry on at most two variables is integrated; the rest is left to `quadrature`.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import mpmath
import numpy as np

from lmlab.checker.distributions import DISTRIBUTIONS, Distribution, extreme_of, is_finite
from lmlab.checker.functions.record import Array
from lmlab.checker.limits import NoExactValue, Refusal
from lmlab.checker.numbers.evaluate import Frame, Ops
from lmlab.checker.numbers.expectations import average, degree, elementwise_in
from lmlab.checker.numbers.integrals import Integral, integrate
from lmlab.checker.numbers.moments import Poly, enumerated, polynomial_mean
from lmlab.checker.tree import Call, Expectation, Name, Node, walk

SHORT = 34  # digits in which polynomials are averaged for doubles
MOST_INTEGRALS = 2  # one inside the other
NESTED = 1e-12  # relative precision of those
FOLDED = 1e-9  # and what their error may be at least: where kinks meet, the inner one is no smooth function
_LABELS = itertools.count()


@dataclass
class Accuracy:
    """How well the means of a point are known: each as it was computed, so that it can be moved by its error."""

    means: list[tuple[Array, Any, float]] = field(default_factory=list)  # value, error, size of what is averaged
    inside: float = 0.0  # the largest error of a mean inside the mean at hand
    depth: int = 0
    sampled: bool = False
    diverges: bool = False
    moved: int = 0  # +1 or -1: hand out the means again, moved by their error
    effort: int = 1  # 2: other nodes and more samples, to see whether a difference stays
    at: int = 0

    @property
    def size(self) -> float:
        """The largest of what is averaged."""
        return max((size for _, _, size in self.means if np.isfinite(size)), default=0.0)

    def again(self, moved: int) -> Accuracy:
        """The same means, moved up or down by their errors."""
        return Accuracy(self.means, moved=moved)

    def known(self, compute: Callable[[], tuple[Array, Any, float]]) -> Array:
        """A mean, computed and kept; or, the second time, moved."""
        if self.moved and not self.depth:
            value, error, _ = self.means[self.at]
            self.at += 1
            sign = self.moved if self.at % 2 else 1
            return value + sign * error
        outer, self.inside, self.depth = self.inside, 0.0, self.depth + 1
        try:
            value, error, size = compute()
        finally:
            inner, self.inside, self.depth = self.inside, outer, self.depth - 1
        error = error + inner
        if self.depth:
            self.inside = max(self.inside, float(error))
        else:
            self.means.append((value, error, size))
        return value


@dataclass(frozen=True)
class Helpers:
    """What doubles need beside themselves: long decimals, and a way to take the means that nothing here takes."""

    long: Callable[[int], Ops]
    otherwise: Callable[[Node, frozenset[str], Frame, Accuracy], tuple[Array, Any, float]]


def expectation(node: Expectation, frame: Frame, accuracy: Accuracy, helpers: Helpers | None = None) -> Array:
    """E[...] or Var[...]. Without helpers the arithmetic is long decimals, and what it cannot take is `NoExactValue`."""

    def leaf(inner: Node, over: frozenset[str]) -> Array:
        return accuracy.known(lambda: _Mean(inner, over, frame, accuracy, helpers).value())

    return average(node, frame, leaf)


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
class _Variable:
    """One variable to integrate over, and what it is the value of."""

    name: str
    family: Distribution
    arguments: Callable[[Frame], list[Array]]


class _Mean:
    def __init__(
        self, node: Node, over: frozenset[str], frame: Frame, accuracy: Accuracy, helpers: Helpers | None
    ) -> None:
        self.node, self.over, self.frame, self.accuracy, self.helpers = node, over, frame, accuracy, helpers
        self.setting = frame.setting
        self.names = ordered(frame.setting, over)

    def value(self) -> tuple[Array, Any, float]:
        """The mean, a bound of its error, and the size of what is averaged."""
        finite = [name for name in self.names if is_finite(self.setting.family(name)[1])]
        others = [name for name in self.names if name not in finite]
        try:
            if degree(self.node, frozenset(others), self.setting) is not None:
                return self._exactly(finite, others)
        except NoExactValue:
            if self.helpers is None:
                raise
        try:
            return self._enumerated(finite, others)
        except NoExactValue:
            if self.helpers is None:
                raise
        if self.frame.trailing:
            raise Refusal("a mean over many numbers inside another mean is too much; write it as one")
        return self.helpers.otherwise(self.node, self.over, self.frame, self.accuracy)

    def _exactly(self, finite: list[str], others: list[str]) -> tuple[Array, Any, float]:
        """By moments, in long decimals even for doubles: what is left of terms that cancel is then a zero."""
        if self.helpers is None:
            mean = self._polynomial(self.frame, finite, others)
            return mean, 0.0, _size(mean)
        with mpmath.workdps(SHORT):
            frame = self.frame.translated(self.helpers.long(SHORT))
            mean = np.asarray(self._polynomial(frame, finite, others), dtype=float)
        return mean, 1e-16 * _size(mean), _size(mean)

    def _polynomial(self, frame: Frame, finite: list[str], others: list[str]) -> Array:
        total = 0
        for values, chance in enumerated(finite, frame):
            total = total + polynomial_mean(self.node, others, frame.child(values)) * chance
        return frame.ops.wrap(total)

    def _enumerated(self, finite: list[str], others: list[str]) -> tuple[Array, Any, float]:
        """Integrals for every outcome of the finite names."""
        if not others:
            raise NoExactValue
        total: Any = 0
        error, size = 0.0, 0.0
        for values, chance in enumerated(finite, self.frame):
            part, off, large = self._integrated(others, self.frame.child(values))
            total, error, size = total + part * chance, error + off, max(size, large)
        return self.frame.ops.wrap(total), error, size

    def _integrated(self, names: list[str], frame: Frame) -> tuple[Array, float, float]:
        node, variables = self._extreme(names, frame) or self._projected(names, frame)
        whole = frozenset(variable.name for variable in variables)
        known = all(v.family.log_weight is not None for v in variables)
        if not known or len(variables) > MOST_INTEGRALS or not elementwise_in(node, whole, self.setting):
            raise NoExactValue
        if self.helpers is None and len(variables) > 1:
            raise NoExactValue
        found = _Integration(node, variables, frame, self.accuracy, len(self.setting.shape(self.node))).run()
        self.accuracy.diverges |= found.diverges
        value = np.asarray(found.value[0])
        shape = frame.extents(self.node)
        if not frame.trailing:
            value = np.broadcast_to(value.reshape(value.shape[value.ndim - len(shape) :]), shape)
        if found.diverges:
            value = value * math.nan
        error = float(found.error[0]) + (FOLDED * float(found.size[0]) if len(variables) > 1 else 0.0)
        return frame.ops.wrap(value), error, float(found.size[0])

    def _extreme(self, names: list[str], frame: Frame) -> tuple[Node, list[_Variable]] | None:
        """The largest (or smallest) of independent values that are all distributed alike is one variable."""
        if len(names) != 1 or self.setting.covaries(names[0]):
            return None
        name = names[0]
        family, kind = self.setting.family(name)
        count = math.prod(frame.extents(Name(name)))
        for function in ("max", "min"):
            record = extreme_of(family, count, function == "max")
            label = Name(f"#L{next(_LABELS)}")
            self.setting.shapes.names[label.name] = ()
            node = _replaced(self.node, Call(function, (Name(name),)), label, self.setting)
            alike = all(not self.setting.shape(argument) for argument in kind.arguments)
            if record and alike and node is not self.node and not self.setting.random_names(node) & self.over:
                return node, [_Variable(label.name, record, self._variable(name).arguments)]
        return None

    def _projected(self, names: list[str], frame: Frame) -> tuple[Node, list[_Variable]]:
        """The expression with linear combinations of normals as variables of their own; the other names are as they are."""
        steady = [n for n in names if self.setting.family(n)[0].name == "normal" and not self._parents(n)]
        pieces = _linear_pieces(self.node, frozenset(steady), frozenset(names), self.setting)
        used = [self.setting.random_names(piece) & set(names) for piece in pieces]
        plain = all(isinstance(piece, Name) for piece in pieces)
        if plain or sum(map(len, used)) != len(
            frozenset[str]().union(*used)
        ):  # two that share a name are not independent
            return self.node, [self._variable(name) for name in names]
        node, variables = self.node, []
        for i, piece in enumerate(pieces):
            label = f"#L{next(_LABELS)}"
            self.setting.shapes.names[label] = self.setting.shape(piece)
            node = _replaced(node, piece, Name(label), self.setting)
            variables.append(
                _Variable(label, DISTRIBUTIONS["normal"], _constantly(self._moments(piece, used[i], frame)))
            )
        done = frozenset[str]().union(*used)
        return node, variables + [self._variable(name) for name in names if name not in done]

    def _moments(self, piece: Node, names: frozenset[str], frame: Frame) -> list[Array]:
        """Mean and standard deviation of a linear combination of normals."""
        square = Expectation(piece, "Var", tuple(self.setting.random_names(piece) - names))
        centre = Expectation(piece, "E", square.fixed)
        inner = Accuracy()
        mean, variance = (expectation(part, frame, inner, self.helpers) for part in (centre, square))
        root = np.frompyfunc(mpmath.sqrt, 1, 1) if self.helpers is None else np.sqrt
        return [mean, frame.ops.wrap(root(variance))]

    def _variable(self, name: str) -> _Variable:
        family, kind = self.setting.family(name)
        if self.setting.covaries(name) or family.joint:
            raise NoExactValue
        return _Variable(name, family, lambda frame: [frame.evaluate(argument) for argument in kind.arguments])

    def _parents(self, name: str) -> set[str]:
        return parents(self.setting, name) & self.over


class _Integration:
    """Integrals one inside the other, over variables on which an expression depends entry by entry."""

    def __init__(self, node: Node, variables: list[_Variable], frame: Frame, accuracy: Accuracy, rank: int) -> None:
        self.node, self.variables, self.frame, self.accuracy = node, variables, frame, accuracy
        self.rank = max(rank, frame.trailing)
        self.digits = mpmath.mp.dps if frame.ops.way == "long" else 0
        self.functions = _Functions(bool(self.digits))
        self.lost = False

    def run(self) -> Integral:
        """The whole integral, as one of a single owner."""
        with np.errstate(all="ignore"):
            found = self._level([], 1)
        found.diverges |= self.lost
        return found

    def _level(self, outer: list[Array], owners: int) -> Integral:
        """The integral over one variable for every point (z of each outer variable) of those outside it."""
        variable = self.variables[len(outer)]
        last = len(outer) + 1 == len(self.variables)

        def integrand(z: Array, owner: Array) -> tuple[Array, Array | None]:
            self.frame.deadline.check()
            points = [values[owner] for values in outer] + [z]
            if last:
                return self._values(points)
            inner = self._level(points, len(z))
            self.accuracy.inside = max(
                self.accuracy.inside, float(np.max(inner.error[np.isfinite(inner.error)], initial=0))
            )
            self.lost |= inner.diverges
            return inner.value, None

        if variable.family.counts:
            return self._counted(integrand, owners)
        precision = 1e-15 if len(self.variables) == 1 else NESTED
        return integrate(integrand, variable.family.edges, owners, self.digits, precision)

    def _counted(self, integrand: Any, owners: int) -> Integral:
        """A sum over 0, 1, 2, ... as far as its terms matter."""
        most = 120
        z = np.tile(np.arange(most, dtype=float), owners)
        if self.digits:
            z = np.frompyfunc(mpmath.mpf, 1, 1)(z)
        values, _ = integrand(z, np.repeat(np.arange(owners), most))
        values = values.reshape(owners, most, *values.shape[1:])
        sizes = np.asarray(abs(values).reshape(owners, most, -1).max(axis=2), dtype=float)
        size, last = sizes.sum(axis=1), sizes[:, -1]
        falls = last <= 0.9 * sizes[:, -2]
        error = np.where(falls, 20 * last, np.where(last > 0, np.inf, 0.0)) + 1e-16 * size
        return Integral(values.sum(axis=1), error, size, bool((~falls & (last > 1e-9 * size)).any()))

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
        ops = self.frame.ops
        outside, ops.collected = ops.collected, []
        try:
            value = frame.evaluate(self.node)
            distances = ops.collected
        finally:
            ops.collected = outside
        weight = self.functions.exp(weight)
        value = np.asarray(value * weight)
        value = np.where(weight == 0, weight * 0, value)  # inf where nothing is: nothing
        value = np.broadcast_to(value, (count, *value.shape[1:])) if value.shape[0] != count else value
        kinks = [np.broadcast_to(d, (count, *d.shape[1:])).reshape(count, -1) for d in distances if d.ndim > self.rank]
        return value, np.concatenate(kinks, axis=1) if kinks else None


def parents(setting: Any, name: str) -> set[str]:
    """The names that the parameters of a random given depend on."""
    return {n for node in setting.family(name)[1].arguments for n in setting.depends(node)}


def ordered(setting: Any, over: frozenset[str]) -> list[str]:
    """Names whose parameters are random come after those parameters."""
    done: list[str] = []
    waiting = [name for name in setting.givens if name in over]
    while waiting:
        ready = [n for n in waiting if not parents(setting, n) & set(waiting) - {n}]
        if not ready:
            raise Refusal("the distributions of the random names depend on each other in a circle")
        done += ready
        waiting = [n for n in waiting if n not in ready]
    return done


def _constantly(values: list[Array]) -> Callable[[Frame], list[Array]]:
    return lambda frame: list(values)


def _linear_pieces(node: Node, normals: frozenset[str], over: frozenset[str], setting: Any) -> list[Node]:
    """The largest parts that are linear in normal names and depend on no other random one, each once."""
    touched = setting.random_names(node) & over
    if not touched:
        return []
    if touched <= normals and not isinstance(node, Expectation) and degree(node, over, setting) == 1:
        return [node]
    if isinstance(node, Name) and node.name in setting.lets:
        return _linear_pieces(setting.lets[node.name].value, normals, over, setting)
    found: list[Node] = []
    for child in node.children():
        found += [piece for piece in _linear_pieces(child, normals, over, setting) if piece not in found]
    return found


def _replaced(node: Node, old: Node, new: Node, setting: Any) -> Node:
    """The expression with a part replaced wherever it stands, inside lets as well."""
    if node == old:
        return new
    if isinstance(node, Name) and node.name in setting.lets:
        opened = _replaced(setting.lets[node.name].value, old, new, setting)
        return opened if any(part == new for part in walk(opened)) else node
    children = tuple(_replaced(child, old, new, setting) for child in node.children())
    return node.rebuild(children) if any(a is not b for a, b in zip(children, node.children(), strict=True)) else node


def _size(value: Array) -> float:
    """The largest entry; a polynomial, which is averaged further, has none yet."""
    flat = np.asarray(value).reshape(-1)
    return max((abs(float(v)) for v in flat if not isinstance(v, Poly)), default=0.0)

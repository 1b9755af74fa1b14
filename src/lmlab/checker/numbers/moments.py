"""Exact expectations: polynomials in normal and uniform variables by moments, finite distributions by enumeration."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np

from lmlab.checker.formulas import power
from lmlab.checker.functions.record import Array
from lmlab.checker.limits import MAX_OUTCOMES, NoExactValue
from lmlab.checker.numbers.evaluate import Frame
from lmlab.checker.numbers.expectations import average, is_finite
from lmlab.checker.tree import Binary, Call, Expectation, Kind, Name, Node, constant_value

Monomial = tuple[tuple[int, int], ...]  # (variable, power) in order of variables
MAX_TERMS = 4_000


class Poly:
    """A polynomial in independent standard variables. Whatever leaves the polynomials raises `NoExactValue`."""

    __slots__ = ("terms",)

    def __init__(self, terms: dict[Monomial, Any]) -> None:
        if len(terms) > MAX_TERMS:
            raise NoExactValue
        self.terms = terms

    @staticmethod
    def variable(index: int) -> Poly:
        """One variable."""
        return Poly({((index, 1),): mpmath.mpf(1)})

    def _lift(self, other: Any) -> Poly:
        return other if isinstance(other, Poly) else Poly({(): mpmath.mpf(other)})

    def __add__(self, other: Any) -> Poly:
        total = dict(self.terms)
        for monomial, value in self._lift(other).terms.items():
            total[monomial] = total.get(monomial, 0) + value
        return Poly(total)

    __radd__ = __add__

    def __neg__(self) -> Poly:
        return Poly({m: -c for m, c in self.terms.items()})

    def __sub__(self, other: Any) -> Poly:
        return self + (-self._lift(other))

    def __rsub__(self, other: Any) -> Poly:
        return -self + other

    def __mul__(self, other: Any) -> Poly:
        right = self._lift(other)
        if len(self.terms) * len(right.terms) > 40 * MAX_TERMS:
            raise NoExactValue
        total: dict[Monomial, Any] = {}
        for left_monomial, a in self.terms.items():
            for right_monomial, b in right.terms.items():
                monomial = _times(left_monomial, right_monomial)
                total[monomial] = total.get(monomial, 0) + a * b
        return Poly(total)

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> Poly:
        if isinstance(other, Poly):
            raise NoExactValue
        return self * (1 / mpmath.mpf(other))

    def __pow__(self, exponent: int) -> Poly:
        if not isinstance(exponent, int) or exponent > 12:
            raise NoExactValue
        out = self._lift(1)
        for _ in range(exponent):
            out = out * self
        return out

    def _refuse(self, *_: Any) -> Any:
        raise NoExactValue

    __gt__ = __lt__ = __ge__ = __le__ = __abs__ = __rtruediv__ = __float__ = __rpow__ = _refuse

    def mean(self, moments: dict[int, str]) -> Any:
        """The expectation, each variable being "normal" (standard) or "uniform" (on 0 to 1)."""
        total = mpmath.mpf(0)
        for monomial, coefficient in self.terms.items():
            product = coefficient
            for variable, exponent in monomial:
                product = product * _moment(moments[variable], exponent)
            total += product
        return total


def _times(left: Monomial, right: Monomial) -> Monomial:
    powers = dict(left)
    for variable, exponent in right:
        powers[variable] = powers.get(variable, 0) + exponent
    return tuple(sorted(powers.items()))


def _moment(family: str, power: int) -> Any:
    if family == "uniform":
        return mpmath.mpf(1) / (power + 1)
    return 0 if power % 2 else math.prod(range(power - 1, 0, -2))


def exact_expectation(node: Expectation, frame: Frame) -> Array:
    """E[...] or Var[...] in long decimals, exact up to their rounding; `NoExactValue` when there is no such way."""
    return average(node, frame, lambda inner, over: _leaf(inner, over, frame))


def _leaf(node: Node, over: frozenset[str], frame: Frame) -> Array:
    setting = frame.setting
    names = [name for name in setting.givens if name in over]
    kinds = {name: _kind(frame, name) for name in names}
    finite = [name for name in names if is_finite(kinds[name])]
    others = [name for name in names if name not in finite]
    flat = _without_norms(node, frame)
    total: Array | None = None
    for values, chance in _enumerate(finite, kinds, frame):
        part = _polynomial_mean(flat, others, kinds, frame.child(values)) * chance
        total = part if total is None else total + part
    assert total is not None
    return frame.ops.wrap(total)


def _kind(frame: Frame, name: str) -> Kind:
    kind = frame.setting.distribution(name)
    assert kind is not None
    return kind


def _without_norms(node: Node, frame: Frame) -> Node:
    """Even powers of norms as sums of squares, which are polynomials; lets opened so that they are found."""
    if isinstance(node, Name) and node.name in frame.setting.lets:
        return _without_norms(frame.setting.lets[node.name].value, frame)
    inner = tuple(_without_norms(child, frame) for child in node.children())
    node = node.rebuild(inner) if inner else node
    if isinstance(node, Binary) and node.op == "**" and isinstance(node.left, Call) and node.left.function == "norm":
        exponent = constant_value(node.right)
        if exponent is not None and exponent > 0 and exponent % 2 == 0:
            squares = replace(node.left, function="sum", args=(power(node.left.args[0], 2),))
            return power(squares, exponent / 2)
    return node


def _polynomial_mean(node: Node, names: list[str], kinds: dict[str, Kind], frame: Frame) -> Array:
    """The mean over continuous names, each entry mean + deviation * (a standard variable)."""
    if not names:
        return frame.evaluate(node)
    moments: dict[int, str] = {}
    values: dict[str, Array] = {}
    for name in names:
        shape = frame.extents(Name(name))
        standard = np.empty(shape, dtype=object)
        for place in itertools.product(*map(range, shape)):
            standard[place] = Poly.variable(len(moments))
            moments[len(moments)] = kinds[name].name
        inner = frame.child(values)
        first, second = (inner.evaluate(argument) for argument in kinds[name].arguments)
        spread = second if kinds[name].name == "normal" else second - first
        values[name] = frame.ops.wrap(first + spread * standard)
    result = frame.child(values).evaluate(node)
    means = [v.mean(moments) if isinstance(v, Poly) else v for v in np.asarray(result, dtype=object).reshape(-1)]
    out = np.empty(len(means), dtype=object)
    out[:] = means
    return out.reshape(np.shape(result))


def _enumerate(names: list[str], kinds: dict[str, Kind], frame: Frame) -> list[tuple[dict[str, Array], Any]]:
    """Every joint outcome of the finite names with its probability."""
    options = [_outcomes(kinds[name], name, frame) for name in names]
    if math.prod(map(len, options)) > MAX_OUTCOMES // 20:
        raise NoExactValue
    joint = []
    for combination in itertools.product(*options):
        chance: Any = 1
        for _, probability in combination:
            chance = chance * probability
        joint.append(({name: value for name, (value, _) in zip(names, combination, strict=True)}, chance))
    return joint


def _outcomes(kind: Kind, name: str, frame: Frame) -> list[tuple[Array, Any]]:
    """The outcomes of one given: every entry (or row, for onehot) takes its values independently."""
    shape = frame.extents(Name(name))
    single = _single(kind, frame, shape)
    places = math.prod(shape[:-1] if kind.name == "onehot" else shape)
    if len(single) ** places > MAX_OUTCOMES // 20:
        raise NoExactValue
    outcomes = []
    for combination in itertools.product(single, repeat=places):
        chance: Any = 1
        for place, (_, probability) in enumerate(combination):
            chance = chance * (
                probability.reshape(-1)[place % probability.size] if np.ndim(probability) else probability
            )
        stacked = np.stack([np.asarray(value, dtype=object) for value, _ in combination])
        outcomes.append((stacked.reshape(shape), chance))
    return outcomes


def _single(kind: Kind, frame: Frame, shape: tuple[int, ...]) -> list[tuple[Any, Any]]:
    ops = frame.ops
    arguments = [frame.evaluate(node) for node in kind.arguments]
    number = [ops.number(Fraction(v)) for v in (-1, 0, 1)]
    half = ops.number(Fraction(1, 2)).item()
    match kind.name:
        case "rademacher":
            return [(number[0], half), (number[2], half)]
        case "bernoulli":
            p = arguments[0] if arguments[0].ndim else arguments[0].item()
            return [(number[2], p), (number[1], 1 - p)]
        case "categorical":
            return [(ops.number(Fraction(i)), p) for i, p in enumerate(arguments[0])]
        case "onehot":
            identity = ops.eye(shape[-1])
            return [(identity[i], p) for i, p in enumerate(arguments[0])]
    count = len(kind.outcomes)
    equal = ops.number(Fraction(1, count)).item()
    return [(frame.evaluate(v), equal if w is None else frame.evaluate(w).item()) for v, w in kind.outcomes]

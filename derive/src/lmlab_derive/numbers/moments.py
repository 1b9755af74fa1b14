"""Exact expectations: polynomials by the moments of their variables, finite distributions by enumeration."""

from __future__ import annotations

import functools
import itertools
import math
import operator
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np

from lmlab_derive.distributions import Distribution, is_finite
from lmlab_derive.functions.record import Array
from lmlab_derive.limits import MAX_OUTCOMES, NoExactValue
from lmlab_derive.numbers.evaluate import Frame
from lmlab_derive.small_formulas import ONE, minus, power, times
from lmlab_derive.tree import Binary, Call, Kind, Name, Node, constant_value

Monomial = tuple[tuple[int, int], ...]  # (variable, power) in order of variables
MAX_TERMS = 4_000
MAX_LED = 64  # outcomes with chances that are random themselves
_COUNTER = itertools.count()


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

    def __eq__(self, other: object) -> bool:
        if self is other:  # asked of every number, to see whether it is one
            return True
        raise NoExactValue

    __hash__ = None  # type: ignore[assignment]
    __gt__ = __lt__ = __ge__ = __le__ = __abs__ = __rtruediv__ = __float__ = __rpow__ = _refuse

    def mean(self, groups: dict[int, Group]) -> Any:
        """The expectation over the variables of these groups: a polynomial in those that are left, or a number."""
        total: dict[Monomial, Any] = {}
        for monomial, coefficient in self.terms.items():
            rest: list[tuple[int, int]] = []
            powers: dict[int, dict[int, int]] = {}
            for variable, exponent in monomial:
                group = groups.get(variable)
                if group is None:
                    rest.append((variable, exponent))
                else:
                    powers.setdefault(id(group), {})[variable] = exponent
            product = coefficient
            for taken in powers.values():
                group = groups[next(iter(taken))]
                product = product * group.moment([taken.get(variable, 0) for variable in group.variables])
            key = tuple(rest)
            total[key] = total.get(key, 0) + product
        return total.get((), mpmath.mpf(0)) if set(total) <= {()} else Poly(total)


@dataclass
class Group:
    """Standard variables that are drawn together: the entries of a row, or one alone."""

    family: Distribution
    arguments: list[Any]
    variables: list[int]

    def moment(self, powers: list[int]) -> Any:
        """The mean of the product of these powers of the variables."""
        assert self.family.moment is not None
        return self.family.moment(powers, self.arguments)


def _times(left: Monomial, right: Monomial) -> Monomial:
    powers = dict(left)
    for variable, exponent in right:
        powers[variable] = powers.get(variable, 0) + exponent
    return tuple(sorted(powers.items()))


def _without_norms(node: Node, frame: Frame) -> Node:
    """Even powers of norms as sums of squares, which are polynomials; lets opened so that they are found."""
    if isinstance(node, Name) and node.name in frame.setting.lets:
        return _without_norms(frame.setting.lets[node.name].value, frame)
    node = node.rebuild(tuple(_without_norms(child, frame) for child in node.children()))
    if isinstance(node, Binary) and node.op == "**" and isinstance(node.left, Call) and node.left.function == "norm":
        exponent = constant_value(node.right)
        if exponent is not None and exponent > 0 and exponent % 2 == 0:
            squares = replace(node.left, function="sum", args=(power(node.left.args[0], 2),))
            return power(squares, exponent / 2)
    return node


def polynomial_mean(node: Node, names: list[str], frame: Frame) -> Array:
    """The mean over names in the order of their dependence; arithmetic is long decimals.

    Finite ones are enumerated; the entries of the others are `place` of standard variables, which have moments.
    """
    node = _without_norms(node, frame)
    groups: dict[int, Group] = {}
    joint: list[tuple[dict[str, Array], Any]] = [({}, 1)]
    for name in names:
        kind = frame.setting.family(name)[1]
        longer: list[tuple[dict[str, Array], Any]] = []
        for values, chance in joint:
            inner = frame.child(values)
            if is_finite(kind):
                longer += [
                    ({**values, name: v}, _each(operator.mul, chance, own)) for v, own in _outcomes(kind, name, inner)
                ]
            else:
                longer.append(({**values, name: _placed(name, inner, groups)}, chance))
        joint = longer
        if len(joint) > MAX_OUTCOMES // 20:
            raise NoExactValue
    total: Any = 0
    for values, chance in joint:
        result = _each(operator.mul, frame.child(values).evaluate(node), chance)
        means = [v.mean(groups) if isinstance(v, Poly) else v for v in result.reshape(-1)]
        out = np.empty(len(means), dtype=object)
        out[:] = means
        total = _each(operator.add, total, out.reshape(result.shape))
    return total


def _each(op: Callable[[Any, Any], Any], left: Any, right: Any) -> Any:
    """Sums or products of arrays that may hold polynomials, which mpmath's own numbers refuse to stand before."""
    left, right = np.broadcast_arrays(_as_array(left), _as_array(right))
    out = np.empty(left.shape, dtype=object)
    out.reshape(-1)[:] = [
        op(b, a) if isinstance(b, Poly) else op(a, b) for a, b in zip(left.flat, right.flat, strict=True)
    ]
    return out


def _as_array(value: Any) -> Any:
    """An array of objects; of a single one, which may itself be a sequence, one without axes."""
    if isinstance(value, np.ndarray):
        return value
    alone = np.empty((), dtype=object)
    alone[()] = value
    return alone


def _placed(name: str, frame: Frame, groups: dict[int, Group]) -> Array:
    """The entries of a name that has moments, as polynomials in standard variables; nan where there is no such name."""
    family, kind = frame.setting.family(name)
    arguments = [frame.evaluate(argument) for argument in kind.arguments]
    if any(np.any(np.asarray(arguments[i] <= 0)) for i in family.positive):
        return np.full(frame.extents(Name(name)), mpmath.nan, dtype=object)
    return frame.placed(name, _standard(frame.extents(Name(name)), family, arguments, groups), arguments)


def _standard(shape: tuple[int, ...], family: Distribution, arguments: list[Array], groups: dict[int, Group]) -> Array:
    """An array of standard variables, and the groups that they are drawn in."""
    standard = np.empty(shape, dtype=object)
    spread = (
        arguments if family.joint else [np.broadcast_to(a, shape) if a.ndim <= len(shape) else a for a in arguments]
    )
    for row in itertools.product(*map(range, shape[:-1] if family.joint else shape)):
        places = [(*row, i) for i in range(shape[-1])] if family.joint else [row]
        variables = [next(_COUNTER) for _ in places]
        own = list(spread) if family.joint else [a[row] if a.ndim == len(shape) else a for a in spread]
        group = Group(family, own, variables)
        for place, variable in zip(places, variables, strict=True):
            standard[place] = Poly.variable(variable)
            groups[variable] = group
    return standard


def enumerated(names: list[str], frame: Frame) -> list[tuple[dict[str, Array], Any]]:
    """Every joint outcome of finite names with its probability, which may depend on the outcomes of names before.

    `NoExactValue` if there are too many.
    """
    joint: list[tuple[dict[str, Array], Any]] = [({}, 1)]
    for name in names:
        longer = []
        for values, chance in joint:
            for value, own in _outcomes(frame.setting.family(name)[1], name, frame.child(values)):
                longer.append(({**values, name: value}, chance * own))
        joint = longer
        if len(joint) > MAX_OUTCOMES // 20:
            raise NoExactValue
    return joint


def outcomes_given(names: list[str], frame: Frame) -> list[tuple[dict[str, Array], Node]]:
    """Every joint outcome of bernoulli names, with its probability as a formula in what their chances depend on."""
    joint: list[tuple[dict[str, Array], Node]] = [({}, ONE)]
    for name in names:
        kind = frame.setting.family(name)[1]
        places = math.prod(frame.extents(Name(name)))
        if kind.name != "bernoulli" or frame.setting.shape(kind.arguments[0]) or 2**places * len(joint) > MAX_LED:
            raise NoExactValue
        p, longer = kind.arguments[0], []
        for values, chance in joint:
            for zeros_and_ones in itertools.product((0.0, 1.0), repeat=places):
                value = frame.ops.from_numpy(np.reshape(zeros_and_ones, frame.extents(Name(name))))
                own = functools.reduce(times, [p if one else minus(ONE, p) for one in zeros_and_ones], chance)
                longer.append(({**values, name: value}, own))
        joint = longer
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
        stacked = frame.ops.library.stack([value for value, _ in combination])
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

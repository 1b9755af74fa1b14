"""The mean of an expression over random names: exact where it has a closed form, else an integral with its error.

In this order: finite outcomes are enumerated; polynomials have exact moments; a linear combination of normals is one normal;
what then depends entry by entry on at most two variables is integrated; the rest is left to `quadrature`.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import mpmath
import numpy as np

from lmlab_derive import tree
from lmlab_derive.distributions import DISTRIBUTIONS, extreme_of, is_finite
from lmlab_derive.functions.record import Array
from lmlab_derive.limits import NoExactValue, Refusal
from lmlab_derive.numbers.accuracy import Accuracy
from lmlab_derive.numbers.evaluate import Frame, Ops
from lmlab_derive.numbers.expectations import average, degree, elementwise_in, is_smooth
from lmlab_derive.numbers.iterated import Integration, Variable
from lmlab_derive.numbers.moments import Poly, enumerated, outcomes_given, polynomial_mean
from lmlab_derive.sizes import Shape
from lmlab_derive.small_formulas import ONE, TWO, call, minus, number, over, power, times
from lmlab_derive.text import to_text
from lmlab_derive.tree import Binary, Call, Expectation, Index, Name, Node, Slice, constant_value, walk

SHORT = 34  # digits in which polynomials are averaged for doubles
MOST_INTEGRALS = 2  # one inside the other
FOLDED = 1e-8  # what their error may be at least: where kinks meet, the inner one is no smooth function;
SMOOTHLY = 1e-11  # and where there are none
_LABELS = itertools.count()


@dataclass(frozen=True)
class Helpers:
    """What doubles need beside themselves: long decimals, and a way to take the means that nothing here takes."""

    long: Callable[[int], Ops]
    otherwise: Callable[[Node, frozenset[str], Frame, Accuracy], tuple[Array, Any, float]]


def expectation(node: Expectation, frame: Frame, accuracy: Accuracy, helpers: Helpers | None = None) -> Array:
    """E[...] or Var[...]. Without helpers the arithmetic is long decimals, and what it cannot take is `NoExactValue`."""

    def leaf(inner: Node, over: frozenset[str]) -> Array:
        return frame.ops.wrap(accuracy.known(lambda: _Mean(inner, over, frame, accuracy, helpers).value()))

    return average(node, frame, leaf)


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
            if degree(self.node, frozenset(others), self.frame) is not None:
                return self._exactly()
        except NoExactValue:
            if self.helpers is None:
                raise
        try:
            led = [name for name in finite if parents(self.setting, name) & set(others)]
            return self._led(led) if led else self._enumerated(finite, others)
        except NoExactValue:
            if self.helpers is None:
                raise
        if self.frame.trailing:
            raise Refusal(
                "a mean over many numbers inside another mean is too much; write it as one", code="mean-inside-mean"
            )
        return self.helpers.otherwise(self.node, self.over, self.frame, self.accuracy)

    def _exactly(self) -> tuple[Array, Any, float]:
        """By moments, in long decimals even for doubles: what is left of terms that cancel is then a zero."""
        if self.helpers is None:
            mean = self.frame.ops.wrap(polynomial_mean(self.node, self.names, self.frame))
            return mean, 0.0, _size(mean)
        with mpmath.workdps(SHORT):
            frame = self.frame.translated(self.helpers.long(SHORT))
            mean = np.asarray(polynomial_mean(self.node, self.names, frame), dtype=float)
        return mean, 1e-16 * _size(mean), _size(mean)

    def _led(self, led: list[str]) -> tuple[Array, Any, float]:
        """Outcomes whose chances are random themselves: for each, the mean of the expression times its chance."""
        total: Any = 0
        error, size = 0.0, 0.0
        for values, chance in outcomes_given(led, self.frame):
            weighted, rest = times(self.node, chance), self.over - set(led)
            part, off, large = _Mean(weighted, rest, self.frame.child(values), self.accuracy, self.helpers).value()
            total, error, size = total + part, error + off, max(size, large)
        return self.frame.ops.wrap(total), error, size

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
        node, variables = (
            self._extreme(names, frame)
            or self._squared(names, frame)
            or self._entered(names, frame)
            or self._projected(names, frame)
        )
        whole = frozenset(variable.name for variable in variables)
        known = all(v.family.log_weight is not None for v in variables)
        if not known or len(variables) > MOST_INTEGRALS or not elementwise_in(node, whole, self.setting):
            raise NoExactValue
        if self.helpers is None and len(variables) > 1:
            raise NoExactValue
        found = Integration(node, variables, frame, self.accuracy, len(self.setting.shape(self.node))).run()
        diverges = bool(found.diverges[0])
        self.accuracy.diverges |= diverges
        value = np.asarray(found.value[0])
        shape = frame.extents(self.node)
        if not frame.trailing:
            value = np.broadcast_to(value.reshape(value.shape[value.ndim - len(shape) :]), shape)
        if diverges:
            value = np.full_like(value, math.nan)
        plain = all(variable.family.standard for variable in variables)
        at_least = folded(len(variables), plain and is_smooth(node, whole, self.setting))
        error = float(found.error[0]) + at_least * float(found.size[0])
        return frame.ops.wrap(value), error, float(found.size[0])

    def _extreme(self, names: list[str], frame: Frame) -> tuple[Node, list[Variable]] | None:
        """The largest (or smallest) of independent values that are all distributed alike is one variable."""
        if len(names) != 1 or self.setting.covaries(names[0]):
            return None
        name = names[0]
        family, kind = self.setting.family(name)
        count = math.prod(frame.extents(Name(name)))
        for function in ("max", "min"):
            record = extreme_of(family, count, function == "max")
            label = self._label(())
            node = _replaced(self.node, Call(function, (Name(name),)), label, self.setting)
            alike = all(not self.setting.shape(argument) for argument in kind.arguments)
            if record and alike and node is not self.node and not self.setting.random_names(node) & self.over:
                return node, [Variable(label.name, record, self._variable(name, frame).arguments)]
        return None

    def _squared(self, names: list[str], frame: Frame) -> tuple[Node, list[Variable]] | None:
        """The sum of the squares of independent normals around 0 is one variable, a gamma; and the length is its root."""
        array, (family, kind) = Name(names[0]), self.setting.family(names[0])
        if len(names) != 1 or family.name != "normal" or self.setting.covaries(array.name) or self._parents(array.name):
            return None
        if any(map(self.setting.shape, kind.arguments)) or float(frame.evaluate(kind.arguments[0])) != 0:
            return None
        label = self._label(())
        node = self.node
        for squares in (power(array, 2), call("square", array), times(array, array)):
            node = _replaced(node, call("sum", squares), label, self.setting)
        if len(self.setting.givens[array.name].shape) == 1:
            node = _replaced(node, Binary("@", array, array), label, self.setting)
        node = _replaced(node, call("norm", array), call("sqrt", label), self.setting)
        if node is self.node or self.setting.random_names(node) & self.over:
            return None
        shape = over(number(math.prod(frame.extents(array))), TWO)
        rate = over(ONE, times(TWO, power(kind.arguments[1], 2)))
        return node, [Variable(label.name, DISTRIBUTIONS["gamma"], _evaluated([shape, rate]))]

    def _entered(self, names: list[str], frame: Frame) -> tuple[Node, list[Variable]] | None:
        """Single entries of arrays, as x[i] or x[0] and x[1], as variables of their own."""
        node, variables = self.node, []
        arrays = [name for name in names if self.setting.givens[name].shape]
        for name in arrays:
            family, kind = self.setting.family(name)
            inside = [n for n in self.setting.opened(node) if isinstance(n, Index) and n.operand == Name(name)]
            places = list({to_text(n): n for n in inside if len(_positions(n)) == len(n.items)}.values())
            written = all((constant_value(i) or 0) >= 0 and not i.free_letters for n in places for i in _positions(n))
            if len(places) > 1 and (family.joint or not written):  # i may be j
                return None
            if self.setting.covaries(name) or self._parents(name):
                return None
            for place in places:
                label = self._label(())
                node = _replaced(node, place, label, self.setting)
                parameters = [_entry(argument, place, self.setting) for argument in kind.arguments]
                if family.joint:  # a share of a dirichlet row is a beta
                    family, rest = DISTRIBUTIONS["beta"], minus(call("sum", kind.arguments[0]), parameters[0])
                    parameters.append(rest)
                    if frame.extents(Name(name))[-1] == 1:
                        return None
                variables.append(Variable(label.name, family, _evaluated(parameters)))
        if not arrays or self.setting.random_names(node) & set(arrays):
            return None
        return node, variables + [self._variable(name, frame) for name in names if name not in arrays]

    def _projected(self, names: list[str], frame: Frame) -> tuple[Node, list[Variable]]:
        """The expression with linear combinations of normals as variables of their own; the other names are as they are."""
        leads = set[str]().union(*map(self._parents, names))  # parameters of others: these need the values themselves
        steady = [n for n in names if self.setting.family(n)[0].name == "normal" and not self._parents(n)]
        steady = [n for n in steady if n not in leads]
        pieces = _linear_pieces(self.node, frozenset(steady), frozenset(names), frame)
        used = [self.setting.random_names(piece) & set(names) for piece in pieces]
        done = frozenset[str]().union(*used)
        shared = sum(map(len, used)) != len(done)  # two that share a name are not independent
        if shared or all(isinstance(piece, Name) for piece in pieces):
            return self.node, [self._variable(name, frame) for name in names]
        node, variables = self.node, []
        for i, piece in enumerate(pieces):
            label = self._label(self.setting.shape(piece))
            node = _replaced(node, piece, label, self.setting)
            moments = self._moments(piece, used[i], frame)
            variables.append(Variable(label.name, DISTRIBUTIONS["normal"], _constantly(moments)))
        return node, variables + [self._variable(name, frame) for name in names if name not in done]

    def _moments(self, piece: Node, names: frozenset[str], frame: Frame) -> list[Array]:
        """Mean and standard deviation of a linear combination of normals."""
        square = Expectation(piece, "Var", tuple(self.setting.random_names(piece) - names))
        centre = Expectation(piece, "E", square.fixed)
        inner = Accuracy()
        mean, variance = (expectation(part, frame, inner, self.helpers) for part in (centre, square))
        root = np.frompyfunc(mpmath.sqrt, 1, 1) if self.helpers is None else np.sqrt
        return [mean, frame.ops.wrap(root(variance))]

    def _variable(self, name: str, frame: Frame) -> Variable:
        family, kind = self.setting.family(name)
        if self.setting.covaries(name) or (family.joint and frame.extents(Name(name))[-1] == 1):
            raise NoExactValue
        if family.joint:  # entry by entry, a dirichlet row is beta
            alpha = kind.arguments[0]
            return Variable(name, DISTRIBUTIONS["beta"], _evaluated([alpha, minus(call("sum", alpha), alpha)]))
        return Variable(name, family, _evaluated(kind.arguments))

    def _label(self, shape: Shape) -> Name:
        """A name for a part of the expression that becomes a variable of its own."""
        label = Name(f"#L{next(_LABELS)}")
        self.setting.shapes.names[label.name] = shape
        return label

    def _parents(self, name: str) -> set[str]:
        return parents(self.setting, name) & self.over


def folded(count: int, smooth: bool) -> float:
    """What the error of so many integrals, one inside the other, is at least, relative to their size."""
    return 0.0 if count == 1 else SMOOTHLY if smooth else FOLDED


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
            raise Refusal(
                "the distributions of the random names depend on each other in a circle",
                code="distributions-in-a-circle",
            )
        done += ready
        waiting = [n for n in waiting if n not in ready]
    return done


def _constantly(values: list[Array]) -> Callable[[Frame], list[Array]]:
    return lambda frame: list(values)


def _evaluated(nodes: Sequence[Node]) -> Callable[[Frame], list[Array]]:
    return lambda frame: [frame.evaluate(node) for node in nodes]


def _positions(node: Index) -> list[Node]:
    return [item for item in node.items if not isinstance(item, Slice)]


def _entry(argument: Node, place: Index, setting: Any) -> Node:
    """A parameter at the place of an entry."""
    rank = len(setting.shape(argument))
    return Index(argument, place.items[len(place.items) - rank :]) if rank else argument


def _linear_pieces(node: Node, normals: frozenset[str], over: frozenset[str], frame: Frame) -> list[Node]:
    """The largest parts that are linear in normal names and depend on no other random one, each once."""
    setting = frame.setting
    touched = setting.random_names(node) & over
    if not touched:
        return []
    if touched <= normals and not isinstance(node, Expectation) and degree(node, over, frame) == 1:
        return [node]
    if isinstance(node, Name) and node.name in setting.lets:
        return _linear_pieces(setting.lets[node.name].value, normals, over, frame)
    found: list[Node] = []
    for child in node.children():
        found += [piece for piece in _linear_pieces(child, normals, over, frame) if piece not in found]
    return found


def _replaced(node: Node, old: Node, new: Node, setting: Any) -> Node:
    """The expression with a part replaced wherever it stands, inside lets as well."""
    if node == old:
        return new
    if isinstance(node, Name) and node.name in setting.lets:
        opened = _replaced(setting.lets[node.name].value, old, new, setting)
        return opened if any(part == new for part in walk(opened)) else node
    return tree.rebuilt(node, tuple(_replaced(child, old, new, setting) for child in node.children()))


def _size(value: Array) -> float:
    """The largest entry; a polynomial, which is averaged further, has none yet."""
    flat = np.asarray(value).reshape(-1)
    return max((abs(float(v)) for v in flat if not isinstance(v, Poly)), default=0.0)

"""The functions of every entry: exp, sigmoid, relu, ..."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import mpmath

from lmlab_derive.functions.record import Computed, Entrywise, Kink
from lmlab_derive.limits import NoExactValue
from lmlab_derive.small_formulas import ONE, TWO, ZERO, call, minus, number, over, plus, power, times
from lmlab_derive.tree import Compare, Constant, Negate, Node

HUGE = 10**6  # beyond exp(10**6) long decimals would eat memory; they become inf there
HALF = Fraction(1, 2)
_BERNOULLI = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6)


def _long_exp(mpmath: Any, x: Any) -> Any:
    return mpmath.inf if x > HUGE else mpmath.mpf(0) if x < -HUGE else mpmath.exp(x)


def _long_sigmoid(mpmath: Any, x: Any) -> Any:
    return 1 / (1 + _long_exp(mpmath, -x)) if x > -HUGE else mpmath.mpf(0)


def _numpy_sigmoid(numpy: Any, x: Any) -> Any:
    small = numpy.exp(-abs(x))
    return numpy.where(x > 0, 1.0, small) / (1 + small)


def _lgamma(x: float) -> float:
    return math.lgamma(x) if x > 0 else math.nan


def _polygamma(order: int, library: Any, x: Any) -> Any:
    """The derivative of log gamma (order 0) or the second (1): by the recurrence to beyond 12, asymptotically there."""
    y = x + 12
    passed = sum(-1 / (x + k) if order == 0 else 1 / (x + k) ** 2 for k in range(12)) + library.where(
        x > 0, 0.0, math.nan
    )
    series = sum(b / (y ** (2 * k) * (2 * k if order == 0 else -y)) for k, b in enumerate(_BERNOULLI, start=1))
    return passed + (library.log(y) - 0.5 / y if order == 0 else 1 / y + 0.5 / y**2) - series


def trigamma(library: Any, way: str, x: Any) -> Any:
    """The second derivative of log gamma. What its own derivative would be has no name here, so it has none."""
    if way == "long":
        return library.frompyfunc(lambda value: mpmath.polygamma(1, value) if value > 0 else mpmath.nan, 1, 1)(x)
    if way == "exact":
        raise NoExactValue
    return _polygamma(1, library, x)


def _gate(u: Node) -> Node:
    return call("sigmoid", u)


def _rising(u: Node) -> Node:
    """1 where u > 0, else 0."""
    return Compare(">", u, ZERO)


def _falling_exp(u: Node) -> Node:
    return call("exp", Negate(u))


def _odd(v: Node, u: Node) -> Node:
    return Negate(v)


def _even(v: Node, u: Node) -> Node:
    return v


def _flat(v: Node, u: Node) -> Node:
    return ZERO


def _rounding(name: str, name_in_mpmath: str, rounded: Callable[[Any], int], kink_distance: Computed) -> Entrywise:
    return Entrywise(
        name,
        long=lambda mpmath, x: getattr(mpmath, name_in_mpmath)(x),
        exact=lambda _, x: Fraction(rounded(x)),
        kink=Kink.JUMP,
        kink_distance=kink_distance,
        slope=_flat,
    )


EXP = Entrywise(
    "exp",
    steep=1,
    long=_long_exp,
    slope=lambda v, u: v,
    at_zero=1,
    positive=True,
    confused_with=("log", "sigmoid", "softmax"),
    sign_slips=True,
)
LOG = Entrywise(
    "log",
    aliases=("ln",),
    long=lambda mpmath, x: mpmath.log(x) if x else -mpmath.inf,
    lowest=0.0,
    slope=lambda v, u: over(ONE, u),
    confused_with=("exp", "log_softmax"),
)
SQRT = Entrywise(
    "sqrt", kink=Kink.EDGE, lowest=0.0, slope=lambda v, u: over(ONE, times(TWO, v)), means=lambda u: power(u, HALF)
)

ELEMENTWISE = [
    EXP,
    LOG,
    SQRT,
    Entrywise("sin", largest=1e9, slope=lambda v, u: call("cos", u), mirror=_odd, at_zero=0, confused_with=("cos",)),
    Entrywise(
        "cos", largest=1e9, slope=lambda v, u: Negate(call("sin", u)), mirror=_even, at_zero=1, confused_with=("sin",)
    ),
    Entrywise(
        "tan",
        largest=1e9,
        slope=lambda v, u: plus(ONE, power(v, 2)),
        means=lambda u: over(call("sin", u), call("cos", u)),
    ),
    Entrywise(
        "sinh",
        steep=1,
        largest=HUGE,
        slope=lambda v, u: call("cosh", u),
        by_exp=lambda u: times(number(HALF), minus(call("exp", u), _falling_exp(u))),
        mirror=_odd,
        at_zero=0,
    ),
    Entrywise(
        "cosh",
        steep=1,
        largest=HUGE,
        slope=lambda v, u: call("sinh", u),
        by_exp=lambda u: times(number(HALF), plus(call("exp", u), _falling_exp(u))),
        mirror=_even,
        at_zero=1,
        positive=True,
    ),
    Entrywise(
        "sigmoid",
        steep=1,
        numpy=_numpy_sigmoid,
        long=_long_sigmoid,
        slope=lambda v, u: times(v, minus(ONE, v)),
        by_exp=lambda u: over(ONE, plus(ONE, _falling_exp(u))),
        mirror=lambda v, u: minus(ONE, v),
        positive=True,
        confused_with=("tanh", "relu", "softmax"),
        sign_slips=True,
        symbol=r"\sigma",
    ),
    Entrywise(
        "tanh",
        steep=1,
        long=lambda mpmath, x: mpmath.tanh(x) if abs(x) < HUGE else mpmath.sign(x),
        slope=lambda v, u: minus(ONE, power(v, 2)),
        by_exp=lambda u: over(minus(ONE, power(_falling_exp(u), 2)), plus(ONE, power(_falling_exp(u), 2))),
        mirror=_odd,
        at_zero=0,
        confused_with=("sigmoid", "relu"),
    ),
    Entrywise(
        "relu",
        numpy=lambda numpy, x: numpy.maximum(x, 0.0),
        long=lambda mpmath, x: max(x, mpmath.mpf(0)),
        exact=lambda _, x: max(x, Fraction(0)),
        kink=Kink.BEND,
        slope=lambda v, u: _rising(u),
        means=lambda u: times(u, _rising(u)),
        at_zero=0,
        confused_with=("sigmoid", "softplus"),
        sign_slips=True,
    ),
    Entrywise(
        "abs",
        aliases=("absolute",),
        long=lambda _, x: abs(x),
        exact=lambda _, x: abs(x),
        kink=Kink.BEND,
        slope=lambda v, u: call("sign", u),
        means=lambda u: minus(times(u, _rising(u)), times(u, _rising(Negate(u)))),
        at_zero=0,
    ),
    Entrywise("sign", exact=lambda _, x: Fraction((x > 0) - (x < 0)), kink=Kink.JUMP, slope=_flat),
    Entrywise(
        "softplus",
        steep=1,
        numpy=lambda numpy, x: numpy.logaddexp(x, 0.0),
        long=lambda mpmath, x: x if x > HUGE else mpmath.log(1 + _long_exp(mpmath, x)),
        slope=lambda v, u: _gate(u),
        by_exp=lambda u: call("log", plus(ONE, call("exp", u))),
        mirror=lambda v, u: minus(v, u),
        positive=True,
        sign_slips=True,
    ),
    Entrywise(
        "silu",
        steep=1,
        aliases=("swish",),
        numpy=lambda numpy, x: x * _numpy_sigmoid(numpy, x),
        long=lambda mpmath, x: x * _long_sigmoid(mpmath, x),
        slope=lambda v, u: plus(_gate(u), times(v, minus(ONE, _gate(u)))),
        means=lambda u: times(u, _gate(u)),
    ),
    Entrywise(
        "erf",
        steep=2,
        numpy=lambda numpy, x: numpy.vectorize(math.erf, otypes=[float])(x),
        largest=HUGE,
        slope=lambda v, u: times(over(TWO, call("sqrt", Constant("pi"))), call("exp", Negate(power(u, 2)))),
    ),
    Entrywise(
        "lgamma",
        aliases=("gammaln", "loggamma"),
        numpy=lambda numpy, x: numpy.vectorize(_lgamma, otypes=[float])(x),
        long=lambda mpmath, x: mpmath.re(mpmath.loggamma(x)) if x > 0 else mpmath.nan,
        lowest=0.0,
        largest=HUGE,
        slope=lambda v, u: call("digamma", u),
    ),
    Entrywise(
        "digamma",
        numpy=lambda numpy, x: _polygamma(0, numpy, x),
        long=lambda mpmath, x: mpmath.digamma(x) if x > 0 else mpmath.nan,
        lowest=0.0,
        largest=HUGE,
        slope=lambda v, u: call("trigamma", u),
    ),
    Entrywise(
        "log1p",
        long=lambda mpmath, x: mpmath.log(1 + x),
        lowest=-1 + 1e-15,
        slope=lambda v, u: over(ONE, plus(ONE, u)),
        means=lambda u: call("log", plus(ONE, u)),
    ),
    Entrywise(
        "expm1",
        steep=1,
        long=lambda mpmath, x: _long_exp(mpmath, x) - 1,
        slope=lambda v, u: plus(v, ONE),
        means=lambda u: minus(call("exp", u), ONE),
    ),
    Entrywise(
        "square",
        long=lambda _, x: x * x,
        exact=lambda _, x: x * x,
        degree="double",
        slope=lambda v, u: times(TWO, u),
        means=lambda u: times(u, u),
    ),
    _rounding("floor", "floor", math.floor, lambda library, x: x - library.round(x)),
    _rounding("ceil", "ceil", math.ceil, lambda library, x: x - library.round(x)),
    _rounding("round", "nint", round, lambda library, x: x - library.floor(x) - 0.5),
]

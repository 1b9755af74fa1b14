"""Derivatives of means by the parameters of what is averaged: right ones hold and wrong ones are refuted, at any seed."""

from __future__ import annotations

from typing import Any

import mpmath
import numpy as np
import pytest

from lmlab_derive import check
from lmlab_derive.distributions import DISTRIBUTIONS
from lmlab_derive.numbers.integrals import integrate

SEEDS = range(5)
NORMAL = "given mu\ngiven s: positive\ngiven x ~ normal(mu, s)\n"
RATE = "given r: positive\ngiven x ~ exponential(r)\n"
GAMMA = "given a, b: positive\ngiven g ~ gamma(a, b)\n"
UNIFORM = "given a\ngiven w: positive\ngiven x ~ uniform(a, a + w)\n"
DIVERGENCE = "given m\ngiven s: positive\ngiven q ~ normal(m, s)\ngiven z ~ normal(0, 1)\n"
FUNCTION = "given f: function\ngiven m\ngiven s: positive\ngiven x ~ normal(m, s)\n"
ROWS = "given w, m: n\ngiven x: n normal(m, 1)\n"
LED = "given mu\ngiven t: positive\ngiven m ~ normal(mu, t)\ngiven x ~ normal(m, 1)\n"
COUNT = "given l: positive\ngiven k ~ poisson(l)\n"

QUICK = [  # polynomials and sums, whose means are exact
    (NORMAL, "claim d(E[x**2])/dmu = E[x**2*(x - mu)/s**2]", True),
    (NORMAL, "claim d(E[x**2])/dmu = E[x**2*(x - mu)/s]", False),
    (NORMAL, "derive d(E[x**4])/dmu = E[4*x**3] = 4*mu**3 + 12*mu*s**2", True),
    (NORMAL, "claim d2(E[x**4])/dmu2 = 12*mu**2 + 12*s**2", True),
    (NORMAL, "claim d(E[(x - mu)**2])/dmu = 0", True),
    (NORMAL, "claim d(E[(x - mu)**2])/dmu = -2*mu", False),
    (RATE, "claim d(E[x**2])/dr = -4/r**3", True),
    (RATE, "claim d(E[x**2])/dr = -4/r**2", False),
    (DIVERGENCE, "claim d(KL(q, z))/ds = s - 1/s", True),
    (DIVERGENCE, "claim d(KL(q, z))/ds = s - 2/s", False),
    (COUNT, "claim d(E[exp(-k)])/dl = (exp(-1) - 1)*E[exp(-k)]", True),
    (COUNT, "claim d(E[exp(-k)])/dl = (exp(-1) + 1)*E[exp(-k)]", False),
]
INTEGRALS = [
    (NORMAL, "claim d(E[exp(x)])/ds = s*E[exp(x)]", True),
    (NORMAL, "claim d(E[exp(x)])/ds = s**2*E[exp(x)]", False),
    (NORMAL, "claim d(E[sin(x)])/dmu = E[sin(x)*(x - mu)]/s**2", True),
    (NORMAL, "claim d(E[sin(x)])/dmu = E[sin(x)*(x - mu)]/s", False),
    (NORMAL, "claim d2(E[sin(x)])/dmu2 = -E[sin(x)]", True),
    (NORMAL, "claim d(E[cos(mu*x)])/dmu = -E[sin(mu*x)*(x + mu)]", True),
    (NORMAL, "claim d(E[cos(mu*x)])/dmu = -E[sin(mu*x)*x]", False),
    (NORMAL, "claim d(log(E[exp(x)]))/ds = s", True),
    (NORMAL, "claim d(Var[exp(x)])/ds = 4*s*exp(2*mu + 2*s**2) - 2*s*exp(2*mu + s**2)", True),
    (NORMAL, "claim d(E[relu(x)])/dmu = P[x > 0]", True),
    (NORMAL, "claim d(E[relu(x)])/dmu = P[x > 1]", False),
    (NORMAL, "claim d(P[x > 0])/dmu = exp(-mu**2/(2*s**2))/sqrt(2*pi*s**2)", True),
    (RATE, "claim d(E[exp(-x)])/dr = 1/(1 + r)**2", True),
    (RATE, "claim d(E[exp(-x)])/dr = -1/(1 + r)**2", False),
    (RATE, "claim d(E[sqrt(x)])/dr = -sqrt(pi)/(4*r**(3/2))", True),
    (RATE, "claim d(E[sqrt(x)])/dr = -sqrt(pi)/(2*r**(3/2))", False),
    (GAMMA, "claim d(E[log(g)])/da = trigamma(a)", True),
    (GAMMA, "claim d(E[log(g)])/db = -1/b", True),
    (GAMMA, "claim d(E[log(g)])/db = 1/b", False),
    (UNIFORM, "claim d(E[exp(x)])/dw = (exp(a + w) - E[exp(x)])/w", True),
    (UNIFORM, "claim d(E[exp(x)])/dw = (exp(a + w) - E[exp(x)])/w**2", False),
    (FUNCTION, "claim d(E[f(x)])/dm = E[f'(x)]", True),
    (FUNCTION, "claim d(E[f(x)])/ds = s*E[f''(x)]", True),
    (FUNCTION, "claim d(E[f(x)])/ds = s**2*E[f''(x)]", False),
    (ROWS, "claim d(E[exp(w @ x)])/dw = (m + w)*exp(w @ m + w @ w/2)", True),
    (ROWS, "claim d(E[exp(w @ x)])/dw = (m + w/2)*exp(w @ m + w @ w/2)", False),
    (LED, "claim d(E[sin(x)])/dmu = E[cos(x)]", True),
    (LED, "claim d(E[sin(x)])/dmu = E[cos(x)]*t", False),
]


def _decided(given: str, claim: str, holds: bool, seed: int) -> None:
    answer = check(given + claim, seed=seed).claims[0]
    assert answer.holds if holds else answer.verdict == "refuted", answer


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(("given", "claim", "holds"), QUICK)
def test_the_derivative_of_an_exact_mean_is_decided(given: str, claim: str, holds: bool, seed: int) -> None:
    _decided(given, claim, holds, seed)


@pytest.mark.slow
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(("given", "claim", "holds"), INTEGRALS)
def test_the_derivative_of_an_integrated_mean_is_decided(given: str, claim: str, holds: bool, seed: int) -> None:
    _decided(given, claim, holds, seed)


@pytest.mark.parametrize(("given", "claim", "holds"), INTEGRALS[:4])
def test_the_derivative_of_an_integrated_mean_is_decided_at_one_seed(given: str, claim: str, holds: bool) -> None:
    _decided(given, claim, holds, seed=0)


def test_the_derivative_of_a_let_that_is_a_mean_moves_with_its_parameters() -> None:
    right, wrong = check(f"{NORMAL}let J = E[x**3]\nclaim dJ/dmu = 3*mu**2 + 3*s**2\nclaim dJ/dmu = 0").claims
    assert right.holds, right
    assert wrong.verdict == "refuted"
    assert "does not use" not in wrong.reason


@pytest.mark.slow
def test_a_parameter_in_a_condition_moves_where_a_mean_jumps() -> None:
    first, second = check(
        f"{NORMAL}given t\nclaim d(P[x > t])/dt = -exp(-(t - mu)**2/(2*s**2))/sqrt(2*pi*s**2)\nclaim d(P[x > t])/dt = 0"
    ).claims
    assert first.holds, first
    assert second.verdict == "refuted", second


def test_an_integral_of_a_jump_that_no_decimal_hits_is_within_its_error() -> None:
    with mpmath.workdps(60):
        mean, deviation, threshold = map(mpmath.mpf, (0.404483, 0.110672, 0.0103755))
        exp = np.frompyfunc(mpmath.exp, 1, 1)

        for step in (mpmath.mpf("1e-18"), mpmath.mpf("-1e-18")):

            def integrand(z: Any, owner: Any, at: Any = threshold + step) -> tuple[Any, Any, None]:
                distance = mean + deviation * z - at
                density = exp(-z * z / 2) / mpmath.sqrt(2 * mpmath.pi)
                return np.where(distance > 0, 1, 0) * density, distance[:, None], None

            found = integrate(integrand, DISTRIBUTIONS["normal"].edges, 1, digits=60)
            exact = mpmath.erfc((threshold + step - mean) / deviation / mpmath.sqrt(2)) / 2
            assert abs(found.value[0] - exact) <= found.error[0]


def test_what_is_averaged_has_no_derivative_outside() -> None:
    first, second = check(f"{NORMAL}claim d(E[x**2])/dx = 0\nclaim d(E[x**2])/dx = 2*mu").claims
    assert first.holds, first
    assert second.verdict == "refuted", second


def test_a_normal_that_is_the_mean_of_another_keeps_its_value_in_both() -> None:
    right, wrong = check(f"{LED}claim E[sin(x)*(m - mu)] = t**2*E[cos(x)]\nclaim E[sin(x)*(m - mu)] = 0").claims
    assert right.holds, right
    assert wrong.verdict == "refuted", wrong


def test_a_derivative_that_no_rule_gives_is_undecided_and_no_mistake_of_the_checker() -> None:
    answer = check("given mu\ngiven x: 2 normal(mu, 1)\nclaim d(E[relu(x[0]*x[1])])/dmu = 1").claims[0]
    assert answer.verdict == "undecided", answer
    assert "derivative of a mean" in answer.reason

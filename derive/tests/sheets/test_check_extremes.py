"""Claims that hold at ordinary points and fail at patterned arrays, larger sizes, or far smaller or larger numbers."""

from __future__ import annotations

import re
import textwrap

import pytest

from lmlab_derive import check

ARRAYS = "given x, r: n\ngiven A: n, n\ngiven s: positive\n"
NUMBERS = "given a, x\ngiven s: positive\n"

FAILS = {
    ARRAYS: [
        "max((x - mean(x))/std(x)) <= 10",
        "trace(A)**2 <= 10*sum(A**2)",
        "mean((x - mean(x))**4) <= 10*var(x)**2",
        "max(abs((r - mean(r))/(std(r) + s))) <= 10",
        "sum(x)**2 <= 12*sum(x**2) where n > 5",
        "max(abs(x)) <= 9*mean(abs(x))",
        "sum(x**2) <= 20*max(x**2)",
        "max(softmax(x)) <= 1 - 1e-9",
        "sum(x == -2.25) <= 0",
        "sum(where(r == 3.5, r, 0)) = 0",
        "prod((A - 2)/(A - 2)) = 1",
    ],
    "given p, q: n simplex\ngiven y: n onehot\n": [
        "-sum(y*log(p)) <= 600",
        "KL(p, q) <= 100",
        "min(p) >= 1e-20",
    ],
    NUMBERS: [
        "-log(clip(sigmoid(a), 1e-7, 1-1e-7)) = softplus(-a)",
        "tanh(a) = clip(tanh(a), -0.9999, 0.9999)",
        "minimum(s**2, 10**6) = s**2",
        "sin(x) = x - x**3/6 + x**5/120 where -0.01 <= x <= 0.01",
        "(a > 3.1)*(a < 3.2) = 0",
        "softplus(a) = a where a > 300",
        "exp(-abs(a)) = exp(-minimum(abs(a), 50))",
        "maximum(a, sqrt(2)*1000) = maximum(a, 1414)",
    ],
}
HOLDS = {
    ARRAYS: [
        "sum(x)**2 <= n*sum(x**2) where n > 5",
        "trace(A)**2 <= n*sum(A**2)",
        "max(abs(x)) <= norm(x)",
    ],
    NUMBERS: [
        "(1 - tanh(a)**2)*cosh(a)**2 = 1",
        "softplus(a) - softplus(-a) = a",
        "log(1 + exp(-a)) = softplus(-a)",
        "(1 + a**16) - a**16 = 1",
        "sigmoid(a)*(1 + exp(-a)) = 1",
        "sqrt(1 + s) - sqrt(s) = 1/(sqrt(1 + s) + sqrt(s))",
        "minimum(s, 10**6) + maximum(s, 10**6) = s + 10**6",
    ],
}


@pytest.mark.parametrize(("setting", "claim"), [(s, claim) for s, claims in FAILS.items() for claim in claims])
def test_what_fails_far_out_alone_is_refuted(setting: str, claim: str) -> None:
    (answer,) = check(f"{setting}claim {claim}").claims
    assert answer.verdict == "refuted", answer.reason


@pytest.mark.parametrize(("setting", "claim"), [(s, claim) for s, claims in HOLDS.items() for claim in claims])
def test_what_is_right_far_out_holds(setting: str, claim: str) -> None:
    (answer,) = check(f"{setting}claim {claim}").claims
    assert answer.verdict in ("supported", "proved"), answer.reason


def test_a_condition_on_a_size_leaves_as_many_points() -> None:
    claims = [check(f"given x: n\nclaim sum(x)**2 <= n*sum(x**2) where n > {least}").claims[0] for least in (0, 5, 20)]
    points = [int(claim.reason.partition(" random points")[0].rpartition(" ")[2]) for claim in claims]
    assert min(points[1:]) > points[0] / 2


def test_the_evidence_of_an_equation_says_which_values_were_tried() -> None:
    reason = check("given s: positive\nclaim lgamma(s + 1) = lgamma(s) + log(s)").claims[0].reason
    assert re.search(r"values from 1e-06 up to 1e\+06 were tried", reason), reason


def test_a_difference_that_doubles_do_not_show_is_said_to_be_one() -> None:
    (answer,) = check("given x\nclaim sin(x) = x - x**3/6 + x**5/120 where -0.01 <= x <= 0.01").claims
    assert answer.reason == "the sides differ, by less than doubles tell apart; long decimals do"


@pytest.mark.parametrize("seed", range(3))
def test_slopes_of_slopes_keep_their_digits_where_a_sigmoid_saturates(seed: int) -> None:
    text = "given x, y\ngiven b: positive\nclaim d2(log(1 + exp(b*(x - y))))/dx2 = b**2/(2 + exp(b*(x - y)) + exp(b*(y - x)))"
    (answer,) = check(text, seed=seed).claims
    assert answer.verdict in ("supported", "proved"), answer.reason


@pytest.mark.parametrize("seed", [1, 2])
def test_what_doubles_lose_in_a_saturated_softmax_refutes_nothing(seed: int) -> None:
    text = """
        given X, G: T, D
        given Q, K, V, O: D, d
        let A = softmax(X @ Q @ (X @ K).T / sqrt(d), axis=1)
        let H = concat(A @ X @ V, X @ V, axis=1)
        given W: d+d, D
        let J = sum(G * (H @ W))
        let R = G @ W[0:d].T @ (X @ V).T
        let S = A * (R - sum(R * A, axis=1, keepdims=True))
        claim dJ/dQ = X.T @ S @ X @ K / sqrt(d)
    """
    (answer,) = check(textwrap.dedent(text), seed=seed).claims
    assert answer.verdict in ("supported", "proved"), answer.reason


@pytest.mark.parametrize(
    ("given", "false", "true"),
    [
        ("n: positive integer", "n**2 * exp(-n/100) <= 5000", "n**2 * exp(-n/100) <= 5500"),
        ("a: fraction", "log(1/a) <= 30", "-a*log(a) <= exp(-1)"),
        ("p, q: n simplex", "sum(sqrt(p*q)) >= 1e-9", "sum(sqrt(p*q)) <= 1"),
    ],
)
def test_bounds_are_tried_at_every_small_count_and_close_to_every_edge(given: str, false: str, true: str) -> None:
    report = check(f"given {given}\nclaim {false}\nclaim {true}")
    assert [claim.holds for claim in report.claims] == [False, True]


@pytest.mark.parametrize("claim", ["log(a) < a - 1", "exp(a) > 1 + a", "exp(-a) < 1/(1 + a)", "-log(1 - a) >= a"])
def test_a_strict_bound_that_is_attained_at_the_edge_of_a_kind_holds(claim: str) -> None:
    assert check(f"given a: fraction\nclaim {claim}").ok

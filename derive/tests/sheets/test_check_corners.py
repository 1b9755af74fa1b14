"""Places where random points never are: recursions' rows, large whole numbers, zeros, identities, jumps, narrow minima."""

from __future__ import annotations

import pytest

from lmlab_derive import check

STEPS = "given x: T\ngiven w, c: positive\nlet h[0] = c\nlet h[t] = w * h[t-1] + x[t]\nlet L = sum(h**2)\n"
SUMS = STEPS + "let g[0] = 0\nlet g[t] = g[t-1] + h[t]\n"
REALS = "given x, y\ngiven v: n\ngiven n2, k: positive integer\n"
MATRICES = "given A: n, n definite\ngiven O: n, n orthogonal\n"
SHARES = "given p: fraction\ngiven q: n fraction\ngiven a: positive\ngiven r\ngiven z: n bernoulli(p)\n"
CHANCES = "given t: positive\ngiven b: 4 bernoulli(1/2)\ngiven s: 5 rademacher\ngiven r: 3 poisson(1)\n"

HOLDS = {
    STEPS: [
        "dh[t]/dx[s] = (s <= t) * w**abs(t - s)",
        "dh[t]/dc = w**t",
        "dh[t]/dw = sum(s=1..t, w**(t - s) * h[s-1])",
    ],
    SUMS: ["dg[t]/dc = sum(s=1..t, w**s)"],
    REALS: [
        "(1 + 1/n2)**n2 < 2.71829",
        "sum(j=1..n2, 1/j**2) < 1.645",
        "1/x + 1/y = (x + y) / (x * y)",
        "x / abs(x) = sign(x) where x != 0",
        "d(x**2)/dx / x = 2 where x != 0",
        "d(log(x))/dx = 1 / x",
        "d(tanh(x))/dx <= 1",
        "sigmoid(100 * x) < 1",
        "tanh(300 * x) > -1",
        "floor(2 * x) = floor(x) + floor(x + 1/2)",
        "x**4 - 5.46 * x**2 + 7.453 >= 0",
    ],
    SHARES: [
        "a * log(a) > -exp(-1) where a > 1/2",
        "a * log(a) > -exp(-1) where a > exp(-1)",
        "p**2 * (1 - p) < 4/27 + 1e-15",
        "r**2 - 2 * sqrt(2) * r + 2.0000001 > 0",
    ],
    MATRICES: ["logdet(A) <= trace(A) - n", "trace(O) <= n", "trace(A) > 0"],
    CHANCES: ["P[sum(s) >= t] <= exp(-t**2 / 10)", "P[mean(b) - 1/2 >= t] <= exp(-8 * t**2)"],
}
FAILS = {
    STEPS: [
        "dh[t]/dc = w**(t - 1)",
        "dh[t]/dx[s] = (s <= t - 1) * w**abs(t - s - 1)",
        "dL/dh[t] = 2 * h[t-1]",
    ],
    SUMS: ["dg[t]/dc = sum(s=1..t, w**(s - 1))"],
    REALS: [
        "sin(n2) < 0.9999",
        "(1 + 1/n2)**n2 < 2.718",
        "(n2 - 40)**2 >= 1",
        "n2 + k < 64",
        "sum(j=1..n2, 1/j) < 4",
        "n2 * k <= 10000",
        "prod(j=1..9, k - j) = 0",
        "1 / (1/x + 1/y) = x * y / (x + y)",
        "abs(x) / x = sign(x)",
        "x**k = exp(k * log(x))",
        "1 / (1 / (x - 7)) = x - 7",
        "(x**2 - y**2) / (x + y) = x - y",
        "d(sigmoid(x))/dx < 1/4",
        "d2(cosh(x))/dx2 > 1",
        "d(sin(x))/dx < 1",
        "d(log(x))/dx * x = 1",
        "d(v @ v)/dv / v = 2 * ones(n)",
        "d(x**3)/dx / x = 3 * x",
        "round(x + 1) = round(x) + 1",
        "round(x) = floor(x + 1/2)",
        "x**4 - 5.46 * x**2 + 7.4528 >= 0",
        "(x**2 - 3)**2 >= 1e-5",
    ],
    SHARES: [
        "p * (1 - p) < 1/4",
        "p**2 + (1 - p)**2 > 1/2",
        "q * (1 - q) < 1/4",
        "a + 1 / (4 * a) > 1",
        "Var[mean(z)] < 1 / (4 * n)",
        "p**2 * (1 - p) < 4/27",
        "a * log(a) > -exp(-1)",
        "r * exp(r) > -exp(-1)",
        "r**2 - 2 * sqrt(2) * r + 2 > 0",
    ],
    MATRICES: ["logdet(A) < trace(A) - n", "trace(O) < n", "O[0, 0] < 1", "A[0, 0] * inv(A)[0, 0] > 1"],
    CHANCES: [
        "P[sum(s) >= t] <= exp(-t**2 / 6)",
        "P[mean(b) - 1/2 >= t] <= exp(-16 * t**2)",
        "P[abs(sum(s)) >= t] < 1/16 where t >= 5",
    ],
}


def cases(of: dict[str, list[str]]) -> list[tuple[str, str]]:
    return [(setting, claim) for setting, claims in of.items() for claim in claims]


@pytest.mark.parametrize(("setting", "claim"), cases(HOLDS), ids=[claim for _, claim in cases(HOLDS)])
def test_what_is_right_in_the_corners_holds(setting: str, claim: str) -> None:
    answer = check(f"{setting}claim {claim}").claims[0]
    assert answer.holds, answer.reason


@pytest.mark.parametrize(("setting", "claim"), cases(FAILS), ids=[claim for _, claim in cases(FAILS)])
def test_what_fails_only_in_a_corner_is_refuted(setting: str, claim: str) -> None:
    answer = check(f"{setting}claim {claim}").claims[0]
    assert answer.verdict == "refuted", answer.reason


@pytest.mark.parametrize("seed", range(1, 4))
def test_a_strict_bound_that_is_attained_at_one_number_is_refuted_at_every_seed(seed: int) -> None:
    answers = [(claim, check(f"{SHARES}claim {claim}", seed=seed).claims[0].verdict) for claim in FAILS[SHARES]]
    assert answers == [(claim, "refuted") for claim in FAILS[SHARES]]


def test_a_bound_says_how_large_whole_numbers_were() -> None:
    assert "values up to 4e+06 were tried" in check("given n: positive integer\nclaim log(n) < n").claims[0].reason


@pytest.mark.parametrize("seed", range(6))
def test_names_that_are_tried_as_equal_keep_their_kinds(seed: int) -> None:
    assert check("given x\ngiven a: positive\nclaim relu(a * x) = a * relu(x)", seed=seed).ok


@pytest.mark.slow
def test_a_wrong_derivative_of_a_probability_is_refuted() -> None:
    text = "given t\ngiven x: normal(0, 1)\nclaim d(P[x > t])/dt = exp(-t**2 / 2) / sqrt(2 * pi)"
    assert check(text).claims[0].verdict == "refuted"


ROWS = "given X: T, D\ngiven W: D, M\ngiven a: D\nlet Y = X @ W\nlet h[0] = a\nlet h[t] = tanh(h[t-1] + X[t])\n"
SQUARE = "given X, W: n, n\nlet Y = X @ W\nlet A = softmax(X)\n"
COINS = "given a, b: positive\ngiven p: beta(a, b)\ngiven z: bernoulli(p)\n"


@pytest.mark.parametrize(
    ("sheet", "claim", "holds"),
    [
        (ROWS, "dY[t]/dX[t] = W.T", True),
        (ROWS, "dh[t]/dX[t] = diag(1 - h[t]**2)", True),
        (SQUARE, "dY[t]/dX[s] = (t == s) * W.T", True),
        (SQUARE, "dA[t]/dX[t] = diag(A[t]) - outer(A[t], A[t])", True),
        (SQUARE, "dY[t]/dX[t] = outer(eye(n)[t], W[:, t])", False),
        (SQUARE, "dY[t]/dX[t] = W", False),
    ],
)
def test_a_row_by_a_row_keeps_the_other_axes_of_both(sheet: str, claim: str, holds: bool) -> None:
    assert check(f"{sheet}claim {claim}").ok is holds


@pytest.mark.parametrize(
    ("claim", "verdict"),
    [
        ("E[Var[z | p]] = a * b / ((a + b) * (a + b + 1))", "supported"),
        ("Var[z] = E[Var[z | p]] + Var[E[z | p]]", "supported"),
        ("E[E[z | p]] = a / (a + b + 1)", "refuted"),
    ],
)
def test_a_coin_whose_chance_is_random_has_means_within_means(claim: str, verdict: str) -> None:
    assert check(f"{COINS}claim {claim}").claims[0].verdict == verdict


@pytest.mark.parametrize(
    "claim", ["|x + y| = |x| + |y| where x*y >= 0", "1 <= ‖[x, y]‖ where x > 1", "|x| <= |where(x > 0, x, -x)|"]
)
def test_a_bar_may_stand_before_where(claim: str) -> None:
    assert check(f"given x, y\nclaim {claim}").ok


def test_a_recursion_by_its_own_rows_is_asked_about_and_not_refuted() -> None:
    claim, step = check(f"{STEPS}let f(u) = w * u + 1\nclaim dh[t]/dh[t-1] = w\nclaim d(f(c))/dc = w").claims
    assert (claim.verdict, step.verdict) == ("invalid", "proved")
    assert "d(f(u))/du" in claim.reason


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1, 11))
def test_no_seed_changes_a_verdict_in_a_corner(seed: int) -> None:
    assert [c for s, c in cases(HOLDS) if not check(f"{s}claim {c}", seed=seed).ok] == []
    assert [c for s, c in cases(FAILS) if check(f"{s}claim {c}", seed=seed).claims[0].verdict != "refuted"] == []


@pytest.mark.parametrize("kind", ["orthogonal", "symmetric orthogonal"])
@pytest.mark.parametrize("claim", ["det(Q) = 1", "det(Q) = -1", "det(-Q) = 1", "det(-Q) = -1", "trace(Q) = n - 2"])
def test_orthogonal_matrices_have_determinants_of_both_signs(kind: str, claim: str) -> None:
    claims = check(f"given Q: n, n {kind}\nclaim {claim}\nclaim det(Q)**2 = 1\nclaim Q.T @ Q = eye(n)").claims
    assert [answer.holds for answer in claims] == [False, True, True]


@pytest.mark.parametrize(
    ("claim", "said"),
    [
        ("0**x = 0", "the sides differ"),  # at 0; below 0 the left side has no value either
        ("log(x**2) = 2*log(x)", "`given x: positive`"),
        ("exp(log(x)) = x", "`where x > 0`"),
        ("x / x = 1", "`given x: nonzero`"),
        ("sum(v / sum(v)) = 1", "`where x != 0`"),
    ],
)
def test_what_is_said_of_a_side_without_a_value_fits_the_point_that_is_shown(claim: str, said: str) -> None:
    answer = check(f"given x\ngiven v: n\nclaim {claim}").claims[-1]
    assert answer.verdict == "refuted"
    assert said in answer.reason
    assert answer.counterexample is not None
    assert ("no value" in answer.reason) == ("no value" in str(answer.counterexample))

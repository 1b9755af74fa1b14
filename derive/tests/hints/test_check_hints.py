"""Hints: the slip that was made is the one that is named, and nothing is named that does not repair the claim."""

from __future__ import annotations

import re

import pytest

from lmlab_derive import check, limits
from lmlab_derive.hints import sentence

NETWORK = """
given X: N, D
given W: D, H
given b: H
given V: H, K
given Y: N, K onehot
let Z = X @ W + b
let A = tanh(Z)
let P = softmax(A @ V)
let J = -sum(Y * log(P)) / N
"""

SLIPS = {
    "dJ/dV == A.T @ (Y - P) / N": "sign",
    "dJ/dV == A.T @ (P - Y)": "1/N",
    "dJ/dV == 2 * A.T @ (P - Y) / N": "factor 2",
    "dJ/dV == (P - Y).T @ A / N": "transpose",
    "dJ/dW == X.T @ ((P - Y) @ V.T) / N": re.escape("1 - A**2"),
    "dJ/dW == X.T @ ((P - Y) @ V.T * A * (1 - A)) / N": re.escape("1 - A**2"),
    "dJ/dW == X.T @ ((P - Y) @ V * (1 - A**2)) / N": re.escape("V.T"),
    "dJ/db == (P - Y) @ V.T * (1 - A**2) / N": "sum over the rows",
    "dJ/db == sum((P - Y) @ V.T * (1 - A**2), axis=1) / N": "axis",
    "dJ/dZ == (P - Y) @ V.T * (1 + A**2) / N": "sign",
    "dJ/dZ == P @ V.T * (1 - A**2) / N": r"term.*Y",
    "dJ/dA == (P * Y) @ V.T / N": re.escape("P - Y"),
}


@pytest.fixture(autouse=True)
def unhurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is tested here is what the search finds; how long it may look is a matter for the bench."""
    monkeypatch.setattr(sentence, "HINT_SECONDS", 10.0)
    monkeypatch.setattr(limits, "CLAIM_SECONDS", 30.0)


@pytest.mark.parametrize("claim", SLIPS)
def test_the_slip_is_named_and_the_repaired_formula_holds(claim: str) -> None:
    answer = check(NETWORK + f"claim {claim}").claims[-1]
    assert not answer.holds
    assert answer.hint, answer
    assert re.search(SLIPS[claim], answer.hint), answer.hint
    repaired = answer.hint.partition("the repaired formula is ")[2]
    left = claim.split(" == ")[0]
    assert check(NETWORK + f"claim {left} == {repaired}").ok, repaired


def test_no_hint_is_better_than_a_wrong_one() -> None:
    answer = check("given x: n\ngiven y: n\nclaim sin(x @ y) * norm(x - y) == exp(max(x)) + sum(cos(y))**3").claims[-1]
    assert answer.verdict == "refuted"
    assert answer.hint is None


def test_a_factor_that_is_a_size_is_not_taken_for_a_number() -> None:
    for seed in range(5):
        answer = check("given x: n\nclaim sum(x) == mean(x)", seed=seed).claims[-1]
        assert "3" not in (answer.hint or "")
        assert re.search(r"sum in place of mean|factor n|1/n", answer.hint or "")


def test_a_slip_in_a_helper_of_ones_own_is_found() -> None:
    text = NETWORK + "let delta = Y - P\nclaim dJ/dV == A.T @ delta / N"
    assert "sign" in (check(text).claims[-1].hint or "")


def test_a_size_that_occurs_only_inside_a_wrong_expectation_is_no_obstacle() -> None:
    sheet = "given t: positive\ngiven b: m\ngiven u: uniform{1, 2, 3}\nclaim E[where(m, u, 0.5) * t] == 0.5"
    (claim,) = check(sheet).claims
    assert claim.verdict == "refuted"


REGRESSION = "given X: N, D\ngiven w: D\ngiven y: N\n"
GATED = """given X: N, D
given W, V: D, H
given G: N, H
let s = sigmoid(X @ V)
let J = sum(G * (X @ W) * s)"""
SIMPLE = [  # the setting, the wrong claim, and the formula that the simplest edit gives
    ("given x: n\nlet J = sum(x)", "J == sum(x) / n", "sum(x)"),
    ("given x: n", "mean(x) == -sum(x) / n", "sum(x) / n"),
    (
        "given X: N, D\ngiven y: N\ngiven w: D\nlet J = y @ X @ w",
        "dJ/dX == outer(w, y)",
        "outer(y, w)",
    ),
    (
        f"{REGRESSION}let m = y * (X @ w)\nlet J = sum(log(1 + exp(-m)))",
        "dJ/dw == -X.T @ (y * sigmoid(m))",
        "-X.T @ (y * sigmoid(-m))",
    ),
    (f"{REGRESSION}let J = y @ (X @ w)**2 / 2", "dJ/dw == X.T @ (X @ w)", "X.T @ ((X @ w) * y)"),
    (
        "given x, v: N, D\nlet xh = (x - mean(x, axis=1, keepdims=True)) / std(x, axis=1, keepdims=True)",
        "v - xh == v - (x - mean(x, axis=0)) / std(x, axis=0)",
        "v - (x - mean(x, axis=1, keepdims=True)) / std(x, axis=1, keepdims=True)",
    ),
    ("given s: positive\ngiven W: H, D normal(0, s)\ngiven x: D", "Var[W @ x] == s**3 * sum(x**2)", "s**2 * sum(x**2)"),
    (GATED, "dJ/dV == X.T @ (G * s * (1 - s))", "X.T @ (G * s * (1 - s) * (X @ W))"),
]


@pytest.mark.parametrize(("setting", "claim", "repaired"), SIMPLE)
def test_the_simplest_repair_is_the_one_named(setting: str, claim: str, repaired: str) -> None:
    hint = check(f"{setting}\nclaim {claim}").claims[0].hint
    assert hint is not None
    assert hint.endswith(f"the repaired formula is {repaired}"), hint


def test_a_repair_must_hold_for_more_than_one_value_of_every_size() -> None:
    text = "given x: D normal(0, 1)\ngiven W: H, D normal(0, 1)\nclaim E[sum((W @ x / sqrt(D))**2)] == D"
    hint = check(text).claims[0].hint
    assert hint is None or hint.endswith("the repaired formula is H"), hint


def test_long_formulas_in_a_hint_are_cut_where_they_still_differ() -> None:
    rotation = "[[cos((m - n) * w), -sin((m - n) * w)], [sin((m - n) * w), cos((m - n) * w)]]"
    text = f"given q, k: 2\ngiven m, n, w\nlet R = {rotation}\nclaim q @ R @ k == q @ {rotation}.T @ k"
    hint = check(text).claims[0].hint
    assert hint is not None
    after, _, before = hint.split(";")[0].split(": ", 1)[-1].partition(", not ")
    assert after != before


def test_a_wrong_slice_that_fits_only_small_sizes_is_no_obstacle() -> None:
    claim = check("given W: n, m\nclaim -([W, W]) == eye(3)[0:n, 1:2]").claims[0]
    assert claim.verdict == "refuted", claim.reason


NO_REPAIR = {  # the only repairs at hand would be the other side itself, or about something else
    "the other side itself": "given C: n, n\ngiven D: m, m\nclaim kron(C, D) == kron(D, C)",
    "the other side by default": "given z: n, m\nclaim softmax(z) == softmax(z, axis=0)",
    "the other side in two slips": "given x: n\nclaim logsumexp(2 * x) == 2 * logsumexp(x)",
    "the same of steps": "given x\nclaim floor(2*x) == 2*floor(x)",
    "the other side in powers": "given x\nclaim cos(x)**2 == cos(x)",
    "a power for an exponential": "given x\nclaim exp(x) == (1 + x/64)**64",
    "a mean that does not exist": "given x: normal(0, 1)\nclaim E[exp(x**2 / 2)] == sqrt(3)",
    "the other side with a term less": "given V, lam: positive\nclaim lam / V == lam / (V + 1)",
    "the other side with indices": "given x: n\nclaim x[i]**2 == x[i]**3",
    "another number": "given u: exponential(1)\nclaim E[u**3] == 0",
    "a domain": "given x\nclaim log(x**2) == 2 * log(x)",
    "a number from a number": "given g: normal(0, 1)\nclaim E[g**2] == sqrt(2) / 2",
}


@pytest.mark.parametrize("case", NO_REPAIR)
def test_the_other_side_or_another_matter_is_no_hint(case: str) -> None:
    answer = check(NO_REPAIR[case]).claims[-1]
    assert answer.verdict == "refuted"
    assert answer.hint is None


def test_derivatives_are_spoken_of_only_where_something_is_differentiated() -> None:
    setting = "given p: N fraction\nlet PP = prod(1 / p)**(1 / N)\nlet H2 = -mean(log2(p))\n"
    assert "derivative" not in (check(f"{setting}claim PP == exp(H2)").claims[-1].hint or "")
    setting = "given z, r: K\nlet p = softmax(z)\ngiven a: K onehot(p)\n"
    assert "derivative" not in (check(f"{setting}claim Var[a @ r] == sum(p * r**2)").claims[-1].hint or "")
    assert "derivative of tanh" in (check("given x\nclaim d(tanh(x))/dx == 1 - x**2").claims[-1].hint or "")


SHORTEST = [  # the setting, the wrong claim, and the repair in as few signs as it takes
    ("given V, lam: positive\nlet P = lam / V", "P == lam / (V + 1)", "lam / V"),
    ("given b: fraction\ngiven x: T", "sum(s=1..T, (1 - b) * b**(T - s)) == 1 - b**(T + 1)", "1 - b**T"),
    ("given m, s: positive\ngiven x: normal(m, s)", "E[x**2] == m**2 + s**2 / 2", "m**2 + s**2"),
    (
        "given m, s: positive\ngiven x: normal(m, s)",
        "E[x**4] == m**4 + 6 * m**2 * s**2 + s**4",
        "m**4 + 6 * m**2 * s**2 + 3 * s**4",
    ),
    ("given n: positive integer", "sum(i=1..n, i**3) == n**2 * (n + 1)**2 / 8", "n**2 * (n + 1)**2 / 4"),
    (
        "given z: n\nlet p = softmax(z)",
        "jacobian(log(p), z) == eye(n) - outer(p, ones(n))",
        "eye(n) - outer(ones(n), p)",
    ),
    ("given x: n", "cumsum(x)[i] == sum(j=1..i-1, x[j])", "sum(j=1..i, x[j])"),
    ("given x: n\nlet y = x**2 + x", "y[i] == x[i]**2", "x[i]**2 + x[i]"),
    ("given M: n, n\ngiven x: n", "d(x @ M @ x)/dx[i] == 2 * sum(j, M[i, j] * x[j])", "sum(j, (M + M.T)[i, j] * x[j])"),
]


@pytest.mark.parametrize(("setting", "claim", "repaired"), SHORTEST)
def test_a_repair_is_written_in_its_shortest_form_with_its_indices(setting: str, claim: str, repaired: str) -> None:
    hint = check(f"{setting}\nclaim {claim}").claims[-1].hint
    assert hint is not None
    assert hint.endswith(f"the repaired formula is {repaired}"), hint


def test_a_repair_of_the_left_side_says_so() -> None:
    hint = check("given A: n, n positive\nlet P = softmax(A)\nclaim sum(P, axis=0) == ones(n)").claims[-1].hint
    assert hint is not None
    assert "the repaired left side is" in hint


def test_the_transpose_of_a_vector_is_not_offered() -> None:
    text = "given h, v: n\ngiven W: n, n\nlet L = v @ W @ h\nclaim dL/dW == outer(h, v)\nclaim dL/dv == h @ W"
    for answer in check(text).claims:
        assert answer.hint
        assert "h.T" not in answer.hint
        assert "v.T" not in answer.hint


BETWEEN_LINES = {
    "given X: N, D\ngiven w: D\ngiven y: N\nderive X.T @ (X @ w)\n = X.T @ X @ w\n = X @ X.T @ w": "order",
    "given A: n, n\ngiven x: n\nderive d(x @ A @ x)/dx\n = (A + A.T) @ x\n = 2 * A @ x": "need not be symmetric",
    "given x: n\ngiven m, y\nderive sigmoid(m) * x - y * x\n = (sigmoid(m) - y) * x\n = sigmoid(m) - y * x": "brackets",
    "given p: K simplex\ngiven v: K\nderive p @ v**2 - (p @ v)**2\n = p @ v**2 - p**2 @ v**2": "product of squares",
}


@pytest.mark.parametrize("text", BETWEEN_LINES)
def test_a_slip_between_two_lines_is_named(text: str) -> None:
    answer = check(text).claims[-1]
    assert not answer.holds
    assert answer.hint is not None
    assert BETWEEN_LINES[text] in answer.hint


def test_numbers_inside_matrix_products_are_put_together() -> None:
    answer = check(
        "given X: N, D\ngiven r: N\nclaim d(sum((X @ x - r)**2)/2)/dx = 2 * X.T @ (X @ x - r) where x: D"
    ).claims[0]
    assert (answer.hint or "").endswith("is X.T @ (X @ x - r)")

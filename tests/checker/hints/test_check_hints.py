"""Hints: the slip that was made is the one that is named, and nothing is named that does not repair the claim."""

from __future__ import annotations

import re

import pytest

from lmlab.checker import check, limits
from lmlab.checker.hints import sentence

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
    monkeypatch.setattr(limits, "CLAIM_CPU_S", 30.0)
    monkeypatch.setattr(limits, "CLAIM_WALL_S", 60.0)


@pytest.mark.parametrize("claim", SLIPS)
def test_the_slip_is_named(claim: str) -> None:
    answer = check(NETWORK + f"claim {claim}").claims[-1]
    assert not answer.holds
    assert answer.hint, answer
    assert re.search(SLIPS[claim], answer.hint), answer.hint


@pytest.mark.parametrize("claim", SLIPS)
def test_the_repaired_formula_holds(claim: str) -> None:
    answer = check(NETWORK + f"claim {claim}").claims[-1]
    repaired = (answer.hint or "").partition("the repaired formula is ")[2]
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

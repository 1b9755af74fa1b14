"""Other spellings: what NumPy users, column writers and other keyboards write is understood, and means the same."""

from __future__ import annotations

import pytest

from lmlab_derive import check

SETTING = """
given x: n
given y: m
given X: n, m
given K: B, T, d
given A: n, n
given s
given k: integer
given q: positive
"""

HOLD = [
    "claim X.sum(axis=0).mean() == sum(X) / m",
    "claim (X.T @ X).trace() == (X**2).sum()",
    "claim np.sum(X, 0) == ones(n) @ X",
    "claim np.linalg.norm(x)**2 == x.dot(x)",
    "claim x[:, None] * y[None, :] == outer(x, y)",
    "claim x[:, None] - x[None, :] == outer(x, ones(n)) - outer(ones(n), x)",
    "claim K.mT == swapaxes(K, 1, 2)",
    "claim sum(K @ K.swapaxes(-1, -2)) == sum(sum(K, axis=1)**2)",
    "claim tril(A) + triu(A) == A + diag(diag(A))",
    "claim floor(s + k) == floor(s) + k",
    "claim abs(s - round(s)) <= 1/2",
    "claim ceil(s) == -floor(-s)",
    "claim clip(x, -1, 1) == maximum(-1, minimum(x, 1))",
    "claim log2(q) == ln(q) / log(2)",
    "claim sum(arange(n)) == n * (n - 1) / 2",
    "claim stack([x, x]) == [x, x]",
    "claim d(gelu(s))/ds == (1 + erf(s/sqrt(2)))/2 + s * exp(-s**2/2)/sqrt(2*π)",
    "claim E(z**2) - E(z)**2 == Var(z) where z: normal(s, 2)",
    "claim s**2 <= s where 0 <= s <= 1",
    "claim s * q > 0 where s > 0 and q > 1",
    "claim x² ≥ 0",
    "claim Xᵀ ⊙ Xᵀ == (X**2).T",
    "claim ∂J/∂x == 2*x where J = sum(x**2)",
    "derive s + s =\n  2 * s\n  = s *\n    2",
]


@pytest.mark.parametrize("claim", HOLD)
def test_a_spelling_is_understood_and_holds(claim: str) -> None:
    report = check(SETTING + claim)
    assert report.ok, [(c.verdict, c.reason, str(c.counterexample)) for c in report.claims]


FAIL = [
    "claim X.sum(axis=0) == X.mean(axis=0)",
    "claim x[:, None] - x[None, :] == x[None, :] - x[:, None]",
    "claim K @ K.mT == (K @ K.mT) * 2",
    "claim tril(A) == A",
    "claim floor(2 * s) == 2 * floor(s)",
    "claim round(s) == floor(s)",
    "claim log2(q) == log(q)",
    "claim clip(s, -30, 30) == s",
    "claim relu(s - 9) == 0",
    "claim relu(s + 1000) == s + 1000",
]


@pytest.mark.parametrize("claim", FAIL)
@pytest.mark.parametrize("seed", range(3))
def test_a_wrong_claim_in_another_spelling_is_refuted(claim: str, seed: int) -> None:
    (found,) = check(SETTING + claim, seed=seed).claims
    assert found.verdict == "refuted"
    assert found.counterexample is not None


@pytest.mark.parametrize(
    "text",
    [
        "\ufeffgiven x: n\r\nclaim x + x == 2*x\r\n",
        "given\tx:\tn\n\n# a remark\n\tclaim\tx + x == 2*x  # and one more",
        "given x: [n]\nclaim x\u00a0+ x == 2*x",
    ],
    ids=["windows", "tabs", "spaces"],
)
def test_other_keyboards_and_systems_change_nothing(text: str) -> None:
    assert check(text).ok


def test_a_name_defined_by_its_older_self_means_the_older_one() -> None:
    assert check("given x: n\nlet y = x\nlet y = y + 1\nlet y = 2 * y\nclaim y == 2*x + 2").ok
    assert check("given x: n\nlet x = x / norm(x)\nclaim norm(x) == 1").ok


def test_a_distribution_may_use_the_sizes_of_its_own_given() -> None:
    assert check("given W: n, m normal(0, 1/sqrt(n))\ngiven x: n normal(0, 1)\nclaim Var[x @ W] == 1").ok


EXPLAINED = {
    "given W: n normal(0, s)\ngiven s: positive": "s is defined on line 2 only; move that line above this one",
    "given W: n|m\nclaim W == 2*W": "W is not defined, because line 1 is not understood",
    "given x\nJ = x**2": "did you mean let J = ...?",
    "given x\nx + x == 2*x": "did you mean claim x...?",
    "Given x": "write given",
    "given x: postive": "did you mean 'positive'?",
    "given x\nclaim x == x and x == x": "write one claim a line",
    "given x: n\nclaim x.foo() == 1": "there is no function foo",
    "given K: n, m simplex\ngiven p: n\nclaim p @ H(K) == 0": "-sum(K * log(K), axis=1) is one for each",
    "given K: n, m\ngiven p: n\nclaim sum(K) @ p == 0": "sum(K, axis=1) is one for each",
    "given x: n\nclaim x @ sum(x) == 0": "write * with a scalar",
    "given x: n\nclaim swapaxes(x, 0, 1) == x": "1 is not an axis of shape (n)",
}


@pytest.mark.parametrize("text", EXPLAINED, ids=lambda text: text[:30].replace("\n", "; "))
def test_a_slip_of_the_pen_is_answered_with_what_would_be_right(text: str) -> None:
    reasons = [claim.reason for claim in check(text).claims]
    assert any(EXPLAINED[text] in reason for reason in reasons), reasons


def test_an_inequality_over_orthogonal_matrices_is_checked() -> None:
    assert check("given Q: n, k orthogonal\ngiven x: n\nclaim norm(Q @ Q.T @ x) <= norm(x)").ok


BATCH_NORM = """
given X: N, D
given G: N, D
let v = var(X, axis=0)
let Z = (X - mean(X, axis=0)) / sqrt(v)
let J = sum(G * Z)
claim dJ/dX == (N * G - sum(G, axis=0) - Z * sum(G * Z, axis=0)) / sqrt(v)
"""


@pytest.mark.parametrize("seed", range(4))
def test_a_counterexample_is_never_rounding_alone(seed: int) -> None:
    """With two rows both sides are zero, so a difference there is what doubles leave over."""
    (claim,) = check(BATCH_NORM, seed=seed).claims
    assert claim.counterexample is not None
    left, right = claim.counterexample.left, claim.counterexample.right
    for i in claim.counterexample.where:
        left, right = left[i], right[i]
    assert abs(left - right) > 1e-6
    assert claim.hint is not None
    assert "1/N" in claim.hint


def test_sides_that_look_alike_are_shown_with_all_their_digits() -> None:
    (claim,) = check("given x\nclaim x == (1 + 1e-12) * x").claims
    left, right = str(claim.counterexample).split(": ")[1].split(", ")
    assert left.removeprefix("left ") != right.removeprefix("right ")

"""Verdicts on claims that try to fool the checker."""

from __future__ import annotations

import itertools
import json

import pytest

from lmlab_derive import check, limits
from lmlab_derive.limits import Deadline, OutOfTime
from lmlab_derive.sheets import verdict
from lmlab_derive.sheets.relation import Relation
from lmlab_derive.sheets.report import ClaimReport


def one(text: str, seed: int = 0) -> ClaimReport:
    """The answer to the last claim of a text."""
    return check(text, seed=seed).claims[-1]


HOLDING = {
    "a sum that vanishes only up to rounding": "given z: n\nlet J = logsumexp(z)\nclaim sum(dJ/dz) - 1 == 0",
    "a difference of large numbers": "given x: positive\nclaim (1000000 + x)**2 - 1000000**2 == 2000000*x + x**2",
    "an ill-conditioned inverse": "given x: n\nlet A = outer(x, x) + 1e-7 * eye(n)\nclaim A @ inv(A) == eye(n)",
    "a determinant and an inverse": "given X: n, n\nlet f = det(X)\nclaim df/dX == f * inv(X).T",
    "a kink that is met nowhere": "given x: n\nlet J = sum(relu(x))\nclaim dJ/dx == (x > 0)",
    "a maximum": "given x: n\nlet J = max(x)\nclaim dJ/dx == (x == max(x))",
    "a comparison of whole numbers": "given y: n onehot\nclaim (y > 0) == y",
    "one symmetric matrix": "given A: n, n symmetric\ngiven x: n\nlet f = x @ A @ x\nclaim df/dx == 2 * A @ x",
    "unit rows": "given U: m, n unit\nclaim sum(U**2, axis=1) == ones(m)",
    "simplex rows": "given P: m, n simplex\nclaim P @ ones(n) == ones(m)",
    "orthogonal columns": "given Q: n, k orthogonal\nclaim Q.T @ Q == eye(k)",
    "an integer": "given k: integer\nclaim sin(pi * k)**2 == 0",
    "a condition": "given x\nclaim abs(x) == x where x > 0",
    "a second derivative of two names": "given a\ngiven b\nlet f = a**2 * b\nclaim d2f/dadb == 2 * a",
    "the derivative of a bracket": "given x: n\nclaim d(sum(x**3))/dx == 3 * x**2",
    "a derivative of a derivative": "given x: n\nlet f = sum(x**3)\nlet g = df/dx\nclaim jacobian(g, x) == diag(6 * x)",
    "a name defined anew": "given x: n\nlet s = sum(x)\ngiven x: n, m\nclaim sum(x) - s == sum(sum(x, axis=0)) - s",
    "a row times a column is a number": "given x: 1, n\ngiven y: n, 1\nlet J = x @ y\nclaim dJ/dx == y.T",
    "sizes as numbers": "given X: n, m\nclaim mean(X) == sum(X) / (n * m)",
    "a name held fixed": "given a: normal(0, 1)\ngiven b: normal(0, 1)\nclaim E[(a + b)**2 | b] == 1 + b**2",
    "a strict inequality": "given x\nclaim sigmoid(x) < 1",
    "a bound that is attained": "given x\nclaim sigmoid(x) * (1 - sigmoid(x)) <= 1/4",
    "a bound where both sides have values": "given y\nclaim log(1 + y) <= y",
    "a bound where all entries have values": "given v: n\nclaim log(v) <= v - 1",
    "a root that bounds": "given y\nclaim sqrt(1 - y**2) <= 1",
    "a chain": "given x: positive\nclaim 0 <= x / (1 + x) <= 1",
}


@pytest.mark.parametrize("name", HOLDING)
@pytest.mark.parametrize("seed", [0, 1])
def test_true_claims_hold(name: str, seed: int) -> None:
    claim = one(HOLDING[name], seed)
    assert claim.holds, claim


FAILING = {
    "a difference below double precision": "given x: n\nclaim x * (1 + 1e-20) == x",
    "right only for one size": "given x: n\nclaim sum(x) == mean(x) * (n**2 - 7*n + 12 + n)",
    "right only where a factor is one": "given x: n\nclaim n * x == x",
    "right only for symmetric matrices": "given A: n, n\ngiven x: n\nlet f = x @ A @ x\nclaim df/dx == 2 * A @ x",
    "right only for size one": "given x: n\nclaim norm(x) == sum(abs(x))",
    "right only for positive numbers": "given x\nclaim sqrt(x**2) == x",
    "a bound that fails where it has values": "given y\nclaim log(1 + y) <= y/2",
    "undefined on one side": "given x\nclaim log(x**2) == 2 * log(x)",
    "far from zero only": "given x\nclaim minimum(x, 4) == x",
    "a tight bound": "given x\nclaim sigmoid(x) * (1 - sigmoid(x)) <= 0.2499",
    "a bound broken far out": "given x\nclaim exp(x) <= 1 + x + x**2 + x**4",
    "a strict bound that is attained": "given x\nclaim exp(x) > 1 + x",
    "a wrong constant in an expectation": "given x: normal(0, 1)\nclaim E[x**4] == 3.0001",
    "a mean that needs quadrature": "given x: normal(0, 1)\nclaim E[exp(x)] == 1.6487",
    "a chain whose last link breaks": "given x: fraction\nclaim 0 <= x <= 1 <= x + 1/2",
}


@pytest.mark.parametrize("name", FAILING)
@pytest.mark.parametrize("seed", [0, 1])
def test_false_claims_are_refuted_with_a_counterexample(name: str, seed: int) -> None:
    claim = one(FAILING[name], seed)
    assert claim.verdict == "refuted", claim
    assert claim.counterexample is not None


def test_a_counterexample_is_small_and_can_be_worked_by_hand() -> None:
    example = one("given X: N, D\ngiven w: D\nlet J = sum((X @ w)**2)\nclaim dJ/dw == X.T @ (X @ w)").counterexample
    assert example is not None
    assert all(size <= 2 for size in example.sizes.values())
    X, w = example.values["X"], example.values["w"]
    rows = [sum(a * b for a, b in zip(row, w, strict=True)) for row in X]
    right = [sum(X[i][j] * rows[i] for i in range(len(X))) for j in range(len(w))]
    assert example.right == right
    assert example.left == [2 * value for value in right]


SHAPE_ERRORS = {
    "given h: 1, Dh\ngiven W2: Dh, Dy\ngiven e: 1, Dy\nclaim e @ W2 == h": (
        "(1, Dy) @ (Dh, Dy): inner sizes differ (Dy and Dh); did you mean W2.T?"
    ),
    "given a: n\ngiven b: m\nclaim a + b == a": "(n) + (m): sizes differ (n and m)",
    "given A: n, m\nclaim trace(A) == 0": "trace needs a square matrix, and A is (n, m)",
    "given A: n, m\ngiven B: m, n\nclaim A == B": "the left side is (n, m), the right side is (m, n)",
    "given A: n, m\ngiven B: n, m\nclaim concat(A, ones(n, 2)) == B": "did you mean axis=1?",
    "given A: n, m\nclaim sum(A, axis=2) == 0": "axis 2 is out of range for shape (n, m)",
    "given a: n\nlet z = a @ ones(m)\nclaim z == 0": "line 2, z: (n) @ (m): inner sizes differ (n and m)",
}


@pytest.mark.parametrize("text", SHAPE_ERRORS)
def test_a_shape_error_is_explained_in_symbols(text: str) -> None:
    claim = one(text)
    assert claim.verdict == "invalid"
    assert SHAPE_ERRORS[text] in claim.reason


def test_size_one_given_in_symbols_does_not_broadcast_away_a_mistake() -> None:
    claim = one("given X: N, D\ngiven b: 1, D\nlet J = sum((X + b)**2)\nclaim dJ/db == 2 * (X + b)")
    assert claim.verdict == "refuted"
    assert "sum over the rows" in (claim.hint or "")


def test_the_first_wrong_step_of_a_derivation_is_named() -> None:
    text = "given x: n\nderive sum(x**2)\n  = x @ x\n  = norm(x)\n  = norm(x)**2"
    claim = one(text)
    assert (claim.verdict, claim.first_wrong_step, claim.wrong_line) == ("refuted", 2, 4)
    assert "step 2 (line 4)" in claim.reason


def test_an_invalid_step_is_named_as_well() -> None:
    claim = one("given x: n\ngiven A: m, n\nderive sum(A @ x)\n  = ones(m) @ A @ x\n  = ones(n) @ A @ x")
    assert (claim.verdict, claim.first_wrong_step) == ("invalid", 2)


def test_the_json_has_the_promised_form() -> None:
    report = check("given x\nclaim x == x\nclaim x == 2*x\nclaim y == x")
    document = json.loads(report.to_json())
    assert set(document) == {"claims", "ok"}
    assert document["ok"] is False
    keys = {"line", "claim", "verdict", "reason", "counterexample", "hint", "first_wrong_step"}
    assert all(set(claim) == keys for claim in document["claims"])
    assert [claim["line"] for claim in document["claims"]] == [2, 3, 4]
    assert [claim["verdict"] for claim in document["claims"]][1:] == ["refuted", "invalid"]


def test_the_same_seed_gives_the_same_answer() -> None:
    text = "given A: n, m\nclaim sum(A) == mean(A)"
    assert check(text, seed=3).to_json() == check(text, seed=3).to_json()


def test_a_text_without_claims_is_not_ok() -> None:
    assert not check("given x: n").ok


def test_a_derivative_by_a_name_that_is_not_used_is_pointed_out() -> None:
    claim = one("given x: n\nlet h = tanh(x)\nlet z = 2 * x\nlet J = sum(h)\nclaim dJ/dz == (1 - h**2) / 2")
    assert claim.verdict == "refuted"
    assert "J does not use z, so dJ/dz is 0" in claim.reason
    assert claim.hint is None


def test_broadcasting_between_the_sides_is_pointed_out() -> None:
    claim = one("given X: N, D\ngiven b: 1, D\nlet J = sum(X + b)\nclaim dJ/db == N * ones(D)")
    assert claim.holds
    assert "shapes (1, D) and (D) are compared after broadcasting" in claim.reason


def test_a_size_may_look_like_a_differential() -> None:
    assert one("given x: 1, dx\nlet J = sum(x**2)\nclaim dJ/dx == 2 * x").holds
    assert one("given d: positive\nlet q = d**2\nclaim dq/dd == 2 * d").holds


def test_a_counterexample_names_the_indices_of_its_entry() -> None:
    claim = one("given x: n\nclaim x[i] * x[j] == (i == j) * x[i]**2 where x: 3 positive")
    assert claim.counterexample is not None
    i, j = claim.counterexample.where
    assert claim.counterexample.to_dict()["indices"] == {"i": i + 1, "j": j + 1}
    assert str(claim.counterexample).endswith(f" at i = {i + 1}, j = {j + 1}")
    plain = one("given x: n\nclaim x == 2 * x")
    assert "at entry [" in str(plain.counterexample)


def test_sides_that_are_zero_are_not_said_to_differ_by_their_own_size() -> None:
    text = "given x: n\nlet u = (x - mean(x)) / std(x)\n"
    for claim in ("sum(u) == 0", "mean(x - mean(x)) == 0"):
        answer = one(f"{text}claim {claim}")
        assert answer.holds
        assert "difference 1.0e+00" not in answer.reason


def test_a_random_row_whose_size_is_nowhere_is_told_to_name_it() -> None:
    claim = one("given al: positive\ngiven p: dirichlet(al)\nclaim sum(p) == 1")
    assert claim.verdict == "invalid"
    assert "`given a: n dirichlet(alpha)`" in claim.reason


def test_a_claim_that_takes_too_long_is_undecided(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "CLAIM_SECONDS", 0.0)
    answer = one("given x\nclaim exp(x) >= 1 + x")
    assert answer.verdict == "undecided"
    assert "too long" in answer.reason


def test_what_holds_as_far_as_there_was_time_says_that_there_was_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    sheet, said = "given x\nclaim exp(x) >= 1 + x", "its time ran out before everything was tried"

    def out_of_time(relation: Relation) -> None:
        assert relation.tally.points > 0
        raise OutOfTime

    whole = one(sheet)
    monkeypatch.setattr(verdict, "search_extremes", out_of_time)
    cut = one(sheet)
    assert cut.verdict == whole.verdict == "supported"
    assert said in cut.reason
    assert said not in whole.reason


def test_a_busy_machine_does_not_run_a_claim_out_of_time(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = itertools.count(0.0, 1000.0)
    monkeypatch.setattr("time.monotonic", lambda: next(clock))
    deadline = Deadline(60.0)
    for _ in range(3):
        deadline.check()
        deadline.within(30.0).check()


def test_a_slow_step_leaves_the_next_one_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "CLAIM_SECONDS", 1.0)
    steps = "given x: T\nlet m[0] = 0\nlet m[t] = m[t-1] + (x[t] - m[t-1])/t\n"
    answer = one(steps + "claim min(x) <= m[t] <= max(x)")
    assert answer.holds, answer.reason


@pytest.mark.parametrize(
    ("claim", "said"),
    [("x/norm(x) * norm(x) == x", True), ("y**(-1/2) * y == sqrt(y)", True), ("x*y/y == x", False)],
)
def test_a_proof_says_what_it_leaves_out_at_the_zeros_of_roots(claim: str, said: bool) -> None:
    answer = check(f"claim {claim} where x: n, y: positive").claims[0]
    assert answer.verdict == "proved"
    assert ("wherever no root that is divided by is 0" in answer.reason) is said


@pytest.mark.parametrize(
    ("claim", "said"),
    [
        ("norm(v/norm(v)) == 1", "wherever no root that is divided by is 0"),
        ("norm((u - v)/norm(u - v)) == 1", "wherever no root that is divided by is 0"),
        ("x/x + sqrt(x**2) == 1 + abs(x)", "wherever no root in it is 0"),
        ("sqrt((y/sqrt(y**2))**2) == 1", ""),
    ],
)
def test_evidence_says_what_it_leaves_out_at_the_zeros_of_roots(claim: str, said: str) -> None:
    answer = check(f"given u, v: n\ngiven x\ngiven y: nonzero\nclaim {claim}").claims[0]
    assert answer.verdict == "supported"
    assert answer.reason.endswith(said) if said else "wherever" not in answer.reason


@pytest.mark.parametrize(
    ("claim", "said"),
    [
        ("det(A/det(A)) == det(A)**(1 - n)", True),
        ("det(A/trace(A)) == det(A)/trace(A)**n", False),  # without a value on both sides
        ("det(A/(1 + det(A)**2)) == det(A)/(1 + det(A)**2)**n", False),
        ("inv(A/det(A)) == det(A)*inv(A)", False),  # of matrices that have one
        ("prod(v/sum(v)) == prod(v)*sum(v)**(-n)", False),
        ("(1/prod(v))**(n - 1) == prod(v)**(1 - n)", True),
    ],
)
def test_evidence_says_what_it_leaves_out_where_one_side_has_no_value_at_sizes_of_one(claim: str, said: bool) -> None:
    answer = check(f"given A: n, n\ngiven v: n\nclaim {claim}").claims[0]
    assert answer.verdict == "supported", answer
    assert answer.reason.endswith("all this wherever nothing that is divided by is 0") is said


@pytest.mark.parametrize("claim", ["det(A/det(A)) == det(A)**(2 - n)", "det(A)**(1 - n)*det(A)**(n - 1) == 1"])
def test_what_fails_at_other_sizes_is_still_refuted(claim: str) -> None:
    assert check(f"given A: n, n\nclaim {claim}").claims[0].verdict == "refuted"


@pytest.mark.parametrize("seed", [5, 18])
def test_a_probability_far_out_is_known_no_better_than_what_it_is_the_mean_of(seed: int) -> None:
    """At a mean of 9 it is 7e-11, and what a quadrature leaves of numbers up to 1 is no counterexample."""
    text = (
        "given m, k: real\ngiven s, r: positive\ngiven x: normal(m, s)\ngiven y: normal(k, r)\n"
        "claim P[x > y] = (1 + erf((m - k) / sqrt(2 * (s**2 + r**2)))) / 2"
    )
    assert one(text, seed).verdict == "supported"


def test_an_inverse_excuses_singular_matrices_and_nothing_else() -> None:
    given = "given X: n, n\ngiven c\n"
    assert one(given + "claim c * inv(X) @ X = c * eye(n)").verdict in ("proved", "supported")
    assert one(given + "claim c / c * inv(X) @ X = eye(n)").verdict == "refuted"

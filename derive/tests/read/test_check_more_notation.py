"""Factorials, binomials, random places, equalities in conditions, names with an underscore, and lines that are no formulas."""

from __future__ import annotations

import pytest

from lmlab_derive import check

GIVENS = "given x: n\ngiven k: positive integer\ngiven p: 3 simplex\ngiven m: 3\ngiven M: 3, n\ngiven H_: n, n\n"


@pytest.mark.parametrize(
    "claim",
    [
        "sum_{i=1}^n x_i = sum(x)",
        "sum_i x_i = sum(x)",
        "(k + 1)! = (k + 1) * k!",
        "binom(k + 1, 2) = k*(k + 1)/2",
        "\\binom{k+2}{2} = (k + 1)(k + 2)/2",
        "sum(j=0..4, binom(4, j)) = 16",
        "E[m[z]] = p @ m where z: categorical(p)",
        "E[M[z]] = p @ M where z: categorical(p)",
        "E[x[0] * M[z, 0]] = x[0] * (p @ M[:, 0]) where z: categorical(p)",
        "a + 1 = b where a: real, b: real, a = b - 1",
        "d(sum(H_**2))/dH_[i,j] = 2*H_[i,j]",
        "\\sum_{ij} H_[i,j] H_[j,i] = trace(H_ @ H_)",
        "sum(i, j, H_[i,j] * H_[j,i]) = trace(H_ @ H_)",
        "\\sum_{i<j} (x_j - x_i)^2 = n * sum(x**2) - sum(x)**2",
        "\\sum_{j \\neq i} x_j = sum(x) - x_i",
        "triu(H_, 1) = H_ - tril(H_) ",
        "np.tril(H_, k=-1).T = triu(H_.T, 1)",
    ],
)
def test_more_of_what_stands_on_paper_is_read(claim: str) -> None:
    (answer,) = check(f"{GIVENS}claim {claim}").claims
    assert answer.holds, answer.reason


@pytest.mark.parametrize(
    ("definition", "claim"),
    [
        ("let s_i = \\sum_{k=1}^i x_k", "s = cumsum(x)"),
        ("let s_i = \\sum_{k \\le i} x_k", "ds[i]/dx[j] = (j <= i)"),
        ("given w: m\ngiven v: m+n\nlet y[i] = sum(j, w[j]*v[i+j])", "dy[i]/dw[j] = v[i+j]"),
    ],
)
def test_entries_are_defined_by_sums_up_to_an_index_and_beside_it(definition: str, claim: str) -> None:
    (answer,) = check(f"given x: n\n{definition}\nclaim {claim}").claims
    assert answer.holds, answer.reason


def test_infinity_masks_entries_of_a_softmax() -> None:
    mask = "given S: n, n\nlet A = softmax(np.where(np.triu(np.ones((n, n)), k=1) == 1, -np.inf, S), axis=1)\n"
    text = f"{mask}claim A[i,j] = 0 where j > i\nclaim sum(A, axis=1) = ones(n)\nclaim A[i,j] = 0\nclaim 0 * inf = 0"
    assert [answer.holds for answer in check(text).claims] == [True, True, False, False]


def test_indices_of_a_sum_that_are_not_clear_are_asked_about() -> None:
    (answer,) = check("given a: n\nclaim \\sum_{i<j} a_i a_j = a_j").claims
    assert answer.verdict == "invalid"
    assert "two ways" in answer.reason


@pytest.mark.parametrize(
    "claim",
    [
        "(k + 1)! = k * k!",
        "binom(k + 1, 2) = k*(k - 1)/2",
        "E[m[z]] = mean(m) where z: categorical(p)",
        "a = b where a: real, b: real, a = b - 1",
    ],
)
def test_and_means_what_it_says(claim: str) -> None:
    (answer,) = check(f"{GIVENS}claim {claim}").claims
    assert answer.verdict == "refuted", answer.reason


def test_an_equality_that_is_no_definition_is_explained() -> None:
    (answer,) = check(f"{GIVENS}claim x @ x > 0 where sum(x) = 1").claims
    assert "solve this one for a name" in answer.reason
    (answer,) = check(f"{GIVENS}claim a > 0 where a: real, a = a + 1").claims
    assert "defined by itself" in answer.reason


def test_a_covariance_is_not_taken_for_a_cosine() -> None:
    assert "write Cov[a, b]" in check(f"{GIVENS}claim cov(x, x) = 0").claims[0].reason


SQUARE = "given a, b\nderive (a + b)**2\n  = a**2 + 2*a*b + b**2\n  = a**2 + ((\n  = a**2 + b*(2*a {} b)"


def test_a_line_that_is_not_understood_leaves_the_rest_of_a_derivation() -> None:
    (answer,) = check(SQUARE.format("+")).claims
    assert answer.verdict == "invalid"
    assert answer.reason.startswith("line 4 is not understood")
    assert answer.reason.endswith("the other lines hold")
    (answer,) = check(SQUARE.format("-")).claims
    assert (answer.verdict, answer.first_wrong_step, answer.wrong_line) == ("refuted", 3, 5)
    assert "line 4 is not understood" in answer.reason


def test_a_derivative_by_a_formula_is_told_to_name_it() -> None:
    (answer,) = check("given K: n, d\ngiven q: d\nlet J = sum((K @ q)**2)\nclaim dJ/d(K @ q) = 2 * K @ q").claims
    assert "write let s = ..." in answer.reason


def test_an_array_may_be_named_like_a_probability() -> None:
    (answer,) = check("given X: N, K\nlet P = softmax(X)\nclaim sum(k, P[n, k]) = 1").claims
    assert answer.verdict == "proved", answer.reason

"""Subscripts: what x_j is of rows and columns, what is compared for each letter, and which places are asked about."""

from __future__ import annotations

import pytest

from lmlab_derive import check

GIVENS = """
given x: 1, D
given W: D, K
given w: D, 1
given v: n
given A: n, n
given B: 2, 2
let h = tanh(x @ W)
let s = x @ w
let J = sum(h**2)
"""

HOLDING = [
    "sum(j, x_j) = sum(x)",
    r"\sum_{j=1}^{D} x_j^2 = sum(x**2)",
    "dJ/dx_j = 2 * sum(k, h_k * (1 - h_k**2) * W_jk)",
    "d/dx_j J = 2 * sum(k, h_k * (1 - h_k**2) * W_jk)",
    r"\frac{\partial h_k}{\partial x_j} = (1 - h_k^2) W_{jk}",
    "ds/dx_j = w_j",
    "ds/dw_j = x_j",
    "dh/dx_j = (1 - h**2) * W[j]",
    "v[i] * ones(n) = v[i]",
    "A[i] * 0 + v[i] <= v[i]",
    "0 * A_i + v_i = v_i",
]


@pytest.mark.parametrize("claim", HOLDING)
def test_a_subscript_on_a_row_and_a_number_beside_a_row_mean_what_they_do_on_paper(claim: str) -> None:
    answer = check(f"{GIVENS}\nclaim {claim}").claims[-1]
    assert answer.holds, answer


FAILING = ["ds/dx_j = x_j", "dJ/dx_j = 2 * sum(k, h_k * W_jk)", "v[i] * ones(n) = v", "0 * A_i + v_i = v_i**2"]


@pytest.mark.parametrize("claim", FAILING)
def test_and_wrong_ones_are_refuted(claim: str) -> None:
    assert check(f"{GIVENS}\nclaim {claim}").claims[-1].verdict == "refuted"


ASKED = {
    "v_n": "[n - 1]",
    "v_{n-1}": "[n - 2]",
    "B_{1,2}": "[0, 1]",
    r"\frac{\partial J}{\partial W_{1,2}}": "[0, 1]",
    "v_1": "v[0]",
    "v₁": "v[0]",
    "B_12": "B[0, 1]",
    "(A v)_1": "(...)[0]",
}


@pytest.mark.parametrize("typed", ASKED)
def test_a_number_in_a_subscript_is_asked_about(typed: str) -> None:
    answer = check(f"{GIVENS}\nclaim {typed} = 0").claims[-1]
    assert answer.verdict == "invalid"
    assert ASKED[typed] in answer.reason


def test_the_last_state_of_a_recursion_is_called_by_the_number_of_its_steps() -> None:
    steps = "given a: T\nlet h[0] = 0\nlet h[t] = h[t-1] + a[t]\n"
    assert check(steps + "claim h_T = sum(a)").claims[-1].holds


@pytest.mark.parametrize("place", ["n", "n+1", "-n-1"])
def test_a_place_beyond_the_size_is_refused_in_symbols(place: str) -> None:
    answer = check(f"{GIVENS}\nclaim v[{place}] = 0").claims[-1]
    assert answer.verdict == "invalid"
    assert "is out of range for size n" in answer.reason

"""Rows and columns of a Jacobian: every spelling of the derivative by an entry means the same, and it is not the transpose."""

from __future__ import annotations

import pytest

from lmlab_derive import check
from lmlab_derive.read.sheet import ScopedClaim, parse
from lmlab_derive.text import to_text

GIVENS = """
given x: n
given W: m, n
given A: n, n
let y = A @ x**2
let Y = tanh(W @ A)
let J = sum((W @ x)**2)
"""

BY_AN_ENTRY = [
    "dy/dx_j",
    "d/dx_j y",
    "d/dx[j] y",
    "d(y)/dx_j",
    "d(y)/d(x_j)",
    "d(y)/d(x[j])",
    "dy/d(x_j)",
    "∂y/∂x_j",
    "∂ y / ∂ x_j",
    "d y / d x_j",
    r"\frac{\partial y}{\partial x_j}",
    r"\frac{\partial y}{\partial x_{j}}",
    r"\frac{\partial \mathbf{y}}{\partial x_j}",
    r"\frac{\partial}{\partial x_j} y",
    r"\partial y / \partial x_j",
    "grad(y, x_j)",
    "(dy/dx)[:, j]",
    "dy/dx[:, j]",
]


@pytest.mark.parametrize("typed", BY_AN_ENTRY)
def test_the_derivative_by_an_entry_is_a_column(typed: str) -> None:
    right, transposed = check(f"{GIVENS}\nclaim {typed} = 2 * A[:, j] * x[j]\nclaim {typed} = 2 * A[j] * x").claims
    assert right.holds, right
    assert transposed.verdict == "refuted"


BY_ALL = ["(dy/dx)[i]", "dy[i]/dx", "dy_i/dx", "∂y_i/∂x", r"\frac{\partial y_i}{\partial x}", "jacobian(y, x)[i]"]
BY_ALL += [r"\left(\frac{\partial y}{\partial x}\right)_i", "d(y[i])/dx", "grad(y_i, x)"]


@pytest.mark.parametrize("typed", BY_ALL)
def test_the_derivative_of_an_entry_is_a_row(typed: str) -> None:
    right, transposed = check(f"{GIVENS}\nclaim {typed} = 2 * A[i] * x\nclaim {typed} = 2 * A[:, i] * x[i]").claims
    assert right.holds, right
    assert transposed.verdict == "refuted"


BOTH = ["dy_i/dx_j", "dy[i]/dx[j]", "∂y_i/∂x_j", r"\frac{\partial y_i}{\partial x_j}", "d(y_i)/d(x_j)", "dy/dx[i, j]"]
BOTH += ["(dy/dx)[i, j]", "(dy/dx)_ij", "(dy/dx)[i][j]", r"\left(\frac{\partial y}{\partial x}\right)_{ij}"]
BOTH += ["jacobian(y, x)[i, j]", "jacobian(y, x)_{ij}", "jacobian(y, x_j)[i]", "d/dx_j y_i", "grad(y_i, x)[j]"]
BOTH += [r"\frac{\partial y}{\partial x}_{ij}", r"\left[\frac{\partial y}{\partial x}\right]_{ij}"]


@pytest.mark.parametrize("typed", BOTH)
def test_an_entry_of_a_jacobian_has_the_place_above_first(typed: str) -> None:
    right, transposed = check(f"{GIVENS}\nclaim {typed} = 2 A_ij x_j\nclaim {typed} = 2 A_ji x_i").claims
    assert right.holds, right
    assert transposed.verdict == "refuted"


@pytest.mark.parametrize(
    ("typed", "column", "row"),
    [
        ("dy/dx[j]", "dy/dx[:, j]", "(dy/dx)[j]"),
        ("d(y)/dx[0]", "dy/dx[:, 0]", "(dy/dx)[0]"),
        ("dY/dW[i, j]", "dY/dW[:, :, i, j]", "(dY/dW)[i, j]"),
    ],
)
def test_a_place_that_may_be_that_of_a_row_or_of_a_column_is_asked_about(typed: str, column: str, row: str) -> None:
    answer = check(f"{GIVENS}\nclaim {typed} = 0").claims[-1]
    assert answer.verdict == "invalid"
    assert column in answer.reason
    assert row in answer.reason
    for wanted in (column, row):
        assert isinstance(parse(f"{GIVENS}\nclaim {wanted} = 0").entries[-1], ScopedClaim)


@pytest.mark.parametrize("typed", ["dJ/dx_j", "dJ/dx[j]", "dJ/d(x[j])", "grad(J, x)[j]", "grad(J, x_j)", "(dJ/dx)[j]"])
def test_of_one_number_there_is_but_one_reading(typed: str) -> None:
    entry = parse(f"{GIVENS}\nclaim {typed} = 0").entries[-1]
    assert isinstance(entry, ScopedClaim), entry
    assert to_text(entry.claim.steps[0].value) == "dJ/dx[j]"


@pytest.mark.parametrize("typed", ["(dy/dx)[i]", "dy[i]/dx", "d/dx_j y", "dY_k/dW_ij", "dY/dW_ij", "(dY/dW)[k]"])
def test_what_is_shown_of_a_place_is_read_as_the_same(typed: str) -> None:
    entry = parse(f"{GIVENS}\nclaim {typed} = 0").entries[-1]
    assert isinstance(entry, ScopedClaim), entry
    shown = to_text(entry.claim.steps[0].value)
    again = parse(f"{GIVENS}\nclaim {shown} = 0").entries[-1]
    assert isinstance(again, ScopedClaim), again
    assert to_text(again.claim.steps[0].value) == shown


def test_one_number_in_a_matrix_of_one_entry_is_a_number_above() -> None:
    rows = "given x: 1, D\ngiven w: D, 1\nlet s = x @ w\n"
    assert check(rows + "claim d/dw_jk s = x[k, j]").claims[-1].holds

"""Derivatives as they are written on paper, by entries and of whole formulas: how they are read, and what they mean."""

from __future__ import annotations

import pytest

from lmlab_derive import check
from lmlab_derive.read.sheet import ScopedClaim, parse
from lmlab_derive.text import to_text

GIVENS = """
given x, y: m
given W: n, m
given z: n
given a, b, t
given \\theta: m
let p = softmax(z)
let J = sum(W**2)
let K = sum(x**3)
"""


def read(formula: str, givens: str = GIVENS) -> str:
    """A formula as it was understood."""
    entry = parse(f"{givens}\nclaim {formula} = 0").entries[-1]
    assert isinstance(entry, ScopedClaim), entry
    return to_text(entry.claim.steps[0].value)


SAID = {
    r"\frac{\partial J}{\partial W}_{ij}": "dJ/dW[i, j]",
    r"\frac{\partial J}{\partial W}[i, j]": "dJ/dW[i, j]",
    r"\left(\frac{\partial J}{\partial W}\right)_{ij}": "dJ/dW[i, j]",
    r"\left(\frac{\partial J}{\partial W}\right)_{i,j}": "dJ/dW[i, j]",
    r"\left[\frac{\partial J}{\partial W}\right]_{ij}": "dJ/dW[i, j]",
    r"\frac{\partial^2 K}{\partial x^2}_{ij}": "d2K/dx2[i, j]",
    r"\frac{\partial^2 K}{\partial x \partial x}_{ij}": "d2K/dx2[i, j]",
    r"\frac{\partial p}{\partial z_{j}}": "dp/dz[:, j]",
    r"\partial K / \partial x": "dK/dx",
    r"\partial_x K": "dK/dx",
    r"\partial_{x_j} K": "dK/dx[j]",
    "d K / d x": "dK/dx",
    "d²/dt² t³": "d2(t**3)/dt2",
    "∂²/∂t² (t³)": "d2(t**3)/dt2",
    "d^2/dt^2 t^3": "d2(t**3)/dt2",
    "d²K/dt²": "d2K/dt2",
    "∂² K/∂a∂b": "d2K/dadb",
    "∂²K/(∂a ∂b)": "d2K/dadb",
    "∂²/∂a∂b (a b)": "d2(a * b)/dadb",
    "∂²K/∂x_i∂x_j": "d(dK/dx[j])/dx[i]",
    "∂²K/∂x_j²": "d(dK/dx[j])/dx[j]",
    r"\partial^2 K / \partial \theta \partial x": "d2K/dthetadx",
    "d/dt d2/dt2 t^4": "d(d2(t**4)/dt2)/dt",
    r"\frac{\partial}{\partial x_j} ∑_{i} x_i^3": "d(sum(i, x[i]**3))/dx[j]",
    r"\frac{\partial}{\partial x_{j}} \sum_{i=1}^m x_i^3": "d(sum(i=1..m, x[i]**3))/dx[j]",
    r"\frac{d}{dx_j} \left(\sum_i x_i^3\right)": "d(sum(i, x[i]**3))/dx[j]",
    r"\frac{∂}{∂ x_j} \left[\sum_i x_i + 1\right]": "d(sum(i, x[i]) + 1)/dx[j]",
    r"\frac{\partial}{\partial \mathbf{x}_j} \log \sum_i e^{x_i}": "d(log(sum(i, exp(x[i]))))/dx[j]",
    r"\frac{\partial}{\partial \theta_j} \sum_i θ_i^2": "d(sum(i, theta[i]**2))/dtheta[j]",
    r"2 \frac{\partial}{\partial x_j} x_i + x_j": "2 * d(x[i])/dx[j] + x[j]",
    r"\frac{\partial}{\partial W_{ij}} J": "dJ/dW[i, j]",
    r"\frac{\partial}{\partial W_{i,j}} (W x)_k": "d((W @ x)[k])/dW[i, j]",
    r"\frac{\partial}{\partial x_j} (W x)": "d(W @ x)/dx[:, j]",
    "∂/∂x_j Σ_i x_i^3": "d(sum(i, x[i]**3))/dx[j]",
    "d/dx[j] sum(x**3)": "d(sum(x**3))/dx[j]",
    "d/dx[0] sum(x**3)": "d(sum(x**3))/dx[0]",
    "d/dt[t**2]": "d(t**2)/dt",
    "d/dt [t**2, 1]": "d([t**2, 1])/dt",
    r"\frac{\partial (x_i x_j)}{\partial x_k}": "d(x[i] * x[j])/dx[k]",
    r"\frac{d(x_i x_j)}{dx_k}": "d(x[i] * x[j])/dx[k]",
    r"\frac{\partial \left[ x_i x_j \right]}{\partial x_{k}}": "d(x[i] * x[j])/dx[k]",
    r"2\frac{\partial(t^{2} + a)}{\partial t}": "2 * d(t**2 + a)/dt",
    r"\frac{\partial (W x)_i}{\partial W_{jk}}": "d((W @ x)[i])/dW[j, k]",
    r"\frac{\partial \frac{x_i}{1 + x_j}}{\partial x_k}": "d(x[i] / (1 + x[j]))/dx[k]",
    r"\frac{\partial \log p_i}{\partial z_j}": "d(log(p[i]))/dz[j]",
    r"\frac{\partial \mathbf{x}^\top \mathbf{y}}{\partial \mathbf{x}}": "d(x.T @ y)/dx",
    r"\frac{\partial^2 K}{\partial x_i \partial x_j}": "d(dK/dx[j])/dx[i]",
    r"\frac{\partial^2 K}{\partial x_j^2}": "d(dK/dx[j])/dx[j]",
    r"\frac{\partial^2 (a^2 b)}{\partial a \partial b}": "d2(a**2 * b)/dadb",
    r"\frac{d^2}{dt^2} \sin(t)": "d2(sin(t))/dt2",
    r"\frac{\partial}{\partial x_i} \frac{\partial}{\partial x_j} K": "d(dK/dx[j])/dx[i]",
}


@pytest.mark.parametrize("typed", SAID)
def test_a_derivative_is_read_as_it_is_meant(typed: str) -> None:
    assert read(typed) == SAID[typed]


WITH_A_SIZE_D = {
    r"\partial(t^2 + 1) / \partial t": "d(t**2 + 1)/dt",
    r"\partial K / \partial t": "dK/dt",
    "d^2 t": "d**2 * t",
    "d^2(t + 1)/k": "d**2 * (t + 1) / k",
    "d(t**2 + 1)/dt": "d(t**2 + 1)/dt",
    "∂/∂t (t^2 + 1)": "d(t**2 + 1)/dt",
    r"\frac{\partial(t^2 + 1)}{\partial t}": "d(t**2 + 1)/dt",
    r"\frac{\partial}{\partial x_j} \sum_i x_i^2": "d(sum(i, x[i]**2))/dx[j]",
    r"\frac{d}{k} + \frac{d t k}{d k}": "d / k + d * t * k / (d * k)",
    "d/dt + 1": "d / (d * t) + 1",
    "d(t + 1)/k": "d * (t + 1) / k",
}


@pytest.mark.parametrize("typed", WITH_A_SIZE_D)
def test_a_size_called_d_is_no_sign_of_a_derivative_nor_in_its_way(typed: str) -> None:
    assert read(typed, "given x: d\ngiven t, k\nlet K = t**2") == WITH_A_SIZE_D[typed]


HOLDING = [
    r"\frac{\partial}{\partial x_j} ∑_{i} x_i^3 = 3 x_j^2",
    r"\frac{\partial}{\partial x_j} \sum_i x_i = 1",
    r"\frac{\partial}{\partial W_{ij}} (W x)_k = \delta_{ik} x_j",
    r"\frac{\partial}{\partial x_j} x_i (W x) = \delta_{ij} W x + x_i W[:, j]",
    r"\frac{\partial (x_i x_j)}{\partial x_k} = \delta_{ik} x_j + \delta_{jk} x_i",
    r"\frac{\partial^2 K}{\partial x_i \partial x_j} = 6 x_i \delta_{ij}",
    r"\sum_j x_j \frac{\partial}{\partial x_j} \sum_i x_i^3 = 3 \sum_i x_i^3",
]


@pytest.mark.parametrize("claim", HOLDING)
def test_a_right_derivative_holds(claim: str) -> None:
    answer = check(f"{GIVENS}\nclaim {claim}").claims[-1]
    assert answer.holds, answer


FAILING = [
    r"\frac{\partial}{\partial x_j} ∑_{i} x_i^3 = 3 x_j",
    r"\frac{\partial}{\partial W_{ij}} (W x)_k = \delta_{jk} x_i",
    r"\frac{\partial (x_i x_j)}{\partial x_k} = \delta_{ik} x_j",
    r"\frac{\partial^2 K}{\partial x_i \partial x_j} = 6 x_i",
]


@pytest.mark.parametrize("claim", FAILING)
def test_a_wrong_derivative_is_refuted(claim: str) -> None:
    assert check(f"{GIVENS}\nclaim {claim}").claims[-1].verdict == "refuted"


@pytest.mark.parametrize(
    "typed",
    [r"\frac{\partial x_i + a}{\partial x_k}", r"\frac{\partial^2 K}{\partial x_j}", r"\frac{d x_i x_j}{d x_k}"],
)
def test_a_fraction_that_is_half_a_derivative_is_asked_about(typed: str) -> None:
    assert check(f"{GIVENS}\nclaim {typed} = 0").claims[-1].verdict == "invalid"


@pytest.mark.parametrize(
    ("typed", "wanted"),
    [
        ("d³/dt³ t^4", "d/dt d2/dt2 f"),
        (r"\frac{d^3}{dt^3} t^4", "d/dt d2/dt2 f"),
        (r"\partial_j x_i", "j is not defined; write the name to differentiate by, as in d/dx[j] f"),
        ("d2K/dx_idx_j", "d/dx[i] d/dx[j] J"),
    ],
)
def test_a_derivative_that_is_not_read_is_told_how_it_is_written(typed: str, wanted: str) -> None:
    assert wanted in check(f"{GIVENS}\nclaim {typed} = 0").claims[-1].reason

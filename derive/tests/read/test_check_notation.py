"""Mathematical notation: what people type, how it is read, and that it means what mathematics means by it."""

from __future__ import annotations

import pytest

from lmlab_derive import check
from lmlab_derive.read.from_latex_and_unicode import plain
from lmlab_derive.read.sheet import ScopedClaim, parse
from lmlab_derive.sheets.report import ClaimReport
from lmlab_derive.text import to_text


def last(text: str) -> ClaimReport:
    """The answer to the last claim of a text."""
    return check(text).claims[-1]


def read(
    claim: str, givens: str = "given x, y, m, s: positive\ngiven A: n, k\ngiven B: k, n\ngiven v: k\ngiven w: k"
) -> str:
    """A claim's first side, as it was understood."""
    entry = parse(f"{givens}\nclaim {claim} = 0").entries[-1]
    assert isinstance(entry, ScopedClaim), entry
    return to_text(entry.claim.steps[0].value)


SAID = {
    "2x": "2 * x",
    "2x^2": "2 * x**2",
    "3(x + y)": "3 * (x + y)",
    "(x + 1)(y - 1)": "(x + 1) * (y - 1)",
    "x y": "x * y",
    "s^2 x": "s**2 * x",
    "A B": "A @ B",
    "A v": "A @ v",
    "2A v": "2 * A @ v",
    "A^T": "A.T",
    "v^T w": "v.T @ w",
    "v w^T": "outer(v, w.T)",
    "x · y × 2": "x * y * 2",
    "A · v": "A @ v",
    "√2": "sqrt(2)",
    "x⁴ − y": "x**4 - y",
    "x⁻¹": "x**-1",
    "σ(x)": "sigmoid(x)",
    "|x - y|": "abs(x - y)",
    "‖v‖": "norm(v)",
    "4‖v‖": "4 * norm(v)",
    "2‖v‖² + 2‖w‖²": "2 * norm(v)**2 + 2 * norm(w)**2",
    "x |y|": "x * abs(y)",
    "⟨v, w⟩": "dot(v, w)",
    "|⟨v, w⟩|": "abs(dot(v, w))",
    "(A^T)^T": "A.T.T",
    "e^{-x}": "exp(-x)",
    "2e": "2 * exp(1)",
    r"\tanh^2(x)": "tanh(x)**2",
    "x(1 - y)": "x * (1 - y)",
    "2xy": "2 * (x * y)",
    "pi": "pi",
    "||v||": "norm(v)",
    "|‖v‖ - ‖w‖|": "abs(norm(v) - norm(w))",
    "|2‖v‖|": "abs(2 * norm(v))",
    r"\left|\|v\| - \|w\|\right|": "abs(norm(v) - norm(w))",
    "||x| - |y||": "abs(abs(x) - abs(y))",
    "|x - |y||": "abs(x - abs(y))",
    "||v|| |x|": "norm(v) * abs(x)",
    "norm(A, 'fro')": "norm(A)",
    r"\frac{1}{2} x": "1 / 2 * x",
    r"\frac{x^{2}}{\sqrt{y}}": "x**2 / sqrt(y)",
    r"\left(x + y\right)^2": "(x + y)**2",
    r"\mathbf{A}^\top": "A.T",
    r"\|v\|_2": "norm(v)",
    r"\sum_{i=1}^{k} v_i w_i": "sum(i=1..k, v[i] * w[i])",
    "Σ_i v_i": "sum(i, v[i])",
    r"\mathbf{A}\mathbf{v}": "A @ v",
    r"\mathbf{A} \mathbf{B}\mathbf{A}": "A @ B @ A",
    r"2\mathbf{v}_i": "2 * v[i]",
    r"\log \sum_{i=1}^k e^{v_i}": "log(sum(i=1..k, exp(v[i])))",
    r"\log x y + 1": "log(x * y) + 1",
    r"\tanh^2 x": "tanh(x)**2",
    r"\frac14": "1 / 4",
    r"\frac1{n} + \frac{x}2 + \dfrac xy": "1 / n + x / 2 + x / y",
    r"\sqrt2 x": "sqrt(2) * x",
    r"∑_{i=1}^{k} v_i²": "sum(i=1..k, v[i]**2)",
    r"\sum_{i,j} A_{ij} v_j": "sum(i, sum(j, A[i, j] * v[j]))",
    r"\max_i v_i": "max_i(v[i])",
    r"\min_{i} v_i w_i": "min_i(v[i] * w[i])",
    r"v_i (\delta_{ij} - w_j)": "v[i] * ((i == j) - w[j])",
    r"v_i \delta_{i,j} w_j": "v[i] * (i == j) * w[j]",
    r"\mathbf{v}^\top \mathbf{B} \mathbf{A} \mathbf{v}": "v.T @ B @ A @ v",
    r"\mathbf{v}^\top \mathbf{B} \mathbf{A}": "v.T @ B @ A",
    "sum(i=1..k, v[i])": "sum(i=1..k, v[i])",
    r"2 x s \mathbf{v}^\top \mathbf{w}": "(2 * x * s * v.T) @ w",
    r"-\frac{1}{2} \mathbf{v}^\top B A \mathbf{w}": "(-(1 / 2) * v.T) @ B @ A @ w",
    r"x \mathbf{v}^\top \mathbf{w} \mathbf{v}": "((x * v.T) @ w) * v",
    "v^T w v^T w": "((v.T @ w) * v.T) @ w",
    "v^T x w": "(v.T * x) @ w",
    "(v^T + w^T) v": "(v.T + w.T) @ v",
    "2x vᵀw + v^⊤ w": "(2 * x * v.T) @ w + v.T @ w",
    "x v w^T": "outer(x * v, w.T)",
    "(A^T A) v w^T": "outer(A.T @ A @ v, w.T)",
    "A^T A v w": "A.T @ A @ v @ w",
}


@pytest.mark.parametrize("typed", SAID)
def test_what_people_type_is_read_as_they_mean_it(typed: str) -> None:
    assert read(typed) == SAID[typed]


@pytest.mark.parametrize(
    "typed",
    [
        r"\sin x \cos x",
        r"\log x / 2",
        r"\delta_{ab}",
        r"\max_i x",
        r"\sum_{i<j} v_i w_j + v_j",
        r"\frac{1}",
        "log",
        "log **",
    ],
)
def test_latex_that_can_be_read_in_two_ways_is_asked_about_in_one_line(typed: str) -> None:
    answer = last(f"given x: positive\ngiven v: k\ngiven w: k\nclaim {typed} = 0")
    assert answer.verdict == "invalid"
    assert "\n" not in answer.reason
    assert "mistake of the checker" not in answer.reason


@pytest.mark.parametrize(
    "typed",
    ["1/2x", "v w", "2x v w", "v · w", "x^", "x(2)", "tanh^(-1)(x)", "⟨v⟩", "P[x]", "H()", "sum(i, x)", "KL(v)"],
)
def test_what_is_not_clear_is_asked_about_in_one_line(typed: str) -> None:
    answer = last(f"given x: positive\ngiven v: k\ngiven w: k\nclaim {typed} = 0")
    assert answer.verdict == "invalid"
    assert "\n" not in answer.reason
    assert "mistake of the checker" not in answer.reason


def test_a_row_of_the_language_is_left_as_it_is() -> None:
    row = "claim E[(a @ b)**2 | a] == sum(a**2, axis=0) where a: D normal(0, 1)"
    assert plain(row) == row


def test_a_claim_in_other_signs_is_shown_as_it_was_read() -> None:
    answer = last("given x\nclaim 2x^2 = x·x + x²")
    assert answer.read == "2 * x**2 == x * x + x**2"
    assert answer.to_dict()["read_as"] == answer.read
    assert last("given x\nclaim 2 * x == x + x").read == ""


HOLDING = {
    "softmax, entry by entry": "given z: n\nlet p = softmax(z)\nclaim dp[i]/dz[j] = p[i] * ((i == j) - p[j])",
    "the same in LaTeX": "given z: n\nlet p = softmax(z)\n"
    r"claim \frac{\partial p_i}{\partial z_j} = p_i \left((i == j) - p_j\right)",
    "a product of matrices": "given A: n, m\ngiven B: m, k\nclaim (A @ B)[i, j] = sum(l=1..m, A[i, l] * B[l, j])",
    "a let with letters": "given z: n\nlet p[i] = exp(z[i]) / sum(j, exp(z[j]))\nclaim p = softmax(z)",
    "a sum from 0": "given x: n\nclaim sum(i=0..n-1, x[i]) = sum(x)",
    "a sum of part of it": "given x: 5\nclaim sum(i=2..4, x[i]) = x[1] + x[2] + x[3]",
    "an index only below": "given z: n\nlet p = softmax(z)\nclaim d(log(p[i]))/dz[j] = (i == j) - p[j]",
    "indices inside a mean": "given a: n positive\ngiven p: n dirichlet(a)\nlet A = sum(a)\n"
    "claim E[p[i] * p[j]] = a[i] * (a[j] + (i == j)) / (A * (A + 1))",
    "a recursion unrolled": "given x: T\ngiven a, s0\nlet s[0] = s0\nlet s[t] = a * s[t-1] + x[t]\n"
    "claim s[t] = a**t * s0 + sum(j=1..t, a**(t-j) * x[j])",
    "a power of e": "claim e**2 = exp(2)",
    "one name in three spellings": "given \\alpha: positive\nclaim α² + 2α = alpha**2 + \\alpha + α",
    "a derivative by a Greek letter": r"given \theta" "\n" r"claim \frac{d}{d\theta} \tanh(\theta) = 1 - \tanh^2 θ",
    "the same in a line": "given θ\nlet J = θ²\nclaim ∂J/∂θ = 2θ",
    "two letters side by side": "given α, x\nclaim 2αx = x * α + αx",
    "the delta of Kronecker": "given z: n\nlet p = softmax(z)\n"
    r"claim \frac{\partial p_i}{\partial z_j} = p_i (\delta_{ij} - p_j)",
    "the largest of entries": r"given v: n" "\n" r"claim \max_i (v_i + 1) = \max(v) + 1",
    "entries below the diagonal": "given L: n, n\nclaim tril(L)[i, j] = L[i, j] where i >= j",
    "and above it": "given L: n, n\nclaim tril(L)[i, j] = 0 where j > i",
    "a bound for some entries": "given x: 4 positive\nclaim cumsum(x)[i] < cumsum(x)[j] where i < j",
    "the entropy of a random row": "given al: K positive\ngiven p: K dirichlet(al)\nlet A = sum(al)\n"
    "claim E[H(p)] = digamma(A + 1) - sum(al * digamma(al + 1)) / A",
    "a condition before its name": "claim (1 + x)^3 >= 1 + 3x where x > -1, x: real",
    "a sum up to a whole number": "given n: positive integer\nclaim sum(k=1..n, k^2) = n(n + 1)(2n + 1)/6",
    "a row beside a number": "given x: T, D\nlet h[0] = zeros(D)\nlet h[t] = tanh(h[t-1] + x[t])\nclaim abs(h[t]) <= 1",
    "a product": "given x: n\nclaim prod(i=1..n, x[i]) = prod(x)",
    "a probability": "given t: positive\ngiven x: normal(0, 1)\nclaim P[-t < x < t] = erf(t / √2)",
    "a conditional one": "given t: positive\ngiven x: exponential(1)\ngiven s: positive\nclaim P[x > s + t | x > s] = P[x > t]",
    "a conditional mean": "given x: normal(0, 1)\nclaim E[x | x > 0] = sqrt(2 / pi)",
    "an entropy": "given s: positive\ngiven x: normal(0, s)\nclaim H(x) = log(2 * pi * exp(1) * s**2) / 2",
    "a divergence of rows": "given p: n simplex\ngiven q: n simplex\nclaim H(p, q) = H(p) + KL(p, q)",
    "a divergence of normals": "given m, a\ngiven s, b: positive\ngiven x: normal(m, s)\ngiven y: normal(a, b)\n"
    "claim KL(x, y) = log(b / s) + (s^2 + (m - a)^2) / (2b^2) - 1/2",
    "a function": "let f(x) = x^2 + 1\ngiven y\nclaim f(y + 1) = y^2 + 2y + 2",
    "its derivative": "let f(x) = x^3\ngiven y\nclaim f'(2y) = 12y^2",
    "its second derivative": "let f(x) = x^3\ngiven y\nclaim f''(y) = 6y",
    "an operator": "given x\nclaim d/dx x^3 = 3x^2",
    "Stein's identity": "given f: function\ngiven m\ngiven s: positive\ngiven x: normal(m, s)\n"
    "claim E[(x - m) f(x)] = s^2 E[f'(x)]",
    "a chain rule": "given f: function\ngiven y\nclaim d(f(y**2))/dy = 2y f'(y^2)",
    "a condition for all": "given x: scalar\nassume x > 0\nclaim log(x^2) = 2log(x)",
}


@pytest.mark.parametrize("name", HOLDING)
def test_notation_means_what_mathematics_means(name: str) -> None:
    answer = last(HOLDING[name])
    assert answer.holds, answer


FAILING = {
    "the wrong index": "given z: n\nlet p = softmax(z)\nclaim dp[i]/dz[j] = p[i] * ((i == j) - p[i])",
    "a probability too large": "given t: positive\ngiven x: normal(0, 1)\nclaim P[x > t] = erf(t / √2)",
    "a divergence that is not symmetric": "given p: n simplex\ngiven q: n simplex\nclaim KL(p, q) = KL(q, p)",
    "Stein without its factor": "given f: function\ngiven s: positive\ngiven x: normal(0, s)\nclaim E[x f(x)] = s E[f'(x)]",
    "a chain rule without the inner derivative": "given f: function\ngiven y\nclaim d(f(y**2))/dy = f'(y^2)",
    "an entry at the edge of a condition": "given L: n, n\nclaim tril(L)[i, j] = 0 where j >= i",
    "a condition that says too little": "given x: 4 positive\nclaim cumsum(x)[i] < cumsum(x)[j] where i <= j",
    "the largest of other entries": r"given v: n" "\n" r"claim \max_i (v_i + 1) = \max(v)",
    "a sum that stops early": "given x: n\nclaim sum(i=1..n-1, x[i]) = sum(x)",
}


@pytest.mark.parametrize("name", FAILING)
def test_wrong_notation_is_refuted(name: str) -> None:
    assert last(FAILING[name]).verdict == "refuted"


def test_the_jacobian_of_softmax_is_proved_in_index_notation() -> None:
    assert last(HOLDING["softmax, entry by entry"]).verdict == "proved"


def test_the_wrong_index_is_named() -> None:
    assert "the index is wrong" in (last(FAILING["the wrong index"]).hint or "")


def test_what_holds_for_a_family_of_functions_is_not_called_proved() -> None:
    answer = last("given f: function\ngiven y\nclaim f(y) + f(y) = 2f(y)")
    assert answer.verdict == "supported"
    assert "f was a mixture" in answer.reason


RECURRENT = """
given x: T, D
given W: H, H
given U: H, D
given h0: H
let h[0] = h0
let h[t] = tanh(W @ h[t-1] + U @ x[t])
let L = sum(t=1..T, sum(h[t]**2))
"""


def test_a_recursion_is_differentiated_through_time() -> None:
    assert last(RECURRENT + "claim h[t] = tanh(W @ h[t-1] + U @ x[t])").holds
    assert last(RECURRENT + "claim d(h[1])/dh0 = diag(1 - h[1]**2) @ W").holds
    forgets = "claim dL/dU = sum(t=1..T, 2 * outer(h[t] * (1 - h[t]**2), x[t]))"  # as if h[t-1] did not depend on U
    assert last(RECURRENT + forgets).verdict == "refuted"


def test_back_propagation_through_a_linear_recursion_is_a_sum_over_steps() -> None:
    text = """
    given x: T
    given w
    let h[0] = 0
    let h[t] = w * h[t-1] + x[t]
    let g[0] = 0
    let g[t] = h[t-1] + w * g[t-1] + 0 * x[t]
    let L = sum(t=1..T, h[t])
    claim dL/dw = sum(t=1..T, g[t])
    claim dL/dw = sum(t=1..T, h[t-1])
    """
    right, wrong = check(text.replace("    ", "")).claims
    assert right.holds, right
    assert wrong.verdict == "refuted"


def test_no_internal_name_is_shown() -> None:
    text = "given x: n\nlet s = sum(x)\ngiven x: n, m\ngiven n: m\nclaim E[s] == x"
    for claim in check(text + "\nclaim x + n == s\nclaim s == 1").claims:
        assert "#" not in claim.reason + str(claim.counterexample) + str(claim.hint)


def test_a_normal_by_its_letter_is_asked_whether_its_spread_is_a_variance() -> None:
    assert "normal(mean, standard deviation)" in check("given x ~ N(0, 4)\nclaim E[x] = 0").claims[0].reason


@pytest.mark.parametrize("word", ["scalar", "real", "number"])
def test_a_scalar_may_be_called_one(word: str) -> None:
    assert last(f"given x: {word}\nclaim x + x = 2x").holds


def test_a_vector_without_a_size_is_asked_for_one() -> None:
    assert "write `given x: n`" in check("given x: vector\nclaim x = x").claims[0].reason


@pytest.mark.parametrize(
    ("claim", "verdict"),
    [("a * V g = (a * V) g", "proved"), ("a * V g = a * (V g)", "refuted"), ("V g * a = (V g) * a", "proved")],
)
def test_what_stands_side_by_side_binds_no_closer_than_a_star(claim: str, verdict: str) -> None:
    assert check(f"given a, g: n\ngiven V: n, n\nclaim {claim}").claims[0].verdict == verdict

r"""LaTeX as students paste it: environments, stops, \nabla, norms, inverses; what is read, what is asked about, and how."""

from __future__ import annotations

import pytest

from lmlab_derive import check

GIVENS = r"""
given x, y: n
given A, B: n, n
given S: n, n definite
given H: n, k
given z: n normal(0, 1)
given p, q: n simplex
given a, b
given m: positive
given \theta: n
let J = sum((A @ x - y)**2)
let L = sum(theta**2)
let f = A @ x**2
"""

BINOMIAL = "(a+b)^2 = a^2 + 2ab + b^2"
HOLDING = [
    r"\begin{align} (a+b)^2 &= a^2 + 2ab + b^2 \end{align}",
    r"(a+b)^2 &= a^2 + 2ab + b^2 \\",
    BINOMIAL + ",",
    BINOMIAL + ".",
    BINOMIAL + r" \, .",
    BINOMIAL + r" \label{eq:one}",
    BINOMIAL + r" \tag{1}, \\",
    BINOMIAL + r" \quad % the binomial formula",
    f"${BINOMIAL}$",
    rf"\[ {BINOMIAL} \]",
    rf"\( {BINOMIAL} \)",
    r"\left[ a + b \right] (a - b) = a^2 - b^2",
    r"\{a + b\}^2 = {a}^2 + 2ab + {b}^{2}",
    r"\operatorname{Tr}\left(A^\top B\right) = \sum_{i,j} A_{ij} B_{ij}",
    r"\left[A B\right]_{ij} = \sum_k A_{ik} B_{kj}",
    r"\nabla_{x} J = 2 A^\top (A x - y)",
    r"\nabla_\theta L = 2\theta",
    r"\nabla_{\boldsymbol\theta} L = 2\theta",
    r"\nabla_{\boldsymbol{\theta}} L = 2\theta",
    r"\nabla_x \|x\|^2 = 2x",
    r"\nabla_x x^\top A x = (A + A^\top) x",
    r"\nabla_x (x^\top A x) = (A + A^\top) x",
    r"\nabla_x^2 (x^\top A x) = A + A^\top",
    "∇²_x (x^T A x) = A + A^T",
    r"\nabla_S \log\det S = S^{-1}",
    r"\frac{\partial \log\det S}{\partial S} = S^{-1}",
    r"(A B)^{-1} = B^{-1} A^{-1}",
    "A⁻¹ A = eye(n)",
    r"\|x\|_1 = \sum_i |x_i|",
    r"\|x\|_\infty = \max_i |x_i|",
    r"\log |a| = \log \left| -a \right| where a != 0",
    r"\langle x, y \rangle^2 \leq \langle x, x \rangle \langle y, y \rangle",
    r"\mathrm{diag}(x) y = x \odot y",
    r"D_{\mathrm{KL}}(p\,\|\,q) \geq 0",
    "KL(p || q) >= 0",
    r"\frac{d\sigma(a)}{da} = \sigma(a)(1-\sigma(a))",
    r"\sqrt[3]{m^3} = m",
    r"\Pr[z_i > 0] = \frac12",
    r"\mathbb{V}[z_i] = 1",
    "1 - H^2 = 1 - H * H",
    r"\frac{\partial \mathbf{x}^{\top}\mathbf{A}\mathbf{x}}{\partial \mathbf{x}} = (\mathbf{A} + \mathbf{A}^{\top})\mathbf{x}",
    r"\sum\limits_{i=1}^{n} x_i = sum(x)",
    r"\log_2(m) = \log(m) / \log(2)",
    r"\frac{d \log m}{dm} = 1/m",
    "a & = a",
    r"a \stackrel{?}{=} a \triangleq a",
]


@pytest.mark.parametrize("claim", HOLDING)
def test_latex_means_what_it_means_on_paper(claim: str) -> None:
    answer = check(f"{GIVENS}\nclaim {claim}").claims[-1]
    assert answer.holds, answer


FAILING = [
    r"\nabla_x x^\top A x = 2 A x",
    r"\frac{\partial \log\det S}{\partial S} = S",
    r"(A B)^{-1} = A^{-1} B^{-1}",
    r"\|x\|_1 = \|x\|_2",
]


@pytest.mark.parametrize("claim", FAILING)
def test_wrong_latex_is_refuted(claim: str) -> None:
    assert check(f"{GIVENS}\nclaim {claim}").claims[-1].verdict == "refuted"


ASKED = {
    "A^2": "write A @ A for the product, A**2 entry by entry",
    "S^{1/2}": "S**(1 / 2) entry by entry",
    "e^{A}": "exp(A) is entry by entry",
    r"\max\{a, b\}": "write max(x, axis=0) or maximum(a, b)",
    r"a \text{ for all } b": "write nothing: a claim is for all",
    r"a \implies b": "behind the claim, as in a <= b where a < b",
    "|S|": "write det(S), or abs(S) entry by entry",
    r"\nabla_x f": "write df/dx or its transpose",
    r"\nabla_x J (a + b)": "put brackets around what it is of",
    r"\mathbb{E}\|z\|^2": "write E[...]",
    r"\mathbb{E}_{z}[z_i]": "E[... | y] holds y fixed",
    r"\mathbb{E}_{z \sim p}[z_i]": "E[... | y] holds y fixed",
    "AB": "did you mean A @ B?",
    "A' x": "write A.T for the transpose",
    "I_n x": "write eye(n)",
    r"\mathbf{1}^\top x": "ones is a function",
    r"A^{-\top}": "inv(A).T",
    r"a \approx b": "abs(a - b) <= 1/n",
    r"p \propto q": "p = c * q",
    r"\begin{cases} a & b \end{cases}": "where(c, a, b)",
    r"A \otimes B": "kron(A, B)",
    r"\sigma'(a)": "write d(σ(x))/dx",
    "a % b": "# before a comment",
}


@pytest.mark.parametrize("typed", ASKED)
def test_what_is_not_read_is_answered_with_what_to_write(typed: str) -> None:
    answer = check(f"{GIVENS}\nclaim {typed} = 0").claims[-1]
    assert answer.verdict == "invalid"
    assert ASKED[typed] in answer.reason


def test_a_derivation_in_an_environment_is_one_statement() -> None:
    text = r"""
given a, b
derive (a+b)(a-b)
\begin{align}
  &= a^2 - ab + ab - b^2 \\  % multiply
  &= a^2 - b^2.
\end{align}
"""
    (answer,) = check(text).claims
    assert answer.holds, answer


def test_a_comma_that_separates_conditions_on_two_lines_stays() -> None:
    answer = check("given x, y\nclaim x * y > 0 where x > 0,\n  y > 0,").claims[-1]
    assert answer.holds, answer

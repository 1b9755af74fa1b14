"""Questions 1 to 3: a variational bound, shapes of derivatives, and the gradients of an autoencoder."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import sympy
import torch

from lmlab.ledger.claim import Outcome, answered, ill_posed, proved, refuted
from lmlab.ledger.kit import formula, normals
from lmlab.ledger.quiz1.book import BOOK
from lmlab.ledger.sheet import Sheet, put

BAYES = """
given q, prior: n simplex      # Q(output | context) and P(output), over n outputs
given like: n fraction         # P(context | output)
let evidence = sum(like * prior)
let post = like * prior / evidence
"""

AUTOENCODER = """
given x: 2*Dx, 1               # x_1 above x_2
given W1: Dp, 2*Dx
given b1: Dp, 1
given W2: 2*Dx, Dp
given b2: 2*Dx, 1
let h = W1 @ x + b1
let p = relu(h)
let xr = W2 @ p + b2           # the reconstruction x'
let J = sum((xr - x)**2) / 2
let delta1 = W2.T @ (xr - x)
let delta2 = delta1 * (h > 0)
"""


@BOOK.claim(
    "Q1",
    where="Question 1, lines 41-45",
    says="The divergence of Q(output|context) from the posterior is log P(context) - E_Q[log P(context|output)] + "
    "the divergence of Q from the prior.",
    latex=r"D_{\rm KL}(Q\,\|\,P(o|c))=\log P(c)-\mathbb E_Q[\log P(c|o)]+D_{\rm KL}(Q\,\|\,P(o))",
    how="In the derivation language over n outputs; and term by term symbolically: log of q/posterior, with the "
    "posterior by Bayes' rule, weighted by Q, which sums to 1.",
    derivation=BAYES + "claim sum(q * log(q / post)) == log(evidence) - sum(q * log(like)) + sum(q * log(q / prior))",
    term="log(c) - log(l) + log(q/p)",
)
def _divergence(t: SimpleNamespace) -> Outcome:
    sheet = put(t.derivation)
    q, like, p, c = (sympy.Symbol(name, positive=True) for name in ("q", "l", "p", "c"))
    said = formula(t.term).subs({sympy.Symbol(str(s)): s for s in (q, like, p, c)})
    rest = sympy.simplify(sympy.expand_log(sympy.log(q / (like * p / c)) - said, force=True))
    return proved(
        sheet.holds and rest == 0,
        f"{sheet}. Each term: log(q/posterior) less the three terms of the claim is {rest}; weighted by Q, log P(c) "
        "keeps the factor Σ Q = 1.",
    )


@BOOK.claim(
    "Q1.b",
    where="Question 1, lines 41-45",
    says="Hence log P(context) is at least E_Q[log P(context|output)] less the divergence of Q from the prior, with "
    "equality exactly when Q is the posterior.",
    latex=r"\log P(c)\ge\mathbb E_Q[\log P(c|o)]-D_{\rm KL}(Q\,\|\,P(o)),\quad\text{equality}\iff Q=P(o|c)",
    how="In the derivation language: the inequality, and equality at Q = posterior. Only there: the gap is Σ p "
    "φ(q/p) with φ(t) = t log t - t + 1, which is 0 at t = 1 and convex, symbolically.",
    derivation=BAYES
    + "claim log(evidence) >= sum(q * log(like)) - sum(q * log(q / prior))\n"
    + "claim log(evidence) == sum(post * log(like)) - sum(post * log(post / prior))",
    touches_at="1",
)
def _bound(t: SimpleNamespace) -> Outcome:
    sheet = put(t.derivation)
    s = sympy.Symbol("s", positive=True)
    phi = s * sympy.log(s) - s + 1
    at = formula(t.touches_at)
    flat = sympy.simplify(phi.subs(s, at)) == 0 and sympy.simplify(sympy.diff(phi, s).subs(s, at)) == 0
    convex = sympy.diff(phi, s, 2).is_positive
    return proved(
        sheet.holds and flat and bool(convex),
        f"{sheet}. φ({at}) = {phi.subs(s, at)}, φ' = {sympy.diff(phi, s)}, φ'' = {sympy.diff(phi, s, 2)} > 0: the "
        "gap vanishes only where q/posterior is 1 for every output.",
    )


def shape_answer(derivation: str, answer: str, found: tuple[int, ...], expected: tuple[int, ...]) -> Outcome:
    """An answer about a shape: in the derivation language, and by automatic differentiation at n, m, p = 3, 4, 5."""
    sheet = put(derivation)
    return answered(
        sheet.holds and found == expected,
        f"{sheet}. Automatic differentiation with n = 3, m = 4, p = 5: {found}.",
        answer,
    )


@BOOK.claim(
    "Q2.1",
    where="Question 2.1, line 53",
    says="What are the dimensions of ∂L/∂O for an output matrix O of size n × m?",
    latex=r"\frac{\partial L}{\partial\mathbf O}\in\mathbb R^{n\times m}",
    how="shape() in the derivation language, and automatic differentiation.",
    derivation="given O: n, m\nlet L = sum(O**2)\nclaim shape(dL/dO) == [n, m]",
    expected=(3, 4),
)
def _shape_loss(t: SimpleNamespace) -> Outcome:
    found = tuple(torch.func.grad(lambda o: o.square().sum())(normals(2, 3, 4)).shape)
    return shape_answer(t.derivation, "n × m, one entry for each entry of O.", found, t.expected)


@BOOK.claim(
    "Q2.2",
    where="Question 2.2, line 57",
    says="What are the dimensions of ∂O/∂H when both are n × m?",
    latex=r"\frac{\partial\mathbf O}{\partial\mathbf H}\in\mathbb R^{n\times m\times n\times m}",
    how="shape() in the derivation language, and automatic differentiation.",
    derivation="given H: n, m\ngiven W: m, m\nlet O = H @ W\nclaim shape(jacobian(O, H)) == [n, m, n, m]",
    expected=(3, 4, 3, 4),
)
def _shape_hidden(t: SimpleNamespace) -> Outcome:
    w = normals(2, 4, 4)
    found = tuple(torch.func.jacrev(lambda h: torch.tanh(h @ w))(normals(1, 3, 4)).shape)
    answer = "Four axes, n × m × n × m, or an nm × nm matrix when both are flattened."
    return shape_answer(t.derivation, answer, found, t.expected)


@BOOK.claim(
    "Q2.3",
    where="Question 2.3, line 61",
    says="What are the dimensions of ∂H/∂X for H of size n × m and a vector X with p elements?",
    latex=r"\frac{\partial\mathbf H}{\partial\mathbf X}\in\mathbb R^{n\times m\times p}",
    how="shape() in the derivation language, and automatic differentiation.",
    derivation="given X: p\ngiven A: n, p\ngiven B: m, p\nlet H = outer(A @ X, B @ X)\nclaim shape(jacobian(H, X)) "
    "== [n, m, p]",
    expected=(3, 4, 5),
)
def _shape_input(t: SimpleNamespace) -> Outcome:
    w = normals(4, 12, 5)
    found = tuple(torch.func.jacrev(lambda x: torch.tanh(w @ x).reshape(3, 4))(normals(3, 5)).shape)
    return shape_answer(
        t.derivation, "Three axes, n × m × p, or an nm × p matrix when H is flattened.", found, t.expected
    )


@BOOK.claim(
    "Q2.4",
    where="Question 2.4, line 65",
    says="What are the dimensions of the second derivative of L by H of size n × m?",
    latex=r"\frac{\partial^2L}{\partial\mathbf H^2}\in\mathbb R^{n\times m\times n\times m}",
    how="shape() in the derivation language, and automatic differentiation.",
    derivation="given H: n, m\nlet L = sum(tanh(H)**2)\nclaim shape(hessian(L, H)) == [n, m, n, m]",
    expected=(3, 4, 3, 4),
)
def _shape_second(t: SimpleNamespace) -> Outcome:
    w = normals(2, 4, 2)
    slope = torch.func.grad(lambda h: torch.tanh(h @ w).square().sum())
    found = tuple(torch.func.jacrev(slope)(normals(1, 3, 4)).shape)
    answer = "Four axes, n × m × n × m, or an nm × nm symmetric matrix when H is flattened."
    return shape_answer(t.derivation, answer, found, t.expected)


@BOOK.claim(
    "Q3.0a",
    where="Question 3, lines 79-89",
    says="With W_1 cut into [W_11 W_12], W_1 x = W_11 x_1 + W_12 x_2.",
    latex=r"W_1\mathbf x=W_{11}\mathbf x_1+W_{12}\mathbf x_2",
    how="In the derivation language; and with blocks of any size as symbols, multiplied by the rule for blocks.",
    derivation="given W11, W12: Dp, Dx\ngiven x1, x2: Dx\nclaim concat(W11, W12, axis=1) @ concat(x1, x2) == W11 @ "
    "x1 + W12 @ x2",
    signs=(1, 1),
)
def _cut(t: SimpleNamespace) -> Outcome:
    sheet = put(t.derivation)
    p, d = sympy.symbols("Dp Dx", integer=True, positive=True)
    w11, w12 = sympy.MatrixSymbol("W11", p, d), sympy.MatrixSymbol("W12", p, d)
    x1, x2 = sympy.MatrixSymbol("x1", d, 1), sympy.MatrixSymbol("x2", d, 1)
    product = sympy.block_collapse(sympy.BlockMatrix([[w11, w12]]) * sympy.BlockMatrix([[x1], [x2]]))
    said = t.signs[0] * w11 * x1 + t.signs[1] * w12 * x2
    exact = product in (said, sympy.BlockMatrix([[said]]))
    return proved(sheet.holds and exact, f"{sheet}. With blocks of any size as symbols: [W11 W12][x1; x2] = {product}.")


@BOOK.claim(
    "Q3.0b",
    where="Question 3, lines 95-97",
    says="The loss J_1 = ½|x' - x|² computes the Euclidean distance between input and reconstruction.",
    latex=r"J_1=\tfrac12\|\mathbf x'-\mathbf x\|^2\ \text{is the Euclidean distance}",
    how="The formula and the distance at a difference of (3, 4); the distances where both agree, solved symbolically.",
    loss="d**2/2",
)
def _distance(t: SimpleNamespace) -> Outcome:
    d = sympy.Symbol("d", nonnegative=True)
    loss = formula(t.loss).subs(sympy.Symbol("d"), d)
    same = sympy.simplify(loss - d) == 0
    agree = sympy.solve(sympy.Eq(loss, d), d)
    return refuted(
        holds=same,
        evidence=f"For a difference of (3, 4) the distance is 5 and J_1 = {loss.subs(d, 5)}. They agree only at "
        f"distance {' and '.join(map(str, agree))}; J_1 is not a distance either (twice the difference gives four "
        "times the value).",
        corrected="J_1 is half the squared Euclidean distance.",
        corrected_holds=sympy.simplify(sympy.Rational(1, 2) * (3**2 + 4**2) - loss.subs(d, 5)) == 0
        and sympy.simplify(loss - d**2 / 2) == 0,
    )


@BOOK.claim(
    "Q3.0c",
    where="Question 3, lines 103-105",
    says="J_2 is the cross entropy between the label and the prediction ŷ = W_3 p + b_3.",
    latex=r"J_2=\mathrm{CE}(y,\hat y),\quad\hat y=W_3\mathbf p+\mathbf b_3",
    how="The cross entropy of 1,000 random affine predictions of five classes: how many are distributions, and how "
    "many have a logarithm for the true class. The repair, softmax of the same numbers, likewise.",
    prediction="affine",
    repair="softmax",
)
def _no_distribution(t: SimpleNamespace) -> Outcome:
    p, w3, b3 = torch.relu(normals(5, 1000, 6)), normals(6, 6, 5), normals(7, 5)
    maps = {"affine": lambda u: u, "softmax": lambda u: torch.softmax(u, dim=1)}

    def share(kind: str) -> tuple[float, float]:
        yhat = maps[kind](p @ w3 + b3)
        proper = ((yhat >= 0).all(1) & ((yhat.sum(1) - 1).abs() < 1e-9)).double().mean()
        return float(proper), float((yhat[:, 0] > 0).double().mean())

    said, mended = share(t.prediction), share(t.repair)
    return ill_posed(
        flawed=said[0] < 1,
        evidence=f"Of 1,000 affine predictions {100 * said[0]:.0f} % are distributions, and only "
        f"{100 * said[1]:.0f} % have a positive entry for the true class: elsewhere the logarithm does not exist. "
        f"After a softmax: {100 * mended[0]:.0f} % and {100 * mended[1]:.0f} %.",
        repaired="ŷ = softmax(W_3 p + b_3); then the cross entropy exists and is not negative.",
        repaired_holds=mended == (1.0, 1.0),
    )


@BOOK.claim(
    "Q3.0d",
    where="Question 3, line 113",
    says="The indicator of [[5, 0], [-3, 7]] > 0 is [[1, 0], [0, 1]].",
    latex=r"\mathbb 1\left\{\begin{pmatrix}5&0\\-3&7\end{pmatrix}>0\right\}=\begin{pmatrix}1&0\\0&1\end{pmatrix}",
    how="In the derivation language (zero is not greater than zero), and in NumPy.",
    derivation="let A = [[5, 0], [-3, 7]]\nlet B = A > 0\nclaim B == [[1, 0], [0, 1]]",
    result=((1, 0), (0, 1)),
)
def _indicator(t: SimpleNamespace) -> Outcome:
    sheet = put(t.derivation)
    found = (np.array([[5, 0], [-3, 7]]) > 0).astype(int)
    return proved(
        sheet.holds and found.tolist() == [list(row) for row in t.result], f"{sheet}. NumPy: {found.tolist()}."
    )


def gradient_answer(derivation: str, answer: str) -> Outcome:
    """An answer about a gradient of the autoencoder, checked in the derivation language."""
    sheet: Sheet = put(AUTOENCODER + derivation)
    return answered(sheet.holds, f"{sheet}.", answer)


@BOOK.claim(
    "Q3.1",
    where="Question 3.1, line 115",
    says="What is δ_1 = ∂J_1/∂p?",
    latex=r"\delta_1=\frac{\partial J_1}{\partial\mathbf p}=W_2^\top(\mathbf x'-\mathbf x)",
    how="In the derivation language, against automatic differentiation at free sizes.",
    derivation="claim dJ/dp == W2.T @ (xr - x)",
)
def _delta_1(t: SimpleNamespace) -> Outcome:
    return gradient_answer(t.derivation, "δ_1 = W_2ᵀ(x' - x), a column of D_p entries.")


@BOOK.claim(
    "Q3.2",
    where="Question 3.2, line 119",
    says="What is δ_2 = ∂J_1/∂h in terms of δ_1?",
    latex=r"\delta_2=\frac{\partial J_1}{\partial\mathbf h}=\delta_1\odot\mathbb 1\{\mathbf h>0\}",
    how="In the derivation language, at points away from the kink h = 0.",
    derivation="claim dJ/dh == delta1 * (h > 0)",
)
def _delta_2(t: SimpleNamespace) -> Outcome:
    return gradient_answer(
        t.derivation, "δ_2 = δ_1 ⊙ 1{h > 0} (at h = 0 the ReLU has no derivative; 0 is the convention)."
    )


@BOOK.claim(
    "Q3.3",
    where="Question 3.3, line 123",
    says="What is ∂J_1/∂W_1 in terms of δ_2?",
    latex=r"\frac{\partial J_1}{\partial W_1}=\delta_2\mathbf x^\top",
    how="In the derivation language.",
    derivation="claim dJ/dW1 == delta2 @ x.T",
)
def _by_weights(t: SimpleNamespace) -> Outcome:
    return gradient_answer(t.derivation, "∂J_1/∂W_1 = δ_2 xᵀ, of size D_p × 2D_x.")

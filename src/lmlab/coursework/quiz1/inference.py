"""Questions 1 to 3: a variational bound, shapes of derivatives, and the gradients of an autoencoder."""

from __future__ import annotations

from types import SimpleNamespace

import sympy
import torch

from lmlab.coursework.book import book
from lmlab.coursework.claim import Judge, Outcome, answered, exact, ill_posed, judged
from lmlab.coursework.shared_tools import blocks, formula, letter, normals
from lmlab.coursework.sheet import confirmed, derived, put

claim = book("quiz1").claim

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


def answer(text: str) -> Judge:
    """The check of an answer that is a derivation."""

    def judge(t: SimpleNamespace) -> Outcome:
        sheet = put(t.derivation)
        return answered(sheet.holds, str(sheet), answer=text)

    return judge


claim(
    "Q1",
    derivation=BAYES + "claim sum(q * log(q / post)) == log(evidence) - sum(q * log(like)) + sum(q * log(q / prior))",
)(derived())


@claim(
    "Q1.b",
    derivation=BAYES
    + "claim log(evidence) >= sum(q * log(like)) - sum(q * log(q / prior))\n"
    + "claim log(evidence) == sum(post * log(like)) - sum(post * log(post / prior))",
    touches_at="1",
)
def _bound(t: SimpleNamespace) -> Outcome:
    s, at = letter("s"), formula(t.touches_at)
    phi = s * sympy.log(s) - s + 1
    slope, curvature = sympy.diff(phi, s), sympy.diff(phi, s, 2)
    touches = sympy.simplify(phi.subs(s, at)) == 0 and sympy.simplify(slope.subs(s, at)) == 0
    return confirmed(
        put(t.derivation),
        touches and curvature.is_positive,
        f"The gap is Σ p φ(q/p) with φ(s) = {phi}: φ({at}) = {phi.subs(s, at)}, φ' = {slope}, φ'' = {curvature}, which is "
        "positive: φ vanishes at one place alone.",
    )


claim("Q2.1", derivation="given O: n, m\nlet L = sum(O**2)\nclaim shape(dL/dO) == [n, m]")(
    answer("n × m, one entry for each entry of O.")
)
claim(
    "Q2.2",
    derivation="given H: n, m\ngiven W: m, m\nlet O = H @ W\nclaim shape(jacobian(O, H)) == [n, m, n, m]",
)(answer("Four axes, n × m × n × m, or an nm × nm matrix when both are flattened."))
claim(
    "Q2.3",
    derivation="given X: p\ngiven A: n, p\ngiven B: m, p\nlet H = outer(A @ X, B @ X)\n"
    "claim shape(jacobian(H, X)) == [n, m, p]",
)(answer("Three axes, n × m × p, or an nm × p matrix when H is flattened."))
claim(
    "Q2.4",
    derivation="given H: n, m\nlet L = sum(tanh(H)**2)\nclaim shape(hessian(L, H)) == [n, m, n, m]",
)(answer("Four axes, n × m × n × m, or an nm × nm symmetric matrix when H is flattened."))


@claim(
    "Q3.0a",
    derivation="given W11, W12: Dp, Dx\ngiven x1, x2: Dx\n"
    "claim concat(W11, W12, axis=1) @ concat(x1, x2) == W11 @ x1 + W12 @ x2",
    signs=(1, 1),
)
def _cut(t: SimpleNamespace) -> Outcome:
    return confirmed(put(t.derivation), *blocks("W11 W12 x1 x2", t.signs))


@claim("Q3.0b", loss="d**2/2", corrected="d**2/2")
def _distance(t: SimpleNamespace) -> Outcome:
    d, loss = letter("d"), formula(t.loss)
    agree = sympy.solve(sympy.Eq(loss, d), d)
    half_square = sympy.Rational(1, 2) * (3**2 + 4**2)
    return judged(
        exact(sympy.simplify(loss - d) == 0),
        f"For a difference of (3, 4) the distance is 5 and J_1 = {loss.subs(d, 5)}.",
        because=f"They agree only at distance {' and '.join(map(str, agree))}; twice the difference gives "
        f"{sympy.simplify(loss.subs(d, 2 * d) / loss)} times the value.",
        corrected="J_1 is half the squared Euclidean distance.",
        holds=formula(t.corrected).subs(d, 5) == half_square and sympy.simplify(loss - formula(t.corrected)) == 0,
    )


@claim("Q3.0c", prediction="affine", repair="softmax")
def _no_distribution(t: SimpleNamespace) -> Outcome:
    draws = 1000
    scores = torch.relu(normals(5, draws, 6)) @ normals(6, 6, 5) + normals(7, 5)

    def shares(kind: str) -> tuple[float, float]:
        yhat = {"affine": scores, "softmax": torch.softmax(scores, dim=1)}[kind]
        proper = ((yhat >= 0).all(1) & ((yhat.sum(1) - 1).abs() < 1e-9)).double().mean()
        return 100 * float(proper), 100 * float((yhat[:, 0] > 0).double().mean())

    said, mended = shares(t.prediction), shares(t.repair)
    return ill_posed(
        said[0] < 100,
        f"Of {draws:,} {t.prediction} predictions of 5 classes {said[0]:.0f} % are distributions, and {said[1]:.0f} % have "
        f"a positive entry for the true class. After a {t.repair}: {mended[0]:.0f} % and {mended[1]:.0f} %.",
        because="Where that entry is not positive the logarithm does not exist.",
        repaired="ŷ = softmax(W_3 p + b_3); then the cross entropy exists and is not negative.",
        holds=mended == (100, 100),
        otherwise=exact(said == (100, 100)),
    )


claim("Q3.0d", derivation="let A = [[5, 0], [-3, 7]]\nlet B = A > 0\nclaim B == [[1, 0], [0, 1]]")(
    derived("(Zero is not greater than zero.)")
)
claim("Q3.1", derivation=AUTOENCODER + "claim dJ/dp == W2.T @ (xr - x)")(
    answer("δ_1 = W_2ᵀ(x' - x), a column of D_p entries.")
)
claim("Q3.2", derivation=AUTOENCODER + "claim dJ/dh == delta1 * (h > 0)")(
    answer("δ_2 = δ_1 ⊙ 1{h > 0} (at h = 0 the ReLU has no derivative; 0 is the convention).")
)
claim("Q3.3", derivation=AUTOENCODER + "claim dJ/dW1 == delta2 @ x.T")(
    answer("∂J_1/∂W_1 = δ_2 xᵀ, of size D_p × 2D_x.")
)

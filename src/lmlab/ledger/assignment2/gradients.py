"""Section 1: cross entropy through a softmax, and a network with one sigmoid layer, in the derivation language."""

from __future__ import annotations

from types import SimpleNamespace

import sympy
import torch

from lmlab.ledger.assignment2.book import BOOK
from lmlab.ledger.claim import Outcome, proved, refuted
from lmlab.ledger.kit import formula, gap, normals, yes
from lmlab.ledger.sheet import Sheet, put, read

SOFTMAX = """
given theta: n
given y: n onehot
let yhat = softmax(theta)
let CE = -sum(y * log(yhat))
"""

NETWORK = """
given x: 1, Dx
given W1: Dx, Dh
given b1: 1, Dh
given W2: Dh, Dy
given b2: 1, Dy
given y: 1, Dy onehot
let z = x @ W1 + b1
let h = sigmoid(z)
let u = h @ W2 + b2
let yhat = softmax(u)
let J = -sum(y * log(yhat))
"""


def softmax_proof(entry: str, same: bool) -> bool:
    """Whether ∂ŷ_i/∂θ_j is this formula in yi, yj, for i = j or i ≠ j: symbolically, for any number of classes.

    All classes but i and j enter only through the sum R of their exponentials.
    """
    ti, tj, rest = sympy.symbols("ti tj R", positive=True)
    whole = sympy.exp(ti) + sympy.exp(tj) + rest
    yi, yj = sympy.exp(ti) / whole, sympy.exp(tj) / whole
    said = formula(entry).subs({sympy.Symbol("yi"): yi, sympy.Symbol("yj"): yi if same else yj})
    return sympy.simplify(sympy.diff(yi, ti if same else tj) - said) == 0


@BOOK.claim(
    "1a.1",
    where="1 a, lines 33-37",
    says="For a one-hot label the cross entropy is minus the logarithm of the probability of the true class.",
    latex=r"y_k=1\ \Rightarrow\ -\sum_i y_i\log\hat y_i=-\log\hat y_k",
    how="In the derivation language: Σ y_i ŷ_i picks the true class. And symbolically: the true class's term plus "
    "any number of terms with y_i = 0.",
    derivation=SOFTMAX + "claim CE == -log(sum(y * yhat))",
    loss="-log(p)",
)
def _one_hot(t: SimpleNamespace) -> Outcome:
    sheet = put(t.derivation)
    p, others = sympy.Symbol("p", positive=True), sympy.Symbol("S")  # S: the sum of the other classes' logarithms
    rest = sympy.simplify(-(1 * sympy.log(p) + 0 * others) - formula(t.loss).subs(sympy.Symbol("p"), p))
    return proved(sheet.holds and rest == 0, f"{sheet}. Symbolic difference: {rest}.")


@BOOK.claim(
    "1a.2",
    where="1 a, line 45",
    says="By the chain rule ∂CE/∂θ_i is the product of ∂CE/∂ŷ_i and ∂ŷ_i/∂θ_i.",
    latex=r"\frac{\partial CE}{\partial\theta_i}=\frac{\partial CE}{\partial\hat y_i}\cdot\frac{\partial\hat "
    r"y_i}{\partial\theta_i}",
    how="In the derivation language, with ∂CE/∂ŷ = -y/ŷ and the Jacobian of the softmax; the product uses its "
    "diagonal, the correction all of it.",
    derivation=SOFTMAX + "claim dCE/dtheta == (-y / yhat) * diag(jacobian(yhat, theta))",
    corrected=SOFTMAX + "claim dCE/dtheta == (-y / yhat) @ jacobian(yhat, theta)",
)
def _chain_rule(t: SimpleNamespace) -> Outcome:
    said, right = put(t.derivation), put(t.corrected)
    return refuted(
        holds=said.holds,
        evidence=f"{said}. Every ŷ_j depends on θ_i; without the sum the gradient is 0 at all wrong classes, where "
        "it should be ŷ_i (at the true class it happens to be right). The document itself returns to the sum on "
        f"line 63. Correction: {right}",
        corrected="∂CE/∂θ_i = Σ_j (∂CE/∂ŷ_j)(∂ŷ_j/∂θ_i).",
        corrected_holds=right.holds,
    )


@BOOK.claim(
    "1a.3",
    where="1 a, line 49",
    says="∂CE/∂ŷ_i = -y_i/ŷ_i.",
    latex=r"\frac{\partial CE}{\partial\hat y_i}=-\frac{y_i}{\hat y_i}",
    how="In the derivation language, the prediction taken as a free vector of positive numbers.",
    derivation="given p: n positive\ngiven y: n onehot\nlet CE = -sum(y * log(p))\nclaim dCE/dp == -y / p",
    slope="-y/p",
)
def _by_prediction(t: SimpleNamespace) -> Outcome:
    sheet = put(t.derivation)
    y, p = sympy.symbols("y p", positive=True)
    said = formula(t.slope).subs({sympy.Symbol("y"): y, sympy.Symbol("p"): p})
    rest = sympy.simplify(sympy.diff(-y * sympy.log(p), p) - said)
    return proved(
        sheet.holds and rest == 0, f"{sheet}. One term symbolically (the others do not contain ŷ_i): difference {rest}."
    )


@BOOK.claim(
    "1a.4",
    where="1 a, lines 53-57",
    says="The Jacobian of the softmax is ŷ_i(δ_ij - ŷ_j).",
    latex=r"\frac{\partial\hat y_i}{\partial\theta_j}=\hat y_i(\delta_{ij}-\hat y_j)",
    how="In the derivation language for the whole matrix; and symbolically for any number of classes, i = j and i ≠ j.",
    derivation="given theta: n\nlet yhat = softmax(theta)\nclaim jacobian(yhat, theta) == diag(yhat) - outer(yhat, "
    "yhat)",
    same="yi*(1-yi)",
    other="-yi*yj",
)
def _jacobian(t: SimpleNamespace) -> Outcome:
    sheet = put(t.derivation)
    exact = softmax_proof(t.same, same=True) and softmax_proof(t.other, same=False)
    return proved(sheet.holds and exact, f"{sheet}. Both cases symbolically, for any number of classes: {yes(exact)}.")


@BOOK.claim(
    "1a.5",
    where="1 a, lines 63-79",
    says="-Σ_j y_j(δ_ij - ŷ_i) simplifies to ŷ_i - y_i.",
    latex=r"-\sum_j y_j(\delta_{ij}-\hat y_i)=\hat y_i-y_i",
    how="In the derivation language with one-hot labels; and symbolically: the sum is ŷ_i Σ_j y_j - y_i, so all that "
    "is used is Σ_j y_j = 1.",
    derivation=SOFTMAX + "claim -sum(y * (eye(n) - reshape(yhat, n, 1)), axis=1) == yhat - y",
    labels_sum="1",
)
def _simplified(t: SimpleNamespace) -> Outcome:
    sheet = put(t.derivation)
    yi, p, others = sympy.symbols("yi p others")
    total = formula(t.labels_sum)
    left = (-(yi * (1 - p)) + others * p).subs(others, total - yi)
    return proved(
        sheet.holds and sympy.expand(left - (p - yi)) == 0,
        f"{sheet}. With labels that sum to {total}: -Σ_j y_j(δ_ij - ŷ_i) = {sympy.expand(left)}. It holds for soft "
        "labels too, as long as they sum to 1.",
    )


@BOOK.claim(
    "1a.6",
    where="1 a, line 83",
    says="The gradient of the cross entropy by the softmax input is ŷ - y.",
    latex=r"\frac{\partial CE}{\partial\theta}=\hat y-y",
    how="In the derivation language; and symbolically from -log ŷ_k, at the true class and at another, for any "
    "number of classes.",
    derivation=SOFTMAX + "claim dCE/dtheta == yhat - y",
    true_class="yk - 1",
    other_class="yi",
)
def _gradient(t: SimpleNamespace) -> Outcome:
    sheet = put(t.derivation)
    tk, ti, rest = sympy.symbols("tk ti R", positive=True)
    whole = sympy.exp(tk) + sympy.exp(ti) + rest
    places = {sympy.Symbol("yk"): sympy.exp(tk) / whole, sympy.Symbol("yi"): sympy.exp(ti) / whole}
    loss = -sympy.log(sympy.exp(tk) / whole)
    exact = all(
        sympy.simplify(sympy.diff(loss, by) - formula(said).subs(places)) == 0
        for by, said in ((tk, t.true_class), (ti, t.other_class))
    )
    return proved(sheet.holds and exact, f"{sheet}. Symbolically, for any number of classes: {yes(exact)}.")


@BOOK.claim(
    "1b.1",
    where="1 b, line 109",
    says="For u = hW_2 + b_2 with row vectors, ∂u/∂h = W_2ᵀ.",
    latex=r"\frac{\partial u}{\partial h}=W_2^\top",
    how="In the derivation language: the Jacobian with the entries of u as rows, the layout in which the document "
    "multiplies ∂J/∂u · ∂u/∂h.",
    derivation="given h: Dh\ngiven W2: Dh, Dy\ngiven b2: Dy\nlet u = h @ W2 + b2\nclaim jacobian(u, h) == W2.T",
)
def _linear_layer(t: SimpleNamespace) -> Outcome:
    outcome = read(t.derivation)
    return proved(
        outcome.verdict in ("proved", "supported"),
        outcome.evidence
        + " A linear map is its own derivative, so agreement at one point is agreement everywhere. (In the other "
        "layout, "
        "entries of h as rows, it would be W_2; only with W_2ᵀ do the document's products fit.)",
    )


@BOOK.claim(
    "1b.2",
    where="1 b, line 117",
    says="The derivative of the sigmoid is σ(z)(1 - σ(z)).",
    latex=r"\sigma'(z)=\sigma(z)(1-\sigma(z))",
    how="In the derivation language, and symbolically.",
    derivation="given z\nlet s = sigmoid(z)\nclaim ds/dz == s * (1 - s)",
    slope="s*(1-s)",
)
def _sigmoid(t: SimpleNamespace) -> Outcome:
    sheet = put(t.derivation)
    z = sympy.Symbol("z", real=True)
    sigma = 1 / (1 + sympy.exp(-z))
    difference = sympy.simplify(sympy.diff(sigma, z) - formula(t.slope).subs(sympy.Symbol("s"), sigma))
    return proved(sheet.holds and difference == 0, f"{sheet}. Symbolic difference: {difference}.")


def by_chain_rule(sheet: Sheet, checked: bool = True, words: str = "") -> Outcome:
    """Proved when the formula agrees with automatic differentiation and its links, 1a.6, 1b.1 and 1b.2, are proved."""
    links = all(link.check().verdict == "proved" for link in (_gradient, _linear_layer, _sigmoid))
    evidence = f"{sheet}.{words} Its links (claims 1a.6, 1b.1, 1b.2 and the chain rule) are proved for all sizes: {yes(links)}."
    return proved(sheet.holds and links and checked, evidence)


@BOOK.claim(
    "1b.3",
    where="1 b, lines 123-129",
    says="∂J/∂z = ((ŷ - y)W_2ᵀ) ⊙ h ⊙ (1 - h).",
    latex=r"\frac{\partial J}{\partial z}=\left[(\hat y-y)W_2^\top\right]\odot h\odot(1-h)",
    how="In the derivation language, against automatic differentiation at free sizes.",
    derivation=NETWORK + "claim dJ/dz == ((yhat - y) @ W2.T) * h * (1 - h)",
)
def _hidden(t: SimpleNamespace) -> Outcome:
    return by_chain_rule(put(t.derivation))


@BOOK.claim(
    "1b.4",
    where="1 b, line 149",
    says="∂J/∂x = [((ŷ - y)W_2ᵀ) ⊙ h ⊙ (1 - h)]W_1ᵀ.",
    latex=r"\frac{\partial J}{\partial x}=\left[\left[(\hat y-y)W_2^\top\right]\odot h\odot(1-h)\right]W_1^\top",
    how="In the derivation language, against automatic differentiation at free sizes.",
    derivation=NETWORK + "derive dJ/dx\n  = dJ/dz @ W1.T\n  = (((yhat - y) @ W2.T) * h * (1 - h)) @ W1.T",
)
def _input(t: SimpleNamespace) -> Outcome:
    return by_chain_rule(put(t.derivation))


@BOOK.claim(
    "1c",
    where="1 c, line 153",
    says="Forward and backward pass of the network agree with a gradient check, for the weights and biases too.",
    latex=r"\frac{\partial J}{\partial W_1}=x^\top\delta,\ \frac{\partial J}{\partial b_1}=\delta,\ "
    r"\frac{\partial J}{\partial W_2}=h^\top(\hat y-y),\ \frac{\partial J}{\partial b_2}=\hat y-y",
    how="In the derivation language for one row; and central differences in float64 on a batch of 7 rows, where the "
    "biases collect the sum over rows.",
    derivation=NETWORK
    + "let delta = ((yhat - y) @ W2.T) * h * (1 - h)\n"
    + "claim dJ/dW1 == x.T @ delta\nclaim dJ/db1 == delta\nclaim dJ/dW2 == h.T @ (yhat - y)\nclaim dJ/db2 == yhat - y",
    batch_bias="sum",  # how the rows of a batch enter the gradient of a bias
)
def _gradient_check(t: SimpleNamespace) -> Outcome:
    sheet = put(t.derivation)
    x, w1, b1, w2, b2 = normals(1, 7, 4), normals(2, 4, 5), normals(3, 1, 5), normals(4, 5, 3), normals(5, 1, 3)
    labels = torch.eye(3, dtype=torch.float64)[[0, 1, 2, 2, 1, 0, 1]]

    def loss() -> torch.Tensor:
        h = torch.sigmoid(x @ w1 + b1)
        return -(labels * torch.log_softmax(h @ w2 + b2, dim=1)).sum()

    h = torch.sigmoid(x @ w1 + b1)
    error = torch.softmax(h @ w2 + b2, dim=1) - labels
    delta = (error @ w2.T) * h * (1 - h)
    collect = {"sum": lambda rows: rows.sum(0, keepdim=True), "mean": lambda rows: rows.mean(0, keepdim=True)}[
        t.batch_bias
    ]
    pairs = ((w1, x.T @ delta), (b1, collect(delta)), (w2, h.T @ error), (b2, collect(error)))
    worst = max(gap(_central(loss, weight), said) for weight, said in pairs)
    words = f" Batch of 7, central differences with step 1e-6: largest difference {worst:.1e}."
    return by_chain_rule(sheet, worst < 1e-7, words)


def _central(loss: object, weight: torch.Tensor, step: float = 1e-6) -> torch.Tensor:
    """The gradient by central differences, one entry at a time."""
    assert callable(loss)
    gradient = torch.zeros_like(weight)
    for place in range(weight.numel()):
        entry = weight.view(-1)[place].item()
        weight.view(-1)[place] = entry + step
        above = float(loss())
        weight.view(-1)[place] = entry - step
        below = float(loss())
        weight.view(-1)[place] = entry
        gradient.view(-1)[place] = (above - below) / (2 * step)
    return gradient

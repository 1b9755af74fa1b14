"""Section 1: cross entropy through a softmax, and a network with one sigmoid layer, in the derivation language."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace

import sympy
import torch
from torch import Tensor

from lmlab.coursework.book import book
from lmlab.coursework.claim import Outcome, answered
from lmlab.coursework.shared_tools import eye, formula, gap, letter, normals
from lmlab.coursework.sheet import confirmed, contradicted, derived, put

claim = book("assignment2").claim

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
let delta = ((yhat - y) @ W2.T) * h * (1 - h)
"""


@claim("1a.1", derivation=SOFTMAX + "claim CE == -log(sum(y * yhat))", loss="-log(p)")
def _one_hot(t: SimpleNamespace) -> Outcome:
    others = letter("S")  # the sum of the other classes' logarithms, each with label 0
    rest = sympy.simplify(-(1 * sympy.log(letter("p")) + 0 * others) - formula(t.loss))
    return confirmed(
        put(t.derivation),
        rest == 0,
        f"Symbolically, the true class's term and any number of terms with label 0, less {t.loss}: {rest}.",
    )


@claim(
    "1a.2",
    derivation=SOFTMAX + "claim dCE/dtheta == (-y / yhat) * diag(jacobian(yhat, theta))",
    corrected=SOFTMAX + "claim dCE/dtheta == (-y / yhat) @ jacobian(yhat, theta)",
)
def _chain_rule(t: SimpleNamespace) -> Outcome:
    return contradicted(
        t,
        "∂CE/∂θ_i = Σ_j (∂CE/∂ŷ_j)(∂ŷ_j/∂θ_i).",
        "Every ŷ_j depends on θ_i; without the sum the gradient is 0 at all wrong classes, where it should be ŷ_i (at the "
        "true class it happens to be right). The document itself returns to the sum on line 63.",
    )


claim(
    "1a.3",
    derivation="given p: n positive\ngiven y: n onehot\nlet CE = -sum(y * log(p))\nclaim dCE/dp == -y / p",
)(derived())
claim(
    "1a.4",
    derivation="given theta: n\nlet yhat = softmax(theta)\n"
    "claim jacobian(yhat, theta) == diag(yhat) - outer(yhat, yhat)",
)(derived())
claim(
    "1a.5",
    derivation=SOFTMAX + "claim -sum(y * (eye(n) - reshape(yhat, n, 1)), axis=1) == yhat - y",
)(derived("All that is used is Σ_j y_j = 1: it holds for soft labels that sum to 1 too."))
claim("1a.6", derivation=SOFTMAX + "claim dCE/dtheta == yhat - y")(derived())
claim(
    "1b.1",
    derivation="given h: Dh\ngiven W2: Dh, Dy\ngiven b2: Dy\nlet u = h @ W2 + b2\nclaim jacobian(u, h) == W2.T",
)(
    derived(
        "(In the other layout, entries of h as rows, it would be W_2; only with W_2ᵀ do the document's products fit.)"
    )
)
claim("1b.2", derivation="given z\nlet s = sigmoid(z)\nclaim ds/dz == s * (1 - s)")(derived())
claim("1b.3", derivation=NETWORK + "claim dJ/dz == ((yhat - y) @ W2.T) * h * (1 - h)")(derived())
claim(
    "1b.4",
    derivation=NETWORK + "derive dJ/dx\n  = dJ/dz @ W1.T\n  = (((yhat - y) @ W2.T) * h * (1 - h)) @ W1.T",
)(derived())


@claim(
    "1c",
    derivation=NETWORK
    + "claim dJ/dW1 == x.T @ delta\nclaim dJ/db1 == delta\nclaim dJ/dW2 == h.T @ (yhat - y)\nclaim dJ/db2 == yhat - y",
    batch_bias="sum",  # how the rows of a batch enter the gradient of a bias
)
def _gradient_check(t: SimpleNamespace) -> Outcome:
    sheet, rows, step = put(t.derivation), 7, 1e-6
    x, w1, b1, w2, b2 = normals(1, rows, 4), normals(2, 4, 5), normals(3, 1, 5), normals(4, 5, 3), normals(5, 1, 3)
    labels = eye(3)[[0, 1, 2, 2, 1, 0, 1]]

    def forward() -> tuple[Tensor, Tensor]:
        h = torch.sigmoid(x @ w1 + b1)
        return h, torch.log_softmax(h @ w2 + b2, dim=1)

    h, logs = forward()
    error = logs.exp() - labels
    delta = (error @ w2.T) * h * (1 - h)
    collect = {"sum": torch.sum, "mean": torch.mean}[t.batch_bias]
    biases = (collect(delta, dim=0, keepdim=True), collect(error, dim=0, keepdim=True))
    pairs = ((w1, x.T @ delta), (b1, biases[0]), (w2, h.T @ error), (b2, biases[1]))
    worst = max(gap(_central(lambda: float(-(labels * forward()[1]).sum()), w, step), said) for w, said in pairs)
    return answered(
        sheet.holds and worst < 1e-7,
        "The document's answer is a program it does not show; what it must compute is this.",
        str(sheet),
        f"A batch of {rows}, biases collecting the {t.batch_bias} over rows, against central differences with step "
        f"{step:.0e}: largest difference {worst:.1e}.",
        answer="With δ = ((ŷ - y)W_2ᵀ) ⊙ h ⊙ (1 - h): ∂J/∂W_1 = xᵀδ, ∂J/∂b_1 = δ, ∂J/∂W_2 = hᵀ(ŷ - y), ∂J/∂b_2 = ŷ - y; "
        "over a batch the biases collect the sum of the rows.",
    )


def _central(loss: Callable[[], float], weight: Tensor, step: float) -> Tensor:
    """The gradient by central differences, one entry at a time."""
    gradient, entries = torch.zeros_like(weight), weight.view(-1)
    for place in range(len(entries)):
        entry = float(entries[place])
        sides = []
        for moved in (entry + step, entry - step):
            entries[place] = moved
            sides.append(loss())
        entries[place] = entry
        gradient.view(-1)[place] = (sides[0] - sides[1]) / (2 * step)
    return gradient

"""The source: a quiz on variational inference, shapes of derivatives, an autoencoder and attention; it gives no answers."""

from __future__ import annotations

import math
from types import SimpleNamespace

import numpy as np
import sympy
import torch
from torch import Tensor

from lmlab.prove.ledger.claim import Book, Outcome, answered, conditional, ill_posed, proved, refuted
from lmlab.prove.ledger.kit import formula, gap, generator, normals, value
from lmlab.prove.ledger.sheet import Sheet, put

BOOK = Book(
    source="quiz1",
    title="Quiz 1: variational inference, back-propagation through time, an autoencoder, a first look at attention",
    about="Questions without solutions: where one is asked for, the ledger gives it and checks it.",
)

BAYES = """
given q, prior: n simplex      # Q(output | context) and P(output), over n outputs
given like: n fraction         # P(context | output)
let evidence = sum(like * prior)
let post = like * prior / evidence
"""

AUTOENCODER = """
given x1, x2: Dx, 1
given W1: Dp, 2*Dx
given b1: Dp, 1
given W2: 2*Dx, Dp
given b2: 2*Dx, 1
let x = concat(x1, x2)
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
    says="The divergence of Q(output|context) from the posterior is log P(context) - E_Q[log P(context|output)] + the divergence of Q from the prior.",
    latex=r"D_{\rm KL}(Q\,\|\,P(o|c))=\log P(c)-\mathbb E_Q[\log P(c|o)]+D_{\rm KL}(Q\,\|\,P(o))",
    how="In the derivation language over n outputs; and term by term symbolically: log of q/posterior, with the posterior by Bayes' rule, weighted by Q, "
    "which sums to 1.",
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
        f"{sheet}. Each term: log(q/posterior) less the three terms of the claim is {rest}; weighted by Q, log P(c) keeps the factor Σ Q = 1.",
    )


@BOOK.claim(
    "Q1.b",
    where="Question 1, lines 41-45",
    says="Hence log P(context) is at least E_Q[log P(context|output)] less the divergence of Q from the prior, with equality exactly when Q is the posterior.",
    latex=r"\log P(c)\ge\mathbb E_Q[\log P(c|o)]-D_{\rm KL}(Q\,\|\,P(o)),\quad\text{equality}\iff Q=P(o|c)",
    how="In the derivation language: the inequality, and equality at Q = posterior. Only there: the gap is Σ p φ(q/p) with φ(t) = t log t - t + 1, which is 0 "
    "at t = 1 and convex, symbolically.",
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
        f"{sheet}. φ({at}) = {phi.subs(s, at)}, φ' = {sympy.diff(phi, s)}, φ'' = {sympy.diff(phi, s, 2)} > 0: the gap vanishes only where q/posterior is 1 "
        "for every output.",
    )


def shape_answer(derivation: str, answer: str, found: tuple[int, ...], expected: tuple[int, ...]) -> Outcome:
    """An answer about the shape of a derivative: in the derivation language, and by automatic differentiation at n, m, p = 3, 4, 5."""
    sheet = put(derivation)
    return answered(
        sheet.holds and found == expected,
        f"{sheet}. Automatic differentiation with n = 3, m = 4, p = 5: {found}.",
        answer,
    )


H34, O34, X5 = normals(1, 3, 4), normals(2, 3, 4), normals(3, 5)
MIX = normals(4, 12, 5)


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
    found = tuple(torch.func.grad(lambda o: o.square().sum())(O34).shape)
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
    found = tuple(torch.func.jacrev(lambda h: torch.tanh(h @ O34.T @ O34))(H34).shape)
    answer = "Four axes, n × m × n × m, or an nm × nm matrix when both are flattened."
    return shape_answer(t.derivation, answer, found, t.expected)


@BOOK.claim(
    "Q2.3",
    where="Question 2.3, line 61",
    says="What are the dimensions of ∂H/∂X for H of size n × m and a vector X with p elements?",
    latex=r"\frac{\partial\mathbf H}{\partial\mathbf X}\in\mathbb R^{n\times m\times p}",
    how="shape() in the derivation language, and automatic differentiation.",
    derivation="given X: p\ngiven A: n, p\ngiven B: m, p\nlet H = outer(A @ X, B @ X)\nclaim shape(jacobian(H, X)) == [n, m, p]",
    expected=(3, 4, 5),
)
def _shape_input(t: SimpleNamespace) -> Outcome:
    found = tuple(torch.func.jacrev(lambda x: torch.tanh(MIX @ x).reshape(3, 4))(X5).shape)
    return shape_answer(t.derivation, "Three axes, n × m × p, or an nm × p matrix when H is flattened.", found, t.expected)


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
    found = tuple(torch.func.hessian(lambda h: torch.tanh(h @ O34.T).square().sum())(H34).shape)
    answer = "Four axes, n × m × n × m, or an nm × nm symmetric matrix when H is flattened."
    return shape_answer(t.derivation, answer, found, t.expected)


@BOOK.claim(
    "Q3.0a",
    where="Question 3, lines 79-89",
    says="With W_1 cut into [W_11 W_12], W_1 x = W_11 x_1 + W_12 x_2.",
    latex=r"W_1\mathbf x=W_{11}\mathbf x_1+W_{12}\mathbf x_2",
    how="In the derivation language, and symbolically at sizes 2 × (2 + 2) with a symbol for every entry.",
    derivation="given W11, W12: Dp, Dx\ngiven x1, x2: Dx\nclaim concat(W11, W12, axis=1) @ concat(x1, x2) == W11 @ x1 + W12 @ x2",
    signs=(1, 1),
)
def _cut(t: SimpleNamespace) -> Outcome:
    sheet = put(t.derivation)
    w = sympy.Matrix(2, 4, sympy.symbols("w:8"))
    x = sympy.Matrix(4, 1, sympy.symbols("x:4"))
    rest = (w * x - t.signs[0] * w[:, :2] * x[:2, :] - t.signs[1] * w[:, 2:] * x[2:, :]).expand()
    return proved(sheet.holds and rest == sympy.zeros(2, 1), f"{sheet}. With symbols: the difference is {list(rest)}.")


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
        evidence=f"For a difference of (3, 4) the distance is 5 and J_1 = {loss.subs(d, 5)}. They agree only at distance {' and '.join(map(str, agree))}; J_1 is not "
        "a distance either (twice the difference gives four times the value).",
        corrected="J_1 is half the squared Euclidean distance.",
        corrected_holds=sympy.simplify(sympy.Rational(1, 2) * (3**2 + 4**2) - loss.subs(d, 5)) == 0 and sympy.simplify(loss - d**2 / 2) == 0,
    )


@BOOK.claim(
    "Q3.0c",
    where="Question 3, lines 103-105",
    says="J_2 is the cross entropy between the label and the prediction ŷ = W_3 p + b_3.",
    latex=r"J_2=\mathrm{CE}(y,\hat y),\quad\hat y=W_3\mathbf p+\mathbf b_3",
    how="The cross entropy of 1,000 random affine predictions of five classes: how many are distributions, and how many have a logarithm for the true class. The "
    "repair, softmax of the same numbers, likewise.",
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
        evidence=f"Of 1,000 affine predictions {100 * said[0]:.0f} % are distributions, and only {100 * said[1]:.0f} % have a positive entry for the true class: elsewhere the "
        f"logarithm does not exist. After a softmax: {100 * mended[0]:.0f} % and {100 * mended[1]:.0f} %.",
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
    return proved(sheet.holds and found.tolist() == [list(row) for row in t.result], f"{sheet}. NumPy: {found.tolist()}.")


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
    return gradient_answer(t.derivation, "δ_2 = δ_1 ⊙ 1{h > 0} (at h = 0 the ReLU has no derivative; 0 is the convention).")


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


@BOOK.claim(
    "Q4.0a",
    where="Question 4, lines 129-135",
    says="X = [x_1, ..., x_n] with x_i in R^d, and Q = X W_Q with W_Q of size d × d.",
    latex=r"\mathbf X=[\mathbf x_1,\dots,\mathbf x_n],\quad\mathbf Q=\mathbf X\mathbf W_Q",
    how="Shapes in the derivation language: the vectors side by side as columns make X d × n; as rows it is n × d.",
    derivation="given X: d, n\ngiven WQ: d, d\nlet Q = X @ WQ\nclaim shape(Q) == [n, d]",
    repaired="given X: n, d\ngiven WQ: d, d\nlet Q = X @ WQ\nclaim shape(Q) == [n, d]",
)
def _columns(t: SimpleNamespace) -> Outcome:
    said, right = put(t.derivation), put(t.repaired)
    return ill_posed(
        flawed=not said.holds,
        evidence=f"As columns: {said}. As rows: {right}. The product fits with columns only when n = d, and then mixes tokens instead of features.",
        repaired="X = [x_1, ..., x_n]ᵀ, one token a row (n × d); or keep columns and write Q = W_Qᵀ X.",
        repaired_holds=right.holds,
    )


@BOOK.claim(
    "Q4.0b",
    where="Question 4, line 145",
    says="W_Q and W_K are symmetric and diagonalizable.",
    latex=r"W=W^\top\ \Rightarrow\ W=P\Lambda P^\top,\ P^\top P=I",
    how="Whether real symmetric matrices can be otherwise: 2 × 2 symbolically (the discriminant), 200 random ones of size 5 with simple and repeated eigenvalues "
    "numerically; beside them a complex symmetric matrix.",
    matrix=(("a", "b"), ("b", "c")),
)
def _spectral(t: SimpleNamespace) -> Outcome:
    a, b, c = sympy.symbols("a b c", real=True)
    names = {sympy.Symbol(str(s)): s for s in (a, b, c)}
    m = sympy.Matrix([[formula(e).subs(names) for e in row] for row in t.matrix])
    discriminant = sympy.factor(m.trace() ** 2 - 4 * m.det())
    real = sympy.simplify(discriminant - ((a - c) ** 2 + (2 * b) ** 2)) == 0  # a sum of squares: two real roots, or a multiple of I
    rng, worst = generator(8), 0.0
    for trial in range(200):
        s = rng.standard_normal((5, 5))
        s = s + s.T
        if trial % 2:
            basis = np.linalg.qr(s)[0]
            s = basis @ np.diag([1.0, 1.0, 2.0, 2.0, 2.0]) @ basis.T
        values, vectors = np.linalg.eigh(s)
        worst = max(worst, gap(vectors @ np.diag(values) @ vectors.T, s), gap(vectors.T @ vectors, np.eye(5)))
    nilpotent = sympy.Matrix([[1, sympy.I], [sympy.I, -1]])
    return proved(
        real and worst < 1e-10,
        f"Discriminant {discriminant}, never negative and 0 only for multiples of the identity. 200 random matrices rebuilt from orthonormal eigenvectors: error {worst:.0e}. "
        f"So for real matrices the second word adds nothing to the first. (Over the complex numbers it would: [[1, i], [i, -1]] is symmetric and diagonalizable: "
        f"{nilpotent.is_diagonalizable()}.)",
    )


def direction_weights(products: Tensor) -> Tensor:
    """Attention of a query along each common eigenvector over keys along each of them, with these eigenvalue products."""
    return torch.softmax(4 * torch.diag(products), dim=1)


@BOOK.claim(
    "Q4.1",
    where="Question 4.1, line 147",
    says="If W_Q and W_K have the same eigenvectors, attention favours the directions of these common eigenvectors.",
    latex=r"\mathbf x_i^\top W_QW_K^\top\mathbf x_j=\sum_r\lambda^Q_r\lambda^K_r(\mathbf p_r^\top\mathbf x_i)(\mathbf p_r^\top\mathbf x_j)",
    how="The decomposition of the scores in the derivation language. Then queries and keys along the common eigenvectors: whether each query's largest weight is on its own "
    "direction, for positive eigenvalue products and for products of either sign.",
    derivation="given P: d, d orthogonal\ngiven lq, lk: d\ngiven X: n, d\n"
    "let WQ = P @ diag(lq) @ P.T\nlet WK = P @ diag(lk) @ P.T\n"
    "claim (X @ WQ) @ (X @ WK).T == (X @ P) @ diag(lq * lk) @ (X @ P).T",
    products=("1", "2", "1/2"),
)
def _aligned(t: SimpleNamespace) -> Outcome:
    sheet = put(t.derivation)
    good = torch.tensor([float(value(p)) for p in t.products], dtype=torch.float64)
    mixed = good * torch.tensor([1.0, -1.0, 1.0], dtype=torch.float64)

    def favours(products: Tensor) -> bool:
        weights = direction_weights(products)
        return bool((weights.argmax(1) == torch.arange(3)).all())

    return conditional(
        with_condition=sheet.holds and favours(good),
        without_condition=sheet.holds and favours(mixed),
        evidence=f"{sheet}. Weights of a query on its own direction with products {', '.join(t.products)}: {_row(direction_weights(good).diag())}; with the second product negative: "
        f"{_row(direction_weights(mixed).diag())}, where the other directions get more. A product of 0 makes the direction invisible.",
        corrected="The scores are sums over common eigenvectors weighted by λ_Q λ_K; a direction is favoured where this product is positive (and large), disfavoured where it "
        "is negative, ignored where it is 0.",
    )


def _row(numbers: Tensor) -> str:
    return ", ".join(f"{float(n):.3f}" for n in numbers)


@BOOK.claim(
    "Q4.2",
    where="Question 4.2, lines 149-153",
    says="If every eigenvector of W_Q is orthogonal to every eigenvector of W_K, attention tends to be uniform.",
    latex=r"P_Q[:i]\perp P_K[:j]\ \forall i,j\ \Rightarrow\ \text{uniform attention}",
    how="Whether the premise can hold: the largest inner product between eigenvectors of W_Q and W_K, smallest value over 2,000 random pairs, against the bound 1/√d that "
    "two bases force. The repair (orthogonal ranges, W_Q W_K = 0) in the derivation language and with the softmax.",
    bound="1/sqrt(d)",
    repaired="given R: a+b, a+b orthogonal\ngiven l1: a\ngiven l2: b\ngiven X: n, a+b\n"
    "let WQ = R[0:a].T @ diag(l1) @ R[0:a]\nlet WK = R[a:a+b].T @ diag(l2) @ R[a:a+b]\n"
    "claim softmax((X @ WQ) @ (X @ WK).T) == ones(n, n) / n",
)
def _orthogonal(t: SimpleNamespace) -> Outcome:
    d, rng, smallest = 4, generator(9), 1.0
    for _ in range(2000):
        pq, pk = (np.linalg.qr(rng.standard_normal((d, d)))[0] for _ in range(2))
        smallest = min(smallest, float(np.abs(pq.T @ pk).max()))
    hadamard = np.array([[1, 1, 1, 1], [1, -1, 1, -1], [1, 1, -1, -1], [1, -1, -1, 1]]) / 2
    best = float(np.abs(hadamard).max())
    bound = float(value(t.bound, d=d))
    right = put(t.repaired)
    return ill_posed(
        flawed=smallest >= bound > 0 and math.isclose(best, bound),
        evidence=f"The eigenvectors of a symmetric matrix span the whole space; a vector orthogonal to all of them is 0. For d = {d} the largest inner product between two "
        f"eigenbases was never below {smallest:.3f}, and cannot be below 1/√d = {bound:.3f} (reached by the Hadamard basis, {best:.3f}). The premise never holds. "
        f"Repaired: {right}.",
        repaired="If the eigenvectors with non-zero eigenvalue are orthogonal to each other (W_Q W_K = 0, so both are singular), all scores are 0 and attention is exactly "
        "uniform.",
        repaired_holds=right.holds,
    )


def attention_rank(seed: int, n: int, p: int, q: int) -> tuple[int, int, int, int]:
    """Ranks of QKᵀ, V, softmax(QKᵀ) and the attention output for random factors of rank p and q."""
    scores = normals(seed, n, p) @ normals(seed + 1, p, n)
    v = normals(seed + 2, n, q) @ normals(seed + 3, q, n)
    a = torch.softmax(scores, dim=1)
    ranks = [int(torch.linalg.matrix_rank(m, rtol=1e-10)) for m in (scores, v, a, a @ v)]
    return ranks[0], ranks[1], ranks[2], ranks[3]


@BOOK.claim(
    "Q4.3",
    where="Question 4.3, line 157",
    says="What follows for the rank of the attention output from rank(QKᵀ) = p and rank(V) = q?",
    latex=r"\operatorname{rank}(\operatorname{softmax}(QK^\top)V)\le q,\quad\text{not}\ \le\min(p,q)",
    how="Ranks by singular values for p = 1, 2, 3 and q = 1..6 with 6 tokens, several draws; a rational example for p = 1; and p = 0.",
    bound="q",
)
def _rank(t: SimpleNamespace) -> Outcome:
    found = {(p, q): attention_rank(100 * p + q, 6, p, q) for p in (1, 2, 3) for q in range(1, 7)}
    within = all(r[3] <= float(value(t.bound, p=p, q=q)) for (p, q), r in found.items())
    exceeds = [(p, q, r[3]) for (p, q), r in found.items() if r[3] > min(p, q)]
    vandermonde = sympy.Matrix(4, 4, lambda i, j: sympy.Integer(2) ** (i * j))  # exp of the rank-1 scores i·j·log 2
    uniform = int(torch.linalg.matrix_rank(torch.softmax(torch.zeros(6, 6, dtype=torch.float64), dim=1) @ normals(7, 6, 6)))
    return answered(
        within and bool(exceeds) and vandermonde.rank() == 4 and uniform == 1,
        f"In all {len(found)} cases the rank is at most q; in {len(exceeds)} it exceeds min(p, q): with p = 1 and q = 6 it is {found[(1, 6)][3]}. Exactly: scores i·j·log 2 for i, j = 0..3 have "
        f"rank 1, their exponentials 2^(ij) rank {vandermonde.rank()}, and dividing rows by their sums keeps it. With p = 0 the weights are uniform and the rank is {uniform}.",
        "The rank is at most q, since rows of the output are combinations of rows of V. p gives no upper bound: the exponential is taken entry by entry and can raise the rank of the "
        "scores from 1 to n (only p = 0 forces rank at most 1).",
    )

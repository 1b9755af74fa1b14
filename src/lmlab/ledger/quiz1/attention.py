"""Question 4: attention with symmetric weight matrices, and the rank of its output."""

from __future__ import annotations

import math
from types import SimpleNamespace

import numpy as np
import sympy
import torch
from torch import Tensor

from lmlab.ledger.claim import Outcome, answered, conditional, ill_posed, proved
from lmlab.ledger.kit import formula, gap, generator, normals, value
from lmlab.ledger.quiz1.book import BOOK
from lmlab.ledger.sheet import put


@BOOK.claim(
    "Q4.0a",
    where="Question 4, lines 129-135",
    says="X = [x_1, ..., x_n] with x_i in R^d, and Q = X W_Q with W_Q of size d × d.",
    latex=r"\mathbf X=[\mathbf x_1,\dots,\mathbf x_n],\quad\mathbf Q=\mathbf X\mathbf W_Q",
    how="Shapes in the derivation language: the vectors side by side as columns make X d × n; as rows it is n × d.",
    derivation="given X: d, n\ngiven WQ: d, d\nclaim shape(X @ WQ) == [n, d]",
    repaired="given X: n, d\ngiven WQ: d, d\nclaim shape(X @ WQ) == [n, d]",
)
def _columns(t: SimpleNamespace) -> Outcome:
    said, right = put(t.derivation), put(t.repaired)
    return ill_posed(
        flawed=not said.holds,
        evidence=f"As columns: {said}. As rows: {right}. The product fits with columns only when n = d, and then "
        "mixes tokens instead of features.",
        repaired="X = [x_1, ..., x_n]ᵀ, one token a row (n × d); or keep columns and write Q = W_Qᵀ X.",
        repaired_holds=right.holds,
    )


@BOOK.claim(
    "Q4.0b",
    where="Question 4, line 145",
    says="W_Q and W_K are symmetric and diagonalizable.",
    latex=r"W=W^\top\ \Rightarrow\ W=P\Lambda P^\top,\ P^\top P=I",
    how="Whether real symmetric matrices can be otherwise. One eigenvector exists (the largest value of x·Wx on the "
    "unit sphere); what is orthogonal to it stays so, by (Wu)·v = u·(Wv) in the derivation language; so the "
    "dimension falls by one and all eigenvectors are found. The 2 × 2 case symbolically (the discriminant), 200 "
    "random matrices of size 5 numerically, and beside them a complex symmetric matrix.",
    derivation="given S: n, n\ngiven u, v: n\nlet W = S + S.T          # every symmetric matrix is of this form\n"
    "claim (W @ u) @ v == u @ (W @ v)",
    matrix=(("a", "b"), ("b", "c")),
)
def _spectral(t: SimpleNamespace) -> Outcome:
    sheet = put(t.derivation)
    a, b, c = sympy.symbols("a b c", real=True)
    names = {sympy.Symbol(str(s)): s for s in (a, b, c)}
    m = sympy.Matrix([[formula(e).subs(names) for e in row] for row in t.matrix])
    discriminant = sympy.factor(m.trace() ** 2 - 4 * m.det())
    real = (
        sympy.simplify(discriminant - ((a - c) ** 2 + (2 * b) ** 2)) == 0
    )  # a sum of squares: two real roots, or a multiple of I
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
        sheet.holds and real and worst < 1e-10 and not nilpotent.is_diagonalizable(),
        f"{sheet}. With Wv = λv and u·v = 0 this gives (Wu)·v = λ u·v = 0, so W maps the vectors orthogonal to v to "
        "such vectors, and the next eigenvector is found among them. For 2 × 2 the discriminant is (a - c)² + "
        "(2b)², never negative and 0 only for multiples of the identity. 200 random matrices rebuilt from "
        f"orthonormal eigenvectors: error {worst:.0e}. So for real matrices the second word adds nothing to the "
        "first. (Over the complex numbers it would: [[1, i], [i, -1]] is symmetric, and not diagonalizable.)",
    )


def direction_weights(products: Tensor) -> Tensor:
    """Attention of a query along each common eigenvector over keys along each of them, with these eigenvalue products."""
    return torch.softmax(4 * torch.diag(products), dim=1)


@BOOK.claim(
    "Q4.1",
    where="Question 4.1, line 147",
    says="If W_Q and W_K have the same eigenvectors, attention favours the directions of these common eigenvectors.",
    latex=r"\mathbf x_i^\top W_QW_K^\top\mathbf x_j=\sum_r\lambda^Q_r\lambda^K_r(\mathbf p_r^\top\mathbf "
    r"x_i)(\mathbf p_r^\top\mathbf x_j)",
    how="The decomposition of the scores in the derivation language. Then queries and keys along the common "
    "eigenvectors: whether each query's largest weight is on its own direction, for positive eigenvalue products "
    "and for products of either sign.",
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
        evidence=f"{sheet}. Weights of a query on its own direction with products {', '.join(t.products)}: "
        f"{_row(direction_weights(good).diag())}; with the second product negative: "
        f"{_row(direction_weights(mixed).diag())}, where the other directions get more. A product of 0 makes the "
        "direction invisible.",
        corrected="The scores are sums over common eigenvectors weighted by λ_Q λ_K; a direction is favoured where "
        "this product is positive (and large), disfavoured where it is negative, ignored where it is 0.",
    )


def _row(numbers: Tensor) -> str:
    return ", ".join(f"{float(n):.3f}" for n in numbers)


@BOOK.claim(
    "Q4.2",
    where="Question 4.2, lines 149-153",
    says="If every eigenvector of W_Q is orthogonal to every eigenvector of W_K, attention tends to be uniform.",
    latex=r"P_Q[:i]\perp P_K[:j]\ \forall i,j\ \Rightarrow\ \text{uniform attention}",
    how="Whether the premise can hold: the largest inner product between eigenvectors of W_Q and W_K, smallest "
    "value over 2,000 random pairs, against the bound 1/√d that two bases force. The repair (orthogonal ranges, W_Q "
    "W_K = 0) in the derivation language and with the softmax.",
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
        evidence="The eigenvectors of a symmetric matrix span the whole space; a vector orthogonal to all of them "
        f"is 0. For d = {d} the largest inner product between two eigenbases was never below {smallest:.3f}, and "
        f"cannot be below 1/√d = {bound:.3f} (reached by the Hadamard basis, {best:.3f}). The premise never holds. "
        f"Repaired: {right}.",
        repaired="If the eigenvectors with non-zero eigenvalue are orthogonal to each other (W_Q W_K = 0, so both "
        "are singular), all scores are 0 and attention is exactly uniform.",
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
    how="Ranks by singular values for p = 1, 2, 3 and q = 1..6 with 6 tokens, several draws; a rational example for "
    "p = 1; and p = 0.",
    bound="q",
)
def _rank(t: SimpleNamespace) -> Outcome:
    found = {(p, q): attention_rank(100 * p + q, 6, p, q) for p in (1, 2, 3) for q in range(1, 7)}
    within = all(r[3] <= float(value(t.bound, p=p, q=q)) for (p, q), r in found.items())
    exceeds = [(p, q, r[3]) for (p, q), r in found.items() if r[3] > min(p, q)]
    vandermonde = sympy.Matrix(4, 4, lambda i, j: sympy.Integer(2) ** (i * j))  # exp of the rank-1 scores i·j·log 2
    uniform = int(
        torch.linalg.matrix_rank(torch.softmax(torch.zeros(6, 6, dtype=torch.float64), dim=1) @ normals(7, 6, 6))
    )
    return answered(
        within and bool(exceeds) and vandermonde.rank() == 4 and uniform == 1,
        f"In all {len(found)} cases the rank is at most q; in {len(exceeds)} it exceeds min(p, q): with p = 1 and q "
        f"= 6 it is {found[(1, 6)][3]}. Exactly: scores i·j·log 2 for i, j = 0..3 have rank 1, their exponentials "
        f"2^(ij) rank {vandermonde.rank()}, and dividing rows by their sums keeps it. With p = 0 the weights are "
        f"uniform and the rank is {uniform}.",
        "The rank is at most q, since rows of the output are combinations of rows of V. p gives no upper bound: the "
        "exponential is taken entry by entry and can raise the rank of the scores from 1 to n (only p = 0 forces "
        "rank at most 1).",
    )

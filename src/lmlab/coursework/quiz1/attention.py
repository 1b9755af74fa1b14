"""Question 4: attention with symmetric weight matrices, and the rank of its output."""

from __future__ import annotations

import math
from types import SimpleNamespace

import sympy
import torch
from torch import Tensor

from lmlab.coursework.book import book
from lmlab.coursework.claim import Outcome, answered, conditional, ill_posed, measured, together
from lmlab.coursework.shared_tools import eye, formula, gap, normals, number, orthogonal, row, value
from lmlab.coursework.sheet import confirmed, put

claim = book("quiz1").claim


@claim(
    "Q4.0a",
    derivation="given X: d, n\ngiven WQ: d, d\nclaim shape(X @ WQ) == [n, d]",
    repaired="given X: n, d\ngiven WQ: d, d\nclaim shape(X @ WQ) == [n, d]",
)
def _columns(t: SimpleNamespace) -> Outcome:
    said, right = put(t.derivation), put(t.repaired)
    return ill_posed(
        not said.holds,
        f"As the document has it: {said}",
        f"One token a row: {right}",
        because="The product fits with columns only when n = d, and then mixes tokens instead of features.",
        repaired="X = [x_1, ..., x_n]ᵀ, one token a row (n × d); or keep columns and write Q = W_Qᵀ X.",
        holds=right.holds,
        otherwise=said.finding,
    )


@claim(
    "Q4.0b",
    derivation="given S: n, n\ngiven u, v: n\nlet W = S + S.T          # every symmetric matrix is of this form\n"
    "claim (W @ u) @ v == u @ (W @ v)",
    matrix=(("a", "b"), ("b", "c")),
)
def _spectral(t: SimpleNamespace) -> Outcome:
    m = sympy.Matrix([[formula(entry) for entry in line] for line in t.matrix])
    discriminant = sympy.factor(m.trace() ** 2 - 4 * m.det())
    squares = sympy.simplify(discriminant - ((m[0, 0] - m[1, 1]) ** 2 + (2 * m[0, 1]) ** 2)) == 0
    draws, worst, repeated = 200, 0.0, torch.tensor([1.0, 1.0, 2.0, 2.0, 2.0], dtype=torch.float64)
    for seed in range(draws):
        s, basis = normals(seed, 5, 5), orthogonal(5, seed)
        s = s + s.T if seed % 2 else basis @ torch.diag(repeated) @ basis.T
        values, vectors = torch.linalg.eigh(s)
        worst = max(worst, gap(vectors @ torch.diag(values) @ vectors.T, s), gap(vectors.T @ vectors, eye(5)))
    nilpotent = sympy.Matrix([[1, sympy.I], [sympy.I, -1]])
    return confirmed(
        put(t.derivation),
        squares and worst < 1e-10 and not nilpotent.is_diagonalizable(),
        "With Wv = λv and u·v = 0 this gives (Wu)·v = λ u·v = 0, so W maps the vectors orthogonal to v to such vectors, and "
        "the next eigenvector is found among them.",
        f"For 2 × 2 the discriminant is {discriminant}; it is (a - c)² + (2b)², never negative and 0 only for multiples of "
        f"the identity: {squares}.",
        f"{draws} random matrices rebuilt from orthonormal eigenvectors: error {worst:.0e}.",
        note="So for real matrices the second word adds nothing to the first. (Over the complex numbers it would: "
        "[[1, i], [i, -1]] is symmetric, and not diagonalizable.)",
    )


def own_weights(p_q: Tensor, p_k: Tensor, products: Tensor) -> Tensor:
    """Weight each eigenvector of W_K gives itself as query among all of them as keys, with these eigenvalue products."""
    d = len(products)
    values_k = torch.linspace(0.5, 2.0, d, dtype=torch.float64)
    w_q, w_k = p_q @ torch.diag(products / values_k) @ p_q.T, p_k @ torch.diag(values_k) @ p_k.T
    x = math.sqrt(4 * math.sqrt(d)) * p_k.T  # one token along each eigenvector, so that scores are 4 times the product
    return torch.softmax((x @ w_q) @ (x @ w_k).T / math.sqrt(d), dim=1)


@claim(
    "Q4.1",
    derivation="given P: d, d orthogonal\ngiven lq, lk: d\ngiven X: n, d\n"
    "let WQ = P @ diag(lq) @ P.T\nlet WK = P @ diag(lk) @ P.T\n"
    "claim (X @ WQ) @ (X @ WK).T == (X @ P) @ diag(lq * lk) @ (X @ P).T",
    products=("1", "2", "1/2"),  # of the eigenvalues
    mixed=("1", "-2", "1/2"),
    eigenvectors="common",  # or "different"
)
def _aligned(t: SimpleNamespace) -> Outcome:
    sheet, draws, size = put(t.derivation), 100, len(t.products)
    finds, bases = {}, [orthogonal(size, seed) for seed in range(2 * draws)]
    for texts in (t.products, t.mixed):
        products = torch.tensor([number(text) for text in texts], dtype=torch.float64)
        weights = [
            own_weights(p if t.eigenvectors == "common" else other, p, products)
            for p, other in zip(bases[:draws], bases[draws:], strict=True)
        ]
        first = [bool((w.argmax(1) == torch.arange(size)).all()) for w in weights]
        finds[texts] = (sum(first), torch.stack([w.diag() for w in weights]).mean(0))
    steps = [
        f"With products of eigenvalues {row(texts)}, {draws} random bases: every direction gives itself the largest weight in "
        f"{count}; its weight on itself is {row(map(float, own), '{:.3f}')} on average."
        for texts, (count, own) in finds.items()
    ]
    return conditional(
        together("proved" if sheet.holds else sheet.finding, measured(finds[t.products][0] == draws)),
        measured(finds[t.mixed][0] == draws),
        str(sheet),
        *steps,
        because="A direction whose product is negative gives the others more; one of product 0 is invisible.",
        precisely="The scores are sums over common eigenvectors weighted by λ_Q λ_K; a direction is favoured where "
        "this product is positive (and large), disfavoured where it is negative, ignored where it is 0.",
    )


@claim(
    "Q4.2",
    bound="1/sqrt(d)",
    repaired="given R: a+b, a+b orthogonal\ngiven l1: a\ngiven l2: b\ngiven X: n, a+b\n"
    "let WQ = R[0:a].T @ diag(l1) @ R[0:a]\nlet WK = R[a:a+b].T @ diag(l2) @ R[a:a+b]\n"
    "claim softmax((X @ WQ) @ (X @ WK).T) == ones(n, n) / n",
    premise="all eigenvectors",  # or "those with a non-zero eigenvalue"
)
def _orthogonal(t: SimpleNamespace) -> Outcome:
    d, draws = 4, 2000
    smallest = min(float((orthogonal(d, seed).T @ orthogonal(d, draws + seed)).abs().max()) for seed in range(draws))
    hadamard = torch.tensor([[1, 1, 1, 1], [1, -1, 1, -1], [1, 1, -1, -1], [1, -1, -1, 1]]) / 2
    best, bound, right = float(hadamard.abs().max()), number(t.bound, d=d), put(t.repaired)
    forced = smallest >= bound > 0 and math.isclose(best, bound)
    return ill_posed(
        forced and t.premise == "all eigenvectors",
        f"Two eigenbases in {d} dimensions, {draws:,} random pairs: their largest inner product is never below "
        f"{smallest:.3f}; a row of d numbers whose squares sum to 1 has one of at least {t.bound} = {bound:.3f}, and the "
        f"Hadamard basis has {best:.3f}.",
        f"With {t.premise if t.premise != 'all eigenvectors' else 'those of a non-zero eigenvalue'} orthogonal: {right}",
        because="The eigenvectors of a symmetric matrix span the whole space; a vector orthogonal to all of them is 0: the "
        "premise never holds.",
        repaired="If the eigenvectors with non-zero eigenvalue are orthogonal to each other (W_Q W_K = 0, so both "
        "are singular), all scores are 0 and attention is exactly uniform.",
        holds=right.holds,
        otherwise=right.finding if forced else "undecided",
    )


def attention_ranks(seed: int, n: int, p: int, q: int) -> tuple[int, int]:
    """Ranks of softmax(QKᵀ) and of the attention output for random QKᵀ of rank p and V of rank q."""
    a = torch.softmax(normals(seed, n, p) @ normals(seed + 1, p, n), dim=1)
    v = normals(seed + 2, n, q) @ normals(seed + 3, q, n)
    first, second = (int(torch.linalg.matrix_rank(m, rtol=1e-10)) for m in (a, a @ v))
    return first, second


@claim("Q4.3", bound="q")
def _rank(t: SimpleNamespace) -> Outcome:
    found = {(p, q): attention_ranks(100 * p + q, 6, p, q)[1] for p in (1, 2, 3) for q in range(1, 7)}
    within = all(rank <= number(t.bound, p=p, q=q) for (p, q), rank in found.items())
    exceeds = [(p, q) for (p, q), rank in found.items() if rank > min(p, q)]
    vandermonde = sympy.Matrix(4, 4, lambda i, j: sympy.Integer(2) ** (i * j))  # exp of the rank-1 scores i·j·log 2
    uniform = int(torch.linalg.matrix_rank(torch.softmax(0 * eye(6), dim=1) @ normals(7, 6, 6)))
    return answered(
        within and bool(exceeds) and vandermonde.rank() == 4 and uniform == 1,
        f"Of {len(found)} cases with 6 tokens, in which the rank is at most {t.bound}: {within}; it exceeds min(p, q) in "
        f"{len(exceeds)}: with p = 1 and q = 6 it is {found[1, 6]}.",
        f"Exactly: scores i·j·log 2 for i, j = 0..3 have rank 1, their exponentials 2^(ij) rank {vandermonde.rank()}, and "
        "dividing rows by their sums keeps it.",
        f"With p = 0 the weights are uniform and the rank is {uniform}.",
        answer=f"The rank is at most {value(t.bound)}, since rows of the output are combinations of rows of V. p gives no "
        "upper bound: the exponential is taken entry by entry and can raise the rank of the scores from 1 to n (only p = 0 "
        "forces rank at most 1).",
    )

"""Exercises 12.5 to 12.7: many heads, attention as one large matrix, and re-ordered inputs."""

from __future__ import annotations

import math
from itertools import permutations, product
from types import SimpleNamespace

import torch
from torch import nn

from lmlab.coursework.book import book
from lmlab.coursework.claim import Outcome, exact, judged
from lmlab.coursework.shared_tools import (
    agree,
    attention,
    blocks,
    eye,
    gap,
    normals,
    number,
    order_of_a_weighted_mean,
    parameters,
)
from lmlab.coursework.sheet import confirmed, contradicted, put
from lmlab.layers.positions import sinusoidal_table

claim = book("bishop12").claim

HEADS = """
given X: N, D
given Wq1, Wk1, Wq2, Wk2: D, Dk
given Wv1, Wv2: D, Dv
given Wo: 2*Dv, D
let A1 = softmax(X @ Wq1 @ (X @ Wk1).T / sqrt(Dk))
let A2 = softmax(X @ Wq2 @ (X @ Wk2).T / sqrt(Dk))
let Y = concat(A1 @ (X @ Wv1), A2 @ (X @ Wv2), axis=1) @ Wo
"""

ONE_HEAD = """
given X: N, D
given Wq, Wk, Wv: D, D
let A = softmax(X @ Wq @ (X @ Wk).T / sqrt(D))
"""

REORDERED = """
given Q, K: N, Dk
given P: N, N permutation
let S = Q @ K.T / sqrt(Dk)
"""

STACKED = "given A: N, N\ngiven X: N, D\ngiven Wv: D, D\n"


@claim("5", derivation=HEADS + "claim Y == (A1 @ X) @ (Wv1 @ Wo[0:Dv]) + (A2 @ X) @ (Wv2 @ Wo[Dv:2*Dv])")
def _sum_of_heads(t: SimpleNamespace) -> Outcome:
    return confirmed(put(t.derivation), *blocks("H1 H2 O1 O2"), "With H_h = A_h X W_v the brackets may be moved.")


@claim("6.a", full="N**2*D**2", attention="3*D**2")
def _full_matrix(t: SimpleNamespace) -> Outcome:
    sizes = [{"N": n, "D": d} for n, d in product((2, 5, 64), (3, 8, 20))]  # three of each settle degree two

    def linear(width: int) -> int:
        return parameters(nn.Linear(width, width, bias=False, device="meta"))

    full, lines = agree(t.full, lambda N, D: linear(N * D), sizes)
    shared, more = agree(t.attention, lambda N, D: 3 * linear(D), sizes)
    return judged(
        exact(full and shared),
        f"Built as torch modules without biases, D_k = D_v = D, at {len(sizes)} sizes. The full matrix, {t.full}: "
        f"{'; '.join(lines[::4])}. Self-attention, {t.attention}: {'; '.join(more[::4])}.",
        note="With N = 1 the full matrix would be the smaller one.",
    )


@claim(
    "6.b",
    derivation=STACKED + "claim kron(A, Wv) @ reshape(X, N*D) == reshape(A @ X @ Wv, N*D)",
    corrected=STACKED + "claim kron(A, Wv.T) @ reshape(X, N*D) == reshape(A @ X @ Wv, N*D)",
)
def _blocks(t: SimpleNamespace) -> Outcome:
    return contradicted(
        t,
        "The (n, m) block is a_nm times the transpose of W_v; only for symmetric W_v is it a_nm W_v.",
        "X holds the tokens as rows (V = X W_v), but the stacked vectors are columns: y_n = Σ_m a_nm W_vᵀ x_m.",
    )


@claim("6.c", mixing="softmax", tokens=6, width=5, draws=20)  # or "identity": the projections alone
def _sparse(t: SimpleNamespace) -> Outcome:
    n, d = t.tokens, t.width
    zeros = {"softmax": 0, "identity": 0}
    for seed in range(t.draws):
        x, wq, wk, wv = normals(seed, n, d), *normals(100 + seed, 3, d, d)
        weights = torch.softmax(x @ wq @ (x @ wk).T / math.sqrt(d), dim=1)
        for name, mixing in (("softmax", weights), ("identity", eye(n))):
            zeros[name] += int((torch.kron(mixing, wv.T.contiguous()) == 0).sum())
    total = t.draws * n * n * d * d
    return judged(
        exact(zeros[t.mixing] > total / 2),
        f"The matrix formed for random inputs, N = {n}, D = {d}, {t.draws} draws: with the weights of the softmax "
        f"{zeros['softmax']} zeros among {total:,} entries; with each token for itself, the projections alone, "
        f"{zeros['identity']:,}. Sparse means that most are zero.",
        because="Softmax weights are strictly positive, so no block vanishes.",
        corrected="The matrix A ⊗ W_vᵀ is dense with shared parameters; sparse are only the projections, I ⊗ W_vᵀ "
        "(and A itself under a mask).",
        holds=zeros["softmax"] == 0 and zeros["identity"] == t.draws * n * (n - 1) * d * d,
    )


@claim(
    "6.d",
    doubled=ONE_HEAD
    + "let B = softmax(2 * X @ Wq @ (2 * X @ Wk).T / sqrt(D))\nclaim B @ (2 * X) @ Wv == 2 * A @ X @ Wv",
    fixed="given A: N, N\ngiven X, Z: N, D\ngiven Wv: D, D\n"
    "claim A @ (2 * X - 3 * Z) @ Wv == 2 * (A @ X @ Wv) - 3 * (A @ Z @ Wv)",
)
def _nonlinear(t: SimpleNamespace) -> Outcome:
    doubled, fixed = put(t.doubled), put(t.fixed)
    return judged(
        exact(doubled.finding == "refuted" and fixed.holds),
        f"f(2X) = 2 f(X) must be refuted: {doubled}",
        f"With the weights held fixed: {fixed}",
    )


@claim(
    "7",
    derivation="given X: N, D\ngiven Wq, Wk, Wv: D, Dk\ngiven P: N, N permutation\nlet Z = P @ X\n"
    "claim (Z @ Wq) @ (Z @ Wk).T == P @ (X @ Wq) @ (X @ Wk).T @ P.T\n"
    "let Y = softmax(X @ Wq @ (X @ Wk).T / sqrt(Dk)) @ X @ Wv\n"
    "claim softmax(Z @ Wq @ (Z @ Wk).T / sqrt(Dk)) @ Z @ Wv == P @ Y",
    outputs="re-ordered alike",  # or "unchanged"
)
def _equivariant(t: SimpleNamespace) -> Outcome:
    change, x = order_of_a_weighted_mean(), normals(1, 5, 6)
    y, worst = attention(x, 2, heads=2), 0.0
    for order in map(list, permutations(range(5))):
        worst = max(worst, gap(attention(x[order], 2, heads=2), y[order] if t.outputs == "re-ordered alike" else y))
    return confirmed(
        put(t.derivation),
        change == 0 and worst < 1e-12,
        f"Exchanging two tokens among any number exchanges two terms of every weighted mean, which changes by {change}, and "
        "the rows of the two move with them; exchanges generate all orders.",
        f"Two heads, all {math.factorial(5)} orders of 5 tokens, outputs {t.outputs}: largest difference {worst:.1e}.",
    )


@claim(
    "7.b",
    derivation=REORDERED + "claim (P @ Q) @ (P @ K).T / sqrt(Dk) == P @ S @ P.T / sqrt(Dk)",
    corrected=REORDERED + "claim (P @ Q) @ (P @ K).T / sqrt(Dk) == P @ S @ P.T",
)
def _scaled_twice(t: SimpleNamespace) -> Outcome:
    return contradicted(
        t,
        "S' = P S Pᵀ, without a second division.",
        "S carries the factor 1/√D_k already; the document divides by it twice (harmless only for D_k = 1, and its A' = P A Pᵀ "
        "then does not follow).",
    )


@claim("7.c", strength="1")  # how much of the encoding is added
def _positions_break(t: SimpleNamespace) -> Outcome:
    x, order = normals(1, 5, 6), [1, 0, 2, 3, 4]
    places = sinusoidal_table(5, 6).double()

    def moved(strength: float) -> float:
        after, before = (attention(tokens + strength * places, 2, heads=2) for tokens in (x[order], x))
        return gap(after, before[order])

    with_positions, without = moved(number(t.strength)), moved(0.0)
    return judged(
        exact(with_positions > 1e-3 and without < 1e-12),
        f"Two heads; after swapping two of 5 tokens the outputs differ from the swapped outputs by {with_positions:.4f} with "
        f"{t.strength} times sinusoidal positions added, by {without:.1e} without.",
    )

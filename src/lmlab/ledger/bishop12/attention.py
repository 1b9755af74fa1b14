"""Exercises 12.5 to 12.7: many heads, attention as one large matrix, and re-ordered inputs."""

from __future__ import annotations

import math
from itertools import permutations, product
from types import SimpleNamespace

import sympy
import torch
from torch import Tensor, nn

from lmlab.ledger.bishop12.book import BOOK
from lmlab.ledger.claim import Outcome, proved, refuted
from lmlab.ledger.kit import gap, normals, parameters, value
from lmlab.ledger.sheet import put

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


def multi_head(x_ND: Tensor, seed: int, heads: int = 2) -> Tensor:
    """Multi-head attention with fixed random weights (bishop12 12.19), float64."""
    d = x_ND.shape[1]
    w = normals(seed, 4, d, d) / math.sqrt(d)
    q, k, v = (torch.stack((x_ND @ w[i]).chunk(heads, dim=1)) for i in range(3))
    weights_HNN = torch.softmax(q @ k.transpose(1, 2) / math.sqrt(d // heads), dim=-1)
    return torch.cat(list(weights_HNN @ v), dim=1) @ w[3]


@BOOK.claim(
    "5",
    where="Exercise 12.5, lines 153-181",
    says="Multi-head attention is a sum over heads of attention with X itself as values, times W_v W_o of that head.",
    latex=r"Y=\sum_h \operatorname{Attention}(XW_h^{(q)},XW_h^{(k)},X)\,W_h^{(v)}W_h^{(o)}",
    how="In the derivation language with two heads and free sizes; W_o is cut into one block of rows for each head.",
    derivation=HEADS + "claim Y == (A1 @ X) @ (Wv1 @ Wo[0:Dv]) + (A2 @ X) @ (Wv2 @ Wo[Dv:2*Dv])",
)
def _sum_of_heads(t: SimpleNamespace) -> Outcome:
    sheet = put(t.derivation)
    n, v, d = sympy.symbols("n v d", integer=True, positive=True)
    h1, h2 = sympy.MatrixSymbol("H1", n, v), sympy.MatrixSymbol("H2", n, v)
    o1, o2 = sympy.MatrixSymbol("O1", v, d), sympy.MatrixSymbol("O2", v, d)
    blocks = sympy.block_collapse(sympy.BlockMatrix([[h1, h2]]) * sympy.BlockMatrix([[o1], [o2]]))
    exact = blocks == sympy.BlockMatrix([[h1 * o1 + h2 * o2]]) or blocks == h1 * o1 + h2 * o2
    return proved(
        sheet.holds and exact,
        f"{sheet}. Blocks with matrices as symbols: [H1, H2][O1; O2] = {blocks}; with H_h = A_h X W_v the brackets "
        "may be moved.",
    )


@BOOK.claim(
    "6.a",
    where="Exercise 12.6, line 189",
    says="A full matrix on the stacked sequence has N²D² parameters; self-attention has 3D².",
    latex=r"(ND)^2=N^2D^2\quad\text{against}\quad 3D^2",
    how="Both are built as torch modules without biases for three N and three D each (with D_k = D_v = D) and counted.",
    full="N**2*D**2",
    attention="3*D**2",
)
def _full_matrix(t: SimpleNamespace) -> Outcome:
    lines, right = [], True
    for n, d in product((2, 5, 64), (3, 8, 20)):  # three of each settle a polynomial of degree two
        full = parameters(nn.Linear(n * d, n * d, bias=False, device="meta"))
        shared = sum(parameters(nn.Linear(d, d, bias=False, device="meta")) for _ in range(3))
        right &= full == value(t.full, N=n, D=d) and shared == value(t.attention, N=n, D=d)
        lines.append(f"N = {n}, D = {d}: {full:,} and {shared:,}")
    return proved(
        right,
        "; ".join(lines[::4])
        + f" (and {len(lines)} pairs in all). With N = 1 the full matrix would be the smaller one.",
    )


@BOOK.claim(
    "6.b",
    where="Exercise 12.6, lines 211-213",
    says="With the attention weights held fixed, the matrix that maps the stacked inputs to the stacked outputs has "
    "the blocks a_nm W_v.",
    latex=r"\mathbf Y_{\rm stack}=\mathbf W_{\rm att}\mathbf X_{\rm stack},\quad [\mathbf W_{\rm "
    r"att}]_{nm}=a_{nm}W^{(v)}",
    how="In the derivation language: the Kronecker product of A with the block, times the stacked rows of X, against "
    "A X W_v.",
    derivation="given A: N, N\ngiven X: N, D\ngiven Wv: D, D\nclaim kron(A, Wv) @ reshape(X, N*D) == reshape(A @ X @ "
    "Wv, N*D)",
    corrected="given A: N, N\ngiven X: N, D\ngiven Wv: D, D\nclaim kron(A, Wv.T) @ reshape(X, N*D) == reshape(A @ X "
    "@ Wv, N*D)",
)
def _blocks(t: SimpleNamespace) -> Outcome:
    said, right = put(t.derivation), put(t.corrected)
    return refuted(
        holds=said.holds,
        evidence=f"{said}. X holds the tokens as rows (V = X W_v), but the stacked vectors are columns: y_n = Σ_m "
        f"a_nm W_vᵀ x_m. Correction: {right}",
        corrected="The (n, m) block is a_nm times the transpose of W_v; only for symmetric W_v is it a_nm W_v.",
        corrected_holds=right.holds,
    )


@BOOK.claim(
    "6.c",
    where="Exercise 12.6, lines 187 and 218",
    says="Self-attention corresponds to a sparse version of the full matrix (the exercise says so; the solution "
    "finds no sparsity).",
    latex=r"\mathbf W_{\rm att}=A\otimes W^{(v)\top}\ \text{is sparse}",
    how="The matrix is formed for random inputs (N = 6, D = 5, 20 draws) and its zeros are counted; beside it the "
    "matrix of the projections alone.",
    mixing="softmax",
)
def _sparse(t: SimpleNamespace) -> Outcome:
    n, d, zeros, projection_zeros = 6, 5, 0, 0
    for seed in range(20):
        x, wq, wk, wv = normals(seed, n, d), *normals(100 + seed, 3, d, d)
        weights = torch.softmax(x @ wq @ (x @ wk).T / math.sqrt(d), dim=1)
        mixing = {"softmax": weights, "identity": torch.eye(n, dtype=torch.float64)}[t.mixing]
        zeros += int((torch.kron(mixing, wv.T.contiguous()) == 0).sum())
        projection_zeros += int((torch.kron(torch.eye(n, dtype=torch.float64), wv.T.contiguous()) == 0).sum())
    total = 20 * n * n * d * d
    return refuted(
        holds=zeros > 0,
        evidence=f"{zeros} zeros among {total:,} entries: softmax weights are strictly positive, so no block "
        f"vanishes. The projections alone (X to X W_v) are block-diagonal: {projection_zeros:,} zeros, a share of 1 "
        "- 1/N.",
        corrected="The matrix A ⊗ W_vᵀ is dense with shared parameters; sparse are only the projections, I ⊗ W_vᵀ "
        "(and A itself under a mask).",
        corrected_holds=projection_zeros == 20 * n * (n - 1) * d * d,
    )


@BOOK.claim(
    "6.d",
    where="Exercise 12.6, line 205",
    says="The map from inputs to outputs is not linear, because the weights depend on the inputs.",
    latex=r"f(X)=A(X)XW_v\ \text{is not linear};\quad X\mapsto AXW_v\ \text{with fixed}\ A\ \text{is}",
    how="Put to the derivation checker: f(2X) = 2 f(X) must be refuted with A computed from X, and hold with A held "
    "fixed.",
    doubled=ONE_HEAD
    + "let B = softmax(2 * X @ Wq @ (2 * X @ Wk).T / sqrt(D))\nclaim B @ (2 * X) @ Wv == 2 * A @ X @ Wv",
    fixed="given A: N, N\ngiven X, Z: N, D\ngiven Wv: D, D\nclaim A @ (2 * X - 3 * Z) @ Wv == 2 * (A @ X @ Wv) - 3 * "
    "(A @ Z @ Wv)",
)
def _nonlinear(t: SimpleNamespace) -> Outcome:
    doubled, fixed = put(t.doubled), put(t.fixed)
    return proved(
        not doubled.holds and fixed.holds,
        f"Doubling the input: {doubled}. With the weights held fixed: {fixed}.",
    )


@BOOK.claim(
    "7",
    where="Exercise 12.7, lines 231-283",
    says="Without positions, multi-head attention is equivariant: re-ordering the inputs re-orders the outputs alike.",
    latex=r"Y(PX)=P\,Y(X)",
    how="In the derivation language for one head and any permutation. Symbolically: exchanging two tokens exchanges "
    "two terms of numerator and denominator of every output, for any number of others, and exchanges generate all "
    "orders; all permutations of 3 tokens written out. Numerically with two heads, all permutations of 5 tokens.",
    derivation="given X: N, D\ngiven Wq, Wk, Wv: D, Dk\ngiven P: N, N permutation\nlet Z = P @ X\n"
    "claim (Z @ Wq) @ (Z @ Wk).T == P @ (X @ Wq) @ (X @ Wk).T @ P.T\n"
    "let Y = softmax(X @ Wq @ (X @ Wk).T / sqrt(Dk)) @ X @ Wv\n"
    "claim softmax(Z @ Wq @ (Z @ Wk).T / sqrt(Dk)) @ Z @ Wv == P @ Y",
    outputs="reordered",  # how Y(PX) relates to Y(X): re-ordered, or unchanged
)
def _equivariant(t: SimpleNamespace) -> Outcome:
    sheet = put(t.derivation)
    e1, e2, v1, v2, rest_v, rest_e = sympy.symbols("e1 e2 v1 v2 R Z", positive=True)
    output = (e1 * v1 + e2 * v2 + rest_v) / (e1 + e2 + rest_e)
    exchanged = output.subs({e1: e2, e2: e1, v1: v2, v2: v1}, simultaneous=True)
    exact = sympy.simplify(exchanged - output) == 0
    scores = sympy.Matrix(3, 3, lambda i, j: sympy.Symbol(f"e{i}{j}", positive=True))  # exp of the scores
    values = sympy.Matrix(3, 1, lambda i, _: sympy.Symbol(f"v{i}"))
    rows = sympy.diag(*[1 / sum(scores[i, :]) for i in range(3)])
    out = rows * scores * values
    for order in permutations(range(3)):
        p = sympy.Matrix(3, 3, lambda i, j, order=order: int(order[i] == j))
        moved = p * scores * p.T
        again = sympy.diag(*[1 / sum(moved[i, :]) for i in range(3)]) * moved * (p * values)
        exact &= sympy.simplify(again - (p * out if t.outputs == "reordered" else out)) == sympy.zeros(3, 1)
    x = normals(1, 5, 6)
    y, worst = multi_head(x, 2), 0.0
    for order in permutations(range(5)):
        index = list(order)
        worst = max(worst, gap(multi_head(x[index], 2), y[index] if t.outputs == "reordered" else y))
    return proved(
        sheet.holds and exact and worst < 1e-12,
        f"{sheet}. Exchange of two tokens among any number: output {output} changes by "
        f"{sympy.simplify(exchanged - output)}, and its row moves with the token it belongs to. Every one of the 6 "
        "permutations of 3 tokens, in symbols: "
        f"{'the outputs move alike' if exact else 'the outputs do not move alike'}. Two heads, all 120 permutations "
        f"of 5 tokens: largest difference {worst:.1e}.",
    )


@BOOK.claim(
    "7.b",
    where="Exercise 12.7, lines 249-263",
    says="With S = QKᵀ/√D_k the scores of the re-ordered inputs are S' = P S Pᵀ/√D_k.",
    latex=r"S=\frac{QK^\top}{\sqrt{D_k}},\qquad S'=\frac{PSP^\top}{\sqrt{D_k}}",
    how="In the derivation language, for every permutation of N tokens.",
    derivation=REORDERED + "claim (P @ Q) @ (P @ K).T / sqrt(Dk) == P @ S @ P.T / sqrt(Dk)",
    corrected=REORDERED + "claim (P @ Q) @ (P @ K).T / sqrt(Dk) == P @ S @ P.T",
)
def _scaled_twice(t: SimpleNamespace) -> Outcome:
    said, right = put(t.derivation), put(t.corrected)
    return refuted(
        holds=said.holds,
        evidence=f"{said}. S carries the factor 1/√D_k already; the document divides by it twice (harmless only for "
        f"D_k = 1, and its A' = P A Pᵀ then does not follow). Correction: {right}",
        corrected="S' = P S Pᵀ, without a second division.",
        corrected_holds=right.holds,
    )


@BOOK.claim(
    "7.c",
    where="Exercise 12.7, line 283",
    says="Adding a positional encoding breaks this equivariance.",
    latex=r"Y(PX+R)\ne P\,Y(X+R)",
    how="Two-head attention on 5 random tokens plus sinusoidal positions: one swap of two tokens must move the "
    "outputs by more than rounding; without positions it must not.",
    strength="1",  # how much of the encoding is added
)
def _positions_break(t: SimpleNamespace) -> Outcome:
    x = normals(1, 5, 6)
    n, i = torch.arange(5, dtype=torch.float64)[:, None], torch.arange(3, dtype=torch.float64)
    angle = n / 10_000 ** (2 * i / 6)
    r = float(value(t.strength)) * torch.stack([angle.sin(), angle.cos()], dim=2).reshape(5, 6)
    order = [1, 0, 2, 3, 4]
    without = gap(multi_head(x[order], 2), multi_head(x, 2)[order])
    with_positions = gap(multi_head(x[order] + r, 2), multi_head(x + r, 2)[order])
    return proved(
        with_positions > 1e-3 and without < 1e-12,
        f"After swapping tokens 0 and 1 the outputs differ from the swapped outputs by {with_positions:.4f} with "
        f"positions and by {without:.1e} without.",
    )

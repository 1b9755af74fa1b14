"""Exercises 12.8 to 12.10: random directions, and encodings of position."""

from __future__ import annotations

import math
from types import SimpleNamespace

import numpy as np
import sympy
import torch

from lmlab.ledger.bishop12.book import BOOK
from lmlab.ledger.claim import Outcome, conditional, proved
from lmlab.ledger.kit import NOTE, estimate, formula, generator, normals, value
from lmlab.ledger.sheet import put


@BOOK.claim(
    "8",
    where="Exercise 12.8, lines 287-311",
    says="For random unit vectors drawn from a distribution symmetrical around the origin, the cosine between two "
    "of them has variance 1/D, so that in high dimension they are nearly orthogonal.",
    latex=r"\operatorname{Var}(\mathbf a^\top\mathbf b)=\frac1D",
    how="E[(a·b)²] = tr(E[aaᵀ]²), exactly, for two distributions symmetrical under x → -x: the uniform one on the "
    "sphere and the one that is ±e_1; and 200,000 random pairs on the sphere for D = 4, 16, 64.",
    variance="1/D",
)
def _cosine(t: SimpleNamespace) -> Outcome:
    lines, round_holds, coin_holds = [], True, True
    for d in (4, 16, 64):
        claimed = float(value(t.variance, D=d))
        draws = generator(d).standard_normal((2, 200_000, d), dtype=np.float32)
        a, b = draws / np.linalg.norm(draws, axis=2, keepdims=True)
        measured = estimate((a * b).sum(1).astype(np.float64) ** 2)
        exact_round = float(np.trace(np.linalg.matrix_power(np.eye(d) / d, 2)))
        line = np.zeros((d, d))
        line[0, 0] = 1.0
        exact_coin = float(np.trace(np.linalg.matrix_power(line, 2)))
        round_holds &= measured.contains(claimed) and math.isclose(exact_round, claimed)
        coin_holds &= math.isclose(exact_coin, claimed)
        lines.append(f"D = {d}: sphere {measured}, exactly {exact_round:.5g}; ±e_1: exactly {exact_coin:g}")
    return conditional(
        with_condition=round_holds,
        without_condition=coin_holds,
        evidence="E[cos²]: "
        + "; ".join(lines)
        + ". The coin ±e_1 is symmetrical around the origin, yet |cos| is always 1. "
        + NOTE,
        corrected="It needs E[aaᵀ] = I/D, as for a distribution unchanged by rotations; symmetry under x → -x is not "
        "enough.",
    )


@BOOK.claim(
    "9",
    where="Exercise 12.9, lines 315-329",
    says="A matrix applied to the concatenation of token and position is the sum of a linear map of each.",
    latex=r"W\begin{pmatrix}\mathbf x\\ \mathbf r\end{pmatrix}=W_x\mathbf x+W_r\mathbf r",
    how="In the derivation language.",
    derivation="given x: D\ngiven r: P\ngiven Wx: M, D\ngiven Wr: M, P\n"
    "claim concat(Wx, Wr, axis=1) @ concat(x, r) == Wx @ x + Wr @ r",
)
def _concatenation(t: SimpleNamespace) -> Outcome:
    sheet = put(t.derivation)
    m, d, p = sympy.symbols("m d p", integer=True, positive=True)
    wx, wr = sympy.MatrixSymbol("Wx", m, d), sympy.MatrixSymbol("Wr", m, p)
    x, r = sympy.MatrixSymbol("x", d, 1), sympy.MatrixSymbol("r", p, 1)
    product = sympy.block_collapse(sympy.BlockMatrix([[wx, wr]]) * sympy.BlockMatrix([[x], [r]]))
    exact = product == wx * x + wr * r or product == sympy.BlockMatrix([[wx * x + wr * r]])
    return proved(sheet.holds and exact, f"{sheet}. With matrices as symbols: {product}.")


@BOOK.claim(
    "9.b",
    where="Exercise 12.9, line 329",
    says="Additive encoding can be learned equivalently if concatenation is used.",
    latex=r"\exists W:\ W\begin{pmatrix}\mathbf x\\ \mathbf r\end{pmatrix}=W'(\mathbf x+\mathbf r)\quad\text{and "
    r"conversely}",
    how="In the derivation language: W = [W', W'] turns concatenation into addition. The converse is put as a "
    "least-squares problem: the W' nearest to a random [W_x, W_r], and what remains.",
    derivation="given x, r: D\ngiven W: M, D\nclaim concat(W, W, axis=1) @ concat(x, r) == W @ (x + r)",
    second_block="free",  # "same" would tie the block of the position to that of the token
)
def _additive(t: SimpleNamespace) -> Outcome:
    sheet = put(t.derivation)
    wx = normals(1, 4, 6)
    wr = wx.clone() if t.second_block == "same" else normals(2, 4, 6)
    nearest = (wx + wr) / 2  # minimises |W' - W_x|² + |W' - W_r|²
    left = float(torch.cat([wx - nearest, wr - nearest], dim=1).norm() / torch.cat([wx, wr], dim=1).norm())
    return conditional(
        with_condition=sheet.holds,
        without_condition=sheet.holds and left < 1e-12,
        evidence=f"Concatenation does what addition does: {sheet}. The converse fails: for random W_x, W_r the best "
        f"single W' still misses {100 * left:.0f} % of the map, since W'(x + r) must treat both alike; and with "
        "sizes D ≠ P the sum x + r does not exist.",
        corrected="When both vectors have the same size, concatenation can imitate addition (W_x = W_r); addition "
        "can imitate concatenation only if W_x = W_r or the position vectors are themselves free to be learned.",
    )


@BOOK.claim(
    "10.a",
    where="Exercise 12.10, lines 337-367",
    says="The sinusoidal encoding at n + k is a linear map of the encoding at n: rotations that depend on k only.",
    latex=r"\begin{pmatrix}\sin((n+k)\omega)\\ \cos((n+k)\omega)\end{pmatrix}="
    r"\begin{pmatrix}\cos k\omega&\sin k\omega\\-\sin k\omega&\cos k\omega\end{pmatrix}"
    r"\begin{pmatrix}\sin n\omega\\ \cos n\omega\end{pmatrix}",
    how="In the derivation language for one pair of components, and symbolically by the addition theorems; the "
    "encoding is made of such pairs.",
    derivation="given n, k, w\nlet M = [[cos(k*w), sin(k*w)], [-sin(k*w), cos(k*w)]]\n"
    "claim [sin((n + k)*w), cos((n + k)*w)] == M @ [sin(n*w), cos(n*w)]",
    matrix=(("cos(k*w)", "sin(k*w)"), ("-sin(k*w)", "cos(k*w)")),
)
def _rotation(t: SimpleNamespace) -> Outcome:
    sheet = put(t.derivation)
    n, k, w = sympy.symbols("n k w")
    matrix = sympy.Matrix([[formula(entry) for entry in row] for row in t.matrix])
    pair = sympy.Matrix([sympy.sin(n * w), sympy.cos(n * w)])
    moved = sympy.Matrix([sympy.sin((n + k) * w), sympy.cos((n + k) * w)])
    difference = (matrix * pair - moved).applyfunc(lambda e: sympy.simplify(sympy.expand_trig(e)))
    free_of_n = n not in matrix.free_symbols
    return proved(
        sheet.holds and difference == sympy.zeros(2, 1) and free_of_n,
        f"{sheet}. Symbolic difference {list(difference)}; determinant {sympy.simplify(matrix.det())}; n does not "
        "occur in the matrix.",
    )


@BOOK.claim(
    "10.b",
    where="Exercise 12.10, lines 369-376",
    says="An encoding of sines alone, without cosines, lacks this property.",
    latex=r"\nexists M_k:\ \sin((n+k)\omega_i)=\sum_j (M_k)_{ij}\sin(n\omega_j)\ \forall n",
    how="Exactly at n = 0, where a sine-only encoding is the zero vector, which every matrix leaves at zero, while "
    "the encoding at k is not zero. Numerically: the best matrix by least squares over positions 0..199, for D = 8, "
    "k = 1, 3, 10.",
    functions=("sin",),
)
def _sines_alone(t: SimpleNamespace) -> Outcome:
    d = 8
    waves = {"sin": np.sin, "cos": np.cos}
    angles = np.arange(210)[:, None] / 10_000 ** (2 * np.arange(d) / (2 * d))
    encoding = np.concatenate([waves[name](angles) for name in t.functions], axis=1)
    residuals = {}
    for k in (1, 3, 10):
        here, there = encoding[:200], encoding[k : 200 + k]
        solution = np.linalg.lstsq(here, there, rcond=None)[0]
        residuals[k] = float(np.abs(here @ solution - there).max())
    zero_at_start = not encoding[0].any()
    stuck = zero_at_start and all(sympy.sin(k) != 0 for k in residuals)
    return proved(
        stuck and min(residuals.values()) > 1e-3,
        f"At n = 0 the encoding is {'the zero vector' if zero_at_start else 'not zero'} while sin(k·1) ≠ 0 for "
        "whole k ≥ 1. Largest error of the best matrix: "
        f"{'; '.join(f'k = {k}: {r:.2g}' for k, r in residuals.items())}. (The document's reason, that a cosine is "
        "not among the components, is not yet a proof: on few positions the other sines can imitate it.)",
    )

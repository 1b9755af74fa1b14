"""Exercises 12.1 to 12.4: attention weights, orthogonal inputs, and the size of a dot product."""

from __future__ import annotations

import math
from types import SimpleNamespace

import numpy as np
import sympy
import torch

from lmlab.ledger.bishop12.book import BOOK
from lmlab.ledger.claim import Outcome, conditional, proved, refuted
from lmlab.ledger.kit import formula, value
from lmlab.ledger.sheet import put

ORTHOGONAL_INPUTS = """
given R: N, N orthogonal
given c: N positive
let X = diag(c) @ R            # rows at right angles, row n of length c[n]
let C = c**2
"""


@BOOK.claim(
    "1",
    where="Exercise 12.1, lines 13-23",
    says="Non-negative coefficients that sum to 1 are each at most 1 (and no Lagrange multiplier is needed to see it).",
    latex=r"a_m\ge0,\ \sum_m a_m=1\ \Rightarrow\ a_m\le 1",
    how="In the derivation language; and exactly: a linear function on the simplex is largest at a corner, and the "
    "largest entry over the corners is the bound.",
    derivation="given a: N simplex\nclaim a <= 1",
    bound="1",
)
def _at_most_one(t: SimpleNamespace) -> Outcome:
    sheet = put(t.derivation)
    largest = max(np.eye(n).max() for n in range(1, 8))
    return proved(
        sheet.holds and float(value(t.bound)) == largest,
        f"{sheet}. Largest entry over the corners of the simplex for N = 1..7: {largest:g}, so the bound is reached.",
    )


@BOOK.claim(
    "2",
    where="Exercise 12.2, lines 33-49",
    says="Softmax weights of dot products are non-negative and sum to 1 for any vectors.",
    latex=r"a_{nm}=\frac{e^{x_n^\top x_m}}{\sum_{m'}e^{x_n^\top x_{m'}}}\ge0,\quad \sum_m a_{nm}=1",
    how="In the derivation language, and symbolically: exp of a real number is positive, and one weight plus the "
    "rest of the sum over the whole sum is 1.",
    derivation="given X: N, D\nlet A = softmax(X @ X.T)\nclaim A >= 0\nclaim sum(A, axis=1) == ones(N)",
)
def _softmax_weights(t: SimpleNamespace) -> Outcome:
    sheet = put(t.derivation)
    s, rest = sympy.Symbol("s", real=True), sympy.Symbol("rest", positive=True)
    positive = sympy.exp(s).is_positive and (sympy.exp(s) / (sympy.exp(s) + rest)).is_positive
    one = sympy.simplify(sympy.exp(s) / (sympy.exp(s) + rest) + rest / (sympy.exp(s) + rest)) == 1
    return proved(
        sheet.holds and bool(positive) and one, f"{sheet}. Symbolically each weight e^s/(e^s + rest) is positive."
    )


@BOOK.claim(
    "3",
    where="Exercise 12.3, line 53",
    says="If all input vectors are orthogonal, self-attention without weights returns its inputs: y_n = x_n.",
    latex=r"x_n^\top x_m=0\ (n\ne m)\ \Rightarrow\ \mathbf y_n=\mathbf x_n",
    how="In the derivation language, with orthogonal vectors of any lengths; the corrected output likewise.",
    derivation=ORTHOGONAL_INPUTS + "claim softmax(X @ X.T) @ X == X",
    corrected=ORTHOGONAL_INPUTS
    + "claim softmax(X @ X.T) @ X == diag(1 / (exp(C) + N - 1)) @ (diag(exp(C) - 1) @ X + ones(N, N) @ X)",
)
def _orthogonal(t: SimpleNamespace) -> Outcome:
    said, right = put(t.derivation), put(t.corrected)
    e = math.e / (math.e + 1)
    return refuted(
        holds=said.holds,
        evidence=f"{said}. By hand: x_1 = (1, 0), x_2 = (0, 1) give y_1 = (e, 1)/(e+1) = ({e:.4f}, {1 - e:.4f}). A "
        f"softmax weight is never 0, so no finite orthogonal vectors with N >= 2 make it true. Correction: {right}",
        corrected="y_n = (e^C_n x_n + Σ_{m≠n} x_m)/(e^C_n + N - 1) with C_n = |x_n|².",
        corrected_holds=right.holds,
    )


def orthogonal_error(squares: list[float], n: int) -> float:
    """|y_n - x_n| / |x_n| for orthogonal inputs with these squared lengths, computed by running the attention."""
    x = torch.diag(torch.tensor(squares, dtype=torch.float64).sqrt())
    y = torch.softmax(x @ x.T, dim=1) @ x
    return float((y[n] - x[n]).norm() / x[n].norm())


@BOOK.claim(
    "3.b",
    where="Exercise 12.3, lines 113-121",
    says="For orthogonal inputs y_n is approximately x_n if exp(C_n) is much larger than N - 1.",
    latex=r"e^{C_n}\gg N-1\ \Rightarrow\ \mathbf y_n\approx\mathbf x_n",
    how="Relative error of y_n, computed for many numbers of vectors and lengths where e^C_n is at least `much` "
    "times N - 1: once with all vectors equally long, once with one other vector long.",
    much="100",
    tolerance="0.02",
)
def _approximately(t: SimpleNamespace) -> Outcome:
    much, tolerance = float(value(t.much)), float(value(t.tolerance))
    equal = []
    for n in (2, 3, 10, 50, 200):
        for slack in (1.0, 2.0, 10.0):
            c = max(math.log(slack * much * (n - 1)), 0.05)
            equal.append(orthogonal_error([c] * n, 0))
    c = math.log(much)
    longer = [orthogonal_error([c, c * factor], 0) for factor in (1, 1e2, 1e4, 1e6)]
    return conditional(
        with_condition=max(equal) <= tolerance,
        without_condition=max(longer) <= tolerance,
        evidence=f"All lengths equal, e^C = {t.much}..{10 * much:g} times N - 1, N = 2..200: relative error at most "
        f"{max(equal):.4f}. N = 2, e^C_1 = {t.much} times N - 1, the other vector's squared length 1, 100, 10⁴, 10⁶ "
        f"times C_1: relative error {', '.join(f'{e:.3g}' for e in longer)}. The length of y_n - x_n is "
        "√(Σ_{m≠n} C_m + (N-1)²C_n)/(e^C_n + N - 1): the other lengths enter too.",
        corrected="It needs e^C_n much larger than N - 1 and the other vectors not exponentially longer than x_n.",
    )


@BOOK.claim(
    "3.c",
    where="Exercise 12.3, lines 93-105",
    says="Scaling the dot products by 1/√D_k does not make y_n = x_n either.",
    latex=r"a_{nm}\propto\exp(x_n^\top x_m/\sqrt{D_k})\ \not\Rightarrow\ \mathbf y_n=\mathbf x_n",
    how="Put to the derivation checker, which must refute y_n = x_n with the scaling; and the weight on x_n itself, "
    "with and without scaling, at squared lengths 1 to 16.",
    scale="1/sqrt(D)",
)
def _scaled(t: SimpleNamespace) -> Outcome:
    sheet = put(
        ORTHOGONAL_INPUTS.replace("given R: N, N orthogonal", "given R: D, D orthogonal").replace("c: N", "c: D")
        + f"claim softmax(X @ X.T * ({t.scale})) @ X == X"
    )
    scale = float(value(t.scale, D=64))
    weights = [(c, *(1 / (1 + 63 * math.exp(-c * s)) for s in (1.0, scale))) for c in (1, 4, 16)]
    return proved(
        not sheet.holds and all(scaled < plain < 1 for _, plain, scaled in weights),
        f"y_n = x_n with the scaling: {sheet}. Weight of x_n on itself, 64 vectors, D = 64: "
        + "; ".join(f"C = {c}: {plain:.4f} unscaled, {scaled:.4f} scaled" for c, plain, scaled in weights)
        + ". Scaling down moves it further away.",
    )


@BOOK.claim(
    "4",
    where="Exercise 12.4, lines 125-149",
    says="For independent standard normal vectors of dimension D, E[(a·b)²] = D, and the variance of a·b is D.",
    latex=r"\mathbb E[(\mathbf a^\top\mathbf b)^2]=\operatorname{Var}(\mathbf a^\top\mathbf b)=D",
    how="In the derivation language, which takes expectations of polynomials of normal variables exactly.",
    derivation="claim E[(a @ b)**2] == D where a: D normal(0, 1), b: D normal(0, 1)\n"
    "claim Var[a @ b] == D where a: D normal(0, 1), b: D normal(0, 1)",
    second_moment="D",
)
def _dot_product(t: SimpleNamespace) -> Outcome:
    sheet = put(t.derivation)
    x, D = sympy.Symbol("x", real=True), sympy.Symbol("D", positive=True)
    density = sympy.exp(-(x**2) / 2) / sympy.sqrt(2 * sympy.pi)
    first, second = (sympy.integrate(x**power * density, (x, -sympy.oo, sympy.oo)) for power in (1, 2))
    total = sympy.simplify(D * second**2 + D * (D - 1) * first**4)  # D terms with i = j, D(D - 1) with i ≠ j
    said = formula(t.second_moment).subs(sympy.Symbol("D"), D)
    return proved(
        sheet.holds and sympy.simplify(total - said) == 0,
        f"{sheet}. By moments: E[x] = {first}, E[x²] = {second}, so the double sum is {total}.",
    )

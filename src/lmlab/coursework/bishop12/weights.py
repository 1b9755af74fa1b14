"""Exercises 12.1 to 12.4: attention weights, orthogonal inputs, and the size of a dot product."""

from __future__ import annotations

import math
from types import SimpleNamespace

import torch

from lmlab.coursework.book import book
from lmlab.coursework.claim import Outcome, conditional, exact, judged, measured
from lmlab.coursework.shared_tools import eye, number, row
from lmlab.coursework.sheet import contradicted, derived, put

claim = book("bishop12").claim

ORTHOGONAL_INPUTS = """
given R: N, N orthogonal
given c: N positive
let X = diag(c) @ R            # rows at right angles, row n of length c[n]
let C = c**2
"""

claim("1", derivation="given a: N simplex\nclaim a <= 1")(derived())
claim(
    "2",
    derivation="given X: N, D\nlet A = softmax(X @ X.T)\nclaim A >= 0\nclaim sum(A, axis=1) == ones(N)",
)(derived())


@claim(
    "3",
    derivation=ORTHOGONAL_INPUTS + "claim softmax(X @ X.T) @ X == X",
    corrected=ORTHOGONAL_INPUTS
    + "claim softmax(X @ X.T) @ X == diag(1 / (exp(C) + N - 1)) @ (diag(exp(C) - 1) @ X + ones(N, N) @ X)",
)
def _orthogonal(t: SimpleNamespace) -> Outcome:
    y = torch.softmax(eye(2), dim=1)[0]
    return contradicted(
        t,
        "y_n = (e^C_n x_n + Σ_{m≠n} x_m)/(e^C_n + N - 1) with C_n = |x_n|².",
        f"By hand: x_1 = (1, 0), x_2 = (0, 1) give y_1 = (e, 1)/(e+1) = ({row(map(float, y), '{:.4f}')}). A softmax weight is "
        "never 0, so no finite orthogonal vectors with N ≥ 2 make it true.",
    )


def orthogonal_error(squares: list[float]) -> float:
    """|y_1 - x_1| / |x_1| for orthogonal inputs with these squared lengths, computed by running the attention."""
    x = torch.diag(torch.tensor(squares, dtype=torch.float64).sqrt())
    y = torch.softmax(x @ x.T, dim=1) @ x
    return float((y[0] - x[0]).norm() / x[0].norm())


@claim("3.b", much="100", tolerance="0.02", lengths=(1, 1e2, 1e4, 1e6))
def _approximately(t: SimpleNamespace) -> Outcome:
    much, tolerance, counts, slacks = number(t.much), number(t.tolerance), (2, 3, 10, 50, 200), (1, 2, 10)
    equal = [orthogonal_error([max(math.log(s * much * (n - 1)), 0.05)] * n) for n in counts for s in slacks]
    c = max(math.log(much), 0.05)
    longer = [orthogonal_error([c, c * factor]) for factor in t.lengths]
    return conditional(
        measured(max(equal) <= tolerance),
        measured(max(longer) <= tolerance),
        f"All lengths equal, e^C at least {t.much} times N - 1, N = {row(counts)}: relative error of y_n at most "
        f"{max(equal):.4f}; approximately means at most {t.tolerance}.",
        f"N = 2, e^C_1 = {t.much} times N - 1, the other vector's squared length {row(t.lengths, '{:.0e}')} times C_1: "
        f"{row(longer, '{:.3g}')}.",
        because="The length of y_n - x_n is √(Σ_{m≠n} C_m + (N-1)²C_n)/(e^C_n + N - 1): the other lengths enter too.",
        precisely="It needs e^C_n much larger than N - 1 and the other vectors not exponentially longer than x_n.",
    )


@claim("3.c", scale="1/sqrt(D)", vectors=64)
def _scaled(t: SimpleNamespace) -> Outcome:
    sheet = put(
        ORTHOGONAL_INPUTS.replace("R: N, N", "R: D, D").replace("c: N", "c: D")
        + f"claim softmax(X @ X.T * ({t.scale})) @ X == X"
    )
    scale = number(t.scale, D=t.vectors)
    weights = [(c, *(1 / (1 + (t.vectors - 1) * math.exp(-c * s)) for s in (1.0, scale))) for c in (1, 4, 16)]
    return judged(
        exact(sheet.finding == "refuted" and all(scaled < plain < 1 for _, plain, scaled in weights)),
        f"y_n = x_n with the dot products times {t.scale}: {sheet}",
        f"Weight of x_n on itself, {t.vectors} vectors in as many dimensions: "
        + "; ".join(f"C = {c}: {plain:.4f} unscaled, {scaled:.4f} scaled" for c, plain, scaled in weights)
        + ".",
    )


claim(
    "4",
    derivation="claim E[(a @ b)**2] == D where a: D normal(0, 1), b: D normal(0, 1)\n"
    "claim Var[a @ b] == D where a: D normal(0, 1), b: D normal(0, 1)",
)(derived())

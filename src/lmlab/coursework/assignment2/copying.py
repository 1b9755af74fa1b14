"""Sections 5.1 and 5.2: when attention copies one value, and how it averages two."""

from __future__ import annotations

import math
from types import SimpleNamespace

import sympy
import torch
from torch import Tensor

from lmlab.coursework.book import book
from lmlab.coursework.claim import Outcome, conditional, exact, judged, measured
from lmlab.coursework.shared_tools import (
    NOTE,
    Estimate,
    attention_weights,
    estimate,
    formula,
    in_greek,
    letters,
    listed,
    normals,
    number,
    row,
)
from lmlab.coursework.sheet import confirmed, contradicted, derived, put

claim = book("assignment2").claim

SUBSPACES = """
given R: m+p, m+p orthogonal
given u: m
given w: p
let A = R[0:m].T               # orthonormal columns a_1..a_m
let B = R[m:m+p].T             # orthonormal columns b_1..b_p, orthogonal to A
let va = A @ u
let vb = B @ w
let M = A @ A.T
"""

claim(
    "5.1a",
    derivation="given K: n, d\ngiven q: d\nlet a = softmax(K @ q)\nclaim a > 0\nclaim sum(a) == 1",
)(derived())


@claim("5.1.pre", scale="1/sqrt(d)", dimensions=(4, 16, 64, 256), keys=32, diffuse=0.5, draws=2000)
def _diffuse(t: SimpleNamespace) -> Outcome:
    def largest(d: int, scale: float) -> Estimate:
        return estimate(attention_weights(d, scale, t.draws, t.keys)[0].amax(1))

    scaled = {d: largest(d, number(t.scale, d=d)) for d in t.dimensions}
    plain = {d: largest(d, 1.0) for d in t.dimensions}
    return conditional(
        measured(all(weight.high < t.diffuse for weight in scaled.values())),
        measured(all(weight.low < t.diffuse for weight in plain.values())),
        f"Mean largest of {t.keys} weights, {t.draws:,} draws of standard normal queries and keys; diffuse means below "
        f"{t.diffuse:g}. Scores scaled by {t.scale}: {listed(scaled, 'd = {}: {}')}. Unscaled, as in equation (2): "
        f"{listed(plain, 'd = {}: {}')}.",
        because="The spread of the scores is what decides, not the number of keys.",
        note=NOTE,
        precisely="α is diffuse when the scores k_i·q differ by no more than about 1, as after scaling by 1/√d; "
        "unscaled scores of random vectors in high dimension put most of the mass on one weight.",
    )


@claim("5.1b", margin="log((n-1)*(1-eps)/eps)", least="log((1-eps)/eps)", keys=8, eps="1/100", draws=20_000)
def _dominates(t: SimpleNamespace) -> Outcome:
    n, eps = t.keys, number(t.eps)
    margin, least = (number(text, n=n, eps=eps) for text in (t.margin, t.least))
    scores = 6 * normals(1, t.draws, n)
    most = torch.softmax(scores, dim=1).amax(1)
    top = scores.sort(dim=1, descending=True).values
    lead = top[:, 0] - top[:, 1]
    tied, alone = (1 / (1 + others * math.exp(-lead)) for others, lead in ((n - 1, margin), (1, least)))
    enough = bool((most[lead >= margin] >= 1 - eps).all()) and math.isclose(tied, 1 - eps)
    needed = bool((lead[most >= 1 - eps] >= least).all()) and math.isclose(alone, 1 - eps)
    q, keys = normals(2, t.draws, 1, 5), normals(3, t.draws, n, 5)
    unit = keys / keys.norm(dim=2, keepdim=True)

    def winner_is_nearest(k: Tensor) -> float:
        dot = (k * q).sum(2)
        return float((dot.argmax(1) == (dot / k.norm(dim=2)).argmax(1)).double().mean())

    equal, free = winner_is_nearest(unit), winner_is_nearest(unit * torch.exp(normals(4, t.draws, n, 1)))
    return conditional(
        measured(enough and needed and equal == 1.0),
        measured(enough and needed and free == 1.0),
        f"{t.draws:,} random scores of {n} keys: a lead of {t.margin} = {margin:.2f} always gave α_j ≥ {1 - eps:g} "
        f"({int((lead >= margin).sum()):,} cases), and with all others tied exactly that: {enough}; α_j ≥ {1 - eps:g} "
        f"always came with a lead of {t.least} = {least:.2f}: {needed}.",
        f"The winner was the key most similar to the query (largest cosine) in {100 * equal:.0f} % of draws with keys of "
        f"equal length, in {100 * free:.0f} % with free lengths.",
        because="It is the difference that counts, not the ratio; and a long key can win against a similar one.",
        precisely="α_j dominates exactly when k_j·q leads the others by a margin of order log n; this means "
        "greatest similarity only if all keys are equally long.",
    )


claim(
    "5.1c",
    derivation="given a: n simplex\ngiven V: n, d\nclaim a @ V - V[0] == a @ (V - V[0])\n"
    "claim norm(a @ V - V[0]) <= (1 - a[0]) * max(norm(V - V[0], axis=1))\n"
    "given b: 2 simplex\ngiven U: 2, d\nclaim norm(b @ U - U[0]) == (1 - b[0]) * norm(U[1] - U[0])",
)(
    derived(
        "The second line is the triangle inequality applied to the first; the third shows that two values reach the bound: "
        "as α_j tends to 1 the output tends to v_j, whatever the values."
    )
)


@claim("5.1d", length="1", corrected_margin="log(9*(n-1))", sizes=(2, 10, 1000), most="9/10")
def _identical(t: SimpleNamespace) -> Outcome:
    def weight(n: int, score: float) -> float:
        """Of a key with this score among n - 1 others of score 0."""
        return 1 / (1 + (n - 1) * math.exp(-score))

    most = number(t.most)
    found = {n: weight(n, number(t.length) ** 2) for n in t.sizes}
    mended = {n: weight(n, number(t.corrected_margin, n=n)) for n in t.sizes}
    longer = 1 / (1 + math.exp(5 - 1))
    return judged(
        measured(min(found.values()) >= most),
        f"q = k_j of length {t.length}, the other keys orthogonal and of that length: α_j = "
        + row(f"{w:.3f} for n = {n}" for n, w in found.items())
        + f". Beside a second key five times as long in the same direction, both of length 1 before: {longer:.3f}. Almost "
        f"all means at least {most:g}.",
        because="No unspoken condition of the document saves the sentence: with the keys of length 1 that it assumes from "
        f"5.2 on it fails. With a lead of {t.corrected_margin}: {row(mended.values(), '{:.3f}')}.",
        corrected=f"Being identical is not enough: the weight is at least {most:g} when k_j·q leads every other k_i·q by "
        f"{t.corrected_margin}.",
        holds=all(math.isclose(w, most, rel_tol=1e-9) for w in mended.values()),
    )


@claim("5.2a.1", derivation=SUBSPACES + "claim M @ (va + vb) == va", kept="a")  # which part is left: a or b
def _projector(t: SimpleNamespace) -> Outcome:
    m, p, d = sympy.symbols("m p d", integer=True, positive=True)
    A, B = sympy.MatrixSymbol("A", d, m), sympy.MatrixSymbol("B", d, p)
    u, w = sympy.MatrixSymbol("u", m, 1), sympy.MatrixSymbol("w", p, 1)
    product = sympy.expand(A * A.T * (A * u + B * w))
    reduced = product.subs({A.T * A: sympy.Identity(m), A.T * B: sympy.ZeroMatrix(m, p)}).doit()
    return confirmed(
        put(t.derivation),
        reduced == {"a": A * u, "b": B * w}[t.kept],
        f"With AᵀA = I and AᵀB = 0, for all sizes: AAᵀ(Au + Bw) reduces to {reduced}.",
    )


@claim(
    "5.2a.2",
    derivation=SUBSPACES + "claim M @ va == va\nclaim M @ vb == vb",
    corrected=SUBSPACES + "claim M @ va == va\nclaim M @ vb == 0 * vb\nclaim M @ va + M @ vb == va",
)
def _projector_conditions(t: SimpleNamespace) -> Outcome:
    return contradicted(
        t,
        "M v_a = v_a and M v_b = 0.",
        "With M v_b = v_b the result would be v_a + v_b, not v_a (the document's own proof goes on to use M v_b = 0).",
    )


def two_winners(x: sympy.Expr, y: sympy.Expr) -> tuple[sympy.Expr, sympy.Expr]:
    """Weights of a and b for orthonormal keys and the query λ(x k_a + y k_b), with n - 2 further keys; symbols l and n."""
    lam, n = letters("l n")
    whole = sympy.exp(x * lam) + sympy.exp(y * lam) + n - 2
    return sympy.exp(x * lam) / whole, sympy.exp(y * lam) / whole


@claim("5.2b.1", coefficients=("1", "1"))
def _average(t: SimpleNamespace) -> Outcome:
    lam, n = letters("l n")
    weights = two_winners(*(formula(c) for c in t.coefficients))
    limits = [sympy.limit(w, lam, sympy.oo) for w in weights]
    at = {x: float(weights[0].subs({lam: x, n: 100})) for x in (1, 5, 10, 20)}
    return judged(
        exact(limits == [sympy.Rational(1, 2)] * 2),
        f"α_a = {in_greek(weights[0])}, α_b = {in_greek(weights[1])}; as λ grows they tend to {limits[0]} and {limits[1]}.",
        "With 100 keys α_a is " + row(f"{w:.4f} at λ = {x}" for x, w in at.items()) + ".",
        note="λ must be large against log n, as the document's λ ≫ 0 allows.",
    )


@claim(
    "5.2b.2",
    weight="exp(l)/(2*exp(l))",
    corrected="exp(l)/(2*exp(l) + n - 2)",
    derivation="given R: n, n orthogonal\ngiven l\nlet a = softmax(R @ (l * (R[0] + R[1])))\n"
    "claim a[0] == exp(l) / (2 * exp(l) + n - 2)\nclaim a[1] == a[0]",
)
def _exactly_half(t: SimpleNamespace) -> Outcome:
    lam, n = letters("l n")
    true = two_winners(sympy.Integer(1), sympy.Integer(1))[0]
    off = sympy.simplify(true - formula(t.weight))
    sheet, at = put(t.derivation), {n: 10, lam: 1}
    return judged(
        exact(off == 0),
        f"The softmax gives {in_greek(true)}, the document {in_greek(t.weight)}; the difference is {in_greek(off)}, and with "
        f"n = 10 and λ = 1 it is {float(off.subs(at)):.4f}.",
        because="The document itself gives every other key the score 0, so each of the n - 2 adds e⁰ = 1 to the denominator; "
        f"its line leaves them out. Only with no other key, n = 2, would it be exact. In the derivation language: {sheet}",
        corrected=f"α_a = α_b = {in_greek(t.corrected)}, which tends to 1/2 as λ grows.",
        holds=sheet.holds and sympy.simplify(true - formula(t.corrected)) == 0,
    )

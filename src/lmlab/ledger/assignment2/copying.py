"""Sections 5.1 and 5.2: when attention copies one value, and how it averages two."""

from __future__ import annotations

import math
from types import SimpleNamespace

import sympy
import torch

from lmlab.ledger.assignment2.book import BOOK
from lmlab.ledger.claim import Outcome, conditional, proved, refuted
from lmlab.ledger.kit import NOTE, Estimate, estimate, formula, in_greek, normals, value
from lmlab.ledger.sheet import put

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


@BOOK.claim(
    "5.1a",
    where="5.1 a, lines 283-288",
    says="Attention weights form a categorical distribution: positive, and summing to 1.",
    latex=r"\alpha_i=\frac{\exp(k_i^\top q)}{\sum_j\exp(k_j^\top q)}>0,\quad\sum_i\alpha_i=1",
    how="In the derivation language, and symbolically for one weight and the rest.",
    derivation="given K: n, d\ngiven q: d\nlet a = softmax(K @ q)\nclaim a > 0\nclaim sum(a) == 1",
)
def _categorical(t: SimpleNamespace) -> Outcome:
    sheet = put(t.derivation)
    s, rest = sympy.Symbol("s", real=True), sympy.Symbol("rest", positive=True)
    weight = sympy.exp(s) / (sympy.exp(s) + rest)
    exact = weight.is_positive and sympy.simplify(weight + rest / (sympy.exp(s) + rest)) == 1
    return proved(
        sheet.holds and bool(exact), f"{sheet}. Symbolically: e^s/(e^s + rest) is positive, and with the rest it is 1."
    )


@BOOK.claim(
    "5.1.pre",
    where="5.1 b, line 290",
    says="The distribution α is typically diffuse: its mass is spread over many weights.",
    latex=r"\max_i\alpha_i\ll1\ \text{typically}",
    how="Mean largest weight over 2,000 draws of a standard normal query and 32 such keys, in 4 to 256 dimensions; "
    "diffuse means that it stays below one half, at the ends of its intervals. With the dot products scaled, and as "
    "the document has them, unscaled.",
    scale="1/sqrt(d)",
)
def _diffuse(t: SimpleNamespace) -> Outcome:
    def largest(d: int, scale: float) -> Estimate:
        q, k = normals(d, 2000, 1, d), normals(d + 1, 2000, 32, d)
        return estimate(torch.softmax((q * k).sum(2) * scale, dim=1).amax(1))

    dims = (4, 16, 64, 256)
    scaled = {d: largest(d, float(value(t.scale, d=d))) for d in dims}
    plain = {d: largest(d, 1.0) for d in dims}

    def row(found: dict[int, Estimate]) -> str:
        return ", ".join(f"d = {d}: {weight}" for d, weight in found.items())

    return conditional(
        with_condition=all(weight.mean + weight.half_width < 0.5 for weight in scaled.values()),
        without_condition=all(weight.mean - weight.half_width < 0.5 for weight in plain.values()),
        evidence=f"Mean largest of 32 weights. Scores scaled by 1/√d: {row(scaled)}. Unscaled, as in equation (2): "
        f"{row(plain)}. The spread of the scores is what decides, not the number of keys. {NOTE}",
        corrected="α is diffuse when the scores k_i·q differ by no more than about 1, as after scaling by 1/√d; "
        "unscaled scores of random vectors in high dimension put most of the mass on one weight.",
    )


@BOOK.claim(
    "5.1b",
    where="5.1 b, line 294",
    says="α_j takes almost all the weight exactly when k_j·q is much larger than every other k_i·q, which means "
    "that the query is highly similar to k_j.",
    latex=r"\alpha_j\gg\sum_{i\ne j}\alpha_i\iff k_j^\top q\gg k_i^\top q\ \forall i\ne j",
    how="Both directions with the margin in numbers, on 20,000 random score vectors; then whether the winning key "
    "is the most similar one (largest cosine), for keys of equal length and for keys of free length.",
    margin="log((n-1)*(1-eps)/eps)",
)
def _dominates(t: SimpleNamespace) -> Outcome:
    n, eps = 8, 0.01
    margin = float(value(t.margin, n=n, eps=sympy.Float(eps)))
    scores = normals(1, 20_000, n) * 6
    alpha = torch.softmax(scores, dim=1)
    top = scores.sort(dim=1, descending=True).values
    lead = top[:, 0] - top[:, 1]
    enough = bool((alpha.amax(1)[lead >= margin] >= 1 - eps).all())
    tied = torch.tensor([margin] + [0.0] * (n - 1), dtype=torch.float64).softmax(0)[
        0
    ]  # the worst case: others all equal
    enough &= math.isclose(float(tied), 1 - eps, rel_tol=1e-9)
    needed = bool((lead[alpha.amax(1) >= 1 - eps] >= math.log((1 - eps) / eps)).all())
    q, keys = normals(2, 20_000, 1, 5), normals(3, 20_000, n, 5)
    lengths = torch.exp(normals(4, 20_000, n, 1))

    def agrees(k: torch.Tensor) -> float:
        dot = (k * q).sum(2)
        return float((dot.argmax(1) == (dot / k.norm(dim=2)).argmax(1)).double().mean())

    unit = keys / keys.norm(dim=2, keepdim=True)
    equal, free = agrees(unit), agrees(unit * lengths)
    far = torch.softmax(torch.tensor([10.0, 1.0]), dim=0)[0]
    return conditional(
        with_condition=enough and needed and equal == 1.0,
        without_condition=enough and needed and free == 1.0,
        evidence=f"A lead of log((n-1)(1-ε)/ε) = {margin:.2f} over {n - 1} others always gave α_j ≥ {1 - eps} "
        f"({int((lead >= margin).sum()):,} cases), and α_j ≥ {1 - eps} always came with a lead of log((1-ε)/ε). It "
        f"is the difference that counts, not the ratio. The winner was the most similar key in {100 * equal:.0f} % "
        f"of draws with keys of equal length, in {100 * free:.0f} % with free lengths. By hand: q = (1, 0), k_1 = "
        f"(10, 100), k_2 = (1, 0): the cosines are 0.10 and 1, yet α_1 = {far:.4f}.",
        corrected="α_j dominates exactly when k_j·q leads the others by a margin of order log n; this means "
        "greatest similarity only if all keys are equally long.",
    )


@BOOK.claim(
    "5.1c",
    where="5.1 c, line 300",
    says="When α_j takes almost all the weight, the output is approximately v_j.",
    latex=r"\alpha_j\approx1\ \Rightarrow\ c\approx v_j",
    how="In the derivation language: c - v_j is the weighted sum of v_i - v_j, so its length is at most (1 - α_j) "
    "times the largest distance between values.",
    derivation="given a: n simplex\ngiven V: n, d\nclaim a @ V - V[0] == a @ (V - V[0])\n"
    "claim norm(a @ V - V[0]) <= (1 - a[0]) * max(norm(V - V[0], axis=1))\n"
    "given b: 2 simplex\ngiven U: 2, d\nclaim norm(b @ U - U[0]) == (1 - b[0]) * norm(U[1] - U[0])",
)
def _copies(t: SimpleNamespace) -> Outcome:
    sheet = put(t.derivation)
    return proved(
        sheet.holds,
        f"{sheet}. The second line is the triangle inequality applied to the first; the third shows that two values "
        "reach the bound. With α_j = 0.99 the output is within 1 % of the values' spread of v_j.",
    )


@BOOK.claim(
    "5.1d",
    where="5.1 d, line 306",
    says="If one key is very similar or identical to the query, almost all the weight goes to its value.",
    latex=r"k_j\approx q\ \Rightarrow\ \alpha_j\approx1",
    how="The weight on a key identical to the query, beside n - 1 keys orthogonal to it, all of one length; almost "
    "all means at least 0.9. The corrected condition is tried on the same keys.",
    length="1",
    corrected_margin="log(9*(n-1))",
)
def _identical(t: SimpleNamespace) -> Outcome:
    def weight(n: int, length: float) -> float:
        return 1 / (1 + (n - 1) * math.exp(-(length**2)))

    length = float(value(t.length))
    found = {n: weight(n, length) for n in (2, 10, 1000)}
    long_key = float(torch.softmax(torch.tensor([1.0, 5.0]), dim=0)[0])
    mended = {n: weight(n, math.sqrt(float(value(t.corrected_margin, n=n)))) for n in found}
    return refuted(
        holds=min(found.values()) >= 0.9,
        evidence=f"q = k_j of length {t.length}, the other keys orthogonal: α_j = "
        + ", ".join(f"{w:.3f} for n = {n}" for n, w in found.items())
        + f". With a second key five times as long in the same direction, α_j falls to {long_key:.3f}. With the "
        "margin of the correction: " + ", ".join(f"{w:.3f}" for w in mended.values()) + ". (No unspoken "
        "condition of the document saves the sentence: with the keys of length 1 that it assumes from 5.2 on it fails.)",
        corrected="Being identical is not enough: the weight is at least 0.9 when k_j·q leads every other k_i·q by "
        "log(9(n-1)).",
        corrected_holds=all(math.isclose(weight, 0.9, rel_tol=1e-9) for weight in mended.values()),
    )


@BOOK.claim(
    "5.2a.1",
    where="5.2 a, line 319",
    says="M = AAᵀ, with the basis of the first subspace as columns of A, takes v_a + v_b to v_a.",
    latex=r"M=AA^\top\ \Rightarrow\ M(v_a+v_b)=v_a",
    how="In the derivation language, with two orthogonal subspaces of free dimensions; and with matrices as symbols.",
    derivation=SUBSPACES + "claim M @ (va + vb) == va",
)
def _projector(t: SimpleNamespace) -> Outcome:
    sheet = put(t.derivation)
    m, p, d = sympy.symbols("m p d", integer=True, positive=True)
    A, B = sympy.MatrixSymbol("A", d, m), sympy.MatrixSymbol("B", d, p)
    u, w = sympy.MatrixSymbol("u", m, 1), sympy.MatrixSymbol("w", p, 1)
    product = sympy.expand(A * A.T * (A * u + B * w))
    reduced = product.subs({A.T * A: sympy.Identity(m), A.T * B: sympy.ZeroMatrix(m, p)}).doit()
    exact = reduced == A * u
    return proved(
        sheet.holds and exact, f"{sheet}. With AᵀA = I and AᵀB = 0, for all sizes: AAᵀ(Au + Bw) reduces to {reduced}."
    )


@BOOK.claim(
    "5.2a.2",
    where="5.2 a, line 319",
    says="For that, M must satisfy M v_a = v_a and M v_b = v_b.",
    latex=r"Mv_a=v_a,\quad Mv_b=v_b",
    how="In the derivation language, for M = AAᵀ; the corrected pair of conditions likewise.",
    derivation=SUBSPACES + "claim M @ va == va\nclaim M @ vb == vb",
    corrected=SUBSPACES + "claim M @ va == va\nclaim M @ vb == 0 * vb\nclaim M @ va + M @ vb == va",
)
def _projector_conditions(t: SimpleNamespace) -> Outcome:
    said, right = put(t.derivation), put(t.corrected)
    return refuted(
        holds=said.holds,
        evidence=f"{said}. With M v_b = v_b the result would be v_a + v_b, not v_a (the document's own proof goes "
        f"on to use M v_b = 0). Correction: {right}",
        corrected="M v_a = v_a and M v_b = 0.",
        corrected_holds=right.holds,
    )


def two_winners(x: sympy.Expr, y: sympy.Expr) -> tuple[sympy.Expr, sympy.Expr]:
    """Weights of a and b for orthonormal keys and the query λ(x k_a + y k_b), with n - 2 further keys; symbols l and n."""
    l, n = sympy.Symbol("l", positive=True), sympy.Symbol("n", positive=True)  # noqa: E741  (the document's letter)
    whole = sympy.exp(x * l) + sympy.exp(y * l) + n - 2
    return sympy.exp(x * l) / whole, sympy.exp(y * l) / whole


@BOOK.claim(
    "5.2b.1",
    where="5.2 b, line 325",
    says="With orthonormal keys the query λ(k_a + k_b), λ large, makes the output approximately the average of v_a "
    "and v_b.",
    latex=r"q=\lambda(k_a+k_b),\ \lambda\gg0\ \Rightarrow\ c\approx\tfrac12(v_a+v_b)",
    how="The weights as symbols for any number n of keys; their limits as λ grows.",
    coefficients=("1", "1"),
)
def _average(t: SimpleNamespace) -> Outcome:
    l, n = sympy.Symbol("l", positive=True), sympy.Symbol("n", positive=True)  # noqa: E741
    weights = two_winners(*(formula(c) for c in t.coefficients))
    limits = [sympy.limit(w, l, sympy.oo) for w in weights]
    at = {lam: float(weights[0].subs({l: lam, n: 100})) for lam in (1, 5, 10, 20)}
    return proved(
        limits == [sympy.Rational(1, 2)] * 2,
        f"α_a = {in_greek(weights[0])}, α_b = {in_greek(weights[1])}; limits {limits[0]} and {limits[1]}. With 100 keys α_a is "
        + ", ".join(f"{w:.4f} at λ = {lam}" for lam, w in at.items())
        + ": λ must be large against log n.",
    )


@BOOK.claim(
    "5.2b.2",
    where="5.2 b, line 325",
    says="For that query α_a = α_b = e^λ/(2e^λ) = 0.5.",
    latex=r"\alpha_a=\alpha_b=\frac{e^\lambda}{2e^\lambda}=\tfrac12",
    how="Subtracted symbolically from the softmax of the true scores, for n = 2 keys and for n = 3, 10.",
    weight="exp(l)/(2*exp(l))",
    corrected="given R: n, n orthogonal\ngiven l\nlet a = softmax(R @ (l * (R[0] + R[1])))\n"
    "claim a[0] == exp(l) / (2 * exp(l) + n - 2)\nclaim a[1] == a[0]",
)
def _exactly_half(t: SimpleNamespace) -> Outcome:
    l, n = sympy.Symbol("l", positive=True), sympy.Symbol("n", positive=True)  # noqa: E741
    true = two_winners(sympy.Integer(1), sympy.Integer(1))[0]
    said = formula(t.weight).subs(sympy.Symbol("l"), l)
    right = put(t.corrected)
    off = {keys: sympy.simplify((true - said).subs(n, keys)) for keys in (2, 3, 10)}
    return conditional(
        with_condition=off[2] == 0 and right.holds,
        without_condition=all(d == 0 for d in off.values()),
        evidence=f"The softmax gives {in_greek(true)}. Difference to the document: "
        + "; ".join(f"n = {keys}: {in_greek(d)}" for keys, d in off.items())
        + f". With n = 10 and λ = 1 the true weight is {float(true.subs({n: 10, l: 1})):.4f}. The document keeps "
        f"the number of keys open; its equality needs n = 2, which it does not say. The corrected formula: {right}.",
        corrected="α_a = α_b = e^λ/(2e^λ + n - 2), which is 1/2 only for n = 2 and tends to 1/2 as λ grows.",
    )

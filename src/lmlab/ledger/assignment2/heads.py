"""Section 5.4: two heads on noisy keys. Means and values are unit vectors, so numbers are weights (see `noise`)."""

from __future__ import annotations

import math
from types import SimpleNamespace

import sympy
import torch

from lmlab.ledger.assignment2.book import BOOK
from lmlab.ledger.assignment2.noise import (
    KEYS,
    LAMBDA,
    SMALL,
    A,
    B,
    attend,
    keys,
    phi,
    query,
    target,
    total_variance,
)
from lmlab.ledger.claim import Outcome, answered, conditional, proved, refuted
from lmlab.ledger.kit import NOTE, estimate, formula, in_greek, value, yes


@BOOK.claim(
    "5.4a.1",
    where="5.4 a, line 381",
    says="The two queries λμ_1 and λμ_2 give the average of v_a and v_b.",
    latex=r"q_1=\lambda\mu_1,\quad q_2=\lambda\mu_2",
    how="Run on ten keys where a and b are the third and the seventh; approximately means within 0.05.",
    first="1",
    second="2",
    corrected=("a", "b"),
)
def _two_queries(t: SimpleNamespace) -> Outcome:
    place = {"a": A, "b": B} | {str(i + 1): i for i in range(KEYS)}
    k = torch.eye(KEYS, dtype=torch.float64)[None]

    def miss(first: str, second: str) -> float:
        c = (attend(k, query(LAMBDA, place[first])) + attend(k, query(LAMBDA, place[second]))) / 2
        return float((c[0] - target()).norm())

    off, mended = miss(t.first, t.second), miss(*t.corrected)
    return refuted(
        holds=off < 0.05,
        evidence=f"Distance of c from ½(v_a + v_b): {off:.3f} with λμ_1, λμ_2 (the output is the average of v_1 and "
        f"v_2); {mended:.4f} with λμ_a, λμ_b. The next line of the document, μ_iᵀμ_a ≈ λ for i = a, is off too: "
        "that product is 1.",
        corrected="q_1 = λμ_a and q_2 = λμ_b.",
        corrected_holds=mended < 0.05,
    )


@BOOK.claim(
    "5.4a.3",
    where="5.4 a, lines 387-391",
    says="Then c_1 = v_a, c_2 = v_b and c = ½(v_a + v_b).",
    latex=r"c_1=v_a,\quad c_2=v_b,\quad c=\tfrac12(v_a+v_b)",
    how="The weight of a under λμ_a is e^λ/(e^λ + n - 1), compared with attention that is run; then the distance of "
    "c_1 from v_a for λ well above log n and for λ = 1, n = 10 to 1,000; equal to within 0.01.",
    weight="exp(l)/(exp(l)+n-1)",
    ample="log(n) + 6",
)
def _each_copies(t: SimpleNamespace) -> Outcome:
    def copied(lam: float, n: int) -> float:
        return float(torch.softmax(query(lam, A, n=n), dim=0)[A])

    sizes = (10, 100, 1000)
    ample = {n: float(value(t.ample, n=n)) for n in sizes}
    exact = all(
        math.isclose(copied(lam, n), float(value(t.weight, l=lam, n=n))) for n in sizes for lam in (1.0, ample[n])
    )
    misses = {n: (1 - copied(ample[n], n), 1 - copied(1.0, n)) for n in sizes}
    return conditional(
        with_condition=exact and all(m[0] < 0.01 for m in misses.values()),
        without_condition=exact and all(m[1] < 0.01 for m in misses.values()),
        evidence="Weight that goes astray, with λ = log n + 6 and with λ = 1: "
        + "; ".join(f"n = {n}: {m[0]:.4f} and {m[1]:.3f}" for n, m in misses.items())
        + f". The weight of the intended key equals {in_greek(t.weight)}: {yes(exact)}.",
        corrected="With the queries λμ_a and λμ_b, approximately, when λ is well above log n (and λ√α well below 1); "
        "never exactly.",
    )


@BOOK.claim(
    "5.4b.1",
    where="5.4 b, line 398",
    says="The second head is untouched by the noise in k_a: c_2 = v_b.",
    latex=r"c_2=v_b",
    how="Symbolically: k_a·q_2 = λ(1+γ)μ_a·μ_b, so the weight of b under λμ_b does not contain γ, and it tends to 1 "
    "as λ grows.",
    overlap="0",  # μ_a·μ_b
)
def _second_head(t: SimpleNamespace) -> Outcome:
    l, g, n = sympy.Symbol("l", positive=True), sympy.Symbol("g", real=True), sympy.Symbol("n", positive=True)  # noqa: E741
    weight = sympy.exp(l) / (sympy.exp(l) + sympy.exp(l * (1 + g) * formula(t.overlap)) + n - 2)
    slope, limit = sympy.simplify(sympy.diff(weight, g)), sympy.limit(weight.subs(g, 0), l, sympy.oo)
    return proved(
        slope == 0 and limit == 1,
        f"α_b = {in_greek(sympy.simplify(weight))}: derivative by γ {slope}, limit {limit} as λ grows. The orthogonality "
        "of the means keeps the noise out; how close to v_b the output is depends on λ and n alone, as in 5.4a.3.",
    )


@BOOK.claim(
    "5.4b.2",
    where="5.4 b, lines 402-404",
    says="The first head still gives c_1 = v_a, with k_a·q_1 = λ(1 + γ).",
    latex=r"k_a^\top q_1=\lambda(1+\gamma)\ \Rightarrow\ c_1=v_a",
    how="The weight of a among ten keys as a function of γ; the share of samples where it is below 0.9, from "
    "100,000 draws beside the exact normal probability, over all samples and over those with λ(1+γ) above log(81).",
    needed="log(81)",
    gamma_variance="1/2",
)
def _first_head(t: SimpleNamespace) -> Outcome:
    variance, needed = float(value(t.gamma_variance)), float(value(t.needed))
    k = keys(11, 100_000, SMALL, variance)
    score = LAMBDA * k[:, A, A]
    weight = attend(k, query(LAMBDA, A))[:, A]
    bad = weight < 0.9
    share = estimate(bad.double())
    exact = phi((math.log(81) / LAMBDA - 1) / math.sqrt(0.5))
    negative = phi(-1 / math.sqrt(0.5))
    bad_when_enough = float(bad[score > needed + 0.1].double().mean())
    at_needed = math.exp(needed) / (math.exp(needed) + KEYS - 1)
    return conditional(
        with_condition=bad_when_enough == 0.0 and share.contains(exact) and math.isclose(at_needed, 0.9, rel_tol=1e-9),
        without_condition=share.mean < 0.001,
        evidence=f"λ = 10, ten keys: the weight of a is below 0.9 in a share {share} of samples (exactly "
        f"{exact:.4f}); among samples with λ(1+γ) above log 81 = {math.log(81):.2f} in {bad_when_enough:.4f}. "
        f"However large λ is, 1 + γ is negative with probability {negative:.4f}, and then c_1 is the average of the "
        f"other values. {NOTE}",
        corrected="c_1 ≈ v_a when λ(1+γ) is well above log(n-1); it fails when γ < -1, which has probability 0.079 "
        "and which the question allows to be ignored, and for small positive 1+γ, which it does not.",
    )


@BOOK.claim(
    "5.4b.3",
    where="5.4 b, line 406",
    says="So c = ½(v_a + v_b) across samples: two heads are robust to the noise.",
    latex=r"c=\tfrac12(c_1+c_2)=\tfrac12(v_a+v_b)",
    how="100,000 draws of ten keys, λ = 100: share of outputs further than 0.1 from the average, over samples with "
    "1 + γ > 0.1 and over all; and the total variance against one head.",
    floor="1/10",
)
def _robust(t: SimpleNamespace) -> Outcome:
    lam = 100.0
    k = keys(13, 100_000, SMALL, 0.5)
    c = (attend(k, query(lam, A)) + attend(k, query(lam, B))) / 2
    off = (c - target()).norm(dim=1) > 0.1
    good = k[:, A, A] > float(value(t.floor))
    inside, everywhere = float(off[good].double().mean()), estimate(off.double())
    one = total_variance(attend(k, query(lam, A, B)))
    two = total_variance(c)
    return conditional(
        with_condition=inside == 0.0,
        without_condition=everywhere.mean < 0.001,
        evidence=f"Off the average: {inside:.4f} of the samples with 1 + γ > {t.floor}; over all samples "
        f"{everywhere}, nearly all of them with γ < -1. Total variance: two heads {two}, one head {one}. Robust "
        f"compared with one head, but not across all samples. {NOTE}",
        corrected="c ≈ ½(v_a + v_b) when 1 + γ is positive and λ(1+γ) is well above log n; in the other 8 to 10 % of "
        "samples the first half is lost.",
    )


@BOOK.claim(
    "5.4b.4",
    where="5.4 b, line 395",
    says="The question asks for an explanation in terms of the variance of c_1 and c_2; the document gives none.",
    latex=r"\operatorname{Var}(c)=\tfrac14\left(\operatorname{Var}(c_1)+\operatorname{Var}(c_2)\right)",
    how="Total variances over 100,000 draws of ten keys, λ = 10, α = 10⁻⁶, all samples and those with k_a·q > 0, "
    "and the share of Var(c) that comes from c_1.",
    share="1/4",
)
def _in_variances(t: SimpleNamespace) -> Outcome:
    k = keys(15, 100_000, SMALL, 0.5)
    c1, c2 = attend(k, query(LAMBDA, A)), attend(k, query(LAMBDA, B))
    first, second, both = total_variance(c1), total_variance(c2), total_variance((c1 + c2) / 2)
    single = total_variance(attend(k, query(LAMBDA, A, B)))
    kept = k[:, A, A] > 0
    first_kept, single_kept = total_variance(c1[kept]), total_variance(attend(k[kept], query(LAMBDA, A, B)))
    predicted = float(value(t.share)) * (first.mean + second.mean)
    return answered(
        both.contains(predicted)
        and second.mean < 1e-6
        and both.mean < single.mean / 3
        and first_kept.mean < first.mean,
        f"Var(c_1) {first}; Var(c_2) {second.mean:.1e}; Var(c) {both}, a quarter of their sum ({predicted:.4f}). "
        f"One head: {single}. Leaving out k_a·q < 0: Var(c_1) {first_kept.mean:.4f}, one head "
        f"{single_kept.mean:.4f}. {NOTE}",
        "c_2 has practically no variance, because q_2 is orthogonal to the noisy direction; c_1 varies only when "
        "λ(1+γ) falls towards 0; so c has a quarter of a small variance, where one head compares λ(1+γ) with λ and "
        "flips at every change of sign of γ.",
    )

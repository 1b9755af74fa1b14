"""Section 5.4: two heads on noisy keys. Means and values are unit vectors, so numbers are weights (see `noise`)."""

from __future__ import annotations

import math
from types import SimpleNamespace

import sympy
import torch

from lmlab.coursework.assignment2.noise import (
    KEYS,
    LAMBDA,
    SMALL,
    TARGET,
    A,
    B,
    attend,
    keys,
    phi,
    query,
    total_variance,
)
from lmlab.coursework.book import book
from lmlab.coursework.claim import Outcome, answered, conditional, exact, judged, measured
from lmlab.coursework.shared_tools import NOTE, estimate, eye, formula, in_greek, letters, number, yes

claim = book("assignment2").claim


@claim("5.4a.1", queries=("1", "2"), corrected=("a", "b"))
def _two_queries(t: SimpleNamespace) -> Outcome:
    place = {"a": A, "b": B} | {str(i + 1): i for i in range(KEYS)}

    def miss(names: tuple[str, str]) -> float:
        heads = [attend(eye(KEYS)[None], query(LAMBDA, place[name])) for name in names]
        return float((sum(heads)[0] / 2 - TARGET).norm())  # type: ignore[index]

    off, mended = miss(t.queries), miss(t.corrected)
    return judged(
        measured(off < 0.05),
        f"Ten keys, a the third and b the seventh. Distance of c from ½(v_a + v_b), approximately meaning below 0.05: "
        f"{off:.3f} with λμ_{t.queries[0]}, λμ_{t.queries[1]}; {mended:.4f} with λμ_{t.corrected[0]}, λμ_{t.corrected[1]}.",
        because="The output is the average of v_1 and v_2. The next line of the document, μ_iᵀμ_a ≈ λ for i = a, is off "
        "too: that product is 1.",
        corrected="q_1 = λμ_a and q_2 = λμ_b.",
        holds=mended < 0.05,
    )


@claim("5.4a.3", weight="exp(l)/(exp(l)+n-1)", ample="log(n) + 6", scant="1", sizes=(10, 100, 1000))
def _each_copies(t: SimpleNamespace) -> Outcome:
    def astray(lam: float, n: int) -> float:
        return 1 - float(torch.softmax(query(lam, A, n=n), dim=0)[A])

    found = {n: [astray(number(lam, n=n), n) for lam in (t.ample, t.scant)] for n in t.sizes}
    right = all(
        math.isclose(1 - miss, number(t.weight, l=number(lam, n=n), n=n))
        for n, misses in found.items()
        for miss, lam in zip(misses, (t.ample, t.scant), strict=True)
    )
    return conditional(
        exact(right and all(m[0] < 0.01 for m in found.values())),
        measured(right and all(m[1] < 0.01 for m in found.values())),
        f"Weight that goes astray, with λ = {t.ample} and with λ = {t.scant}: "
        + "; ".join(f"n = {n}: {m[0]:.4f} and {m[1]:.3f}" for n, m in found.items())
        + f". The weight of the intended key equals {in_greek(t.weight)}: {yes(right)}.",
        because="Equal to within 0.01 it is with an ample λ alone.",
        precisely="With the queries λμ_a and λμ_b, approximately, when λ is well above log n (and λ√α well below 1); "
        "never exactly.",
    )


@claim("5.4b.1", overlap="0", ample="log(n) + 6", scant="1", keys=KEYS)  # overlap: μ_a·μ_b
def _second_head(t: SimpleNamespace) -> Outcome:
    lam, g, n = letters("l g n")
    weight = sympy.exp(lam) / (sympy.exp(lam) + sympy.exp(lam * (1 + g) * formula(t.overlap)) + n - 2)
    slope, limit = sympy.simplify(sympy.diff(weight, g)), sympy.limit(weight.subs(g, 0), lam, sympy.oo)
    astray = {text: 1 - float(weight.subs({lam: formula(text), g: 0}).subs(n, t.keys)) for text in (t.ample, t.scant)}
    untouched = slope == 0 and limit == 1
    return conditional(
        exact(untouched and astray[t.ample] < 0.01),
        measured(untouched and astray[t.scant] < 0.01),
        f"α_b = {in_greek(sympy.simplify(weight))}: derivative by γ {in_greek(slope)}, limit {limit} as λ grows.",
        f"Weight that goes astray among {t.keys} keys: "
        + "; ".join(f"{miss:.4f} with λ = {text}" for text, miss in astray.items())
        + ".",
        because="The orthogonality of the means keeps the noise out whatever λ is; that the output is v_b needs an ample λ.",
        precisely="The noise in k_a does not enter c_2 at all; c_2 ≈ v_b, to within 0.01, when λ is well above log n, as in "
        "5.4a.3, and never exactly.",
    )


@claim("5.4b.2", needed="log(9*(n-1))", gamma_variance="1/2", draws=100_000)
def _first_head(t: SimpleNamespace) -> Outcome:
    needed, deviation = number(t.needed, n=KEYS), math.sqrt(number(t.gamma_variance))
    k = keys(11, t.draws, SMALL, number(t.gamma_variance))
    score, bad = LAMBDA * k[:, A, A], attend(k, query(LAMBDA, A))[:, A] < 0.9
    share, expected = estimate(bad.double()), phi((needed / LAMBDA - 1) / deviation)
    inside = float(bad[score > needed + 0.1].double().mean())
    at_needed = math.exp(needed) / (math.exp(needed) + KEYS - 1)
    return conditional(
        measured(inside == 0.0 and share.contains(expected) and math.isclose(at_needed, 0.9, rel_tol=1e-9)),
        measured(share.mean < 0.001),
        f"λ = {LAMBDA:g}, {KEYS} keys, {t.draws:,} draws: the weight of a is below 0.9 in a share {share} of samples "
        f"(by the normal distribution {expected:.4f}); among samples with λ(1+γ) above {t.needed} = {needed:.2f}, at which "
        f"it is {at_needed:.4f}, in {inside:.4f}.",
        because=f"However large λ is, 1 + γ is negative with probability {phi(-1 / deviation):.4f}, and then c_1 is the "
        "average of the other values; the question allows these to be ignored, but not small positive 1 + γ.",
        note=NOTE,
        precisely="c_1 ≈ v_a when λ(1+γ) is well above log(n-1); it fails when γ < -1, which the question allows to be "
        "ignored, and for small positive 1+γ, which it does not.",
    )


@claim("5.4b.3", floor="1/10", scale=100.0, draws=100_000)
def _robust(t: SimpleNamespace) -> Outcome:
    k = keys(13, t.draws, SMALL, 0.5)
    c = (attend(k, query(t.scale, A)) + attend(k, query(t.scale, B))) / 2
    off, good = (c - TARGET).norm(dim=1) > 0.1, k[:, A, A] > number(t.floor)
    inside, everywhere = float(off[good].double().mean()), estimate(off.double())
    one, two = total_variance(attend(k, query(t.scale, A, B))), total_variance(c)
    return conditional(
        measured(inside == 0.0),
        measured(everywhere.mean < 0.001),
        f"λ = {t.scale:g}, {KEYS} keys, {t.draws:,} draws. Further than 0.1 from the average: {inside:.4f} of the samples "
        f"with 1 + γ > {t.floor}; over all samples {everywhere}. Total variance: two heads {two}, one head {one}.",
        because="Robust compared with one head, but not across all samples.",
        note=NOTE,
        precisely="c ≈ ½(v_a + v_b) when 1 + γ is positive and λ(1+γ) is well above log n; in a share of "
        f"{everywhere.mean:.2f} of the samples the first half is lost.",
    )


@claim("5.4b.4", share="1/4", draws=100_000)
def _in_variances(t: SimpleNamespace) -> Outcome:
    k = keys(15, t.draws, SMALL, 0.5)
    c1, c2, single = (attend(k, query(LAMBDA, *places)) for places in ((A,), (B,), (A, B)))
    first, second, both, one = (total_variance(c) for c in (c1, c2, (c1 + c2) / 2, single))
    kept = k[:, A, A] > 0
    first_kept, one_kept = total_variance(c1[kept]), total_variance(single[kept])
    predicted = number(t.share) * (first.mean + second.mean)
    return answered(
        both.contains(predicted) and second.mean < 1e-6 and both.mean < one.mean / 3 and first_kept.mean < first.mean,
        f"Total variances, λ = {LAMBDA:g}, α = {SMALL:.0e}, {KEYS} keys, {t.draws:,} draws: c_1 {first}; c_2 "
        f"{second.mean:.1e}; c {both}, by {t.share} of their sum {predicted:.4f}. One head: {one}.",
        f"Leaving out k_a·q < 0: c_1 {first_kept.mean:.4f}, one head {one_kept.mean:.4f}. {NOTE}",
        answer="c_2 has practically no variance, because q_2 is orthogonal to the noisy direction; c_1 varies only when "
        f"λ(1+γ) falls towards 0; so c has {t.share} of a small variance, where one head compares λ(1+γ) with λ and "
        "flips at every change of sign of γ.",
    )

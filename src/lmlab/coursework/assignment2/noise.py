"""Section 5.3: noisy keys and one head. Means and values are unit vectors, so numbers are weights."""

from __future__ import annotations

import math
from types import SimpleNamespace

import numpy as np
import sympy
import torch
from torch import Tensor

from lmlab.coursework.book import book
from lmlab.coursework.claim import Outcome, conditional, exact, ill_posed, judged, measured
from lmlab.coursework.shared_tools import (
    NOTE,
    Estimate,
    estimate,
    eye,
    formula,
    generator,
    identical,
    in_greek,
    letters,
    listed,
    normals,
    number,
    row,
    value,
    zeros,
)
from lmlab.coursework.sheet import put

claim = book("assignment2").claim

KEYS, A, B = 10, 2, 6  # ten keys; a and b are two of them, neither the first nor the second
LAMBDA = 10.0
SMALL = 1e-6  # the "vanishingly small" α of the covariances


def phi(z: float) -> float:
    """The standard normal distribution function."""
    return 0.5 * math.erfc(-z / math.sqrt(2))


def keys(seed: int, draws: int, alpha: float, along_a: float, n: int = KEYS) -> Tensor:
    """draws × n × n keys around the unit vectors: variance alpha everywhere, along_a more along the mean of key a."""
    k = eye(n) + math.sqrt(alpha) * normals(seed, draws, n, n)
    k[:, A, A] += math.sqrt(along_a) * normals(seed + 1, draws)
    return k


def attend(k_SND: Tensor, q_D: Tensor) -> Tensor:
    """Outputs of attention, one per draw; value i is the i-th unit vector, so the output is the weights."""
    return torch.softmax(k_SND @ q_D, dim=1)


def query(scale: float, *indices: int, n: int = KEYS) -> Tensor:
    """scale times the sum of these unit vectors."""
    q = zeros(n)
    q[list(indices)] = scale
    return q


TARGET = query(0.5, A, B)  # ½(v_a + v_b)


def total_variance(c_SD: Tensor) -> Estimate:
    """Sum over coordinates of the variance of the output, with its interval."""
    return estimate(((c_SD - c_SD.mean(0)) ** 2).sum(1))


@claim("5.3a", deviation="2*l*sqrt(a)", moderate=LAMBDA, huge=1e4, draws=20_000)
def _small_noise(t: SimpleNamespace) -> Outcome:
    steps, off, fits = [], {}, True
    for lam in (t.moderate, t.huge):
        k, q = keys(3, t.draws, SMALL, 0.0), query(lam, A, B)
        said, spread = number(t.deviation, l=lam, a=SMALL), estimate(((k[:, A] - k[:, B]) @ q) ** 2)
        fits &= spread.contains(said**2)
        off[lam] = estimate(((attend(k, q) - TARGET).norm(dim=1) > 0.05).double())
        steps.append(
            f"λ = {lam:g}: the score difference of a and b has variance {spread}, by {in_greek(t.deviation)} it is "
            f"{said**2:.3g}; a share of {off[lam]} of {t.draws:,} outputs is off the average by more than 0.05."
        )
    return conditional(
        measured(fits and off[t.moderate].mean < 0.001),
        measured(fits and off[t.huge].low < 0.001),
        f"Ten keys, α = {SMALL:.0e}.",
        *steps,
        because="There the output copies whichever key happens to be larger.",
        note=NOTE,
        precisely="It works when λ is large against log n and small against 1/√α: α must vanish faster than 1/λ².",
    )


@claim("5.3b.1", gamma_variance="1/2", literal="to every entry", draws=200_000)  # or "along μ_a"
def _gamma(t: SimpleNamespace) -> Outcome:
    d, variance = 4, number(t.gamma_variance)
    noise = math.sqrt(SMALL) * generator(5).standard_normal((t.draws, d))
    gamma = math.sqrt(0.5) * generator(6).standard_normal((t.draws, 1))
    mu = np.eye(d)[0]
    proper = mu + noise + gamma * mu
    literal = mu + noise + gamma * {"to every entry": np.ones(d), "along μ_a": mu}[t.literal]
    along, across = estimate((proper[:, 0] - 1) ** 2), estimate(proper[:, 1:] ** 2)
    stray = estimate(literal[:, 1:] ** 2)
    right = along.contains(variance + SMALL) and across.contains(SMALL)
    return ill_posed(
        not stray.contains(SMALL),
        f"0.5 added {t.literal}: variance of k_a across μ_a {stray}. With ½μμᵀ: variance along μ_a {along}, across {across}.",
        because="αI + 0.5 adds a number to a matrix; added to every entry, it spreads k_a across μ_a as much as along it.",
        note=NOTE,
        repaired=f"ε_a ~ N(0, αI + ½μ_aμ_aᵀ), and as α vanishes k_a = (1 + γ)μ_a with γ normal of mean 0 and variance "
        f"{t.gamma_variance} (standard deviation {math.sqrt(variance):.2f}, not 0.5).",
        holds=right,
        otherwise=measured(right),
    )


SINGLE_HEAD = """
given R: n, n orthogonal
given l, g
let q = l * (R[0] + R[1])
let a = softmax(concat([(1 + g) * R[0] @ q], R[1:n] @ q))       # k_a = (1 + g) mu_a, the other keys their means
"""


def single_head(n: int) -> tuple[sympy.Expr, sympy.Expr]:
    """True weights of a and b for k_a = (1+g)μ_a and the query λ(μ_a + μ_b); symbols l and g."""
    lam, g = letters("l g")
    whole = sympy.exp(lam * (1 + g)) + sympy.exp(lam) + n - 2
    return sympy.exp(lam * (1 + g)) / whole, sympy.exp(lam) / whole


@claim(
    "5.3b.2",
    weight="exp(l*(1+g))/(exp(l*(1+g))+exp(l))",
    derivation=SINGLE_HEAD + "claim a[0] == exp(l * (1 + g)) / (exp(l * (1 + g)) + exp(l) + n - 2)",
)
def _alpha_a(t: SimpleNamespace) -> Outcome:
    said, right = formula(t.weight), put(t.derivation)
    off = {n: sympy.simplify(single_head(n)[0] - said) for n in (2, 3)}
    at = [
        f"λ = {lam}: {float(single_head(KEYS)[0].subs(point)):.4f} and {float(said.subs(point)):.4f}"
        for lam in (1, 10)
        for point in [dict(zip(letters("l g"), (lam, 0), strict=True))]
    ]
    return conditional(
        exact(off[2] == 0 and right.holds),
        measured(off[3] == 0),
        f"Difference of the softmax to the formula: n = 2: {in_greek(off[2])}; n = 3: {in_greek(off[3])}. With γ = 0 and "
        f"{KEYS} keys, softmax and formula: {'; '.join(at)}.",
        f"With n keys: {right}",
        precisely="The denominator also holds n - 2, one for each further key; the formula is exact for n = 2 and "
        "good when e^λ is large against n.",
    )


@claim(
    "5.3b.3",
    weight="exp(l)/exp(l*(1+g)+exp(l))",
    corrected="exp(l)/(exp(l*(1+g))+exp(l))",
    derivation=SINGLE_HEAD + "claim a[1] == exp(l) / (exp(l * (1 + g)) + exp(l) + n - 2)",
)
def _alpha_b(t: SimpleNamespace) -> Outcome:
    (true_a, true_b), said, right = single_head(2), formula(t.weight), formula(t.corrected)
    sheet = put(t.derivation)
    at = dict(zip(letters("l g"), (2, sympy.Rational(1, 2)), strict=True))
    return judged(
        exact(identical(said, true_b)),
        f"Two keys, λ = 2, γ = 1/2: the formula gives {float(said.subs(at)):.2e}, the softmax {float(true_b.subs(at)):.4f}; "
        f"α_a and the formula add up to {float((true_a + said).subs(at)):.4f}.",
        because=f"The bracket of the first exp closes too late. With n keys: {sheet}",
        corrected=f"α_b = {in_greek(right)} (for n = 2; further keys add n - 2 to the denominator).",
        holds=sheet.holds and identical(right, true_b) and identical(right + true_a, sympy.Integer(1)),
    )


@claim("5.3b.4", gammas=("1/2", "0", "-1/2"), large=(10.0, 20.0, 50.0), small=(1.0, 2.0))
def _three_cases(t: SimpleNamespace) -> Outcome:
    def weights(lam: float, gamma: float) -> tuple[float, float]:
        k = eye(KEYS)[None].clone()
        k[0, A, A] += gamma
        c = attend(k, query(lam, A, B))[0]
        return float(c[A]), float(c[B])

    gammas = [number(g) for g in t.gammas]

    def holds(lam: float) -> bool:
        (a1, _), (a2, b2), (_, b3) = (weights(lam, g) for g in gammas)
        return abs(a1 - 1) < 0.01 and abs(a2 - b2) < 0.01 and abs(b3 - 1) < 0.01

    shown = {lam: row((weights(lam, g)[0] for g in gammas), "{:.4f}") for lam in (*t.small, *t.large)}
    return conditional(
        exact(all(map(holds, t.large))),
        measured(all(map(holds, t.small))),
        f"{KEYS} keys, γ = {row(t.gammas)}: {listed(shown, 'λ = {:g}: α_a = {}')}; equal means to within 0.01.",
        because="With two keys α_a is exactly σ(λγ): λ|γ| decides.",
        precisely=f"True to within 0.01 when λ is at least {t.large[0]:g}, that is when λ|γ| is large; for λ near 1 no weight "
        "is near 1.",
    )


@claim("5.3b.5", gamma_variance="1/2", moderate=10.0, others=(1.0, 1000.0), common=0.05, draws=50_000)
def _fluctuates(t: SimpleNamespace) -> Outcome:
    variance = number(t.gamma_variance)

    def shares(lam: float) -> list[Estimate]:
        """How often the output is mostly v_a, mostly v_b, and neither."""
        a = attend(keys(7, t.draws, SMALL, variance), query(lam, A, B))
        parts = a[:, A] > 0.9, a[:, B] > 0.9, (a[:, A] <= 0.9) & (a[:, B] <= 0.9)
        return [estimate(part.double()) for part in parts]

    found = {lam: shares(lam) for lam in (t.moderate, *t.others)}
    edge = math.log(9) / t.moderate / math.sqrt(0.5)  # of γ where α_a is 0.9, in standard deviations, for two keys
    expected = [1 - phi(edge), phi(-edge), phi(edge) - phi(-edge)]
    fits = all(abs(s.mean - e) < 0.01 for s, e in zip(found[t.moderate], expected, strict=True))

    def all_common(lam: float) -> bool:
        return all(share.low > t.common for share in found[lam])

    return conditional(
        measured(fits and all_common(t.moderate)),
        measured(all(map(all_common, t.others))),
        f"{t.draws:,} draws of {KEYS} keys; shares of outputs with α_a above 0.9, α_b above 0.9, and neither: "
        + "; ".join(f"λ = {lam:g}: {row(each)}" for lam, each in found.items())
        + f". By the normal distribution of γ, at λ = {t.moderate:g}: {row(expected, '{:.3f}')}. Common means above "
        f"{t.common:g}.",
        because="With a small λ no value ever dominates; with a huge one the balanced average all but disappears, since "
        "|γ| must be below log 9/λ for it.",
        note=NOTE,
        precisely="All three are common when λ is moderate, large against log n and of the order of ten; as λ grows the "
        "output flips between v_a and v_b alone.",
    )


@claim("5.3b.6", along_a="1/2", times=100, draws=50_000)
def _variance(t: SimpleNamespace) -> Outcome:
    q = query(LAMBDA, A, B)
    quiet, loud = (total_variance(attend(keys(9, t.draws, SMALL, more), q)) for more in (0.0, number(t.along_a)))
    least, most = loud.low / quiet.high, loud.high / quiet.low
    return judged(
        measured(least > t.times, most < t.times),
        f"Total variance over {t.draws:,} draws, λ = {LAMBDA:g}, α = {SMALL:.0e}: with {value(t.along_a)}·μμᵀ more {loud}, "
        f"without {quiet}: between {least:,.0f} and {most:,.0f} times as large. Much larger means {t.times} times.",
        note=NOTE,
    )

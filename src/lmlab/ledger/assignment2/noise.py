"""Section 5.3: noisy keys and one head. Means and values are unit vectors, so numbers are weights."""

from __future__ import annotations

import math
from types import SimpleNamespace

import numpy as np
import sympy
import torch
from torch import Tensor

from lmlab.ledger.assignment2.book import BOOK
from lmlab.ledger.claim import Outcome, conditional, ill_posed, refuted, supported
from lmlab.ledger.kit import NOTE, Estimate, estimate, formula, generator, identical, in_greek, normals, value
from lmlab.ledger.sheet import put

KEYS, A, B = 10, 2, 6  # ten keys; a and b are two of them, neither the first nor the second
LAMBDA = 10.0
SMALL = 1e-6  # the "vanishingly small" α of the covariances


def phi(z: float) -> float:
    """The standard normal distribution function."""
    return 0.5 * math.erfc(-z / math.sqrt(2))


def keys(seed: int, draws: int, alpha: float, along_a: float, n: int = KEYS) -> Tensor:
    """draws × n × n keys around the unit vectors: variance alpha everywhere, along_a more along the mean of key a."""
    k = torch.eye(n, dtype=torch.float64) + math.sqrt(alpha) * normals(seed, draws, n, n)
    k[:, A, A] += math.sqrt(along_a) * normals(seed + 1, draws)
    return k


def attend(k_SND: Tensor, q_D: Tensor) -> Tensor:
    """Outputs of attention, one per draw; value i is the i-th unit vector, so the output is the weights."""
    return torch.softmax(k_SND @ q_D, dim=1)


def query(scale: float, *indices: int, n: int = KEYS) -> Tensor:
    """scale times the sum of these unit vectors."""
    q = torch.zeros(n, dtype=torch.float64)
    q[list(indices)] = scale
    return q


def target() -> Tensor:
    """½(v_a + v_b)."""
    return query(0.5, A, B)


def total_variance(c_SD: Tensor) -> Estimate:
    """Sum over coordinates of the variance of the output, with its interval."""
    return estimate(((c_SD - c_SD.mean(0)) ** 2).sum(1))


@BOOK.claim(
    "5.3a",
    where="5.3 a, line 343",
    says="For keys with covariance αI, α vanishingly small, the query λ(μ_a + μ_b) still gives the average of v_a "
    "and v_b.",
    latex=r"k_i\sim\mathcal N(\mu_i,\alpha I),\ q=\lambda(\mu_a+\mu_b)\ \Rightarrow\ c\approx\tfrac12(v_a+v_b)",
    how="The score difference of a and b has standard deviation 2λ√α (measured against the formula). 20,000 draws "
    "of ten keys at α = 10⁻⁶: with λ = 10, where this is small, and with λ = 10⁴, where it is not; off means by "
    "more than 0.05.",
    deviation="2*l*sqrt(a)",
)
def _small_noise(t: SimpleNamespace) -> Outcome:
    spread, off = {}, {}
    fits = True
    for lam in (LAMBDA, 1e4):
        k, q = keys(3, 20_000, SMALL, 0.0), query(lam, A, B)
        difference = (k[:, A] - k[:, B]) @ q
        said = float(value(t.deviation, l=lam, a=SMALL))
        measured = estimate(difference**2)
        fits &= measured.contains(said**2)
        spread[lam] = f"2λ√α = {said:g} (its square {said**2:.3g}, measured {measured})"
        off[lam] = estimate(((attend(k, q) - target()).norm(dim=1) > 0.05).double())
    return conditional(
        with_condition=fits and off[LAMBDA].mean < 0.001,
        without_condition=fits and off[1e4].mean - off[1e4].half_width < 0.001,
        evidence=f"At λ = 10 the score difference spreads by {spread[LAMBDA]}, and {off[LAMBDA].mean * 20_000:.0f} "
        f"of 20,000 outputs are off the average; at λ = 10⁴ by {spread[1e4]}, and a share of {off[1e4]} is off: the "
        f"output copies whichever key happens to be larger. {NOTE}",
        corrected="It works when λ is large against log n and small against 1/√α: α must vanish faster than 1/λ².",
    )


@BOOK.claim(
    "5.3b.1",
    where="5.3 b, line 360",
    says="With Σ_a = αI + ½μ_aμ_aᵀ the noise is written N(0, αI + 0.5), and k_a = (1 + γ)μ_a with γ ~ N(0, 0.5).",
    latex=r"\epsilon_a\sim\mathcal N(0,\alpha I+0.5)\ \Rightarrow\ k_a=(1+\gamma)\mu_a,\ \gamma\sim\mathcal N(0,0.5)",
    how="The covariance αI + 0.5 read literally (0.5 added to every entry) and as ½μμᵀ, 200,000 draws each in four "
    "dimensions: mean and variance along μ_a, and variance across it.",
    gamma_variance="1/2",
    literal="everywhere",  # where the 0.5 goes: to every entry, or along μ_a
)
def _gamma(t: SimpleNamespace) -> Outcome:
    d, draws, variance = 4, 200_000, float(value(t.gamma_variance))
    noise = math.sqrt(SMALL) * generator(5).standard_normal((draws, d))
    gamma = math.sqrt(0.5) * generator(6).standard_normal((draws, 1))
    mu = np.eye(d)[0]
    proper = mu + noise + gamma * mu
    literal = mu + noise + gamma * (np.ones(d) if t.literal == "everywhere" else mu)
    along, across = estimate((proper[:, 0] - 1) ** 2), estimate(proper[:, 1:] ** 2)
    stray = estimate(literal[:, 1:] ** 2)
    return ill_posed(
        flawed=not stray.contains(SMALL),
        evidence="αI + 0.5 adds a number to a matrix. Added to every entry, it spreads k_a across μ_a as much as "
        f"along it: variance across {stray}. With ½μμᵀ: variance along μ_a {along}, across {across}. {NOTE}",
        repaired="ε_a ~ N(0, αI + ½μ_aμ_aᵀ), and as α vanishes k_a = (1 + γ)μ_a with γ normal of mean 0 and "
        "variance 1/2 (standard deviation 0.71, not 0.5).",
        repaired_holds=along.contains(variance + SMALL) and across.contains(SMALL),
    )


def single_head(n: int | sympy.Symbol) -> tuple[sympy.Expr, sympy.Expr]:
    """True weights of a and b for k_a = (1+g)μ_a and the query λ(μ_a + μ_b); symbols l and g."""
    l, g = sympy.symbols("l g", real=True)  # noqa: E741
    whole = sympy.exp(l * (1 + g)) + sympy.exp(l) + n - 2
    return sympy.exp(l * (1 + g)) / whole, sympy.exp(l) / whole


SINGLE_HEAD = """
given R: n, n orthogonal
given l, g
let q = l * (R[0] + R[1])
let a = softmax(concat([(1 + g) * R[0] @ q], R[1:n] @ q))       # k_a = (1 + g) mu_a, the other keys their means
"""


def said(text: str) -> sympy.Expr:
    """A formula of the document in l and g."""
    return formula(text).subs(
        {sympy.Symbol("l"): sympy.Symbol("l", real=True), sympy.Symbol("g"): sympy.Symbol("g", real=True)}
    )


@BOOK.claim(
    "5.3b.2",
    where="5.3 b, line 364",
    says="Then α_a = e^{λ(1+γ)}/(e^{λ(1+γ)} + e^λ).",
    latex=r"\alpha_a=\frac{e^{\lambda(1+\gamma)}}{e^{\lambda(1+\gamma)}+e^{\lambda}}",
    how="Subtracted symbolically from the softmax of the true scores, for n = 2 keys and for n = 3.",
    weight="exp(l*(1+g))/(exp(l*(1+g))+exp(l))",
    corrected=SINGLE_HEAD + "claim a[0] == exp(l * (1 + g)) / (exp(l * (1 + g)) + exp(l) + n - 2)",
)
def _alpha_a(t: SimpleNamespace) -> Outcome:
    off = {n: sympy.simplify(single_head(n)[0] - said(t.weight)) for n in (2, 3)}
    right = put(t.corrected)
    point = {sympy.Symbol("l", real=True): 1, sympy.Symbol("g", real=True): 0}
    return conditional(
        with_condition=off[2] == 0 and right.holds,
        without_condition=off[3] == 0,
        evidence=f"Difference to the softmax: n = 2: {off[2]}; n = 3: {in_greek(off[3])}. At λ = 1, γ = 0 and ten "
        f"keys the true weight is {float(single_head(10)[0].subs(point)):.3f}, the formula gives "
        f"{float(said(t.weight).subs(point)):.3f}; at λ = 10 they agree to four digits. With n keys: {right}.",
        corrected="The denominator also holds n - 2, one for each further key; the formula is exact for n = 2 and "
        "good when e^λ is large against n.",
    )


@BOOK.claim(
    "5.3b.3",
    where="5.3 b, line 366",
    says="And α_b = exp(λ)/exp(λ(1+γ) + exp(λ)).",
    latex=r"\alpha_b=\frac{\exp(\lambda)}{\exp(\lambda(1+\gamma)+\exp(\lambda))}",
    how="Compared symbolically with the softmax for n = 2 keys, and the two weights added up.",
    weight="exp(l)/exp(l*(1+g)+exp(l))",
    corrected="exp(l)/(exp(l*(1+g))+exp(l))",
    derivation=SINGLE_HEAD + "claim a[1] == exp(l) / (exp(l * (1 + g)) + exp(l) + n - 2)",
)
def _alpha_b(t: SimpleNamespace) -> Outcome:
    true_a, true_b = single_head(2)
    sheet = put(t.derivation)
    l, g = sympy.symbols("l g", real=True)  # noqa: E741
    at = {l: 2, g: sympy.Rational(1, 2)}
    wrong = said(t.weight)
    return refuted(
        holds=identical(wrong, true_b),
        evidence=f"At λ = 2, γ = 1/2: the formula gives {float(wrong.subs(at)):.2e}, the softmax "
        f"{float(true_b.subs(at)):.4f}; α_a and the formula add up to {float((true_a + wrong).subs(at)):.4f} "
        "instead of 1. The bracket of the first exp closes too late.",
        corrected="α_b = e^λ/(e^{λ(1+γ)} + e^λ) (for n = 2; further keys add n - 2 to the denominator).",
        corrected_holds=sheet.holds
        and identical(said(t.corrected), true_b)
        and identical(said(t.corrected) + true_a, sympy.Integer(1)),
    )


@BOOK.claim(
    "5.3b.4",
    where="5.3 b, line 368",
    says="γ ≈ 0.5 gives α_a = 1, γ ≈ 0 gives equal weights, γ ≈ -0.5 gives α_b = 1.",
    latex=r"\gamma\approx\tfrac12\Rightarrow\alpha_a=1;\quad\gamma\approx0\Rightarrow\alpha_a=\alpha_b;\quad\gamma"
    r"\approx-\tfrac12\Rightarrow\alpha_b=1",
    how="The softmax of ten keys at these three γ, for λ = 10, 20, 50 and for λ = 1, 2; equal to within 0.01.",
    gammas=("1/2", "0", "-1/2"),
)
def _three_cases(t: SimpleNamespace) -> Outcome:
    def weights(lam: float, gamma: float) -> tuple[float, float]:
        k = torch.eye(KEYS, dtype=torch.float64)[None].clone()
        k[0, A, A] += gamma
        c = attend(k, query(lam, A, B))[0]
        return float(c[A]), float(c[B])

    gammas = [float(value(g)) for g in t.gammas]

    def holds(lam: float) -> bool:
        (a1, _), (a2, b2), (_, b3) = (weights(lam, g) for g in gammas)
        return abs(a1 - 1) < 0.01 and abs(a2 - b2) < 0.01 and abs(b3 - 1) < 0.01

    shown = "; ".join(
        f"λ = {lam}: α_a = {', '.join(f'{weights(lam, g)[0]:.4f}' for g in gammas)}" for lam in (1, 2, 10, 20)
    )
    return conditional(
        with_condition=all(holds(lam) for lam in (LAMBDA, 20.0, 50.0)),
        without_condition=all(holds(lam) for lam in (1.0, 2.0)),
        evidence=f"For γ = {', '.join(t.gammas)}: {shown}. With two keys α_a is exactly σ(λγ).",
        corrected="True to within 0.01 when λ is at least 10, that is when λ|γ| is large; for λ near 1 no weight is "
        "near 1.",
    )


@BOOK.claim(
    "5.3b.5",
    where="5.3 b, line 371",
    says="Over samples the output fluctuates between v_a, v_b and their balanced average.",
    latex=r"c\in\{\approx v_a,\ \approx v_b,\ \approx\tfrac12(v_a+v_b)\}",
    how="100,000 draws of ten keys, λ = 10: how often α_a is above 0.9, below 0.1 and between, beside the exact normal "
    "probabilities. All three must be common (above 5 %).",
    gamma_variance="1/2",
)
def _fluctuates(t: SimpleNamespace) -> Outcome:
    variance = float(value(t.gamma_variance))
    a = attend(keys(7, 100_000, SMALL, variance), query(LAMBDA, A, B))[:, A]
    shares = [estimate(x.double()) for x in (a > 0.9, (a >= 0.1) & (a <= 0.9), a < 0.1)]
    edge = math.log(9) / LAMBDA / math.sqrt(0.5)
    exact = [1 - phi(edge), phi(edge) - phi(-edge), phi(-edge)]
    return supported(
        all(s.mean > 0.05 and s.contains(e) for s, e in zip(shares, exact, strict=True)),
        f"α_a above 0.9: {shares[0]} (exactly {exact[0]:.3f}); between: {shares[1]} ({exact[1]:.3f}); below 0.1: "
        f"{shares[2]} ({exact[2]:.3f}). The larger λ, the rarer the balanced average. {NOTE}",
    )


@BOOK.claim(
    "5.3b.6",
    where="5.3 b, line 372",
    says="The variance of the output is much larger than in part (a).",
    latex=r"\operatorname{Var}(c)\big|_{\Sigma_a=\alpha "
    r"I+\frac12\mu_a\mu_a^\top}\gg\operatorname{Var}(c)\big|_{\Sigma_a=\alpha I}",
    how="Total variance of the output over 50,000 draws of ten keys with λ = 10, α = 10⁻⁶, with and without the "
    "extra ½μμᵀ; much larger means at least a hundred times, at the ends of the intervals.",
    along_a="1/2",
)
def _variance(t: SimpleNamespace) -> Outcome:
    q = query(LAMBDA, A, B)
    quiet = total_variance(attend(keys(9, 50_000, SMALL, 0.0), q))
    loud = total_variance(attend(keys(9, 50_000, SMALL, float(value(t.along_a))), q))
    ratio = (loud.mean - loud.half_width) / (quiet.mean + quiet.half_width)
    return supported(ratio > 100, f"Variance {loud} against {quiet}: at least {ratio:,.0f} times as large. {NOTE}")

"""Sections 5.3 and 5.4: noisy keys, one head against two. Means and values are unit vectors, so numbers are weights."""

from __future__ import annotations

import math
from types import SimpleNamespace

import numpy as np
import sympy
import torch
from torch import Tensor

from lmlab.prove.ledger.assignment2.book import BOOK
from lmlab.prove.ledger.claim import Outcome, answered, conditional, ill_posed, proved, refuted, supported
from lmlab.prove.ledger.kit import NOTE, Estimate, estimate, formula, generator, identical, normals, value

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
    says="For keys with covariance αI, α vanishingly small, the query λ(μ_a + μ_b) still gives the average of v_a and v_b.",
    latex=r"k_i\sim\mathcal N(\mu_i,\alpha I),\ q=\lambda(\mu_a+\mu_b)\ \Rightarrow\ c\approx\tfrac12(v_a+v_b)",
    how="The score difference of a and b has standard deviation 2λ√α (measured against the formula). 20,000 draws of ten keys at "
    "α = 10⁻⁶: with λ = 10, where this is small, and with λ = 10⁴, where it is not; off means by more than 0.05.",
    deviation="2*l*sqrt(a)",
)
def _small_noise(t: SimpleNamespace) -> Outcome:
    spread, off = {}, {}
    fits = True
    for lam in (LAMBDA, 1e4):
        k, q = keys(3, 20_000, SMALL, 0.0), query(lam, A, B)
        difference = (k[:, A] - k[:, B]) @ q
        said = float(value(t.deviation, l=lam, a=SMALL))
        fits &= estimate(difference**2).contains(said**2)
        spread[lam] = said
        off[lam] = float(((attend(k, q) - target()).norm(dim=1) > 0.05).double().mean())
    return conditional(
        with_condition=fits and off[LAMBDA] < 0.001,
        without_condition=fits and off[1e4] < 0.001,
        evidence=f"Score difference 2λ√α = {spread[LAMBDA]:g} at λ = 10: {100 * off[LAMBDA]:.1f} % of outputs are off the average; "
        f"{spread[1e4]:g} at λ = 10⁴: {100 * off[1e4]:.1f} % are off, the output copies whichever key happens to be larger.",
        corrected="It works when λ is large against log n and small against 1/√α: α must vanish faster than 1/λ².",
    )


@BOOK.claim(
    "5.3b.1",
    where="5.3 b, line 360",
    says="With Σ_a = αI + ½μ_aμ_aᵀ the noise is written N(0, αI + 0.5), and k_a = (1 + γ)μ_a with γ ~ N(0, 0.5).",
    latex=r"\epsilon_a\sim\mathcal N(0,\alpha I+0.5)\ \Rightarrow\ k_a=(1+\gamma)\mu_a,\ \gamma\sim\mathcal N(0,0.5)",
    how="The covariance αI + 0.5 read literally (0.5 added to every entry) and as ½μμᵀ, 200,000 draws each in four dimensions: mean "
    "and variance along μ_a, and variance across it.",
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
        evidence=f"αI + 0.5 adds a number to a matrix. Added to every entry, it spreads k_a across μ_a as much as along it: variance across "
        f"{stray}. With ½μμᵀ: variance along μ_a {along}, across {across}. {NOTE}",
        repaired="ε_a ~ N(0, αI + ½μ_aμ_aᵀ), and as α vanishes k_a = (1 + γ)μ_a with γ normal of mean 0 and variance 1/2 (standard deviation "
        "0.71, not 0.5).",
        repaired_holds=along.contains(variance + SMALL) and across.contains(SMALL),
    )


def single_head(n: int | sympy.Symbol) -> tuple[sympy.Expr, sympy.Expr]:
    """True weights of a and b for k_a = (1+g)μ_a and the query λ(μ_a + μ_b); symbols l and g."""
    l, g = sympy.symbols("l g", real=True)  # noqa: E741
    whole = sympy.exp(l * (1 + g)) + sympy.exp(l) + n - 2
    return sympy.exp(l * (1 + g)) / whole, sympy.exp(l) / whole


def said(text: str) -> sympy.Expr:
    """A formula of the document in l and g."""
    return formula(text).subs({sympy.Symbol("l"): sympy.Symbol("l", real=True), sympy.Symbol("g"): sympy.Symbol("g", real=True)})


@BOOK.claim(
    "5.3b.2",
    where="5.3 b, line 364",
    says="Then α_a = e^{λ(1+γ)}/(e^{λ(1+γ)} + e^λ).",
    latex=r"\alpha_a=\frac{e^{\lambda(1+\gamma)}}{e^{\lambda(1+\gamma)}+e^{\lambda}}",
    how="Subtracted symbolically from the softmax of the true scores, for n = 2 keys and for n = 3.",
    weight="exp(l*(1+g))/(exp(l*(1+g))+exp(l))",
)
def _alpha_a(t: SimpleNamespace) -> Outcome:
    off = {n: sympy.simplify(single_head(n)[0] - said(t.weight)) for n in (2, 3)}
    point = {sympy.Symbol("l", real=True): 1, sympy.Symbol("g", real=True): 0}
    return conditional(
        with_condition=off[2] == 0,
        without_condition=off[3] == 0,
        evidence=f"Difference to the softmax: n = 2: {off[2]}; n = 3: {off[3]}. At λ = 1, γ = 0 and ten keys the true weight is "
        f"{float(single_head(10)[0].subs(point)):.3f}, the formula gives {float(said(t.weight).subs(point)):.3f}; at λ = 10 they agree to "
        "four digits.",
        corrected="The denominator also holds n - 2, one for each further key; the formula is exact for n = 2 and good when e^λ is large "
        "against n.",
    )


@BOOK.claim(
    "5.3b.3",
    where="5.3 b, line 366",
    says="And α_b = exp(λ)/exp(λ(1+γ) + exp(λ)).",
    latex=r"\alpha_b=\frac{\exp(\lambda)}{\exp(\lambda(1+\gamma)+\exp(\lambda))}",
    how="Compared symbolically with the softmax for n = 2 keys, and the two weights added up.",
    weight="exp(l)/exp(l*(1+g)+exp(l))",
    corrected="exp(l)/(exp(l*(1+g))+exp(l))",
)
def _alpha_b(t: SimpleNamespace) -> Outcome:
    true_a, true_b = single_head(2)
    l, g = sympy.symbols("l g", real=True)  # noqa: E741
    at = {l: 2, g: sympy.Rational(1, 2)}
    wrong = said(t.weight)
    return refuted(
        holds=identical(wrong, true_b),
        evidence=f"At λ = 2, γ = 1/2: the formula gives {float(wrong.subs(at)):.2e}, the softmax {float(true_b.subs(at)):.4f}; α_a and the "
        f"formula add up to {float((true_a + wrong).subs(at)):.4f} instead of 1. The bracket of the first exp closes too late.",
        corrected="α_b = e^λ/(e^{λ(1+γ)} + e^λ) (for n = 2; further keys add n - 2 to the denominator).",
        corrected_holds=identical(said(t.corrected), true_b) and identical(said(t.corrected) + true_a, sympy.Integer(1)),
    )


@BOOK.claim(
    "5.3b.4",
    where="5.3 b, line 368",
    says="γ ≈ 0.5 gives α_a = 1, γ ≈ 0 gives equal weights, γ ≈ -0.5 gives α_b = 1.",
    latex=r"\gamma\approx\tfrac12\Rightarrow\alpha_a=1;\quad\gamma\approx0\Rightarrow\alpha_a=\alpha_b;\quad\gamma\approx-\tfrac12\Rightarrow\alpha_b=1",
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

    shown = "; ".join(f"λ = {lam}: α_a = {', '.join(f'{weights(lam, g)[0]:.4f}' for g in gammas)}" for lam in (1, 2, 10, 20))
    return conditional(
        with_condition=all(holds(lam) for lam in (LAMBDA, 20.0, 50.0)),
        without_condition=all(holds(lam) for lam in (1.0, 2.0)),
        evidence=f"For γ = {', '.join(t.gammas)}: {shown}. With two keys α_a is exactly σ(λγ).",
        corrected="True to within 0.01 when λ is at least 10, that is when λ|γ| is large; for λ near 1 no weight is near 1.",
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
        f"α_a above 0.9: {shares[0]} (exactly {exact[0]:.3f}); between: {shares[1]} ({exact[1]:.3f}); below 0.1: {shares[2]} "
        f"({exact[2]:.3f}). The larger λ, the rarer the balanced average. {NOTE}",
    )


@BOOK.claim(
    "5.3b.6",
    where="5.3 b, line 372",
    says="The variance of the output is much larger than in part (a).",
    latex=r"\operatorname{Var}(c)\big|_{\Sigma_a=\alpha I+\frac12\mu_a\mu_a^\top}\gg\operatorname{Var}(c)\big|_{\Sigma_a=\alpha I}",
    how="Total variance of the output over 50,000 draws of ten keys with λ = 10, α = 10⁻⁶, with and without the extra ½μμᵀ; much "
    "larger means at least a hundred times, at the ends of the intervals.",
    along_a="1/2",
)
def _variance(t: SimpleNamespace) -> Outcome:
    q = query(LAMBDA, A, B)
    quiet = total_variance(attend(keys(9, 50_000, SMALL, 0.0), q))
    loud = total_variance(attend(keys(9, 50_000, SMALL, float(value(t.along_a))), q))
    ratio = (loud.mean - loud.half_width) / (quiet.mean + quiet.half_width)
    return supported(ratio > 100, f"Variance {loud} against {quiet}: at least {ratio:,.0f} times as large. {NOTE}")


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
    place = {"a": A, "b": B, "1": 0, "2": 1}
    k = torch.eye(KEYS, dtype=torch.float64)[None]

    def miss(first: str, second: str) -> float:
        c = (attend(k, query(LAMBDA, place[first])) + attend(k, query(LAMBDA, place[second]))) / 2
        return float((c[0] - target()).norm())

    off, mended = miss(t.first, t.second), miss(*t.corrected)
    return refuted(
        holds=off < 0.05,
        evidence=f"Distance of c from ½(v_a + v_b): {off:.3f} with λμ_1, λμ_2 (the output is the average of v_1 and v_2); {mended:.4f} with λμ_a, "
        "λμ_b. The next line of the document, μ_iᵀμ_a ≈ λ for i = a, is off too: that product is 1.",
        corrected="q_1 = λμ_a and q_2 = λμ_b.",
        corrected_holds=mended < 0.05,
    )


@BOOK.claim(
    "5.4a.3",
    where="5.4 a, lines 387-391",
    says="Then c_1 = v_a, c_2 = v_b and c = ½(v_a + v_b).",
    latex=r"c_1=v_a,\quad c_2=v_b,\quad c=\tfrac12(v_a+v_b)",
    how="The weight of a under λμ_a is e^λ/(e^λ + n - 1), compared with attention that is run; then the distance of c_1 from v_a for "
    "λ well above log n and for λ = 1, n = 10 to 1,000; equal to within 0.01.",
    weight="exp(l)/(exp(l)+n-1)",
    ample="log(n) + 6",
)
def _each_copies(t: SimpleNamespace) -> Outcome:
    def copied(lam: float, n: int) -> float:
        return float(torch.softmax(query(lam, A, n=n), dim=0)[A])

    sizes = (10, 100, 1000)
    ample = {n: float(value(t.ample, n=n)) for n in sizes}
    exact = all(math.isclose(copied(lam, n), float(value(t.weight, l=lam, n=n))) for n in sizes for lam in (1.0, ample[n]))
    misses = {n: (1 - copied(ample[n], n), 1 - copied(1.0, n)) for n in sizes}
    return conditional(
        with_condition=exact and all(m[0] < 0.01 for m in misses.values()),
        without_condition=exact and all(m[1] < 0.01 for m in misses.values()),
        evidence="Weight that goes astray, with λ = log n + 6 and with λ = 1: "
        + "; ".join(f"n = {n}: {m[0]:.4f} and {m[1]:.3f}" for n, m in misses.items())
        + f". The weight of the intended key equals {t.weight}: {exact}.",
        corrected="With the queries λμ_a and λμ_b, approximately, when λ is well above log n (and λ√α well below 1); never exactly.",
    )


@BOOK.claim(
    "5.4b.1",
    where="5.4 b, line 398",
    says="The second head is untouched by the noise in k_a: c_2 = v_b.",
    latex=r"c_2=v_b",
    how="Symbolically: k_a·q_2 = λ(1+γ)μ_a·μ_b, so the weight of b under λμ_b does not contain γ, and it tends to 1 as λ grows.",
    overlap="0",  # μ_a·μ_b
)
def _second_head(t: SimpleNamespace) -> Outcome:
    l, g, n = sympy.Symbol("l", positive=True), sympy.Symbol("g", real=True), sympy.Symbol("n", positive=True)  # noqa: E741
    weight = sympy.exp(l) / (sympy.exp(l) + sympy.exp(l * (1 + g) * formula(t.overlap)) + n - 2)
    slope, limit = sympy.simplify(sympy.diff(weight, g)), sympy.limit(weight.subs(g, 0), l, sympy.oo)
    return proved(
        slope == 0 and limit == 1,
        f"α_b = {sympy.simplify(weight)}: derivative by γ {slope}, limit {limit}. The orthogonality of the means keeps the noise out.",
    )


@BOOK.claim(
    "5.4b.2",
    where="5.4 b, lines 402-404",
    says="The first head still gives c_1 = v_a, with k_a·q_1 = λ(1 + γ).",
    latex=r"k_a^\top q_1=\lambda(1+\gamma)\ \Rightarrow\ c_1=v_a",
    how="The weight of a among ten keys as a function of γ; the share of samples where it is below 0.9, from 100,000 draws beside the exact "
    "normal probability, over all samples and over those with λ(1+γ) above log(81).",
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
    return conditional(
        with_condition=bad_when_enough == 0.0 and share.contains(exact),
        without_condition=share.mean < 0.001,
        evidence=f"λ = 10, ten keys: the weight of a is below 0.9 in a share {share} of samples (exactly {exact:.4f}); among samples with "
        f"λ(1+γ) above log 81 = {math.log(81):.2f} in {bad_when_enough:.4f}. However large λ is, 1 + γ is negative with probability "
        f"{negative:.4f}, and then c_1 is the average of the other values. {NOTE}",
        corrected="c_1 ≈ v_a when λ(1+γ) is well above log(n-1); it fails when γ < -1, which has probability 0.079 and which the question allows "
        "to be ignored, and for small positive 1+γ, which it does not.",
    )


@BOOK.claim(
    "5.4b.3",
    where="5.4 b, line 406",
    says="So c = ½(v_a + v_b) across samples: two heads are robust to the noise.",
    latex=r"c=\tfrac12(c_1+c_2)=\tfrac12(v_a+v_b)",
    how="100,000 draws of ten keys, λ = 100: share of outputs further than 0.1 from the average, over samples with 1 + γ > 0.1 and over all; "
    "and the total variance against one head.",
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
        evidence=f"Off the average: {inside:.4f} of the samples with 1 + γ > {t.floor}; over all samples {everywhere}, nearly all of them with γ < -1. "
        f"Total variance: two heads {two}, one head {one}. Robust compared with one head, but not across all samples. {NOTE}",
        corrected="c ≈ ½(v_a + v_b) when 1 + γ is positive and λ(1+γ) is well above log n; in the other 8 to 10 % of samples the first half is lost.",
    )


@BOOK.claim(
    "5.4b.4",
    where="5.4 b, line 395",
    says="The question asks for an explanation in terms of the variance of c_1 and c_2; the document gives none.",
    latex=r"\operatorname{Var}(c)=\tfrac14\left(\operatorname{Var}(c_1)+\operatorname{Var}(c_2)\right)",
    how="Total variances over 100,000 draws of ten keys, λ = 10, α = 10⁻⁶, all samples and those with k_a·q > 0, and the share of Var(c) that "
    "comes from c_1.",
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
        both.contains(predicted) and second.mean < 1e-6 and both.mean < single.mean / 3 and first_kept.mean < first.mean,
        f"Var(c_1) {first}; Var(c_2) {second.mean:.1e}; Var(c) {both}, a quarter of their sum ({predicted:.4f}). One head: {single}. "
        f"Leaving out k_a·q < 0: Var(c_1) {first_kept.mean:.4f}, one head {single_kept.mean:.4f}. {NOTE}",
        "c_2 has practically no variance, because q_2 is orthogonal to the noisy direction; c_1 varies only when λ(1+γ) falls towards 0; so c has a "
        "quarter of a small variance, where one head compares λ(1+γ) with λ and flips at every change of sign of γ.",
    )

"""Problem 6: the mean and variance of a dot product, and why it is scaled."""

from __future__ import annotations

import itertools
from types import SimpleNamespace

import sympy
import torch

from lmlab.ledger.claim import Outcome, ill_posed, proved, refuted, supported
from lmlab.ledger.kit import NOTE, estimate, formula, in_greek, listed, normals, value
from lmlab.ledger.lab11.book import BOOK
from lmlab.ledger.sheet import put

NORMALS = "where q: d normal(mu, s), k: d normal(mu, s)"
CENTRED = "where q: d normal(0, s), k: d normal(0, s)"
SETTING = "given mu: d\ngiven s: positive\n"


def exact_variance() -> sympy.Expr:
    """Var(q·k) for one coordinate with mean m and deviation s each, by the moments of the normal distribution."""
    m, s = sympy.symbols("m s", positive=True)
    second = m**2 + s**2
    return sympy.expand(second * second - (m * m) ** 2)


@BOOK.claim(
    "6a",
    where="Problem 6 (a), lines 419-437",
    says="For independent q and k from N(μ, σ²I), E[q·k] = μ·μ.",
    latex=r"\mathbb E[q^\top k]=\mu^\top\mu",
    how="In the derivation language, which integrates polynomials of normal variables exactly; and by 400,000 draws "
    "in four dimensions.",
    derivation=SETTING + f"claim E[q @ k] == mu @ mu {NORMALS}",
    mean="u",
)
def _mean(t: SimpleNamespace) -> Outcome:
    sheet = put(t.derivation)
    mu = torch.tensor([1.0, -2.0, 0.5, 1.5], dtype=torch.float64)
    q, k = mu + normals(1, 400_000, 4), mu + normals(2, 400_000, 4)
    measured, same = estimate((q * k).sum(1)), estimate((q * q).sum(1))
    u = float(mu @ mu)
    return proved(
        sheet.holds and measured.contains(float(value(t.mean, u=u, d=4))),
        f"{sheet}. μ·μ = {u:g}, σ = 1: measured {measured}. Independence is needed: with k = q it is {same}, that is "
        f"μ·μ + dσ². {NOTE}",
    )


@BOOK.claim(
    "6b",
    where="Problem 6 (b), line 473",
    says="Var(q·k) = 2dσ²μ·μ + dσ⁴.",
    latex=r"\operatorname{Var}(q^\top k)=2d\sigma^2\mu^\top\mu+d\sigma^4",
    how="In the derivation language; symbolically, one coordinate at a time; and by 400,000 draws in four dimensions.",
    derivation=SETTING + f"claim Var[q @ k] == 2*d*s**2*(mu @ mu) + d*s**4 {NORMALS}",
    corrected=SETTING + f"claim Var[q @ k] == 2*s**2*(mu @ mu) + d*s**4 {NORMALS}",
)
def _variance(t: SimpleNamespace) -> Outcome:
    said, right = put(t.derivation), put(t.corrected)
    mu = torch.tensor([1.0, -2.0, 0.5, 1.5], dtype=torch.float64)
    product = ((mu + normals(1, 400_000, 4)) * (mu + normals(2, 400_000, 4))).sum(1)
    u = float(mu @ mu)
    measured = estimate((product - u) ** 2)
    return refuted(
        holds=said.holds,
        evidence=f"{said}. One coordinate contributes {exact_variance()}, and the coordinates are independent, so "
        f"the first term sums to 2σ²μ·μ without d. Measured with μ·μ = {u:g}, σ = 1, d = 4: {measured}; the "
        f"document's formula gives {2 * 4 * u + 4:g}, the corrected one {2 * u + 4:g}. Its own line before (claim "
        f"6b.mid) has no d. Correction: {right}. {NOTE}",
        corrected="Var(q·k) = 2σ²μ·μ + dσ⁴.",
        corrected_holds=right.holds and measured.contains(2 * u + 4),
    )


@BOOK.claim(
    "6b.mid",
    where="Problem 6 (b), lines 447-469",
    says="E[(q·k)²] = (μ·μ)² + 2σ²μ·μ + dσ⁴.",
    latex=r"\mathbb E[(q^\top k)^2]=(\mu^\top\mu)^2+2\sigma^2\mu^\top\mu+d\sigma^4",
    how="In the derivation language: the expectation, and the trace form tr((μμᵀ + σ²I)²) it is derived from.",
    derivation=SETTING
    + f"claim E[(q @ k)**2] == (mu @ mu)**2 + 2*s**2*(mu @ mu) + d*s**4 {NORMALS}\n"
    + "let M = outer(mu, mu) + s**2 * eye(d)\nclaim trace(M @ M) == (mu @ mu)**2 + 2*s**2*(mu @ mu) + d*s**4",
)
def _second_moment(t: SimpleNamespace) -> Outcome:
    sheet = put(t.derivation)
    return proved(sheet.holds, f"{sheet}.")


@BOOK.claim(
    "6c.q",
    where="Problem 6 (c), line 414",
    says="Choose s so that E[q·k/s] scales linearly with d.",
    latex=r"\mathbb E[q^\top k/s]\propto d",
    how="E[q·k/s] as a formula in d for means of equal entries m, and at m = 0. The repaired demand, that the "
    "variance at μ = 0 should not depend on d, is solved for s.",
    mean="d*m**2/s",
    repair="sqrt(d)",
)
def _demand(t: SimpleNamespace) -> Outcome:
    d, m, s, sigma = sympy.symbols("d m s sigma", positive=True)
    names = {sympy.Symbol("d"): d, sympy.Symbol("m"): m, sympy.Symbol("s"): s}
    mean = formula(t.mean).subs(names)
    at_zero = mean.subs(m, 0)
    linear = sympy.simplify(sympy.diff(mean.subs(s, 1) / d, d)) == 0
    steady = sympy.simplify(sympy.diff(d * sigma**4 / formula(t.repair).subs(names) ** 2, d)) == 0
    return ill_posed(
        flawed=at_zero == 0 and linear and sympy.simplify(mean - d * m * m / s) == 0,  # d terms E[q_i]E[k_i] = m·m
        evidence=f"With μ = m(1, ..., 1) the mean is {mean}: linear in d already for s = 1, so that no scaling is "
        f"wanted; with μ = 0, the case the solution then takes, it is {at_zero} for every s. What grows with d and "
        "has to be kept in check is the variance, dσ⁴ at μ = 0.",
        repaired="Choose s so that Var(q·k/s) does not depend on d (at μ = 0): s = √d, up to a constant.",
        repaired_holds=steady,
    )


@BOOK.claim(
    "6c",
    where="Problem 6 (c), line 491",
    says="The answer is s = √d.",
    latex=r"s=\sqrt d\ \Rightarrow\ \mathbb E[q^\top k/s]\propto d",
    how="The mean divided by d as a formula for means of equal entries: constant exactly if the scaling is linear. "
    "Then what √d does achieve: the variance for equal entries m and at m = 0.",
    scale="sqrt(d)",
)
def _root(t: SimpleNamespace) -> Outcome:
    d, m, sigma = sympy.symbols("d m sigma", positive=True)
    s = formula(t.scale).subs(sympy.Symbol("d"), d)
    mean = sympy.simplify(d * m**2 / s)
    variance = sympy.simplify((2 * sigma**2 * d * m**2 + d * sigma**4) / sympy.sqrt(d) ** 2)
    return refuted(
        holds=sympy.simplify(sympy.diff(mean / d, d)) == 0,
        evidence=f"With s = {t.scale} the mean is {mean}, which does not grow linearly with d (s = 1 does that). "
        f"What √d achieves is another thing: Var(q·k/√d) = {in_greek(sympy.expand(variance))}, without d.",
        corrected="s = √d keeps the variance of the scores from growing with d; it is not the answer to the question "
        "asked, which s = 1 (any constant) answers.",
        corrected_holds=d not in variance.free_symbols,
    )


@BOOK.claim(
    "6d.1",
    where="Problem 6 (d), lines 497-503",
    says="With s = 1 the variance grows linearly with d: it is dσ⁴ at μ = 0.",
    latex=r"\operatorname{Var}(q^\top k)=d\sigma^4\quad(\mu=0)",
    how="In the derivation language, and by 200,000 draws at d = 2, 8, 32 with σ = 1.5.",
    derivation=f"given s: positive\nclaim Var[q @ k] == d*s**4 {CENTRED}",
    variance="d*s**4",
)
def _unscaled(t: SimpleNamespace) -> Outcome:
    sheet = put(t.derivation)
    found = {}
    for d in (2, 8, 32):
        product = (1.5 * normals(d, 200_000, d) * 1.5 * normals(d + 1, 200_000, d)).sum(1)
        found[d] = estimate(product**2)
    fits = all(e.contains(float(value(t.variance, d=d, s=1.5))) for d, e in found.items())
    return proved(
        sheet.holds and fits,
        f"{sheet}. Measured: "
        + "; ".join(f"d = {d}: {e} (formula {float(value(t.variance, d=d, s=1.5)):.1f})" for d, e in found.items())
        + f". {NOTE}",
    )


def attention_weights(d: int, scale: float, draws: int = 1000, keys: int = 16) -> tuple[torch.Tensor, torch.Tensor]:
    """Softmax weights of standard normal queries over standard normal keys, and the keys."""
    q, k = normals(d, draws, 1, d), normals(d + 1, draws, keys, d)
    return torch.softmax((q * k).sum(2) * scale, dim=1), k


@BOOK.claim(
    "6d.2",
    where="Problem 6 (d), lines 505-506",
    says="A large variance of the scores makes the softmax highly skewed: one or a few entries dominate.",
    latex=r"\operatorname{Var}\uparrow\ \Rightarrow\ \max_i\alpha_i\to1",
    how="Mean largest weight over 1,000 draws of a query and 16 keys for d = 1, 16, 256, 1024 without scaling; it "
    "must grow, and exceed 0.9 at the end, at the ends of its intervals.",
    scale="1",
)
def _skewed(t: SimpleNamespace) -> Outcome:
    found = {d: estimate(attention_weights(d, float(value(t.scale, d=d)))[0].amax(1)) for d in (1, 16, 256, 1024)}
    ladder = list(found.values())
    grows = all(a.mean + a.half_width < b.mean + b.half_width for a, b in itertools.pairwise(ladder))
    return supported(
        grows and ladder[-1].mean - ladder[-1].half_width > 0.9,
        "Mean largest of 16 weights: " + "; ".join(f"d = {d}: {e}" for d, e in found.items()) + f". {NOTE}",
    )


@BOOK.claim(
    "6d.3",
    where="Problem 6 (d), line 507",
    says="This leads to gradient explosion during back-propagation.",
    latex=r"\left\|\frac{\partial\alpha}{\partial e}\right\|\to\infty",
    how="Mean norm of the softmax's Jacobian diag(α) - ααᵀ over 1,000 draws for d = 1, 16, 256, 1024, unscaled, and "
    "mean and median of the gradient that reaches the query through it. Explosion means growth by more than ten.",
    through="softmax",
)
def _explosion(t: SimpleNamespace) -> Outcome:
    jacobians, means, medians = {}, {}, {}
    for d in (1, 16, 256, 1024):
        alpha, k = attention_weights(d, 1.0)
        jacobian = torch.diag_embed(alpha) - alpha[:, :, None] * alpha[:, None, :]
        if t.through == "identity":
            jacobian = torch.eye(16, dtype=torch.float64).expand(1000, 16, 16)
        jacobians[d] = estimate(torch.linalg.matrix_norm(jacobian, 2))
        reaching = (k.transpose(1, 2) @ jacobian @ normals(d + 7, 1000, 16, 1)).norm(dim=(1, 2))
        means[d], medians[d] = estimate(reaching), float(reaching.median())
    first, last = jacobians[1], jacobians[1024]
    return refuted(
        holds=means[1024].mean > 10 * means[1].mean or last.mean > 10 * first.mean,
        evidence=f"Norm of the Jacobian: {listed(jacobians, 'd = {}: {}')}; it never exceeds 1/2. Gradient reaching "
        f"the query, median: {', '.join(f'd = {d}: {n:.2g}' for d, n in medians.items())}; mean: "
        f"{listed(means, 'd = {}: {}')}. A saturated softmax is flat: for most queries the gradient is gone, and "
        f"what is left of the mean comes from the few with two keys nearly tied and does not grow. {NOTE}",
        corrected="Unscaled scores make the gradient through the softmax vanish for most queries; it does not explode.",
        corrected_holds=last.mean + last.half_width < first.mean - first.half_width
        and medians[1024] < 0.1 * medians[1]
        and all(norm.mean <= 0.5 for norm in jacobians.values()),
    )


@BOOK.claim(
    "6d.4",
    where="Problem 6 (d), line 509",
    says="Scaling by √d normalises the variance.",
    latex=r"\operatorname{Var}\left(\frac{q^\top k}{\sqrt d}\right)=\sigma^4\quad(\mu=0)",
    how="In the derivation language, and by 100,000 draws at d = 2, 8, 32 with σ = 1.",
    derivation=f"given s: positive\nclaim Var[q @ k / sqrt(d)] == s**4 {CENTRED}",
    scale="1/sqrt(d)",
)
def _normalised(t: SimpleNamespace) -> Outcome:
    sheet = put(t.derivation)
    found = {}
    for d in (2, 8, 32):
        scaled = (normals(d, 100_000, d) * normals(d + 1, 100_000, d)).sum(1) * float(value(t.scale, d=d))
        found[d] = estimate(scaled**2)
    return proved(
        sheet.holds and all(e.contains(1.0) for e in found.values()),
        f"{sheet}. Measured with σ = 1: "
        + "; ".join(f"d = {d}: {e}" for d, e in found.items())
        + f". The variance no longer depends on d; it is 1 when σ is 1. With μ ≠ 0 it is σ⁴ + 2σ²μ·μ/d. {NOTE}",
    )

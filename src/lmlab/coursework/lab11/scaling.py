"""Problem 6: the mean and variance of a dot product, and why it is scaled."""

from __future__ import annotations

import itertools
from types import SimpleNamespace

import sympy
import torch
from torch import Tensor

from lmlab.coursework.book import book
from lmlab.coursework.claim import Outcome, exact, ill_posed, judged, measured
from lmlab.coursework.shared_tools import (
    NOTE,
    attention_weights,
    estimate,
    eye,
    formula,
    in_greek,
    letters,
    listed,
    normals,
    number,
)
from lmlab.coursework.sheet import confirmed, derived, put

claim = book("lab11").claim

NORMALS = "where q: d normal(mu, s), k: d normal(mu, s)"
CENTRED = "where q: d normal(0, s), k: d normal(0, s)"
SETTING = "given mu: d\ngiven s: positive\n"
MU = torch.tensor([1.0, -2.0, 0.5, 1.5], dtype=torch.float64)


def products(draws: int) -> tuple[Tensor, Tensor]:
    """Independent q and k around MU with σ = 1."""
    return MU + normals(1, draws, len(MU)), MU + normals(2, draws, len(MU))


@claim("6a", derivation=SETTING + f"claim E[q @ k] == mu @ mu {NORMALS}", mean="u", draws=400_000)
def _mean(t: SimpleNamespace) -> Outcome:
    q, k = products(t.draws)
    found, same = estimate((q * k).sum(1)), estimate((q * q).sum(1))
    u = float(MU @ MU)
    return confirmed(
        put(t.derivation),
        found.contains(number(t.mean, u=u, d=len(MU))),
        f"μ·μ = {u:g}, σ = 1, d = {len(MU)}, {t.draws:,} draws: {found}. With k = q instead of an independent one: {same}.",
        note=NOTE,
    )


@claim(
    "6b",
    derivation=SETTING + f"claim Var[q @ k] == 2*d*s**2*(mu @ mu) + d*s**4 {NORMALS}",
    said="2*d*s**2*u + d*s**4",
    corrected=SETTING + f"claim Var[q @ k] == 2*s**2*(mu @ mu) + d*s**4 {NORMALS}",
    mended="2*s**2*u + d*s**4",
    draws=400_000,
)
def _variance(t: SimpleNamespace) -> Outcome:
    said, right = put(t.derivation), put(t.corrected)
    q, k = products(t.draws)
    u, d = float(MU @ MU), len(MU)
    found = estimate(((q * k).sum(1) - u) ** 2)
    claimed, mended = (number(text, u=u, s=1, d=d) for text in (t.said, t.mended))
    return judged(
        said.finding if found.contains(claimed) or not said.holds else "refuted",
        str(said),
        f"Measured with μ·μ = {u:g}, σ = 1, d = {d}, {t.draws:,} draws: {found}; {t.said} gives {claimed:g}, {t.mended} gives "
        f"{mended:g} (u is μ·μ).",
        because=f"The coordinates are independent, so the first term sums to 2σ²μ·μ without d, as in the document's own line "
        f"before (claim 6b.mid). Correction: {right}",
        note=NOTE,
        corrected="Var(q·k) = 2σ²μ·μ + dσ⁴.",
        holds=right.holds and found.contains(mended),
    )


claim(
    "6b.mid",
    derivation=SETTING
    + f"claim E[(q @ k)**2] == (mu @ mu)**2 + 2*s**2*(mu @ mu) + d*s**4 {NORMALS}\n"
    + "let M = outer(mu, mu) + s**2 * eye(d)\nclaim trace(M @ M) == (mu @ mu)**2 + 2*s**2*(mu @ mu) + d*s**4",
)(derived())


@claim("6c.q", mean="d*m**2/s", repair="sqrt(d)")
def _demand(t: SimpleNamespace) -> Outcome:
    d, m, s, sigma = letters("d m s sigma")
    mean = formula(t.mean)
    at_zero, linear = mean.subs(m, 0), sympy.simplify(sympy.diff(mean.subs(s, 1) / d, d)) == 0
    variance = sympy.simplify(d * sigma**4 / formula(t.repair) ** 2)
    true = sympy.simplify(mean - d * m * m / s) == 0  # d terms E[q_i]E[k_i] = m·m
    return ill_posed(
        at_zero == 0 and linear and true,
        f"With μ = m(1, ..., 1) the mean is {mean}: linear in d for s = 1: {linear}. With μ = 0, the case the solution then "
        f"takes, it is {at_zero} for every s. With s = {t.repair} the variance at μ = 0 is {in_greek(variance)}.",
        because="So either no scaling is wanted or none can help; what grows with d and has to be kept in check is the "
        "variance, dσ⁴ at μ = 0.",
        repaired="Choose s so that Var(q·k/s) does not depend on d (at μ = 0): s = √d, up to a constant.",
        holds=d not in variance.free_symbols,
        otherwise=exact(true),
    )


@claim("6c", scale="sqrt(d)")
def _root(t: SimpleNamespace) -> Outcome:
    d, m, sigma = letters("d m sigma")
    mean = sympy.simplify(d * m**2 / formula(t.scale))
    variance = sympy.simplify((2 * sigma**2 * d * m**2 + d * sigma**4) / sympy.sqrt(d) ** 2)
    return judged(
        exact(sympy.simplify(sympy.diff(mean / d, d)) == 0),
        f"With s = {t.scale} and means of equal entries m E[q·k/s] = {mean}; Var(q·k/√d) = {in_greek(sympy.expand(variance))}.",
        because="That mean does not grow linearly with d, as the question demands; s = 1 does that. What √d achieves is that d "
        "drops out of the variance.",
        corrected="s = √d keeps the variance of the scores from growing with d; it is not the answer to the question "
        "asked, which s = 1 (any constant) answers.",
        holds=d not in variance.free_symbols,
    )


@claim(
    "6d.1",
    derivation=f"given s: positive\nclaim Var[q @ k] == d*s**4 {CENTRED}",
    variance="d*s**4",
    sigma=1.5,
    draws=200_000,
)
def _unscaled(t: SimpleNamespace) -> Outcome:
    found = {
        d: estimate((t.sigma**2 * (normals(d, t.draws, d) * normals(d + 1, t.draws, d)).sum(1)) ** 2)
        for d in (2, 8, 32)
    }
    said = {d: number(t.variance, d=d, s=t.sigma) for d in found}
    return confirmed(
        put(t.derivation),
        all(e.contains(said[d]) for d, e in found.items()),
        f"Measured with σ = {t.sigma}, {t.draws:,} draws: "
        + "; ".join(f"d = {d}: {e} ({t.variance} gives {said[d]:.1f})" for d, e in found.items())
        + ".",
        note=NOTE,
    )


@claim("6d.2", scale="1", dimensions=(1, 16, 256), draws=2000, dominant=0.85)
def _skewed(t: SimpleNamespace) -> Outcome:
    found = {d: estimate(attention_weights(d, number(t.scale, d=d), t.draws)[0].amax(1)) for d in t.dimensions}
    ladder = list(found.values())
    grows = all(a.high < b.low for a, b in itertools.pairwise(ladder))
    falls = any(a.low > b.high for a, b in itertools.pairwise(ladder))
    return judged(
        measured(grows and ladder[-1].low > t.dominant, falls or ladder[-1].high < t.dominant),
        f"Mean largest of 16 weights, scores times {t.scale}, {t.draws:,} draws: {listed(found, 'd = {}: {}')}. It must grow "
        f"and exceed {t.dominant:g} at the end, by the ends of the intervals.",
        note=NOTE,
    )


@claim("6d.3", through="softmax", dimensions=(1, 16, 256, 1024), draws=1000, times=20)  # or through "identity"
def _explosion(t: SimpleNamespace) -> Outcome:
    norms, means, medians = {}, {}, {}
    for d in t.dimensions:
        alpha, k = attention_weights(d, 1.0, t.draws)
        softmax = torch.diag_embed(alpha) - alpha[:, :, None] * alpha[:, None, :]
        jacobian = {"softmax": softmax, "identity": eye(16).expand_as(softmax)}[t.through]
        norms[d] = estimate(torch.linalg.matrix_norm(jacobian, 2))
        reaching = (k.mT @ (jacobian @ normals(d + 7, t.draws, 16, 1))).norm(dim=(1, 2))
        means[d], medians[d] = estimate(reaching), float(reaching.median())
    first, last = t.dimensions[0], t.dimensions[-1]
    return judged(
        measured(
            means[last].low > t.times * means[first].high,
            max(means[last].high / means[first].low, norms[last].high / norms[first].low) < t.times,
        ),
        f"{t.draws:,} draws without scaling, gradient through the {t.through}. Norm of its Jacobian: "
        f"{listed(norms, 'd = {}: {}')}. Gradient reaching the query, median: {listed(medians, 'd = {}: {:.2g}')}; mean: "
        f"{listed(means, 'd = {}: {}')}. Explosion means growth by more than {t.times}.",
        because="A saturated softmax is flat: for most queries the gradient is gone, and what is left of the mean comes from "
        "the few with two keys nearly tied and does not grow.",
        note=NOTE,
        corrected="Unscaled scores make the gradient through the softmax vanish for most queries; it does not explode.",
        holds=norms[last].high < norms[first].low
        and medians[last] < 0.1 * medians[first]
        and all(norm.mean <= 0.5 for norm in norms.values()),
    )


@claim(
    "6d.4",
    derivation=f"given s: positive\nclaim Var[q @ k / sqrt(d)] == s**4 {CENTRED}",
    scale="1/sqrt(d)",
    draws=100_000,
)
def _normalised(t: SimpleNamespace) -> Outcome:
    found = {
        d: estimate(((normals(d, t.draws, d) * normals(d + 1, t.draws, d)).sum(1) * number(t.scale, d=d)) ** 2)
        for d in (2, 8, 32)
    }
    return confirmed(
        put(t.derivation),
        all(e.contains(1.0) for e in found.values()),
        f"Measured with σ = 1 and scores times {t.scale}, {t.draws:,} draws: {listed(found, 'd = {}: {}')}.",
        note=f"With μ ≠ 0 it is σ⁴ + 2σ²μ·μ/d. {NOTE}",
    )

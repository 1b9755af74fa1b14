"""Problem 1: gradients that vanish or explode, and what is said to help."""

from __future__ import annotations

import math
from types import SimpleNamespace

import numpy as np
import sympy
import torch
from torch import nn

from lmlab.ledger.claim import Outcome, conditional, proved, refuted, supported
from lmlab.ledger.kit import formula, normals, value
from lmlab.ledger.lab11.book import BOOK
from lmlab.ledger.lab11.cells import (
    GRU_GATES,
    LSTM_GATES,
    Weights,
    draw,
    gru,
    lstm,
    orthogonal,
    spectral_norm,
    unrolled,
)
from lmlab.ledger.sheet import put


@BOOK.claim(
    "1a",
    where="Problem 1, lines 56-62",
    says="In recurrent networks gradients vanish over many steps.",
    latex=r"\left\|\frac{\partial h_T}{\partial h_0}\right\|\le(\|U\|\max|\varphi'|)^T\to0",
    how="Norm of ∂h_T/∂h_0 of h_t = φ(U h_{t-1} + x_t) by automatic differentiation, 16 units, 50 steps: with |U| "
    "max|φ'| below 1 (and against the bound), and with U "
    "orthogonal and φ linear.",
    norm="1/2",
    bound="(u*s)**T",
)
def _vanish(t: SimpleNamespace) -> Outcome:
    u, steps = float(value(t.norm)), 50
    inputs = normals(1, steps, 16)
    small = spectral_norm(
        unrolled(u * orthogonal(16, 2), torch.tanh, steps, inputs), torch.zeros(16, dtype=torch.float64)
    )
    bound = float(value(t.bound, u=formula(t.norm), s=1, T=steps))
    kept = spectral_norm(unrolled(orthogonal(16, 2), lambda a: a, steps, inputs), torch.zeros(16, dtype=torch.float64))
    return conditional(
        with_condition=small <= bound < 1e-6,
        without_condition=kept < 1e-6,
        evidence=f"tanh, |U| = {t.norm}: the norm after {steps} steps is {small:.1e}, within the bound {bound:.1e}. "
        f"Linear units with orthogonal U: {kept:.6f}, nothing is lost; with |U| = 1.2 it would be {1.2**steps:.0f}.",
        corrected="They vanish when |U| max|φ'| < 1; with |U| max|φ'| ≥ 1 they may persist or explode.",
    )


def train_memory(start: float, clip: float | None, steps: int = 600) -> list[float]:
    """Losses while the one-unit RNN h_t = w h_{t-1} learns, by plain gradient descent, to bring 1 to 0.5 in 30 steps."""
    w, losses = start, []
    for _ in range(steps):
        if abs(w) > 100:
            losses.append(math.inf)
            break
        error = w**30 - 0.5
        losses.append(error**2)
        gradient = 2 * error * 30 * w**29
        if clip is not None:
            gradient = max(-clip, min(clip, gradient))
        w -= 1e-3 * gradient
    return losses


def _steps(count: int) -> str:
    return "one step" if count == 1 else f"{count} steps"


def _size(loss: float) -> str:
    return f"{loss:.1e}" if math.isfinite(loss) else "more than a float64 can hold"


@BOOK.claim(
    "1b",
    where="Problem 1, line 66",
    says="Exploding gradients make training unstable.",
    latex=r"\left\|\nabla\right\|\gg1\ \Rightarrow\ \text{divergence}",
    how="A linear RNN of one unit trained by plain gradient descent to keep a number for 30 steps, started where "
    "the gradient is large and where it is not; and from the first start with the gradient clipped.",
    start="1.3",
)
def _unstable(t: SimpleNamespace) -> Outcome:
    start = float(t.start)
    wild, calm, clipped = train_memory(start, None), train_memory(0.95, None), train_memory(start, 1.0)
    first = 2 * (start**30 - 0.5) * 30 * start**29
    return supported(
        wild[-1] > 1e3 * wild[0] and calm[-1] < calm[0] and clipped[-1] < 1e-2,
        f"Started at w = {t.start} the gradient is {first:.1e}; after {_steps(len(wild) - 1)} the loss has gone "
        f"from {wild[0]:.1e} to {_size(wild[-1])}. Started at w = 0.95: {calm[0]:.1e} to {calm[-1]:.1e}. From "
        f"{t.start} with the gradient clipped to 1: {clipped[0]:.1e} to {clipped[-1]:.1e}.",
    )


@BOOK.claim(
    "1d",
    where="Problem 1, line 71",
    says="Both problems arise especially with activation functions of steep or flat slope, such as sigmoid and tanh.",
    latex=r"\max\sigma'=\tfrac14,\quad\max\tanh'=1",
    how="The largest slopes symbolically. Only a slope above 1 can enlarge a gradient. Then ∂h_T/∂h_0 over 40 steps "
    "with |U| = 1.5 for linear, tanh and sigmoid units.",
    activations=("1/(1+exp(-x))", "tanh(x)"),
)
def _slopes(t: SimpleNamespace) -> Outcome:
    x = sympy.Symbol("x", real=True)
    slopes = {}
    for text in t.activations:
        slope = sympy.diff(formula(text).subs(sympy.Symbol("x"), x), x)
        steepest = float(sympy.lambdify(x, slope, "numpy")(np.linspace(-8, 8, 3201)).max())
        slopes[text] = sympy.nsimplify(steepest, rational=True, tolerance=1e-9)
    inputs = 0.1 * normals(3, 40, 16)
    u = 1.5 * orthogonal(16, 4)
    kinds = {"linear": lambda a: a, "tanh": torch.tanh, "sigmoid": torch.sigmoid}
    norms = {
        k: spectral_norm(unrolled(u, f, 40, inputs), torch.zeros(16, dtype=torch.float64)) for k, f in kinds.items()
    }
    return refuted(
        holds=max(slopes.values()) > 1,
        evidence=f"Largest slopes: {', '.join(f'{text}: {s}' for text, s in slopes.items())}. Neither exceeds 1, so "
        "they never enlarge a gradient; with |U| = 1.5 the norm after 40 steps is "
        + ", ".join(f"{n:.1e} for {k} units" for k, n in norms.items())
        + ": the squashing functions damp the explosion.",
        corrected="Flat slopes of sigmoid and tanh make gradients vanish; explosion comes from the recurrent weights "
        "and is worst for units that do not squash.",
        corrected_holds=norms["sigmoid"] < norms["tanh"] < norms["linear"] and norms["linear"] > 1e6,
    )


@BOOK.claim(
    "1e",
    where="Problem 1, line 75",
    says="Gradient clipping limits gradients to a threshold.",
    latex=r"\left\|g\min\left(1,\tfrac{c}{\|g\|}\right)\right\|=\min(\|g\|,c)\le c",
    how="In the derivation language; in both cases, |g| at most c and above it, symbolically; and torch's own clipping "
    "of 200 random gradients (it divides by |g| + 10⁻⁶).",
    derivation="given g: n\ngiven a, c: positive\nclaim sum((a * g)**2) == a**2 * sum(g**2)\n"
    "let clipped = g * minimum(1, c / norm(g))\n"
    "claim norm(clipped) == minimum(norm(g), c)\nclaim norm(clipped) <= c",
    threshold="1",
)
def _clipping(t: SimpleNamespace) -> Outcome:
    sheet = put(t.derivation)
    c, size = sympy.symbols("c size", positive=True)
    cut = sympy.simplify(size * (c / size))  # a gradient above the threshold
    limit, largest = float(value(t.threshold)), 0.0
    for seed in range(200):
        weight = nn.Parameter(torch.zeros(10, dtype=torch.float64))
        weight.grad = normals(seed, 10) * 10.0 ** (seed % 7 - 3)
        nn.utils.clip_grad_norm_([weight], 1.0)
        largest = max(largest, float(weight.grad.norm()))
    return proved(
        sheet.holds and cut == c and largest <= limit and largest > 0.99 * limit,
        f"{sheet}. A factor a > 0 multiplies the norm by a (the first line); a gradient with |g| ≤ c gets a = 1 and "
        f"keeps its norm, one with |g| > c gets a = c/|g| and the norm {cut}. torch, threshold 1: largest norm "
        f"afterwards {largest:.6f}. Clipping the norm keeps the direction; clipping each value, as the document's "
        "words also allow, does not.",
    )


@BOOK.claim(
    "1f",
    where="Problem 1, line 76",
    says="The gates of LSTM and GRU regulate the flow of the gradient.",
    latex=r"\frac{\partial c_T}{\partial c_0}=\prod_tf_t,\qquad\frac{\partial h_T}{\partial "
    r"h_0}=\prod_t(1-z_t)\quad\text{(direct paths)}",
    how="The lab's cells with 8 units, gates set by their biases and no recurrent weights, 50 steps: the gradient "
    "measured by automatic differentiation against gate^50, for gates 0.5, 0.9, 0.99.",
    law="g**T",
)
def _gated(t: SimpleNamespace) -> Outcome:
    steps, zero = 50, torch.zeros(8, dtype=torch.float64)
    lines, right = [], True
    for gate in (0.5, 0.9, 0.99):
        logit = math.log(gate / (1 - gate))
        wl = draw(LSTM_GATES, 4, 8, 1, recurrent=0.0, f=logit)
        wl.W["f"].zero_()
        wg = draw(GRU_GATES, 4, 8, 2, recurrent=0.0, z=-logit)
        wg.W["z"].zero_()
        x = normals(5, 4)

        def cell(c: torch.Tensor, w: Weights = wl, x: torch.Tensor = x) -> torch.Tensor:
            h = zero
            for _ in range(steps):
                h, c = lstm(w, x, h, c)
            return c

        def state(h: torch.Tensor, w: Weights = wg, x: torch.Tensor = x) -> torch.Tensor:
            for _ in range(steps):
                h = gru(w, x, h)
            return h

        said = float(value(t.law, g=gate, T=steps))
        found = spectral_norm(cell, zero), spectral_norm(state, zero)
        right &= all(math.isclose(n, said, rel_tol=1e-9) for n in found)
        lines.append(f"gate {gate}: LSTM {found[0]:.2e}, GRU {found[1]:.2e}, gate^{steps} = {said:.2e}")
    return supported(right, "; ".join(lines) + ". The gate decides, step by step, how much gradient passes.")


def growth(scale: float, activation: str, steps: int = 30, units: int = 256) -> float:
    """Median over draws of |∂h_T/∂h_0 · v|² / |v|² for the RNN with weights of variance scale/units, small inputs."""
    found = []
    for seed in range(5):
        u = normals(seed, units, units) * math.sqrt(scale / units)
        h, v = 1e-3 * normals(seed + 50, units), normals(seed + 90, units)
        v = v / v.norm()
        inputs = 1e-3 * normals(seed + 70, steps, units)
        for t in range(steps):
            a = u @ h + inputs[t]
            slope = (
                (a > 0).double()
                if activation == "relu"
                else torch.ones_like(a)
                if activation == "linear"
                else 1 - torch.tanh(a) ** 2
            )
            h = torch.relu(a) if activation == "relu" else a if activation == "linear" else torch.tanh(a)
            v = slope * (u @ v)
        found.append(float(v.norm() ** 2))
    return float(np.median(found))


@BOOK.claim(
    "1g",
    where="Problem 1, line 77",
    says="Xavier or He initialisation stabilises training.",
    latex=r"n\operatorname{Var}(W)\,\mathbb E[\varphi'^2]=1",
    how="Squared growth of a gradient through 30 steps of an RNN with 256 units at initialisation, median of five "
    "draws: Xavier (variance 1/n) with linear and tanh units and He (2/n) with ReLU, then each with the other's "
    "units. Stable means within a factor 1,000.",
    xavier="1",
    he="2",
)
def _initialisation(t: SimpleNamespace) -> Outcome:
    xavier, he = float(value(t.xavier)), float(value(t.he))
    matched = {
        "Xavier, linear": growth(xavier, "linear"),
        "Xavier, tanh": growth(xavier, "tanh"),
        "He, ReLU": growth(he, "relu"),
    }
    crossed = {"Xavier, ReLU": growth(xavier, "relu"), "He, linear": growth(he, "linear")}

    def stable(found: dict[str, float]) -> bool:
        return all(1e-3 < g < 1e3 for g in found.values())

    return conditional(
        with_condition=stable(matched),
        without_condition=stable(crossed),
        evidence="Growth of the squared gradient in 30 steps: "
        + "; ".join(f"{k}: {g:.1e}" for k, g in (matched | crossed).items())
        + f". (2^30 = {2**30:.1e}.)",
        corrected="At initialisation, when the scheme fits the activation (Xavier: linear or tanh near 0; He: ReLU); "
        "with the other one gradients shrink or grow by a factor near 2 a step.",
    )


@BOOK.claim(
    "1h",
    where="Problem 1, line 78",
    says="Batch normalisation prevents extreme gradients.",
    latex=r"\left\|\frac{\partial\hat x}{\partial x}\right\|=\frac{1}{\sqrt{v+\epsilon}}",
    how="Norm of the Jacobian of batch normalisation (ε = 10⁻⁵) by automatic differentiation for batches of 32 "
    "numbers with standard deviation 100, 1, 0.01, 10⁻⁴, against the formula; extreme means above 10.",
    factor="1/sqrt(v+eps)",
)
def _batch_norm(t: SimpleNamespace) -> Outcome:
    base = normals(6, 32)
    base = (base - base.mean()) / base.std(correction=0)
    norms, fits = {}, True
    for spread in (100.0, 1.0, 0.01, 1e-4):

        def normalised(x: torch.Tensor) -> torch.Tensor:
            return nn.functional.batch_norm(x[:, None], None, None, training=True, eps=1e-5)[:, 0]

        norms[spread] = spectral_norm(normalised, spread * base)
        fits &= math.isclose(norms[spread], float(value(t.factor, v=spread**2, eps=1e-5)), rel_tol=1e-6)
    return conditional(
        with_condition=fits and max(norms[100.0], norms[1.0]) <= 10,
        without_condition=fits and max(norms.values()) <= 10,
        evidence="Factor by which a gradient can grow: "
        + ", ".join(f"{n:.3g} at spread {s:g}" for s, n in norms.items())
        + ". It tames large activations and magnifies where a batch hardly varies.",
        corrected="It bounds gradients by 1/√(batch variance + ε): no extremes where activations vary by 1 or more, "
        "up to 316-fold magnification where they hardly vary.",
    )

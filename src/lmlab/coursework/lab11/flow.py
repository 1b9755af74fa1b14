"""Problem 1: gradients that vanish or explode, and what is said to help."""

from __future__ import annotations

import math
from collections.abc import Callable
from types import SimpleNamespace

import numpy as np
import sympy
import torch
from torch import Tensor, nn

from lmlab.coursework.book import book
from lmlab.coursework.claim import Outcome, conditional, exact, judged, measured
from lmlab.coursework.lab11.cells import (
    GRU_GATES,
    LSTM_GATES,
    along_the_cell,
    along_the_state,
    held,
    spectral_norm,
    through_time,
)
from lmlab.coursework.shared_tools import formula, letter, listed, normals, number, orthogonal, row
from lmlab.coursework.sheet import confirmed, put

claim = book("lab11").claim


Map = Callable[[Tensor], Tensor]


def linear(a: Tensor) -> Tensor:
    """No activation."""
    return a


@claim("1a", norm="1/2", orthogonal="1", bound="(u*s)**T", steps=50)
def _vanish(t: SimpleNamespace) -> Outcome:
    inputs, gone = normals(1, t.steps, 16), 1e-6
    small = through_time(number(t.norm) * orthogonal(16, 2), torch.tanh, inputs)
    kept = through_time(number(t.orthogonal) * orthogonal(16, 2), linear, inputs)
    bound = number(t.bound, u=formula(t.norm), s=1, T=t.steps)
    return conditional(
        exact(small <= bound < gone),
        measured(kept < gone),
        f"|∂h_T/∂h_0| of h_t = φ(U h_{{t-1}} + x_t) by automatic differentiation, 16 units, {t.steps} steps; vanished means "
        f"below {gone:.0e}. tanh with |U| = {t.norm}: {small:.1e}, the bound {t.bound} with s = max|φ'| = 1 is {bound:.1e}. "
        f"Linear units with |U| = {t.orthogonal}: {kept:.6f}.",
        because="There nothing is lost.",
        precisely="They vanish when |U| max|φ'| < 1; with |U| max|φ'| ≥ 1 they may persist or explode.",
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
        w -= 1e-3 * (gradient if clip is None else max(-clip, min(clip, gradient)))
    return losses


@claim("1b", start="1.3", calm="0.95", clip=1.0)
def _unstable(t: SimpleNamespace) -> Outcome:
    start = float(t.start)
    wild, calm, clipped = train_memory(start, None), train_memory(float(t.calm), None), train_memory(start, t.clip)
    gradient = 2 * (start**30 - 0.5) * 30 * start**29

    def told(losses: list[float]) -> str:
        end = f"{losses[-1]:.1e}" if math.isfinite(losses[-1]) else "more than a float64 can hold"
        return f"the loss goes from {losses[0]:.1e} to {end} in {len(losses) - 1} steps"

    return judged(
        measured(wild[-1] > 1e3 * wild[0] and calm[-1] < calm[0] and clipped[-1] < 1e-2),
        "A linear RNN of one unit learns by plain gradient descent to keep a number for 30 steps.",
        f"From w = {t.start}, where the gradient is {gradient:.1e}, {told(wild)}; from w = {t.calm} {told(calm)}; from "
        f"{t.start} with the gradient clipped to {t.clip:g} {told(clipped)}.",
    )


@claim("1d", activations=("1/(1+exp(-x))", "tanh(x)"), norm="3/2", steps=40)
def _slopes(t: SimpleNamespace) -> Outcome:
    x, grid = letter("x"), np.linspace(-8, 8, 3201)
    slopes = {}
    for text in t.activations:
        steepest = float(np.max(sympy.lambdify(x, sympy.diff(formula(text), x), "numpy")(grid)))
        slopes[text] = sympy.nsimplify(steepest, rational=True, tolerance=1e-9)
    u, inputs = number(t.norm) * orthogonal(16, 4), 0.1 * normals(3, t.steps, 16)
    kinds: dict[str, Map] = {"sigmoid": torch.sigmoid, "tanh": torch.tanh, "linear": linear}
    norms = {name: through_time(u, kind, inputs) for name, kind in kinds.items()}
    return judged(
        exact(max(slopes.values()) > 1),
        f"Only a slope above 1 can enlarge a gradient. Largest slopes: {listed(slopes)}.",
        f"|∂h_T/∂h_0| after {t.steps} steps with |U| = {t.norm}: "
        + row(f"{n:.1e} for {k} units" for k, n in norms.items())
        + ".",
        because="The squashing functions damp the explosion; they never cause it.",
        corrected="Flat slopes of sigmoid and tanh make gradients vanish; explosion comes from the recurrent weights "
        "and is worst for units that do not squash.",
        holds=norms["sigmoid"] < norms["tanh"] < norms["linear"] and norms["linear"] > 1e6,
    )


@claim(
    "1e",
    derivation="given g: n\ngiven a, c: positive\nclaim sum((a * g)**2) == a**2 * sum(g**2)\n"
    "let clipped = g * minimum(1, c / norm(g))\n"
    "claim norm(clipped) == minimum(norm(g), c)\nclaim norm(clipped) <= c",
    threshold="1",
    draws=200,
)
def _clipping(t: SimpleNamespace) -> Outcome:
    limit, largest = number(t.threshold), 0.0
    for seed in range(t.draws):
        weight = nn.Parameter(normals(0, 10))
        weight.grad = normals(seed, 10) * 10.0 ** (seed % 7 - 3)
        nn.utils.clip_grad_norm_([weight], 1.0)
        largest = max(largest, float(weight.grad.norm()))
    cut = sympy.simplify(letter("s") * (letter("c") / letter("s")))  # a gradient of norm s above the threshold c
    return confirmed(
        put(t.derivation),
        cut == letter("c") and 0.99 * limit < largest <= limit,
        f"A factor a > 0 multiplies the norm by a (the first line); a gradient with |g| ≤ c keeps its norm, one above it gets "
        f"a = c/|g| and the norm {cut}.",
        f"torch's clipping at 1 (it divides by |g| + 10⁻⁶), {t.draws} random gradients: largest norm afterwards {largest:.6f}, "
        f"claimed at most {t.threshold}.",
        note="Clipping the norm keeps the direction; clipping each value, as the document's words also allow, does not.",
    )


@claim("1f", law="g**T", gates=(0.5, 0.9, 0.99), steps=50)
def _gated(t: SimpleNamespace) -> Outcome:
    x, lines, right = normals(5, 4), [], True
    for gate in t.gates:
        said = number(t.law, g=gate, T=t.steps)
        cell = along_the_cell(held(LSTM_GATES, "f", gate, 1), x, t.steps)
        state = along_the_state(held(GRU_GATES, "z", 1 - gate, 2), x, t.steps)
        right &= all(math.isclose(found, said, rel_tol=1e-9) for found in (cell, state))
        lines.append(f"gate {gate}: LSTM {cell:.2e}, GRU {state:.2e}, claimed {said:.2e}")
    return judged(
        measured(right),
        f"The lab's cells with f, or 1 - z, held and no recurrent weights, {t.steps} steps, against {t.law}: "
        + "; ".join(lines)
        + ".",
        note="The gate decides, step by step, how much gradient passes.",
    )


ACTIVATIONS: dict[str, tuple[Map, Map]] = {  # and their slopes
    "linear": (linear, torch.ones_like),
    "tanh": (torch.tanh, lambda a: 1 - torch.tanh(a) ** 2),
    "ReLU": (torch.relu, lambda a: (a > 0).double()),
}


def growth(scale: float, activation: str, steps: int, draws: int = 9, units: int = 256) -> float:
    """Median over draws of the squared growth of a gradient, a step, in the RNN with weights of variance scale/units."""
    squash, slope = ACTIVATIONS[activation]
    found = []
    for seed in range(draws):
        u = normals(seed, units, units) * math.sqrt(scale / units)
        h, v = 1e-3 * normals(seed + 50, units), normals(seed + 90, units)
        inputs, size = 1e-3 * normals(seed + 70, steps, units), float(v.norm())
        for x in inputs:
            a = u @ h + x
            h, v = squash(a), slope(a) * (u @ v)
        found.append((float(v.norm()) / size) ** (2 / steps))
    return float(np.median(found))


@claim("1g", xavier="1", he="2", steps=30, tolerance=0.05)
def _initialisation(t: SimpleNamespace) -> Outcome:
    scales = {"Xavier": number(t.xavier), "He": number(t.he)}

    def grown(*pairs: tuple[str, str]) -> dict[str, float]:
        return {f"{scheme}, {kind}": growth(scales[scheme], kind, t.steps) for scheme, kind in pairs}

    matched = grown(("Xavier", "linear"), ("Xavier", "tanh"), ("He", "ReLU"))
    crossed = grown(("Xavier", "ReLU"), ("He", "linear"))

    def stable(found: dict[str, float]) -> bool:
        return all(abs(factor - 1) < t.tolerance for factor in found.values())

    return conditional(
        measured(stable(matched)),
        measured(stable(crossed)),
        f"Weights of variance {t.xavier}/n (Xavier) and {t.he}/n (He), 256 units, {t.steps} steps, small inputs: factor by "
        f"which the squared gradient grows at each step, {listed(matched | crossed, '{}: {:.3f}')}. Stable means within "
        f"{100 * t.tolerance:g} % of 1.",
        because=f"A factor of 2 a step is {2**t.steps:.1e} in {t.steps}.",
        precisely="At initialisation, when the scheme fits the activation (Xavier: linear or tanh near 0; He: ReLU); "
        "with the other one gradients shrink or grow by a factor near 2 a step.",
    )


@claim("1h", factor="1/sqrt(v+eps)", wide=(100.0, 1.0), narrow=(0.01, 1e-4), extreme=10, eps=1e-5)
def _batch_norm(t: SimpleNamespace) -> Outcome:
    base = normals(6, 32)
    base = (base - base.mean()) / base.std(correction=0)

    def normalised(x: Tensor) -> Tensor:
        return nn.functional.batch_norm(x[:, None], None, None, training=True, eps=t.eps)[:, 0]

    norms = {spread: spectral_norm(normalised, spread * base) for spread in (*t.wide, *t.narrow)}
    fits = all(math.isclose(n, number(t.factor, v=s**2, eps=t.eps), rel_tol=1e-6) for s, n in norms.items())

    def tame(spreads: tuple[float, ...]) -> bool:
        return fits and max(norms[s] for s in spreads) <= t.extreme

    return conditional(
        measured(tame(t.wide)),
        measured(tame(t.narrow)),
        f"Norm of the Jacobian of batch normalisation (ε = {t.eps:.0e}, batches of 32): "
        + row(f"{n:.3g} at spread {s:g}" for s, n in norms.items())
        + f"; by the formula {t.factor}: {fits}. Extreme means above {t.extreme}.",
        because="It tames large activations and magnifies where a batch hardly varies.",
        precisely="It bounds gradients by 1/√(batch variance + ε): no extremes where activations vary by 1 or more, "
        f"up to {1 / math.sqrt(t.eps):.0f}-fold magnification where they hardly vary.",
    )

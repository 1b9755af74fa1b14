"""Exercises 12.8 to 12.10: random directions, and encodings of position."""

from __future__ import annotations

import math
from types import SimpleNamespace

import numpy as np
import torch

from lmlab.coursework.book import book
from lmlab.coursework.claim import Outcome, conditional, exact, judged, measured
from lmlab.coursework.shared_tools import NOTE, blocks, estimate, generator, listed, normals, number
from lmlab.coursework.sheet import confirmed, derived, put

claim = book("bishop12").claim


@claim("8", variance="1/D", dimensions=(4, 16, 64), draws=200_000)
def _cosine(t: SimpleNamespace) -> Outcome:
    lines, round_holds, coin_holds = [], True, True
    for d in t.dimensions:
        claimed = number(t.variance, D=d)
        draws = generator(d).standard_normal((2, t.draws, d), dtype=np.float32)
        a, b = draws / np.linalg.norm(draws, axis=2, keepdims=True)
        found = estimate((a * b).sum(1).astype(np.float64) ** 2)
        second_moments = np.eye(d) / d, np.diag([1.0] + [0.0] * (d - 1))  # E[aaᵀ] on the sphere, and of ±e_1
        sphere, coin = (float(np.trace(moment @ moment)) for moment in second_moments)
        round_holds &= found.contains(claimed) and math.isclose(sphere, claimed)
        coin_holds &= math.isclose(coin, claimed)
        lines.append(f"D = {d}: claimed {claimed:.5g}; sphere {sphere:.5g}, measured {found}; ±e_1: {coin:g}")
    return conditional(
        measured(round_holds),
        measured(coin_holds),
        f"E[cos²] = tr(E[aaᵀ]²), exactly, for directions on the sphere ({t.draws:,} pairs beside it) and for the coin ±e_1, "
        "both symmetrical around the origin: " + "; ".join(lines) + ".",
        because="For the coin |cos| is always 1.",
        note=NOTE,
        precisely="It needs E[aaᵀ] = I/D, as for a distribution unchanged by rotations; symmetry under x → -x is not "
        "enough.",
    )


@claim(
    "9",
    derivation="given x: D\ngiven r: P\ngiven Wx: M, D\ngiven Wr: M, P\n"
    "claim concat(Wx, Wr, axis=1) @ concat(x, r) == Wx @ x + Wr @ r",
)
def _concatenation(t: SimpleNamespace) -> Outcome:
    return confirmed(put(t.derivation), *blocks("Wx Wr x r"))


@claim(
    "9.b",
    derivation="given x, r: D\ngiven W: M, D\nclaim concat(W, W, axis=1) @ concat(x, r) == W @ (x + r)",
    second_block="free",  # "same" would tie the block of the position to that of the token
)
def _additive(t: SimpleNamespace) -> Outcome:
    sheet, wx = put(t.derivation), normals(1, 4, 6)
    wr = {"same": wx, "free": normals(2, 4, 6)}[t.second_block]
    nearest = (wx + wr) / 2  # minimises |W' - W_x|² + |W' - W_r|²
    left = float(torch.cat([wx - nearest, wr - nearest], dim=1).norm() / torch.cat([wx, wr], dim=1).norm())
    return conditional(
        sheet.finding,
        measured(left < 1e-12),
        f"Concatenation does what addition does: {sheet}",
        f"The converse: for a random W_x and a W_r that is {t.second_block} the best single W' misses {100 * left:.0f} % of "
        "the map.",
        because="W'(x + r) must treat both alike; and with sizes D ≠ P the sum x + r does not exist.",
        precisely="When both vectors have the same size, concatenation can imitate addition (W_x = W_r); addition "
        "can imitate concatenation only if W_x = W_r or the position vectors are themselves free to be learned.",
    )


claim(
    "10.a",
    derivation="given n, k, w\nlet M = [[cos(k*w), sin(k*w)], [-sin(k*w), cos(k*w)]]\n"
    "claim [sin((n + k)*w), cos((n + k)*w)] == M @ [sin(n*w), cos(n*w)]",
)(derived("The encoding is made of such pairs, and n does not occur in the matrix."))


@claim("10.b", functions=("sin",), offsets=(1, 3, 10), width=8)
def _sines_alone(t: SimpleNamespace) -> Outcome:
    waves = {"sin": np.sin, "cos": np.cos}
    angles = np.arange(200 + max(t.offsets))[:, None] / 10_000 ** (np.arange(t.width) / t.width)
    encoding = np.concatenate([waves[name](angles) for name in t.functions], axis=1)
    residuals = {}
    for k in t.offsets:
        here, there = encoding[:200], encoding[k : 200 + k]
        solution = np.linalg.lstsq(here, there, rcond=None)[0]
        residuals[k] = float(np.abs(here @ solution - there).max())
    stuck = not encoding[0].any() and all(encoding[k].any() for k in t.offsets)
    return judged(
        exact(stuck and min(residuals.values()) > 1e-3),
        f"At n = 0 the encoding by {' and '.join(t.functions)} is the zero vector, which every matrix leaves at zero, and at k "
        f"it is not: {stuck}. Largest error of the best matrix over 200 positions, {encoding.shape[1]} components: "
        f"{listed(residuals, 'k = {}: {:.2g}')}.",
        note="(The document's reason, that a cosine is not among the components, is not yet a proof: on few positions the "
        "other sines can imitate it.)",
    )

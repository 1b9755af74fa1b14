"""Problem 4: back-propagation through an LSTM, and which path keeps the gradient alive."""

from __future__ import annotations

import math
from types import SimpleNamespace

import torch
from torch import Tensor

from lmlab.coursework.book import book
from lmlab.coursework.claim import Finding, Outcome, conditional, judged, measured, together
from lmlab.coursework.lab11.cells import LSTM_GATES, Weights, along_the_cell, draw, held, lstm, through_time
from lmlab.coursework.shared_tools import eye, gap, listed, normals, number, zeros
from lmlab.coursework.sheet import derived, put

claim = book("lab11").claim

UNITS, INPUTS, STEPS = 3, 2, 4


@claim("4.0", problems=("vanishing", "exploding"), recurrent="8", explodes=10, steps=40)
def _both(t: SimpleNamespace) -> Outcome:
    size, scale = 4, number(t.recurrent)
    nothing = {name: zeros(size, 1) for name in LSTM_GATES}
    none = dict.fromkeys(LSTM_GATES, 0 * eye(size))
    strong = Weights(nothing, {**none, "g": scale * eye(size)})
    kept = Weights(nothing, none, {"f": 8.0})
    # at h = c = 0 without input all gates are 1/2, and so is the output gate that belongs to h_0
    exploded, alive = (along_the_cell(weights, zeros(1), t.steps, output=0.5) for weights in (strong, kept))
    per_step = 0.5 + 0.25 * scale
    found: dict[str, Finding] = {
        "vanishing": measured(alive > 0.9),
        "exploding": "refuted"
        if exploded > t.explodes
        else "undecided",  # a gradient that does not explode shows nothing
    }
    return judged(
        together(*(found[problem] for problem in t.problems)),
        f"The lab's LSTM at h = c = 0, where the cell's Jacobian is ½I + ¼U_g. U_g = {t.recurrent}·I: |∂c_T/∂c_0| after "
        f"{t.steps} steps is {exploded:.1e} (each multiplies by {per_step:g}: {per_step**t.steps:.1e}). With f = σ(8) and no "
        f"recurrent weights: {alive:.3f}. Exploded means above {t.explodes}.",
        because="The vanishing half is true, the exploding half is not.",
        corrected="The LSTM mitigates vanishing gradients; gradients through its recurrent weights can still "
        "explode, which is why they are clipped.",
        holds=alive > 0.9 and math.isclose(exploded, per_step**t.steps, rel_tol=1e-6),
    )


TWO_STEPS = """
given x1, x2: d
given Wf, Wi, Wo, Wg: d, n
given Uf, Ui, Uo, Ug: n, n
given y1, y2: n
let i1 = sigmoid(x1 @ Wi)
let o1 = sigmoid(x1 @ Wo)
let g1 = tanh(x1 @ Wg)
let C1 = i1 * g1
let h1 = o1 * tanh(C1)
let f2 = sigmoid(x2 @ Wf + h1 @ Uf)
let i2 = sigmoid(x2 @ Wi + h1 @ Ui)
let o2 = sigmoid(x2 @ Wo + h1 @ Uo)
let g2 = tanh(x2 @ Wg + h1 @ Ug)
let C2 = f2 * C1 + i2 * g2
let h2 = o2 * tanh(C2)
let J = sum((h1 - y1)**2) / 2 + sum((h2 - y2)**2) / 2
let e1 = (h1 - y1) * o1 * (1 - tanh(C1)**2)
let e2 = (h2 - y2) * o2 * (1 - tanh(C2)**2)
let back = (h2 - y2) @ jacobian(h2, h1)              # at fixed C1
let first = outer(x1, e1 * i1 * (1 - g1**2))
let second = outer(x2, e2 * i2 * (1 - g2**2)) + outer(x1, e2 * f2 * i1 * (1 - g1**2))
let through = outer(x1, back * o1 * (1 - tanh(C1)**2) * i1 * (1 - g1**2))
claim dJ/dWg == first + second + through
"""


class Tape:
    """A run of the LSTM of problem 4 whose W_g can be varied, with everything the document's formula asks for."""

    def __init__(self) -> None:
        self.w = draw(LSTM_GATES, INPUTS, UNITS, 20)
        self.x = normals(30, STEPS, INPUTS)
        self.y = normals(31, STEPS, UNITS)
        self.wg = self.w.W["g"]
        h_TU, c_TU = self.states(self.wg)
        self.h = torch.cat([zeros(1, UNITS), h_TU])  # of steps 0 .. T
        self.c = torch.cat([zeros(1, UNITS), c_TU])

    def states(self, wg: Tensor) -> tuple[Tensor, Tensor]:
        """h_t and C_t for t = 1..T, as functions of W_g."""
        weights = Weights({**self.w.W, "g": wg}, self.w.U, self.w.b)
        h = c = zeros(UNITS)
        run = []
        for x in self.x:
            h, c = lstm(weights, x, h, c)
            run.append((h, c))
        hs, cs = zip(*run, strict=True)
        return torch.stack(hs), torch.stack(cs)

    def gradient(self) -> Tensor:
        """The true ∂J/∂W_g, with every h_t in J."""
        gradient: Tensor = torch.func.grad(lambda wg: ((self.states(wg)[0] - self.y) ** 2).sum() / 2)(self.wg)
        return gradient

    def formula(self, cost_gradient: str, state_gradient: str) -> Tensor:
        """The document's sum with its symbols read as named.

        cost_gradient: ∂J/∂h_t "explicit" or "total"; state_gradient: ∂h_t/∂h_{t-1} at "fixed" C_{t-1} or "along" the run.
        """
        dh, dc = torch.func.jacrev(self.states)(self.wg)  # T, units, units, inputs: total derivatives
        result = torch.zeros_like(self.wg)
        for t in range(STEPS):
            h, x = self.h[t], self.x[t]
            i, f, o = (self.w.gate(name, x, h)[:, None, None] for name in "ifo")
            immediate = torch.func.jacrev(lambda wg, x=x, h=h: torch.tanh(wg @ x + self.w.U["g"] @ h))(self.wg)
            inner = i * immediate + (f * dc[t - 1] if t else 0)
            term = o * (1 - torch.tanh(self.c[t + 1]) ** 2)[:, None, None] * inner
            if t:
                term = term + torch.einsum("ij,jkl->ikl", self._state_gradient(t, state_gradient), dh[t - 1])
            explicit = self.h[t + 1] - self.y[t]
            result = result + torch.einsum("i,ikl->kl", self._total(t) if cost_gradient == "total" else explicit, term)
        return result

    def _state_gradient(self, t: int, reading: str) -> Tensor:
        """∂h_t/∂h_{t-1}; along the run C_{t-1} moves with h_{t-1} = o tanh(C_{t-1})."""
        output = self.w.gate("o", self.x[t - 1], self.h[t - 1])

        def new(h: Tensor) -> Tensor:
            return lstm(self.w, self.x[t], h, self.c[t] if reading == "fixed" else torch.atanh(h / output))[0]

        jacobian: Tensor = torch.func.jacrev(new)(self.h[t])
        return jacobian

    def _total(self, t: int) -> Tensor:
        """dJ/dh_t with the later steps' dependence on h_t included, C_t held fixed."""

        def after(h: Tensor) -> Tensor:
            c, total = self.c[t + 1], ((h - self.y[t]) ** 2).sum() / 2
            for x, y in zip(self.x[t + 1 :], self.y[t + 1 :], strict=True):
                h, c = lstm(self.w, x, h, c)
                total = total + ((h - y) ** 2).sum() / 2
            return total

        gradient: Tensor = torch.func.grad(after)(self.h[t + 1])
        return gradient


@claim("4a", derivation=TWO_STEPS, cost_gradient="explicit", state_gradient="fixed")
def _full_gradient(t: SimpleNamespace) -> Outcome:
    sheet, tape = put(t.derivation), Tape()
    true = tape.gradient()

    def error(cost_gradient: str, state_gradient: str) -> float:
        return gap(tape.formula(cost_gradient, state_gradient), true) / float(true.norm())

    good = error(t.cost_gradient, t.state_gradient)
    others = {
        "∂J/∂h_t as the total gradient": error("total", "fixed"),
        "∂h_t/∂h_(t-1) along the run": error("explicit", "along"),
    }
    return conditional(
        measured(good < 1e-10 and sheet.holds),
        measured(max(others.values()) < 1e-10),
        f"An LSTM of {UNITS} units over {STEPS} steps, its formula assembled from automatically differentiated parts. Relative "
        f"error with ∂J/∂h_t {t.cost_gradient}, ∂h_t/∂h_(t-1) {t.state_gradient} (C_(t-1) held), ∂C̃_t/∂W_g immediate and "
        f"total derivatives at t - 1: {good:.1e}. Other readings: {listed(others, '{}: {:.2f}')}.",
        f"Written out for two steps in the derivation language: {sheet}",
        precisely="The formula is right if ∂J/∂h_t counts only J's own dependence on h_t, ∂C̃_t/∂W_g is the "
        "immediate derivative, ∂h_t/∂h_{t-1} holds C_{t-1} fixed, and the derivatives at t - 1 are total; "
        "with the total ∂J/∂h_t of back-propagation the later steps are counted twice.",
    )


claim(
    "4a.1",
    derivation="given C, o: n\nlet h = o * tanh(C)\nclaim jacobian(h, C) == diag(o * (1 - tanh(C)**2))",
)(derived("(A diagonal matrix, since everything is entry by entry.)"))


def two_readings(t: SimpleNamespace, names: tuple[str, str], because: str, precisely: str) -> Outcome:
    """A derivative that holds with something held fixed and fails with it following, both as derivations."""
    direct, following = put(t.direct), put(t.following)
    return conditional(
        direct.finding,
        following.finding,
        f"{names[0]}: {direct}",
        f"{names[1]}: {following}",
        because=because,
        precisely=precisely,
    )


CELL = """
given Cp, op: n                 # C_{t-1}, and the output gate before
given x: d
given Wf, Wi, Wg: d, n
given Uf, Ui, Ug: n, n
let hp = op * tanh(Cp)
let f = sigmoid(x @ Wf + hp @ Uf)
let i = sigmoid(x @ Wi + hp @ Ui)
let g = tanh(x @ Wg + hp @ Ug)
let C = f * Cp + i * g
"""


@claim(
    "4a.2",
    direct="given Cp, f, i, g: n\nlet C = f * Cp + i * g\nclaim jacobian(C, Cp) == diag(f)",
    following=CELL + "claim jacobian(C, Cp) == diag(f)",
)
def _cell_by_cell(t: SimpleNamespace) -> Outcome:
    return two_readings(
        t,
        ("h_(t-1) held fixed", "h_(t-1) following C_(t-1)"),
        "The document does not say which is meant; its sum (claim 4a) comes out right only with the first.",
        "∂C_t/∂C_{t-1} = diag(f_t) along the direct path, h_{t-1} held fixed; in the run as a whole "
        "C_{t-1} also acts through h_{t-1} and the gates.",
    )


@claim(
    "4a.3",
    direct="given Cp, f, i: n\ngiven x: d\ngiven Wg: d, n\nlet g = tanh(x @ Wg)\nlet C = f * Cp + i * g\n"
    "claim jacobian(C, Wg) == reshape(i, n, 1, 1) * jacobian(g, Wg)",
    following="given f, i, i0: n\ngiven x, x0: d\ngiven Wg: d, n\nlet Cp = i0 * tanh(x0 @ Wg)\nlet g = tanh(x @ Wg)\n"
    "let C = f * Cp + i * g\nclaim jacobian(C, Wg) == reshape(i, n, 1, 1) * jacobian(g, Wg)",
)
def _cell_by_weights(t: SimpleNamespace) -> Outcome:
    return two_readings(
        t,
        ("C_(t-1) held fixed", "C_(t-1) made with the same W_g"),
        "",
        "i_t ∂C̃_t/∂W_g is the immediate part; the total derivative adds f_t ∂C_{t-1}/∂W_g and what comes through h_{t-1}.",
    )


@claim("4b", near=((0.999, 20), (0.999, 50), (0.9995, 100)), worn=((0.95, 100), (0.97, 150)), unhindered=0.9)
def _highway(t: SimpleNamespace) -> Outcome:
    def passed(gate: float, steps: int) -> tuple[float, float]:
        """The least and the largest share of the gradient that passes, over three draws of the other weights and the input."""
        found = [
            along_the_cell(held(LSTM_GATES, "f", gate, 40 + 10 * seed), normals(seed, 4), steps) for seed in range(3)
        ]
        return min(found), max(found)

    near, worn = ({case: passed(*case) for case in cases} for cases in (t.near, t.worn))
    plain = through_time(eye(8), torch.sigmoid, zeros(20, 8))
    law = all(math.isclose(p, gate**steps, rel_tol=1e-6) for (gate, steps), ends in (near | worn).items() for p in ends)

    def told(found: dict[tuple[float, int], tuple[float, float]]) -> str:
        return "; ".join(f"f = {gate} over {steps} steps: {p[0]:.3g}" for (gate, steps), p in found.items())

    return conditional(
        measured(law and all(p[0] >= t.unhindered for p in near.values())),
        measured(law and all(p[1] >= t.unhindered for p in worn.values())),
        f"|∂C_T/∂C_0| of the lab's LSTM with f held, three draws: {told(near)}; {told(worn)}; always f^T: {law}. Unhindered "
        f"means at least {t.unhindered:g}. A plain RNN with sigmoid units and |U| = 1 keeps {plain:.0e} over 20 steps.",
        because="There f is close to 1 as well, but T(1 - f) is not small.",
        precisely="What counts is T(1 - f): gradients pass along the cell when it is small against 1; f close to 1 "
        "alone does not suffice over long times.",
    )

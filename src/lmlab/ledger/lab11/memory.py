"""Problem 4: back-propagation through an LSTM, and which path keeps the gradient alive."""

from __future__ import annotations

import math
from types import SimpleNamespace

import torch
from torch import Tensor

from lmlab.ledger.claim import Outcome, conditional, proved, refuted
from lmlab.ledger.kit import gap, normals, value
from lmlab.ledger.lab11.book import BOOK
from lmlab.ledger.lab11.cells import LSTM_GATES, Weights, draw, lstm, spectral_norm
from lmlab.ledger.sheet import put

UNITS, INPUTS, STEPS = 3, 2, 4


@BOOK.claim(
    "4.0",
    where="Problem 4, line 259",
    says="LSTM cells address the problem of vanishing and of exploding gradients.",
    latex=r"\left\|\frac{\partial c_T}{\partial c_0}\right\|\ \text{neither vanishes nor explodes}",
    how="At the state h = c = 0 without input, where all gates are 1/2, the cell's Jacobian is ½I + ¼U_g: its norm "
    "over 40 steps by automatic differentiation for a large recurrent matrix, and the cell path with f near 1.",
    recurrent="8",
)
def _both(t: SimpleNamespace) -> Outcome:
    steps, size = 40, 4
    zero = torch.zeros(size, dtype=torch.float64)
    scale = float(value(t.recurrent))
    eye = torch.eye(size, dtype=torch.float64)
    nothing = {name: torch.zeros(size, 1, dtype=torch.float64) for name in LSTM_GATES}
    w = Weights(nothing, {"i": 0 * eye, "f": 0 * eye, "o": 0 * eye, "g": scale * eye}, {})
    kept = Weights(nothing, dict.fromkeys(LSTM_GATES, 0 * eye), {"f": 8.0})

    def run(weights: Weights) -> float:
        def last(c: Tensor) -> Tensor:
            h = 0.5 * torch.tanh(c)  # the hidden state that belongs to this cell, its output gate being 1/2
            for _ in range(steps):
                h, c = lstm(weights, torch.zeros(1, dtype=torch.float64), h, c)
            return c

        return spectral_norm(last, zero)

    exploded, alive = run(w), run(kept)
    per_step = 0.5 + 0.25 * scale
    return refuted(
        holds=exploded < 10,
        evidence=f"U_g = {t.recurrent}·I: |∂c_40/∂c_0| = {exploded:.1e} (each step multiplies by ½ + ¼·{t.recurrent} "
        f"= {per_step:g}). With f = σ(8) and no recurrent weights: {alive:.3f}: the vanishing half is true.",
        corrected="The LSTM mitigates vanishing gradients; gradients through its recurrent weights can still "
        "explode, which is why they are clipped.",
        corrected_holds=alive > 0.9 and math.isclose(exploded, per_step**steps, rel_tol=1e-6),
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

    def states(self, wg: Tensor) -> tuple[Tensor, Tensor]:
        """h_t and C_t for t = 1..T, as functions of W_g."""
        h = c = torch.zeros(UNITS, dtype=torch.float64)
        hs, cs = [], []
        for t in range(STEPS):
            h, c = lstm(self.weights(wg), self.x[t], h, c)
            hs.append(h)
            cs.append(c)
        return torch.stack(hs), torch.stack(cs)

    def weights(self, wg: Tensor) -> Weights:
        """The weights with this W_g."""
        return Weights({**self.w.W, "g": wg}, self.w.U, self.w.b)

    def cost(self, hs: Tensor) -> Tensor:
        """J, with every h_t in it."""
        return ((hs - self.y) ** 2).sum() / 2

    def formula(self, cost_gradient: str, state_gradient: str) -> Tensor:
        """The document's sum with its symbols read as named.

        cost_gradient: ∂J/∂h_t "explicit" or "total"; state_gradient: ∂h_t/∂h_{t-1} at "fixed" C_{t-1} or "along" the run.
        """
        wg = self.w.W["g"]
        dh = torch.func.jacrev(lambda m: self.states(m)[0])(wg)  # T, units, units, inputs: total derivatives
        dc = torch.func.jacrev(lambda m: self.states(m)[1])(wg)
        hs, cs = self.states(wg)
        explicit = hs - self.y
        total = self._total_cost_gradient(hs, cs) if cost_gradient == "total" else explicit
        zero = torch.zeros(UNITS, dtype=torch.float64)
        result = torch.zeros_like(wg)
        for t in range(STEPS):
            h_before, c_before = (hs[t - 1], cs[t - 1]) if t else (zero, zero)
            c = cs[t]
            gates = {name: self.w.gate(name, self.x[t], h_before) for name in "ifo"}
            candidate = torch.func.jacrev(lambda m, t=t, h=h_before: torch.tanh(m @ self.x[t] + self.w.U["g"] @ h))(
                wg
            )  # immediate
            inner = gates["i"][:, None, None] * candidate
            outer = torch.zeros_like(inner)
            if t:
                inner = inner + gates["f"][:, None, None] * dc[t - 1]
                slope = self._state_gradient(t, h_before, c_before, state_gradient)
                outer = torch.einsum("ij,jkl->ikl", slope, dh[t - 1])
            term = (gates["o"] * (1 - torch.tanh(c) ** 2))[:, None, None] * inner + outer
            result = result + torch.einsum("i,ikl->kl", total[t], term)
        return result

    def _state_gradient(self, t: int, h: Tensor, c: Tensor, reading: str) -> Tensor:
        if reading == "fixed":
            return torch.func.jacrev(lambda s: lstm(self.w, self.x[t], s, c)[0])(h)
        output = self.w.gate("o", self.x[t - 1], self._before(t - 1)[0])

        def along(s: Tensor) -> Tensor:  # C_{t-1} moves with h_{t-1} = o tanh(C_{t-1})
            return lstm(self.w, self.x[t], s, torch.atanh(s / output))[0]

        return torch.func.jacrev(along)(h)

    def _before(self, t: int) -> tuple[Tensor, Tensor]:
        hs, cs = self.states(self.w.W["g"])
        zero = torch.zeros(UNITS, dtype=torch.float64)
        return (hs[t - 1], cs[t - 1]) if t else (zero, zero)

    def _total_cost_gradient(self, hs: Tensor, cs: Tensor) -> Tensor:
        """dJ/dh_t with the later steps' dependence on h_t included, C_t held fixed."""

        def after(t: int, h: Tensor) -> Tensor:
            c, total = cs[t], ((h - self.y[t]) ** 2).sum() / 2
            for later in range(t + 1, STEPS):
                h, c = lstm(self.w, self.x[later], h, c)
                total = total + ((h - self.y[later]) ** 2).sum() / 2
            return total

        return torch.stack([torch.func.grad(lambda h, t=t: after(t, h))(hs[t]) for t in range(STEPS)])


@BOOK.claim(
    "4a",
    where="Problem 4 (a), lines 295-310",
    says="∂J/∂W_g is the sum over t of ∂J/∂h_t times o(1 - tanh²C)(i ∂C̃/∂W_g + f ∂C_{t-1}/∂W_g) plus ∂h_t/∂h_{t-1} "
    "∂h_{t-1}/∂W_g.",
    latex=r"\frac{\partial J}{\partial W_g}=\sum_t\frac{\partial J}{\partial "
    r"h_t}\left[o_t(1-\tanh^2C_t)\left(i_t\frac{\partial\tilde C_t}{\partial W_g}+f_t\frac{\partial "
    r"C_{t-1}}{\partial W_g}\right)"
    r"+\frac{\partial h_t}{\partial h_{t-1}}\frac{\partial h_{t-1}}{\partial W_g}\right]",
    how="An LSTM of 3 units over 4 steps with a cost in every h_t, float64: the formula assembled from "
    "automatically differentiated parts under different readings of its symbols, against the true gradient.",
    derivation=TWO_STEPS,
    cost_gradient="explicit",
    state_gradient="fixed",
)
def _full_gradient(t: SimpleNamespace) -> Outcome:
    sheet = put(t.derivation)
    tape = Tape()
    true = torch.func.grad(lambda m: tape.cost(tape.states(m)[0]))(tape.w.W["g"])
    size = float(true.norm())
    good = gap(tape.formula(t.cost_gradient, t.state_gradient), true) / size
    others = {
        "∂J/∂h_t as the total gradient": gap(tape.formula("total", "fixed"), true) / size,
        "∂h_t/∂h_(t-1) along the run": gap(tape.formula("explicit", "along"), true) / size,
    }
    return conditional(
        with_condition=good < 1e-10 and sheet.holds,
        without_condition=max(others.values()) < 1e-10,
        evidence="Relative error with ∂J/∂h_t explicit (only J's own dependence), ∂C̃_t/∂W_g immediate, "
        f"∂h_t/∂h_(t-1) at fixed C_(t-1), and total derivatives at t - 1: {good:.1e}. Other readings: "
        + "; ".join(f"{name}: {error:.2f}" for name, error in others.items())
        + f". Written out for two steps in the derivation language: {sheet}.",
        corrected="The formula is right if ∂J/∂h_t counts only J's own dependence on h_t, ∂C̃_t/∂W_g is the "
        "immediate derivative, ∂h_t/∂h_{t-1} holds C_{t-1} fixed, and the derivatives at t - 1 are total; "
        "with the total ∂J/∂h_t of back-propagation the later steps are counted twice.",
    )


@BOOK.claim(
    "4a.1",
    where="Problem 4 (a), line 303",
    says="∂h_t/∂C_t = o_t(1 - tanh²C_t).",
    latex=r"\frac{\partial h_t}{\partial C_t}=o_t(1-\tanh^2C_t)",
    how="In the derivation language (a diagonal matrix, since everything is entry by entry).",
    derivation="given C, o: n\nlet h = o * tanh(C)\nclaim jacobian(h, C) == diag(o * (1 - tanh(C)**2))",
)
def _by_cell(t: SimpleNamespace) -> Outcome:
    sheet = put(t.derivation)
    return proved(sheet.holds, f"{sheet}.")


CELL = """
given Cp, op: n                 # C_{t-1}, and the output gate before
given x: d
given Wf, Wi, Wg: d, n
given Uf, Ui, Ug: n, n
"""


@BOOK.claim(
    "4a.2",
    where="Problem 4 (a), line 304",
    says="∂C_t/∂C_{t-1} = f_t.",
    latex=r"\frac{\partial C_t}{\partial C_{t-1}}=f_t",
    how="In the derivation language: with h_{t-1} held fixed, and with h_{t-1} = o_{t-1} tanh C_{t-1} following the "
    "cell.",
    direct="given Cp, f, i, g: n\nlet C = f * Cp + i * g\nclaim jacobian(C, Cp) == diag(f)",
    following=CELL
    + "let hp = op * tanh(Cp)\nlet f = sigmoid(x @ Wf + hp @ Uf)\nlet i = sigmoid(x @ Wi + hp @ Ui)\nlet g = tanh(x "
    "@ Wg + hp @ Ug)\n" + "let C = f * Cp + i * g\nclaim jacobian(C, Cp) == diag(f)",
)
def _cell_by_cell(t: SimpleNamespace) -> Outcome:
    direct, following = put(t.direct), put(t.following)
    return conditional(
        with_condition=direct.holds,
        without_condition=following.holds,
        evidence=f"h_(t-1) held fixed: {direct}. h_(t-1) following C_(t-1): {following}. The document does not say which "
        "is meant; its sum (claim 4a) comes out right only with the first.",
        corrected="∂C_t/∂C_{t-1} = diag(f_t) along the direct path, h_{t-1} held fixed; in the run as a whole "
        "C_{t-1} also acts through h_{t-1} and the gates.",
    )


@BOOK.claim(
    "4a.3",
    where="Problem 4 (a), line 305",
    says="∂C_t/∂W_g = i_t ∂C̃_t/∂W_g.",
    latex=r"\frac{\partial C_t}{\partial W_g}=i_t\frac{\partial\tilde C_t}{\partial W_g}",
    how="In the derivation language: with C_{t-1} held fixed, and with C_{t-1} itself made by W_g one step before.",
    direct="given Cp, f, i: n\ngiven x: d\ngiven Wg: d, n\nlet g = tanh(x @ Wg)\nlet C = f * Cp + i * g\n"
    "claim jacobian(C, Wg) == reshape(i, n, 1, 1) * jacobian(g, Wg)",
    following="given f, i, i0: n\ngiven x, x0: d\ngiven Wg: d, n\nlet Cp = i0 * tanh(x0 @ Wg)\nlet g = tanh(x @ "
    "Wg)\nlet C = f * Cp + i * g\n"
    "claim jacobian(C, Wg) == reshape(i, n, 1, 1) * jacobian(g, Wg)",
)
def _cell_by_weights(t: SimpleNamespace) -> Outcome:
    direct, following = put(t.direct), put(t.following)
    return conditional(
        with_condition=direct.holds,
        without_condition=following.holds,
        evidence=f"C_(t-1) held fixed: {direct}. C_(t-1) made with the same W_g: {following}.",
        corrected="i_t ∂C̃_t/∂W_g is the immediate part; the total derivative adds f_t ∂C_{t-1}/∂W_g and what comes "
        "through h_{t-1}.",
    )


@BOOK.claim(
    "4b",
    where="Problem 4 (b), lines 316-332",
    says="The path through f_t mitigates vanishing gradients; if f_t is close to 1 gradients flow unhindered through "
    "time.",
    latex=r"\frac{\partial C_T}{\partial C_0}=\prod_tf_t\approx e^{-\sum_t(1-f_t)}",
    how="∂C_T/∂C_0 by automatic differentiation with f = 0.999 and f = 0.95 held by the bias, over 20 and 200 steps; "
    "unhindered means at least 0.9. Beside it a plain RNN with sigmoid units.",
    forget="0.999",
)
def _highway(t: SimpleNamespace) -> Outcome:
    zero = torch.zeros(4, dtype=torch.float64)

    def passed(forget: float, steps: int) -> float:
        w = draw(LSTM_GATES, 2, 4, 40, recurrent=0.0, f=math.log(forget / (1 - forget)))
        w.W["f"].zero_()

        def last(c: Tensor) -> Tensor:
            h = zero
            for _ in range(steps):
                h, c = lstm(w, torch.ones(2, dtype=torch.float64), h, c)
            return c

        return spectral_norm(last, zero)

    near = float(t.forget)
    short, long, worn = passed(near, 20), passed(near, 50), passed(0.95, 200)
    plain = 0.25**20
    return conditional(
        with_condition=min(short, long) >= 0.9,
        without_condition=worn >= 0.9,
        evidence=f"f = {t.forget}: {short:.3f} of the gradient is left after 20 steps, {long:.3f} after 50. f = "
        f"0.95, which is also close to 1: {worn:.1e} after 200. A plain RNN with sigmoid units and |U| = 1 keeps at "
        f"most {plain:.0e} over 20 steps.",
        corrected="What counts is T(1 - f): gradients pass along the cell when it is small against 1; f close to 1 "
        "alone does not suffice over long times.",
    )

"""Problems 2 and 3: true or false about the gates of GRU and LSTM. The verdict judges the document's answer."""

from __future__ import annotations

from types import SimpleNamespace

import sympy
import torch

from lmlab.ledger.claim import Outcome, proved, refuted
from lmlab.ledger.kit import formula, gap, normals, value, yes
from lmlab.ledger.lab11.book import BOOK
from lmlab.ledger.lab11.cells import GRU_GATES, LSTM_GATES, draw, gru, lstm, spectral_norm
from lmlab.ledger.sheet import put

UNITS, INPUTS = 6, 4


@BOOK.claim(
    "2a",
    where="Problem 2 (a), lines 94-130",
    says="σ(-x) = 1 - σ(x).",
    latex=r"\sigma(-x)=1-\sigma(x)",
    how="In the derivation language, and symbolically.",
    derivation="given x: n\nderive 1 - sigmoid(x)\n  = 1 - 1 / (1 + exp(-x))\n  = exp(-x) / (1 + exp(-x))\n  = 1 / "
    "(1 + exp(x))\n  = sigmoid(-x)",
    mirrored="1 - s",
)
def _mirror(t: SimpleNamespace) -> Outcome:
    sheet = put(t.derivation)
    x = sympy.Symbol("x", real=True)
    sigma = 1 / (1 + sympy.exp(-x))
    rest = sympy.simplify(sigma.subs(x, -x) - formula(t.mirrored).subs(sympy.Symbol("s"), sigma))
    return proved(sheet.holds and rest == 0, f"{sheet}. Symbolic difference: {rest}.")


@BOOK.claim(
    "2b",
    where="Problem 2 (b), lines 134-150",
    says="True: if the update gate z_t is close to 0, the state is not updated significantly.",
    latex=r"h_t-h_{t-1}=z_t\circ(\hat h_t-h_{t-1})",
    how="The identity in the derivation language: the change is z times something bounded. Then the lab's GRU cell, "
    "which has the document's equations, with the gate held near 0, and near 1.",
    derivation="given z, h, hc: n\nclaim ((1 - z) * h + z * hc) - h == z * (hc - h)",
    gate_bias="-20",
)
def _update_gate(t: SimpleNamespace) -> Outcome:
    sheet = put(t.derivation)
    x, h = normals(1, INPUTS), torch.tanh(normals(2, UNITS))

    def change(bias: float) -> tuple[float, float]:
        w = draw(GRU_GATES, INPUTS, UNITS, 3, z=bias)
        return float(w.gate("z", x, h).max()), gap(gru(w, x, h), h)

    (z, moved), (z_open, moved_open) = change(float(t.gate_bias)), change(20.0)
    return proved(
        sheet.holds and moved <= 2 * z and z < 1e-6,
        f"{sheet}. The candidate lies in (-1, 1), so with |h| ≤ 1 no entry moves by more than 2z. Largest z "
        f"{z:.1e}: largest change {moved:.1e}; z = {z_open:.6f}: {moved_open:.2f}. (Some libraries swap the roles "
        "of z and 1 - z.)",
    )


@BOOK.claim(
    "2c",
    where="Problem 2 (c), lines 152-178",
    says="False: with z_t close to 1 and r_t close to 0 the network does not remember the past state; it is "
    "overwritten.",
    latex=r"z_t\to1,\ r_t\to0\ \Rightarrow\ h_t\to\tanh(Wx_t),\ \frac{\partial h_t}{\partial h_{t-1}}\to0",
    how="The lab's GRU cell, which has the document's equations, with the gates held there: the new state for two "
    "different past states, and the norm of ∂h_t/∂h_{t-1}.",
    z_bias="20",
    r_bias="-20",
)
def _overwritten(t: SimpleNamespace) -> Outcome:
    x = normals(1, INPUTS)
    w = draw(GRU_GATES, INPUTS, UNITS, 3, z=float(t.z_bias), r=float(t.r_bias))
    first, second = torch.tanh(normals(4, UNITS)), torch.tanh(normals(5, UNITS))
    apart = gap(gru(w, x, first), gru(w, x, second))
    from_input = gap(gru(w, x, first), torch.tanh(w.W["c"] @ x))
    slope = spectral_norm(lambda h: gru(w, x, h), first)
    return proved(
        apart < 1e-6 and from_input < 1e-6 and slope < 1e-6,
        f"Two past states that differ by {gap(first, second):.2f} lead to states that differ by {apart:.1e}; the new "
        f"state is tanh(Wx) up to {from_input:.1e}; |∂h_t/∂h_(t-1)| = {slope:.1e}.",
    )


@BOOK.claim(
    "3a",
    where="Problem 3 (a), lines 207-219",
    says="False: if x_t is the zero vector, h_t need not equal h_{t-1}.",
    latex=r"x_t=0\ \not\Rightarrow\ h_t=h_{t-1}",
    how="A counterexample: the lab's LSTM cell, which has the document's equations, with zero input; and one unit by "
    "hand.",
    state="1",  # how far the previous state is from zero
)
def _zero_input(t: SimpleNamespace) -> Outcome:
    scale = float(value(t.state))
    w = draw(LSTM_GATES, INPUTS, UNITS, 6)
    h, c = scale * torch.tanh(normals(7, UNITS)), scale * normals(8, UNITS)
    new, _ = lstm(w, torch.zeros(INPUTS, dtype=torch.float64), h, c)
    by_hand = 0.5 * torch.tanh(torch.tensor(0.5 * 1.0 * scale))
    return proved(
        gap(new, h) > 1e-3,
        f"Six units, x = 0: h moves by up to {gap(new, h):.3f}. One unit without recurrent weights, c = {scale:g}, "
        f"any h: all gates are 1/2, so h_t = ½ tanh(½·{scale:g}) = {float(by_hand):.4f} whatever h_(t-1) was. (From "
        "h = c = 0 without biases it does stay at 0.)",
    )


@BOOK.claim(
    "3b",
    where="Problem 3 (b), lines 221-223",
    says="False: even if f_t is zero, error is still propagated to earlier steps, through the other gates.",
    latex=r"f_t=0\ \not\Rightarrow\ \frac{\partial h_t}{\partial h_{t-1}}=0",
    how="A counterexample: an LSTM whose forget gate is exactly 0 in float64 (bias -1000); the gradient of h_5 with "
    "respect to the first input, with recurrent weights and without.",
    recurrent="1",
)
def _still_flows(t: SimpleNamespace) -> Outcome:
    def gradient(scale: float) -> float:
        w = draw(LSTM_GATES, INPUTS, UNITS, 9, recurrent=scale, f=-1000.0)
        later = normals(10, 4, INPUTS)

        def last(x: torch.Tensor) -> torch.Tensor:
            h = c = torch.zeros(UNITS, dtype=torch.float64)
            for step in [x, *later]:
                h, c = lstm(w, step, h, c)
            return h

        return spectral_norm(last, normals(11, INPUTS))

    flowing, cut = gradient(float(value(t.recurrent))), gradient(0.0)
    return proved(
        flowing > 1e-6 and cut == 0.0,
        f"Forget gate 0 at every step: |∂h_5/∂x_1| = {flowing:.2e} through i, o and the candidate; without "
        f"recurrent weights it is {cut:g}. (The document's summary gives another reason, 'small f_t leads to "
        "vanishing gradients', which would speak for True; the reason in its text is the right one.)",
    )


@BOOK.claim(
    "3c",
    where="Problem 3 (c), lines 225-237",
    says="True: the entries of f_t, i_t, o_t are non-negative; they lie strictly between 0 and 1.",
    latex=r"0<\sigma(x)<1",
    how="Symbolically: 1 + e^(-x) exceeds 1 for every real x, so its reciprocal lies between 0 and 1. In the "
    "derivation language likewise.",
    derivation="given x: n\nclaim sigmoid(x) > 0\nclaim sigmoid(x) < 1",
    gate="1/(1+exp(-x))",
)
def _between(t: SimpleNamespace) -> Outcome:
    sheet = put(t.derivation)
    x = sympy.Symbol("x", real=True)
    gate = formula(t.gate).subs(sympy.Symbol("x"), x)
    ends = sympy.limit(gate, x, -sympy.oo), sympy.limit(gate, x, sympy.oo)  # approached, never reached
    exact = gate.is_positive and sympy.simplify(1 / gate - 1).is_positive and ends == (0, 1)
    rounded = (
        float(torch.sigmoid(torch.tensor(-800.0, dtype=torch.float64))),
        float(torch.sigmoid(torch.tensor(40.0, dtype=torch.float64))),
    )
    return proved(
        sheet.holds and bool(exact),
        f"{sheet}. Positive for every real x: {yes(gate.is_positive)}; 1/σ - 1 = {sympy.simplify(1 / gate - 1)} is "
        f"positive; the limits are {ends[0]} and {ends[1]}. (In float64 σ(-800) rounds to {rounded[0]:g} and σ(40) "
        f"to {rounded[1]:g}.)",
    )


@BOOK.claim(
    "3c.note",
    where="Problem 3 (c), line 233",
    says="This ensures that the forget gate never makes the memory cell completely negative.",
    latex=r"f_t>0\ \Rightarrow\ c_t\not<0",
    how="A counterexample: an LSTM whose candidate is held negative, started from a negative cell; are all entries "
    "of the cell negative?",
    candidate_bias="-5",
)
def _negative_cell(t: SimpleNamespace) -> Outcome:
    bias = float(t.candidate_bias)
    w = draw(LSTM_GATES, INPUTS, UNITS, 12, g=bias)
    start = torch.full((UNITS,), -0.5 if bias < 0 else 0.5, dtype=torch.float64)
    x, h = normals(13, INPUTS), torch.zeros(UNITS, dtype=torch.float64)
    _, cell = lstm(w, x, h, start)
    forget = w.gate("f", x, h)
    kept_sign = bool(((forget * start).sign() == start.sign()).all())
    return refuted(
        holds=bool((cell >= 0).any()),
        evidence=f"Cell after one step: {', '.join(f'{float(v):.2f}' for v in cell)}: every entry negative, with "
        f"forget gates {float(forget.min()):.2f} to {float(forget.max()):.2f}. The cell's sign comes from the "
        "candidates, which lie in (-1, 1).",
        corrected="A forget gate in (0, 1) shrinks the old cell and never flips its sign; the cell itself may be "
        "negative.",
        corrected_holds=kept_sign,
    )


@BOOK.claim(
    "3d",
    where="Problem 3 (d), lines 239-246",
    says="False: the gates are not probability distributions; their entries need not sum to 1.",
    latex=r"\sum_j\sigma(a_j)\ne1\ \text{in general}",
    how="Three entries of 0 by hand, and the range of sums over 1,000 random gates of six entries.",
    squash="sigmoid",
)
def _no_distribution(t: SimpleNamespace) -> Outcome:
    squash = {"sigmoid": torch.sigmoid, "softmax": lambda a: torch.softmax(a, dim=-1)}[t.squash]
    by_hand = float(squash(torch.zeros(3, dtype=torch.float64)).sum())
    sums = squash(2 * normals(14, 1000, UNITS)).sum(1)
    off = float((sums - 1).abs().max())
    return proved(
        off > 0.1 and abs(by_hand - 1) > 0.1,
        f"σ(0) three times sums to {by_hand:g}; over 1,000 random gates of six entries the sums run from "
        f"{float(sums.min()):.2f} to {float(sums.max()):.2f}. Each entry is squashed on its own.",
    )

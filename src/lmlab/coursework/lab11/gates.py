"""Problems 2 and 3: true or false about the gates of GRU and LSTM. The verdict judges the document's answer."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from types import SimpleNamespace

import torch
from torch import Tensor

from lmlab.coursework.book import book
from lmlab.coursework.claim import Finding, Outcome, exact, judged
from lmlab.coursework.lab11.cells import GRU_GATES, LSTM_GATES, draw, gru, lstm, spectral_norm
from lmlab.coursework.shared_tools import gap, normals, number, row, zeros
from lmlab.coursework.sheet import confirmed, derived, put

claim = book("lab11").claim

UNITS, INPUTS = 6, 4

claim(
    "2a",
    derivation="given x: n\nderive 1 - sigmoid(x)\n  = 1 - 1 / (1 + exp(-x))\n  = exp(-x) / (1 + exp(-x))\n"
    "  = 1 / (1 + exp(x))\n  = sigmoid(-x)",
)(derived())


@claim(
    "2b",
    derivation="given z, h, hc: n\nclaim ((1 - z) * h + z * hc) - h == z * (hc - h)",
    gate_bias="-20",
    draws=50,
)
def _update_gate(t: SimpleNamespace) -> Outcome:
    def change(bias: float, seed: int) -> tuple[float, float]:
        x, h = normals(1 + seed, INPUTS), torch.tanh(normals(200 + seed, UNITS))
        w = draw(GRU_GATES, INPUTS, UNITS, 300 + 10 * seed, z=bias)
        return float(w.gate("z", x, h).max()), gap(gru(w, x, h), h)

    shut = [change(number(t.gate_bias), seed) for seed in range(t.draws)]
    z, moved = (max(values) for values in zip(*shut, strict=True))
    z_open, moved_open = change(20.0, 0)
    return confirmed(
        put(t.derivation),
        z < 1e-6 and all(m <= 2 * gate for gate, m in shut),
        "The candidate lies in (-1, 1), so with |h| ≤ 1 no entry moves by more than 2z.",
        f"The lab's GRU cell, which has the document's equations, {t.draws} draws: z at most {z:.1e}, largest change "
        f"{moved:.1e}; with z = {z_open:.6f} a change of {moved_open:.2f}.",
        note="(Some libraries swap the roles of z and 1 - z.)",
    )


@claim(
    "2c",
    derivation="given x: d\ngiven h: n\ngiven W: n, d\ngiven U: n, n\nlet z = ones(n)\nlet r = zeros(n)\n"
    "let new = (1 - z) * h + z * tanh(W @ x + r * (U @ h))\n"
    "claim new == tanh(W @ x)\nclaim jacobian(new, h) == zeros(n, n)",
    z_bias="20",
    r_bias="-20",
    draws=50,
)
def _overwritten(t: SimpleNamespace) -> Outcome:
    apart, from_input, slope, before = 0.0, 0.0, 0.0, 0.0
    for seed in range(t.draws):
        x, w = (
            normals(1 + seed, INPUTS),
            draw(GRU_GATES, INPUTS, UNITS, 300 + 10 * seed, z=number(t.z_bias), r=number(t.r_bias)),
        )
        first, second = torch.tanh(normals(400 + seed, UNITS)), torch.tanh(normals(500 + seed, UNITS))
        before = max(before, gap(first, second))
        apart = max(apart, gap(gru(w, x, first), gru(w, x, second)))
        from_input = max(from_input, gap(gru(w, x, first), torch.tanh(w.W["c"] @ x)))
        slope = max(slope, spectral_norm(partial(gru, w, x), first))
    return confirmed(
        put(t.derivation),
        max(apart, from_input, slope) < 1e-6,
        f"The lab's GRU cell with the gates held there (biases {t.z_bias} and {t.r_bias}), {t.draws} draws: past states that "
        f"differ by up to {before:.2f} lead to states that differ by at most {apart:.1e}; the new state is tanh(Wx) up to "
        f"{from_input:.1e}; |∂h_t/∂h_(t-1)| is at most {slope:.1e}.",
    )


@claim("3a", state="1")  # how far the previous state is from zero
def _zero_input(t: SimpleNamespace) -> Outcome:
    scale = number(t.state)
    h, c = scale * torch.tanh(normals(7, UNITS)), scale * normals(8, UNITS)
    moved = gap(lstm(draw(LSTM_GATES, INPUTS, UNITS, 6), zeros(INPUTS), h, c)[0], h)
    by_hand = 0.5 * float(torch.tanh(torch.tensor(0.5 * scale)))
    return judged(
        exact(moved > 1e-3),
        f"A counterexample in the lab's LSTM cell, which has the document's equations: six units, x = 0, a state {t.state} "
        f"times a random one: h moves by up to {moved:.3f}.",
        f"One unit without recurrent weights, c = {scale:g}: all gates are 1/2, so h_t = ½ tanh(½·{scale:g}) = {by_hand:.4f} "
        "whatever h_(t-1) was.",
        note="(From h = c = 0 without biases it does stay at 0.)",
    )


@claim("3b", recurrent="1", later=4)
def _still_flows(t: SimpleNamespace) -> Outcome:
    def gradient(scale: float) -> float:
        w = draw(LSTM_GATES, INPUTS, UNITS, 9, recurrent=scale, f=-1000.0)  # exactly 0 in float64

        def last(x: Tensor) -> Tensor:
            h = c = zeros(UNITS)
            for step in [x, *normals(10, t.later, INPUTS)]:
                h, c = lstm(w, step, h, c)
            return h

        return spectral_norm(last, normals(11, INPUTS))

    flowing, cut = gradient(number(t.recurrent)), gradient(0.0)
    return judged(
        exact(flowing > 1e-6 and cut == 0.0),
        f"A counterexample: forget gate 0 at every step, recurrent weights times {t.recurrent}: the gradient of the last state "
        f"by the first input, {t.later} steps before, is {flowing:.2e}; without recurrent weights {cut:g}.",
        note="(The document's summary gives another reason, 'small f_t leads to vanishing gradients', which would speak for "
        "True; the reason in its text, the other gates, is the right one.)",
    )


@claim("3c", derivation="given x: n\nclaim sigmoid(x) > 0\nclaim sigmoid(x) < 1")
def _between(t: SimpleNamespace) -> Outcome:
    sheet = put(t.derivation)
    ends = torch.sigmoid(torch.tensor([-800.0, 40.0], dtype=torch.float64))
    return judged(
        sheet.finding, str(sheet), note=f"(In float64 σ(-800) and σ(40) round to {row(map(float, ends), '{:g}')}.)"
    )


KEPT = "what it keeps of a positive cell"


@claim("3c.note", subject="the memory cell", candidate_bias="-5", state="-1/2")  # or KEPT
def _negative_cell(t: SimpleNamespace) -> Outcome:
    w = draw(LSTM_GATES, INPUTS, UNITS, 12, g=number(t.candidate_bias))
    start, x, h = zeros(UNITS) + number(t.state), normals(13, INPUTS), zeros(UNITS)
    cell, forget = lstm(w, x, h, start)[1], w.gate("f", x, h)
    kept = put("given a: n\ngiven c: n positive\nclaim sigmoid(a) * c > 0")
    whole: Finding = "refuted" if bool((cell < 0).all()) else "undecided"  # one cell that is not negative shows nothing
    return judged(
        {"the memory cell": whole, KEPT: kept.finding}[t.subject],
        f"The lab's LSTM with its candidate held by a bias of {t.candidate_bias}, from a cell of {t.state}: after one step "
        f"{row(map(float, cell), '{:.2f}')}, with forget gates {float(forget.min()):.2f} to {float(forget.max()):.2f}.",
        f"What a gate keeps of a positive cell: {kept}",
        because="Every entry is negative: the cell's sign comes from the candidates, which lie in (-1, 1).",
        corrected="A forget gate in (0, 1) shrinks the old cell and never flips its sign; the cell itself may be "
        "negative.",
        holds=bool(((forget * start).sign() == start.sign()).all()) and float(forget.max()) < 1,
    )


@claim("3d", squash="sigmoid", draws=1000)
def _no_distribution(t: SimpleNamespace) -> Outcome:
    kinds: dict[str, Callable[[Tensor], Tensor]] = {
        "sigmoid": torch.sigmoid,
        "softmax": lambda a: torch.softmax(a, dim=-1),
    }
    squash = kinds[t.squash]
    by_hand = float(squash(zeros(3)).sum())
    sums = squash(2 * normals(14, t.draws, UNITS)).sum(1)
    return judged(
        exact(float((sums - 1).abs().max()) > 0.1 and abs(by_hand - 1) > 0.1),
        f"The {t.squash} of three zeros sums to {by_hand:g}; over {t.draws:,} random gates of {UNITS} entries the sums run "
        f"from {float(sums.min()):.2f} to {float(sums.max()):.2f}.",
    )

"""Problem 5: self-attention inside a recurrent network, and attention in matrix form."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from lmlab.coursework.book import book
from lmlab.coursework.claim import Outcome, exact, ill_posed, judged, measured
from lmlab.coursework.lab import recurrent_attention
from lmlab.coursework.shared_tools import attention, gap, normals, number, row, zeros
from lmlab.coursework.sheet import derived

claim = book("lab11").claim

WIDTH = 4


def states(x_TD: Tensor, attend_to: str = "past") -> Tensor:
    """States of the lab's RNN with attention over earlier states ("all": and a pass in which each looks at all others)."""
    model = recurrent_attention(WIDTH)
    with torch.no_grad():
        h_TD: Tensor = model.read(x_TD[None], model.fresh(1), 0.0)[0][0]
    return h_TD if attend_to == "past" else h_TD + torch.softmax(h_TD @ h_TD.T, dim=1) @ h_TD


def attentive_rnn(x_TD: Tensor) -> Tensor:
    """The same model step by step, as the equations say.

    s_t = tanh(W x_t + U h_{t-1}),   h_t = s_t + Σ_{j<t} softmax_j(s_t·h_j) h_j
    """
    model = recurrent_attention(WIDTH)
    w, u = model.input_HX.detach(), model.state_HH.detach()
    past: list[Tensor] = []
    h = zeros(WIDTH)
    for x in x_TD:
        h = torch.tanh(w @ x + u @ h)
        if past:
            earlier = torch.stack(past)
            h = h + torch.softmax(earlier @ h, dim=0) @ earlier
        past.append(h)
    return torch.stack(past)


def graph_depth(result: Tensor) -> int:
    """Longest chain of operations behind a tensor: how many must run one after the other."""
    depth: dict[Any, int] = {}
    stack: list[tuple[Any, bool]] = [(result.grad_fn, False)]
    while stack:
        node, done = stack.pop()
        parents = [parent for parent, _ in node.next_functions if parent is not None]
        if done:
            depth[node] = 1 + max((depth.get(parent, 0) for parent in parents), default=0)
        elif node not in depth:
            depth[node] = 0
            stack.append((node, True))
            stack += [(parent, False) for parent in parents]
    return max(depth.values())


def crossings(c: float) -> list[float]:
    """Where h = c tanh(ch), by bisection on a grid: with earlier states +c and -c and RNN = 0, a(h) = c tanh(ch)."""
    grid = np.linspace(-5, 5, 20_001) + 1e-7
    signs = np.sign(grid - c * np.tanh(c * grid))
    roots = []
    for place in np.flatnonzero(signs[:-1] != signs[1:]):
        low, high = grid[place], grid[place + 1]
        for _ in range(60):
            middle = (low + high) / 2
            low, high = (middle, high) if np.sign(middle - c * np.tanh(c * middle)) == signs[place] else (low, middle)
        roots.append(float(low))
    return roots


@claim("5a.1", earlier="2")
def _circular(t: SimpleNamespace) -> Outcome:
    roots = crossings(number(t.earlier))
    x = normals(51, 6, WIDTH)
    off = gap(states(x), attentive_rnn(x))
    return ill_posed(
        len(roots) > 1,
        f"h_t stands on both sides: it needs a_t, and a_t the scores of h_t. With earlier states +{t.earlier} and "
        f"-{t.earlier} and RNN(...) = 0 the equation h = {t.earlier} tanh({t.earlier}h) has {len(roots)} solutions: "
        f"{row(roots, '{:+.4f}')}.",
        f"Scored with RNN(x_t, h_(t-1)) instead it is the lab's model, which agrees with these equations over six steps to "
        f"{off:.0e}.",
        because="Nothing says which solution h_t is; and at t = 1 there is no earlier state to average.",
        repaired="Let s_t = RNN(x_t, h_{t-1}); score with s_t, average the earlier states, and set h_t = s_t + a_t, "
        "with a_1 = 0.",
        holds=off < 1e-12,
        otherwise=exact(len(roots) == 1),
    )


@claim("5a.2", attend_to="past")  # or "all"
def _all_others(t: SimpleNamespace) -> Outcome:
    x = normals(52, 6, WIDTH)
    changed = x.clone()
    changed[-1] += 1.0
    moved, own = (gap(states(x, kind)[:-1], states(changed, kind)[:-1]) for kind in (t.attend_to, "past"))
    last = gap(states(x)[-1:], states(changed)[-1:])
    return judged(
        exact(moved > 1e-9),
        f"The lab's model, attending to {t.attend_to}: after changing the last of six inputs the first five states move by "
        f"{moved:.1e} (the last of the document's own model by {last:.2f}).",
        because="The document's own sum runs over j < t.",
        corrected="Each token attends to the tokens before it.",
        holds=own == 0.0 and last > 0.01,
    )


@claim("5a.3", model="recurrent", lengths=(5, 10, 20))  # or "self-attention"
def _parallel(t: SimpleNamespace) -> Outcome:
    models: dict[str, Callable[[Tensor], Tensor]] = {
        "recurrent": attentive_rnn,
        "self-attention": lambda x: attention(x, 54, causal=True),
    }
    depths = {
        name: [graph_depth(model(normals(53, n, WIDTH).requires_grad_())[-1]) for n in t.lengths]
        for name, model in models.items()
    }
    said, free = depths[t.model], depths["self-attention"]
    return judged(
        measured(len(set(said)) == 1),
        f"Operations that must run one after the other, for {row(t.lengths)} steps (depth of the automatic-differentiation "
        "graph): " + "; ".join(f"{name} {row(found)}" for name, found in depths.items()) + ".",
        because="Parallel would mean that the chain does not grow.",
        corrected="h_t still waits for h_{t-1}; only the scores of one step can be computed at once. Dropping the "
        "recurrence is what makes computation parallel.",
        holds=len(set(free)) == 1 and depths["recurrent"][-1] > depths["recurrent"][0],
    )


claim(
    "5a.4",
    derivation="given ht, hl: d\ngiven W1, W2: k, d\ngiven V: k\nlet additive = V.T @ tanh(W1 @ ht + W2 @ hl)\n"
    "claim ht.T @ hl == hl.T @ ht\nclaim sqrt(d) * (ht.T @ hl / sqrt(d)) == ht.T @ hl\n"
    "claim additive == sum(V * tanh(W1 @ ht + W2 @ hl))",
)(derived("(Each is one number, of vectors whose shapes fit.)"))
claim(
    "5b",
    derivation="given Q: n, d\ngiven K: m, d\ngiven V: m, k\ngiven q: d\n"
    "let S = exp(Q @ K.T)          # S[i, j] = exp(q_i·k_j)\n"
    "claim softmax(Q @ K.T) @ V == (S @ V) / reshape(sum(S, axis=1), n, 1)\n"
    "let alpha = exp(K @ q) / sum(exp(K @ q))\n"
    "claim softmax(reshape(q, 1, d) @ K.T) @ V == reshape(sum(reshape(alpha, m, 1) * V, axis=0), 1, k)",
)(derived())

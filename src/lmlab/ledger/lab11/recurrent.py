"""Problem 5: self-attention inside a recurrent network, and attention in matrix form."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import torch
from torch import Tensor

from lmlab.ledger.claim import Outcome, ill_posed, proved, refuted
from lmlab.ledger.kit import gap, normals, value
from lmlab.ledger.lab11.book import BOOK
from lmlab.ledger.labmodels import recurrent_attention
from lmlab.ledger.sheet import put, read

WIDTH = 4


def states(x_TD: Tensor, attend_to: str = "past") -> Tensor:
    """States of the lab's RNN with attention over earlier states ("all": and a pass in which each looks at all others)."""
    model = recurrent_attention(WIDTH)
    with torch.no_grad():
        h_TD = model.read(x_TD[None], model.fresh(1), 0.0)[0][0]
    return h_TD if attend_to == "past" else h_TD + torch.softmax(h_TD @ h_TD.T, dim=1) @ h_TD


def attentive_rnn(x_TD: Tensor) -> Tensor:
    """The same model step by step, as the equations say.

    s_t = tanh(W x_t + U h_{t-1}),   h_t = s_t + Σ_{j<t} softmax_j(s_t·h_j) h_j
    """
    model = recurrent_attention(WIDTH)
    w, u = model.input_HX.detach(), model.state_HH.detach()
    past: list[Tensor] = []
    h = torch.zeros(WIDTH, dtype=torch.float64)
    for t in range(len(x_TD)):
        h = torch.tanh(w @ x_TD[t] + u @ h)
        if past:
            earlier = torch.stack(past)
            h = h + torch.softmax(earlier @ h, dim=0) @ earlier
        past.append(h)
    return torch.stack(past)


def self_attention(x_TD: Tensor) -> Tensor:
    """One layer of causal self-attention without recurrence."""
    scores = (x_TD @ x_TD.T).masked_fill(torch.ones(len(x_TD), len(x_TD)).triu(1) > 0, -torch.inf)
    return torch.softmax(scores, dim=1) @ x_TD


def graph_depth(result: Tensor) -> int:
    """Longest chain of operations behind a tensor: how many must run one after the other."""
    depth: dict[object, int] = {}
    order: list[object] = []
    stack = [(result.grad_fn, False)]
    while stack:
        node, done = stack.pop()
        if node is None or (node in depth and not done):
            continue
        if done:
            parents = [depth.get(parent, 0) for parent, _ in node.next_functions if parent is not None]
            depth[node] = 1 + max(parents, default=0)
            order.append(node)
        else:
            depth[node] = 0
            stack.append((node, True))
            stack += [(parent, False) for parent, _ in node.next_functions if parent is not None]
    return max(depth.values())


@BOOK.claim(
    "5a.1",
    where="Problem 5 (a), lines 355-377",
    says="Scores e_{t,l} = score(h_t, h_l), a_t = Σ_{j<t} α_{t,j} h_j, and h_t = RNN(x_t, h_{t-1}) + a_t.",
    latex=r"e_{t,l}=h_t^\top h_l,\quad a_t=\sum_{j<t}\alpha_{t,j}h_j,\quad h_t=\mathrm{RNN}(x_t,h_{t-1})+a_t",
    how="Read as an equation for h_t, since h_t stands on both sides: its solutions for one unit with earlier states "
    "+c and -c, found by bisection on a grid. At t = 1 the softmax is over nothing. The repair, scoring with "
    "RNN(x_t, h_{t-1}), is the lab's model; it is run, and compared with its equations step by step.",
    earlier="2",
)
def _circular(t: SimpleNamespace) -> Outcome:
    c = float(value(t.earlier))

    def excess(h: np.ndarray) -> np.ndarray:
        """h less RNN + a(h), with RNN = 0: the two weights are σ(±2ch), so a = c tanh(ch)."""
        return h - c * np.tanh(c * h)

    grid = np.linspace(-5, 5, 20_001) + 1e-7
    values = excess(grid)
    roots = []
    for left, right in zip(
        grid[:-1][values[:-1] * values[1:] < 0], grid[1:][values[:-1] * values[1:] < 0], strict=True
    ):
        for _ in range(60):
            middle = (left + right) / 2
            left, right = (middle, right) if excess(left) * excess(middle) > 0 else (left, middle)
        roots.append(left)
    x = normals(51, 6, WIDTH)
    off = gap(states(x), attentive_rnn(x))
    return ill_posed(
        flawed=len(roots) > 1,
        evidence=f"h_t needs a_t, a_t needs the scores of h_t. With earlier states +{c:g} and -{c:g} and RNN(...) = "
        f"0 the equation h = {c:g} tanh({c:g}h) has {len(roots)} solutions: "
        f"{', '.join(f'{r:+.4f}' for r in roots)}. Nothing says which one h_t is; and at t = 1 there is no earlier "
        f"state to average. Repaired, the lab's model and its equations agree over six steps to {off:.0e}.",
        repaired="Let s_t = RNN(x_t, h_{t-1}); score with s_t, average the earlier states, and set h_t = s_t + a_t, "
        "with a_1 = 0.",
        repaired_holds=off < 1e-12,
    )


@BOOK.claim(
    "5a.2",
    where="Problem 5 (a), line 349",
    says="Self-attention lets each token attend to all others, rather than only to past states.",
    latex=r"a_t=\sum_{j\ne t}\alpha_{t,j}h_j",
    how="The lab's model of the document's own sum Σ_{j<t}: the last input is changed; if every token attended to "
    "all others, earlier states would change.",
    attend_to="past",
)
def _all_others(t: SimpleNamespace) -> Outcome:
    x = normals(52, 6, WIDTH)
    changed = x.clone()
    changed[-1] += 1.0
    before, after = states(x, t.attend_to), states(changed, t.attend_to)
    moved = gap(before[:-1], after[:-1])
    return refuted(
        holds=moved > 1e-9,
        evidence=f"After changing the last of six inputs the first five states move by {moved:.1e} (the last by "
        f"{gap(before[-1:], after[-1:]):.2f}). The document's own sum runs over j < t.",
        corrected="Each token attends to the tokens before it.",
        corrected_holds=gap(states(x)[:-1], states(changed)[:-1]) == 0.0,
    )


@BOOK.claim(
    "5a.3",
    where="Problem 5 (a), line 351",
    says="Self-attention in the RNN enables parallel computation, unlike sequential RNN updates.",
    latex=r"h_t=\mathrm{RNN}(x_t,h_{t-1})+a_t\ \text{needs}\ h_{t-1}",
    how="The longest chain of operations behind the last state (depth of the automatic-differentiation graph) for "
    "5, 10 and 20 steps: parallel means that it does not grow with the length. Beside it self-attention without "
    "recurrence.",
    model="recurrent",
)
def _parallel(t: SimpleNamespace) -> Outcome:
    models = {"recurrent": attentive_rnn, "self-attention": self_attention}

    def depths(name: str) -> list[int]:
        return [graph_depth(models[name](normals(53, n, WIDTH).requires_grad_())[-1]) for n in (5, 10, 20)]

    said, free = depths(t.model), depths("self-attention")
    return refuted(
        holds=said[0] == said[-1],
        evidence=f"Operations in sequence for 5, 10, 20 steps: {', '.join(map(str, said))} for the RNN with "
        f"attention; {', '.join(map(str, free))} for self-attention without recurrence.",
        corrected="h_t still waits for h_{t-1}; only the scores of one step can be computed at once. Dropping the "
        "recurrence is what makes computation parallel.",
        corrected_holds=free[0] == free[-1] and depths("recurrent")[-1] > depths("recurrent")[0],
    )


@BOOK.claim(
    "5a.4",
    where="Problem 5 (a), lines 361-365",
    says="Scoring functions: dot product, additive Vᵀ tanh(W_1 h_t + W_2 h_l), scaled dot product.",
    latex=r"h_t^\top h_l,\quad V^\top\tanh(W_1h_t+W_2h_l),\quad\frac{h_t^\top h_l}{\sqrt d}",
    how="Shapes and values in the derivation language: each is one number; the dot product is symmetric in its "
    "arguments, the scaled one is it divided by √d; the additive one is bounded by Σ|V|.",
    derivation="given ht, hl: d\ngiven W1, W2: k, d\ngiven V: k\nlet additive = V.T @ tanh(W1 @ ht + W2 @ hl)\n"
    "claim ht.T @ hl == hl.T @ ht\nclaim sqrt(d) * (ht.T @ hl / sqrt(d)) == ht.T @ hl\nclaim additive == sum(V * "
    "tanh(W1 @ ht + W2 @ hl))\nclaim additive <= sum(abs(V))",
)
def _scores(t: SimpleNamespace) -> Outcome:
    sheet = put(t.derivation)
    return proved(sheet.holds, f"{sheet}. All three are scalars of fitting shapes.")


@BOOK.claim(
    "5b",
    where="Problem 5 (b), lines 385-402",
    says="For several queries attention is softmax(QKᵀ)V with the softmax along rows: each row is that query's "
    "weighted sum of values.",
    latex=r"\operatorname{Attention}(Q,K,V)=\operatorname{softmax}_{\rm row}(QK^\top)V",
    how="In the derivation language, for any number of queries, keys and values: row i of the matrix form is "
    "Σ_j exp(q_i·k_j) v_j divided by Σ_j exp(q_i·k_j); and for one query it is the sum the document starts from.",
    derivation="given Q: n, d\ngiven K: m, d\ngiven V: m, k\ngiven q: d\n"
    "let S = exp(Q @ K.T)          # S[i, j] = exp(q_i·k_j)\n"
    "claim softmax(Q @ K.T) @ V == (S @ V) / reshape(sum(S, axis=1), n, 1)\n"
    "let alpha = exp(K @ q) / sum(exp(K @ q))\n"
    "claim softmax(reshape(q, 1, d) @ K.T) @ V == reshape(sum(reshape(alpha, m, 1) * V, axis=0), 1, k)",
)
def _matrix_form(t: SimpleNamespace) -> Outcome:
    return read(t.derivation)

"""E2 to E4: the steps of one attention head, what it computes in which order, and how many parameters it adds."""

from __future__ import annotations

from itertools import permutations
from types import SimpleNamespace

import sympy
import torch

from lmlab.ledger.claim import Outcome, ill_posed, proved, refuted
from lmlab.ledger.kit import formula, gap, parameters, value, yes
from lmlab.ledger.labmodels import attention
from lmlab.ledger.sheet import put
from lmlab.ledger.week2.book import BOOK
from lmlab.ledger.week2.counting import BEGIN, count_outcome, of_attention, without_begin


@BOOK.claim(
    "E2a",
    where="E2, lines 41-43",
    says="Step 1 computes similarity scores between each pair of embeddings, score(e_{t-1}, e_i) = (W^q "
    "e_{t-1})·(W^k e_i)/√d_k.",
    latex=r"\mathrm{score}(\mathbf e_{t-1},\mathbf e_i)=\frac{W^q\mathbf e_{t-1}\cdot W^k\mathbf "
    r"e_i}{\sqrt{d_k}},\quad\forall i",
    how="How many scores the formula defines for N - 1 embeddings, from the weights of the lab's model that computes "
    "it, against the number of pairs.",
    scores="(N-1)**2",
    corrected="N-1",
)
def _each_pair(t: SimpleNamespace) -> Outcome:
    found = {}
    for n in (3, 5, 9):
        model = attention(20, 6, n, 5, 4, 3)
        found[n] = model.attend(torch.zeros(1, n - 1, dtype=torch.long))[1].shape[-1]
    return refuted(
        holds=all(count == value(t.scores, N=n) for n, count in found.items()),
        evidence="Scores computed: "
        + "; ".join(f"N = {n}: {count}, pairs {(n - 1) ** 2}" for n, count in found.items())
        + ". The query is e_(t-1) alone; the pairs of other words are never compared.",
        corrected="Step 1 computes the N - 1 scores between the last embedding e_{t-1} and every embedding e_i.",
        corrected_holds=all(count == value(t.corrected, N=n) for n, count in found.items()),
    )


@BOOK.claim(
    "E2b",
    where="E2, line 49",
    says="α_i = softmax(score(e_{t-1}, e_i)).",
    latex=r"\alpha_i=\operatorname{softmax}(\mathrm{score}(\mathbf e_{t-1},\mathbf e_i))",
    how="The softmax of one number, as written, and of the vector of scores; the second against the weights of the "
    "lab's model.",
    over="each score",  # or "all scores"
)
def _softmax_of_scalar(t: SimpleNamespace) -> Outcome:
    model = attention(20, 6, 6, 5, 4, 3)
    words = torch.tensor([[3, 7, 1, 4, 9]])
    with torch.no_grad():
        e = model.embedding_VD[words[0]]
        scores = (model.query_KD @ e[-1]) @ (e @ model.key_KD.T).T / 4**0.5
        true = model.attend(words)[1][0, -1]
    literal = (
        torch.stack([torch.softmax(s[None], dim=0)[0] for s in scores])
        if t.over == "each score"
        else torch.softmax(scores, dim=0)
    )
    return ill_posed(
        flawed=abs(float(literal.sum()) - 1) > 1e-6,
        evidence="A softmax of a single number is 1: as written the five weights are "
        f"{', '.join(f'{float(a):g}' for a in literal)} and sum to {float(literal.sum()):g}. Over all scores they "
        f"are {', '.join(f'{float(a):.3f}' for a in torch.softmax(scores, dim=0))}.",
        repaired="α_i = exp(s_i)/Σ_j exp(s_j) with s_i = score(e_{t-1}, e_i): the i-th entry of the softmax of all "
        "N - 1 scores.",
        repaired_holds=gap(torch.softmax(scores, dim=0), true) < 1e-6,
    )


@BOOK.claim(
    "E2c",
    where="E2, line 53",
    says="The attention vector is a = Σ_i α_i W^v e_i, a vector of d_v numbers.",
    latex=r"\mathbf a=\sum_i\alpha_iW^v\mathbf e_i\in\mathbb R^{d_v}",
    how="Shape in the derivation language, with the sum in two equal forms; and the sum by hand against the lab's "
    "model.",
    derivation="given e: n, d\ngiven W: v, d\ngiven alpha: n simplex\nlet a = sum(reshape(alpha, n, 1) * (e @ W.T), "
    "axis=0)\nclaim shape(a) == [v]\nclaim a == W @ (alpha @ e)",
    width="v",
)
def _attention_vector(t: SimpleNamespace) -> Outcome:
    sheet = put(t.derivation)
    model = attention(20, 6, 6, 5, 4, 3)
    words = torch.tensor([[3, 7, 1, 4, 9]])
    with torch.no_grad():
        a, alpha = model.attend(words)
        by_hand = sum(
            weight * (model.value_XD @ model.embedding_VD[word])
            for weight, word in zip(alpha[0, -1], words[0], strict=True)
        )
    right = gap(torch.as_tensor(by_hand), a[0, -1]) < 1e-6 and a.shape[-1] == value(t.width, v=3, d=6, k=4)
    return proved(
        sheet.holds and right,
        f"{sheet}. The lab's model, d_v = 3: {a.shape[-1]} numbers, equal to the sum by hand: {yes(right)}.",
    )


@BOOK.claim(
    "E2d",
    where="E2, lines 35-53",
    says="Without positions the model does not notice a re-ordering of the first N - 2 context words.",
    latex=r"p(\cdot|x_{\pi(1)},\dots,x_{\pi(N-2)},x_{t-1})=p(\cdot|x_1,\dots,x_{N-2},x_{t-1})",
    how="Symbolically: exchanging two of the words exchanges two terms of numerator and denominator of a, for any "
    "number of others; exchanges generate all orders. The lab's model on all orders of four words; and a swap with "
    "the last word.",
    moved=4,  # how many of the five words are re-ordered, from the left
)
def _order(t: SimpleNamespace) -> Outcome:
    w1, w2, v1, v2, rest_v, rest_w = sympy.symbols("w1 w2 v1 v2 R Z", positive=True)
    a = (w1 * v1 + w2 * v2 + rest_v) / (w1 + w2 + rest_w)
    swapped = a.subs({w1: w2, w2: w1, v1: v2, v2: v1}, simultaneous=True)
    model = attention(20, 6, 6, 5, 4, 3)
    words = [3, 7, 1, 4, 9]

    def after(order: list[int]) -> torch.Tensor:
        return model.advance(torch.tensor([order]), model.begin(1)[1])[0]

    base = after(words)
    worst = max(gap(after([*order, *words[t.moved :]]), base) for order in permutations(words[: t.moved]))
    last = gap(after([3, 7, 1, 9, 4]), base)
    return proved(
        sympy.simplify(swapped - a) == 0 and worst < 1e-5,
        f"Exchange of two words: difference {sympy.simplify(swapped - a)}. The lab's model, every order of the "
        f"first {t.moved} of five words: log-probabilities differ by at most {worst:.1e}; exchanging the last word "
        f"with the one before it: {last:.2f}.",
    )


@BOOK.claim(
    "E3",
    where="E3, line 61",
    says="The attention head has 2d_k d + d_v d parameters.",
    latex=r"2d_kd+d_vd",
    how="Query, key and value matrices of the lab's attention model counted at three sizes and on a grid of all sizes.",
    count="2*k*d + v*d",
)
def _head(t: SimpleNamespace) -> Outcome:
    return count_outcome(t.count, of_attention(lambda m: m.query_KD.numel() + m.key_KD.numel() + m.value_XD.numel()))


@BOOK.claim(
    "E4a",
    where="E4, line 69",
    says="The hidden layer on the attention vector has (d_v + 1)d_h parameters.",
    latex=r"(d_v+1)\,d_h",
    how="Weights and biases of that layer of the lab's attention model counted at three sizes and on a grid of all sizes.",
    count="(v + 1)*h",
)
def _hidden_on_attention(t: SimpleNamespace) -> Outcome:
    return count_outcome(t.count, of_attention(lambda m: m.weight_HX.numel() + m.bias_H.numel()))


@BOOK.claim(
    "E4b",
    where="E4, line 75",
    says="In total |V|(d + d_h) + 2d_k d + d_v d + (d_v + 1)d_h.",
    latex=r"|V|(d+d_h)+2d_kd+d_vd+(d_v+1)d_h",
    how="All parameters of the lab's attention model counted at three sizes and on a grid of all sizes.",
    count="V*(d + h) + 2*k*d + v*d + (v + 1)*h",
)
def _total_attention(t: SimpleNamespace) -> Outcome:
    return count_outcome(t.count, of_attention(without_begin), BEGIN)


@BOOK.claim(
    "E4c",
    where="I2, line 92",
    says="That total does not depend on N.",
    latex=r"\frac{\partial\#}{\partial N}=0",
    how="The derivative of the formula by N, and the lab's attention model counted for N = 2..8 without positions "
    "(with learned positions beside it).",
    count="V*(d + h) + 2*k*d + v*d + (v + 1)*h",
)
def _free_of_n(t: SimpleNamespace) -> Outcome:
    derivative = sympy.diff(formula(t.count), sympy.Symbol("N"))
    counts = {without_begin(attention(20, 6, n, 5, 4, 3)) for n in range(2, 9)}
    placed = [parameters(attention(20, 6, n, 5, 4, 3, positions="learned")) for n in (2, 3)]
    return proved(
        derivative == 0 and counts == {int(value(t.count, V=20, d=6, h=5, k=4, v=3))},
        f"Derivative by N: {derivative}. Counted for N = 2..8: {', '.join(map(str, sorted(counts)))} each time. "
        f"(With learned positions it would grow by d = 6 a word: {placed[0]}, {placed[1]}.)",
    )

"""E1 to E4: how many parameters the feed-forward model and the model with one attention head have, and the head's steps.

Counted on the lab's own models. They have d parameters more than week2's: a begin symbol, one more column of E.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise, permutations, product
from types import SimpleNamespace

import sympy
import torch
from torch import nn

from lmlab.prove.ledger.claim import Outcome, ill_posed, proved, refuted
from lmlab.prove.ledger.kit import formula, gap, identical, normals, parameters, value, yes
from lmlab.prove.ledger.labmodels import attention, feedforward
from lmlab.prove.ledger.sheet import put
from lmlab.prove.ledger.week2.book import BOOK

FEEDFORWARD = ((50, 6, 4, 7), (11, 3, 2, 5), (200, 16, 9, 24))  # V, d, N, d_h
ATTENTION = ((50, 6, 4, 7, 5, 3), (11, 3, 2, 5, 2, 4), (200, 16, 9, 24, 8, 12))  # V, d, N, d_h, d_k, d_v
TWO_OF_EACH = (
    (5, 9),
    (2, 3),
    (2, 4),
    (3, 5),
    (1, 3),
    (2, 4),
)  # in the same order: what is linear in each size is fixed by these


def count_outcome(text: str, cases: list[tuple[dict[str, int], int]], note: str = "") -> Outcome:
    """Proved if the formula gives the counted number in every case, two values of every size among them.

    No weight has the same size twice in its shape, so counts are linear in each size, and agreement on that grid is
    agreement everywhere. The first three cases are shown.
    """
    lines, right = [], _linear_in_each(formula(text))
    for sizes, found in cases:
        said = int(value(text, **sizes))
        right &= said == found
        lines.append(f"{', '.join(f'{k} = {v}' for k, v in sizes.items())}: counted {found:,}, formula {said:,}")
    agree = (
        f"; and {'all' if right else 'not all'} {len(lines) - 3} models with two values of every size agree, which "
        "settles a count that is linear in each size"
    )
    return proved(right, "; ".join(lines[:3]) + agree + "." + note)


def _linear_in_each(count: sympy.Expr) -> bool:
    return all(sympy.degree(count, size) <= 1 for size in count.free_symbols)


def of_feedforward(count: Callable[..., int]) -> list[tuple[dict[str, int], int]]:
    """Sizes, and what `count` finds in the lab's feed-forward model of these sizes."""
    grid = product(*TWO_OF_EACH[:4])
    return [({"V": V, "d": d, "N": N, "h": h}, count(feedforward(V, d, N, h))) for V, d, N, h in (*FEEDFORWARD, *grid)]


def of_attention(count: Callable[..., int]) -> list[tuple[dict[str, int], int]]:
    """Sizes, and what `count` finds in the lab's attention model of these sizes."""
    return [
        ({"V": V, "d": d, "N": N, "h": h, "k": k, "v": v}, count(attention(V, d, N, h, k, v)))
        for V, d, N, h, k, v in (*ATTENTION, *product(*TWO_OF_EACH))
    ]


BEGIN = " (The lab's model has d more: the embedding of its begin symbol.)"


def without_begin(model: nn.Module) -> int:
    """Parameters of a lab model less the embedding of the begin symbol."""
    embedding = model.get_parameter("embedding_VD")
    return parameters(model) - embedding.shape[1]


@BOOK.claim(
    "E1a",
    where="E1, line 23",
    says="Multiplying the d × |V| embedding matrix by a one-hot word picks a column; the matrix has |V|d parameters.",
    latex=r"E\mathbf x_i=\mathbf e_i,\quad\#E=|V|d",
    how="Every column of a random matrix against its product with the one-hot vector, exactly; the embedding of the "
    "lab's feed-forward model counted.",
    count="V*d",
    derivation="given E: d, V\ngiven x: V onehot\nclaim E @ x == sum(E * x, axis=1)",
)
def _embedding(t: SimpleNamespace) -> Outcome:
    sheet = put(t.derivation)
    e = normals(1, 4, 9)
    picks = all(torch.equal(e @ torch.eye(9, dtype=torch.float64)[i], e[:, i]) for i in range(9))
    cases = of_feedforward(lambda model: model.embedding_VD[:-1].numel())
    outcome = count_outcome(t.count, cases, BEGIN)
    return proved(
        sheet.holds and picks and outcome.verdict == "proved",
        f"{sheet}. E x_i is column i for all i: {yes(picks)}. {outcome.evidence}",
    )


@BOOK.claim(
    "E1b",
    where="E1, line 25",
    says="The hidden layer on N - 1 concatenated embeddings has ((N-1)d + 1)d_h parameters.",
    latex=r"((N-1)d+1)\,d_h",
    how="Weights and biases of the hidden layer of the lab's feed-forward model counted at three sizes and on a grid of "
    "all sizes.",
    count="((N-1)*d + 1)*h",
)
def _hidden(t: SimpleNamespace) -> Outcome:
    return count_outcome(t.count, of_feedforward(lambda model: model.weight_HX.numel() + model.bias_H.numel()))


@BOOK.claim(
    "E1c",
    where="E1, line 27",
    says="The output layer z = Uh has |V|d_h parameters.",
    latex=r"|V|\,d_h",
    how="The output matrix of the lab's feed-forward model counted at three sizes and on a grid of all sizes; it has "
    "no bias, as in the document.",
    count="V*h",
)
def _output(t: SimpleNamespace) -> Outcome:
    def output(model: nn.Module) -> int:
        weight, bias = model.head()  # type: ignore[operator]
        return weight.numel() + (0 if bias is None else bias.numel())

    return count_outcome(t.count, of_feedforward(output))


@BOOK.claim(
    "E1d",
    where="E1, line 31",
    says="In total |V|d + ((N-1)d + 1)d_h + |V|d_h = |V|(d + d_h) + ((N-1)d + 1)d_h.",
    latex=r"|V|d+((N-1)d+1)d_h+|V|d_h=|V|(d+d_h)+((N-1)d+1)d_h",
    how="Both forms compared symbolically, and with all parameters of the lab's feed-forward model.",
    summed="V*d + ((N-1)*d + 1)*h + V*h",
    factored="V*(d + h) + ((N-1)*d + 1)*h",
)
def _total(t: SimpleNamespace) -> Outcome:
    same = identical(t.summed, t.factored)
    outcome = count_outcome(t.factored, of_feedforward(without_begin), BEGIN)
    return proved(same and outcome.verdict == "proved", f"The two forms are the same: {yes(same)}. {outcome.evidence}")


@BOOK.claim(
    "E1e",
    where="footnote, line 39",
    says="ReLU, sigmoid, softmax and tanh in their base form introduce no parameters.",
    latex=r"\#\{\mathrm{ReLU},\sigma,\mathrm{softmax},\tanh\}=0",
    how="The torch modules of these functions counted; and the lab's feed-forward model with each activation.",
    functions=("ReLU", "Sigmoid", "Softmax", "Tanh"),
)
def _activations(t: SimpleNamespace) -> Outcome:
    made = {name: parameters(nn.Softmax(dim=1) if name == "Softmax" else getattr(nn, name)()) for name in t.functions}
    models = {
        name: parameters(feedforward(50, 6, 4, 7, activation=name)) for name in ("none", "relu", "sigmoid", "tanh")
    }
    return proved(
        not any(made.values()) and len(set(models.values())) == 1,
        f"Parameters: {', '.join(f'{name} {count}' for name, count in made.items())}. The model counts "
        f"{models['none']} with no activation and with each of them. (Base form matters: PReLU has "
        f"{parameters(nn.PReLU())}.)",
    )


@BOOK.claim(
    "E1f",
    where="E1, line 31",
    says="The count of the feed-forward model depends on N linearly, with slope d·d_h.",
    latex=r"\frac{\partial\#}{\partial N}=d\,d_h",
    how="The derivative of the formula, and counted models for N = 2..6 and their differences.",
    slope="d*h",
    count="V*(d + h) + ((N-1)*d + 1)*h",
)
def _linear_in_n(t: SimpleNamespace) -> Outcome:
    derivative = sympy.diff(formula(t.count), sympy.Symbol("N"))
    counts = [without_begin(feedforward(20, 5, n, 3)) for n in range(2, 7)]
    right = counts == [int(value(t.count, V=20, d=5, N=n, h=3)) for n in range(2, 7)]
    steps = {b - a for a, b in pairwise(counts)}
    return proved(
        right and identical(derivative, t.slope) and steps == {int(value(t.slope, d=5, h=3))},
        f"Derivative by N: {sympy.factor(derivative)}. Counted with d = 5, d_h = 3, N = 2..6: "
        f"{', '.join(map(str, counts))}, as the formula says: {yes(right)}; every step adds "
        f"{', '.join(map(str, sorted(steps)))}.",
    )


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

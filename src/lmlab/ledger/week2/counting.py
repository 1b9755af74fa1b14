"""E1: how many parameters the feed-forward model has; and counting, which the attention model shares.

Counted on the lab's own models. They have d parameters more than week2's: a begin symbol, one more column of E.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise, product
from types import SimpleNamespace

import sympy
import torch
from torch import nn

from lmlab.ledger.claim import Outcome, proved
from lmlab.ledger.kit import formula, identical, normals, parameters, value, yes
from lmlab.ledger.labmodels import attention, feedforward
from lmlab.ledger.sheet import put
from lmlab.ledger.week2.book import BOOK

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

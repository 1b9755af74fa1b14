"""E1, E3 and E4: how many parameters the two models have, counted on the lab's own.

They have d parameters more than week2's: a begin symbol, one more column of E.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise, product
from types import SimpleNamespace

import sympy
from torch import nn

from lmlab.coursework.book import book
from lmlab.coursework.claim import Judge, Outcome, exact, judged
from lmlab.coursework.lab import attention, feedforward
from lmlab.coursework.shared_tools import agree, formula, identical, letter, parameters, row, value, yes
from lmlab.coursework.sheet import confirmed, put

claim = book("week2").claim

SHOWN = {"V": (50, 11, 200), "d": (6, 3, 16), "N": (4, 2, 9), "h": (7, 5, 24), "k": (5, 2, 8), "v": (3, 4, 12)}
TWO_OF_EACH = {"V": (5, 9), "d": (2, 3), "N": (2, 4), "h": (3, 5), "k": (1, 3), "v": (2, 4)}
BEGIN = "(The lab's model has d more: the embedding of its begin symbol.)"

Count = Callable[[nn.Module], int]


def sizes(names: str) -> list[dict[str, int]]:
    """Three sets of sizes to show, then two values of every size in all combinations."""
    shown = zip(*(SHOWN[name] for name in names), strict=True)
    return [dict(zip(names, each, strict=True)) for each in (*shown, *product(*(TWO_OF_EACH[name] for name in names)))]


def weights(*names: str) -> Count:
    """Counts these parameters of a model; without names all of them, less the embedding of the begin symbol."""

    def count(model: nn.Module) -> int:
        if names:
            return sum(model.get_parameter(name).numel() for name in names)
        return parameters(model) - model.get_parameter("embedding_VD").shape[1]

    return count


def tried(said: str, count: Count, made: Callable[..., nn.Module], names: str) -> tuple[bool, str]:
    """Whether a formula gives the count at all `sizes`, which settles it, and the evidence.

    No weight has the same size twice in its shape, so counts are linear in each size, and agreement on a grid with two
    values of every size is agreement everywhere.
    """
    cases = sizes(names)
    right, lines = agree(said, lambda **at: count(made(**at)), cases)
    right &= all(sympy.degree(formula(said), size) <= 1 for size in formula(said).free_symbols)
    rest = (
        f"{'All' if right else 'Not all'} {len(cases)} models agree, two values of every size in all combinations among"
    )
    return right, "; ".join(lines[:3]) + f". {rest} them, which settles a count that is linear in each size."


def counts(count: Count, made: Callable[..., nn.Module], names: str, note: str = "") -> Judge:
    """The check of a claim that is a count."""

    def judge(t: SimpleNamespace) -> Outcome:
        right, evidence = tried(t.count, count, made, names)
        return judged(exact(right), evidence, note=note)

    return judge


@claim(
    "E1a",
    count="V*d",
    derivation="given E: d, V\ngiven x: V onehot\nclaim E @ x == sum(E * x, axis=1)\nclaim shape(E) == [d, V]",
)
def _embedding(t: SimpleNamespace) -> Outcome:
    right, evidence = tried(t.count, lambda m: m.get_parameter("embedding_VD")[:-1].numel(), feedforward, names="VdNh")
    return confirmed(put(t.derivation), right, evidence, note=BEGIN)


claim("E1b", count="((N-1)*d + 1)*h")(counts(weights("weight_HX", "bias_H"), feedforward, "VdNh"))
claim("E1c", count="V*h")(counts(weights("output_VH"), feedforward, "VdNh"))


@claim("E1d", summed="V*d + ((N-1)*d + 1)*h + V*h", factored="V*(d + h) + ((N-1)*d + 1)*h")
def _total(t: SimpleNamespace) -> Outcome:
    same = identical(t.summed, t.factored)
    right, evidence = tried(t.factored, weights(), feedforward, "VdNh")
    return judged(exact(same and right), f"The two forms are the same: {yes(same)}.", evidence, note=BEGIN)


@claim("E1e", functions=("ReLU", "Sigmoid", "Softmax", "Tanh"))
def _activations(t: SimpleNamespace) -> Outcome:
    made = {name: parameters(nn.Softmax(dim=1) if name == "Softmax" else getattr(nn, name)()) for name in t.functions}
    models = {name: parameters(feedforward(50, 6, 4, 7, name)) for name in ("none", "relu", "sigmoid", "tanh")}
    return judged(
        exact(not any(made.values()) and len(set(models.values())) == 1),
        f"Parameters: {row(f'{name} {count}' for name, count in made.items())}.",
        f"The model with each activation, and with none: {row(models.values())}.",
        note=f"(Base form matters: PReLU has {parameters(nn.PReLU())}.)",
    )


@claim("E1f", slope="d*h", count="V*(d + h) + ((N-1)*d + 1)*h")
def _linear_in_n(t: SimpleNamespace) -> Outcome:
    derivative = sympy.diff(formula(t.count), letter("N"))
    lengths = range(2, 7)
    found = [weights()(feedforward(20, 5, n, 3)) for n in lengths]
    right = found == [int(value(t.count, V=20, d=5, N=n, h=3)) for n in lengths]
    steps = {b - a for a, b in pairwise(found)}
    return judged(
        exact(right and identical(derivative, t.slope) and steps == {int(value(t.slope, d=5, h=3))}),
        f"Derivative by N: {sympy.factor(derivative)}.",
        f"Counted with d = 5, d_h = 3, N = {lengths[0]}..{lengths[-1]}: {row(found)}, as the formula says: {yes(right)}; "
        f"every step adds {row(sorted(steps))}.",
    )


claim("E3", count="2*k*d + v*d")(counts(weights("query_KD", "key_KD", "value_XD"), attention, "VdNhkv"))
claim("E4a", count="(v + 1)*h")(counts(weights("weight_HX", "bias_H"), attention, "VdNhkv"))
claim("E4b", count="V*(d + h) + 2*k*d + v*d + (v + 1)*h")(counts(weights(), attention, "VdNhkv", BEGIN))


@claim("E4c", count="V*(d + h) + 2*k*d + v*d + (v + 1)*h")
def _free_of_n(t: SimpleNamespace) -> Outcome:
    derivative = sympy.diff(formula(t.count), letter("N"))
    lengths, at = range(2, 9), {"V": 20, "d": 6, "h": 5, "k": 4, "v": 3}
    found = [weights()(attention(20, 6, n, 5, 4, 3)) for n in lengths]
    placed = [parameters(attention(20, 6, n, 5, 4, 3, "learned")) for n in (2, 3)]
    return judged(
        exact(derivative == 0 and set(found) == {int(value(t.count, **at))}),
        f"Derivative by N: {derivative}.",
        f"Counted for N = {lengths[0]}..{lengths[-1]}: {row(found)}.",
        note=f"(With learned positions it would grow by d = {at['d']} a word: {row(placed)}.)",
    )

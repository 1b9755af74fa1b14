"""Exercises 12.11 to 12.13: bag of words, tables of histories, and L-grams, by exact counting."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from itertools import product
from types import SimpleNamespace

import numpy as np
import sympy

from lmlab.coursework.book import book
from lmlab.coursework.claim import Outcome, conditional, exact, judged, measured
from lmlab.coursework.shared_tools import formula, letters, row, value
from lmlab.coursework.sheet import confirmed, put

claim = book("bishop12").claim

Gram = tuple[str, ...]


def grams(tokens: Sequence[str], length: int) -> Counter[Gram]:
    """How often each run of `length` tokens occurs."""
    return Counter(tuple(tokens[i : i + length]) for i in range(len(tokens) - length + 1))


def totals(tokens: Sequence[str], length: int, omitted: int) -> dict[Gram, Fraction]:
    """Sum over x of p_L(context, x) / p_{L-1}(context), p_{L-1} estimated with the last `omitted` tokens left out."""
    joint = grams(tokens, length)
    context = grams(tokens[: len(tokens) - omitted], length - 1)
    followed: dict[Gram, int] = {}
    for gram, count in joint.items():
        followed[gram[:-1]] = followed.get(gram[:-1], 0) + count
    scale = Fraction(context.total(), joint.total())
    return {c: scale * Fraction(followed.get(c, 0), count) for c, count in context.items()}


SEQUENCES = [tokens for size in range(4, 8) for tokens in product("ABC", repeat=size)]


def off_by_omitting(omitted: int) -> tuple[int, int, str]:
    """All sequences of 4 to 7 tokens over three letters, L = 2 and 3: how many fail to sum to 1, of how many, and the first."""
    cases, wrong, first = [*product(SEQUENCES, (2, 3))], 0, "none"
    for tokens, length in cases:
        off = [(c, s) for c, s in totals(tokens, length, omitted).items() if s != 1]
        if off and not wrong:
            first = f"{''.join(tokens)} with L = {length}, where context {''.join(off[0][0])} sums to {off[0][1]}"
        wrong += bool(off)
    return wrong, len(cases), first


def free_numbers(histories: int, words: int, per_history: bool) -> int:
    """Independent numbers in a table: its entries less the rank of the sum-to-one constraints, computed."""
    constraints = np.kron(np.eye(histories), np.ones((1, words))) if per_history else np.ones((1, histories * words))
    return histories * words - int(np.linalg.matrix_rank(constraints))


@claim(
    "11",
    estimate="N_j/N",
    derivation="given c, th: V positive\ngiven lam\nlet L = sum(c * log(th)) - lam * (sum(th) - 1)\n"
    "claim dL/dth == c / th - lam\n"
    "claim sum(c * log(th / sum(th))) <= sum(c * log(c / sum(c)))",
    observed=((5, 3, 2), (4, 1, 0)),
)
def _bag(t: SimpleNamespace) -> Outcome:
    counts = letters("N_1 N_2 N_3")
    theta = [value(t.estimate, N_j=n, N=sum(counts)) for n in counts]
    total = sympy.simplify(sum(theta))
    multipliers = {sympy.simplify(n / th) for n, th in zip(counts, theta, strict=True)}
    x = letters("x")[0]
    concave = sympy.diff(counts[0] * sympy.log(sympy.Abs(x)), x, 2).subs(x, 1).is_negative
    grid = [(a, b, 20 - a - b) for a in range(21) for b in range(21 - a)]
    lines, best = [], True
    for observed in t.observed:
        likelihood = {p: p[0] ** observed[0] * p[1] ** observed[1] * p[2] ** observed[2] for p in grid}
        top = [p for p, weight in likelihood.items() if weight == max(likelihood.values())]
        said = tuple(20 * value(t.estimate, N_j=n, N=sum(observed)) for n in observed)
        best &= top == [said]
        lines.append(f"counts {observed}: best {row(Fraction(p, 20) for p in top[0])}")
    return confirmed(
        put(t.derivation),
        total == 1 and len(multipliers) == 1 and concave and best,
        f"{t.estimate} sums to {total}; N_j/θ_j = {row(multipliers)} for every j, as the Lagrange condition demands; the "
        "second derivative of N_j log θ is negative, so the stationary point is the maximum.",
        f"Among all tables in twentieths: {'; '.join(lines)} (a word never seen gets 0, at the edge of the simplex).",
    )


@claim("12", free="V**(n-1)*(V-1)", entries="V**n", example=(10_000, 3))
def _histories(t: SimpleNamespace) -> Outcome:
    V, n = letters("V n")
    cases, bad = [*product((2, 3, 4), range(1, 6))], []
    for words, place in cases:
        histories = len([*product(range(words), repeat=place - 1)])
        found = (free_numbers(histories, words, per_history=True), histories * words)
        if found != tuple(value(text, V=words, n=place) for text in (t.free, t.entries)):
            bad.append(f"V = {words}, n = {place}: {row(found)}")
    growth = [sympy.simplify(value(text, n=n + 1) / formula(text)) for text in (t.free, t.entries)]
    many, place = t.example
    return judged(
        exact(not bad and growth == [V, V]),
        f"{len(cases)} tables enumerated, free numbers being entries less the rank of the sum-to-one constraints: "
        f"{len(bad)} differ{' (' + bad[0] + ')' if bad else ''}; from n to n+1 the formulas grow by {row(growth)}. With "
        f"V = {many:,} and n = {place} that is {int(value(t.entries, V=many, n=place)):,} entries.",
    )


@claim("13.a", omitted=1)
def _final_token(t: SimpleNamespace) -> Outcome:
    (wrong, cases, first), (kept_wrong, _, kept_first) = off_by_omitting(t.omitted), off_by_omitting(0)
    return judged(
        measured(wrong == 0 < kept_wrong),
        f"Exact fractions, {cases:,} cases. With the last {t.omitted} left out of p_(L-1) the conditionals fail to sum to 1 in "
        f"{wrong:,} (first: {first}).",
        f"With none left out they fail in {kept_wrong:,} (first: {kept_first}): the final token must be omitted: "
        f"{kept_wrong > 0}.",
    )


@claim("13.b", omitted=0)
def _misreading(t: SimpleNamespace) -> Outcome:
    (wrong, cases, first), (dropped, _, _) = off_by_omitting(t.omitted), off_by_omitting(1)
    return judged(
        measured(wrong == 0),
        f"Under that reading the last {t.omitted} tokens of the sequence are left out. Exact fractions: some context does not "
        f"sum to 1 in {wrong:,} of {cases:,} cases (first: {first}).",
        because="The denominator never contains the predicted token there, and yet: the last token of the sequence has no "
        "successor.",
        corrected="The token to omit is the last one of each training sequence: it begins no L-gram, so it must not "
        "be counted as a context.",
        holds=dropped == 0,
    )


@claim("13.c", conditional="V**(L-1)*(V-1)", joint="V**L - 1", context="V**(L-1) - 1")
def _free_parameters(t: SimpleNamespace) -> Outcome:
    cases, bad = [*product((2, 3, 4), range(1, 5))], []
    for words, length in cases:
        histories = words ** (length - 1)
        sizes = ((histories, words, True), (histories, words, False), (histories, 1, False))
        found = tuple(free_numbers(*size) for size in sizes)
        if found != tuple(value(text, V=words, L=length) for text in (t.conditional, t.joint, t.context)):
            bad.append(f"V = {words}, L = {length}: {row(found)}")
    left = sympy.simplify(formula(t.conditional) + formula(t.context) - formula(t.joint))
    return judged(
        exact(not bad and left == 0),
        f"Entries less the rank of the sum-to-one constraints, {len(cases)} cases: {len(bad)} "
        f"differ{' (' + bad[0] + ')' if bad else ''}. Conditional and context less the joint: {left}.",
        note="p_(L-1) is a marginal of p_L and adds no freedom of its own.",
    )


@claim("13.d", consistent="V", separate="1", text="abracadabra")  # what is added to the count of a context
def _smoothing(t: SimpleNamespace) -> Outcome:
    symbols = sorted(set(t.text))
    V, pairs, singles = len(symbols), grams(t.text, 2), grams(t.text[:-1], 1)

    def sums(added_to_context: str) -> dict[str, Fraction]:
        """Per context, the sum of p_2/p_1 after adding 1 to every pair and so much to every single."""
        added = int(value(added_to_context, V=V))
        mass = Fraction(pairs.total() + added * V, pairs.total() + V * V)
        return {c: mass * sum(Fraction(pairs[c, x] + 1, singles[(c,)] + added) for x in symbols) for c in symbols}

    found = {added: sums(added) for added in (t.consistent, t.separate)}
    return conditional(
        exact(all(s == 1 for s in found[t.consistent].values())),
        measured(all(s == 1 for s in found[t.separate].values())),
        f"Add-one smoothing of the pairs of '{t.text}' ({V} letters), exactly. "
        + " ".join(
            f"With {added} added to every single letter the conditionals sum to "
            + row(f"{s} after {c}" for c, s in each.items())
            + "."
            for added, each in found.items()
        ),
        because="Smoothed alike and separately, the two tables are no longer marginals of each other.",
        precisely="It is easy when p_L alone is smoothed and p_(L-1) is obtained by summing it, which adds V to every context; "
        "smoothing each table by itself gives conditionals that do not sum to 1.",
    )


@claim(
    "13.e",
    weights=("1/2", "3/10", "2/10"),
    train="the cat sat on the mat and the rat ran",
    held="that rat ate the hat",
)
def _all_orders(t: SimpleNamespace) -> Outcome:
    symbols, lambdas = sorted(set(t.train)), [Fraction(w) for w in t.weights]
    tables = {n: grams(t.train, n) for n in (1, 2, 3)}
    contexts = {n: grams(t.train[:-1], n - 1) for n in (2, 3)}

    def p(x: str, history: str, order: int) -> Fraction:
        """The relative frequency at one order; an unseen context hands on to the order below."""
        if order == 1:
            return Fraction(tables[1][(x,)], len(t.train))
        c = tuple(history[len(history) - order + 1 :])
        return Fraction(tables[order][(*c, x)], contexts[order][c]) if contexts[order][c] else p(x, history, order - 1)

    def mixed(x: str, history: str) -> Fraction:
        return sum((w * p(x, history, n) for w, n in zip(lambdas, (3, 2, 1), strict=True)), Fraction(0))

    sums = {sum(mixed(x, a + b) for x in symbols) for a, b in product(symbols, repeat=2)}
    places = range(2, len(t.held))
    alone = sum(tables[3][tuple(t.held[i - 2 : i + 1])] == 0 for i in places)
    together = sum(mixed(t.held[i], t.held[i - 2 : i]) == 0 for i in places)
    return judged(
        measured(sums == {1} and alone > 0 and together == 0),
        f"Counted on '{t.train}', held out '{t.held}'. With the trigram table alone {alone} of {len(places)} letters have "
        f"probability 0; with all three orders, weighted {row(t.weights)}, {together}. In all {len(symbols) ** 2} contexts the "
        f"mixture sums to {row(sorted(sums))}.",
    )

"""Exercises 12.11 to 12.13: bag of words, tables of histories, and L-grams, by exact counting."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import product
from types import SimpleNamespace

import numpy as np
import sympy

from lmlab.ledger.bishop12.book import BOOK
from lmlab.ledger.claim import Outcome, proved, refuted, supported
from lmlab.ledger.kit import formula, value
from lmlab.ledger.sheet import put

Gram = tuple[str, ...]


def grams(tokens: Sequence[str], length: int) -> Counter[Gram]:
    """How often each run of `length` tokens occurs."""
    return Counter(tuple(tokens[i : i + length]) for i in range(len(tokens) - length + 1))


def totals(tokens: Sequence[str], length: int, omitted: int) -> dict[Gram, Fraction]:
    """Sum over x of p_L(context, x) / p_{L-1}(context), p_{L-1} estimated with the last `omitted` tokens left out."""
    joint = grams(tokens, length)
    context = grams(tokens[: len(tokens) - omitted], length - 1)
    p_joint = {gram: Fraction(n, joint.total()) for gram, n in joint.items()}
    p_context = {gram: Fraction(n, context.total()) for gram, n in context.items()}
    return {c: sum((p for gram, p in p_joint.items() if gram[:-1] == c), Fraction(0)) / p_context[c] for c in context}


def sequences(longest: int) -> Iterator[tuple[str, ...]]:
    """Every sequence over {A, B, C} of 4 tokens up to `longest`."""
    for size in range(4, longest + 1):
        yield from product("ABC", repeat=size)


def free_numbers(histories: int, words: int, per_history: bool) -> int:
    """Independent numbers in a table: its entries less the rank of the sum-to-one constraints, computed."""
    constraints = np.kron(np.eye(histories), np.ones((1, words))) if per_history else np.ones((1, histories * words))
    return histories * words - int(np.linalg.matrix_rank(constraints))


@BOOK.claim(
    "11",
    where="Exercise 12.11, lines 380-410",
    says="For the bag-of-words model the likelihood is largest when each word's probability is its relative frequency.",
    latex=r"\arg\max_\theta\prod_k\theta_k^{N_k}=\left(\tfrac{N_1}{N},\dots,\tfrac{N_V}{N}\right)",
    how="In the derivation language: the derivative of the Lagrangian, and that no table has a higher likelihood. "
    "Symbolically: the estimate sums to 1, makes all N_j/θ_j equal (the Lagrange condition), and the log-likelihood "
    "is concave. Exactly: over all tables with entries in twentieths, for counts (5, 3, 2) and (4, 1, 0), none is "
    "better.",
    estimate="N_j/N",
    derivation="given c, th: V positive\ngiven lam\nlet L = sum(c * log(th)) - lam * (sum(th) - 1)\n"
    "claim dL/dth == c / th - lam\n"
    "claim sum(c * log(th / sum(th))) <= sum(c * log(c / sum(c)))",
)
def _bag(t: SimpleNamespace) -> Outcome:
    sheet = put(t.derivation)
    counts = sympy.symbols("N_1:4", positive=True)
    total = sum(counts)
    theta = [formula(t.estimate).subs({sympy.Symbol("N_j"): n, sympy.Symbol("N"): total}) for n in counts]
    sums = sympy.simplify(sum(theta) - 1) == 0
    multipliers = {sympy.simplify(n / th) for n, th in zip(counts, theta, strict=True)}
    x = sympy.Symbol("x", positive=True)
    concave = sympy.diff(counts[0] * sympy.log(x), x, 2).is_negative
    best = []
    for observed in ((5, 3, 2), (4, 1, 0)):
        grid = [(Fraction(a, 20), Fraction(b, 20), Fraction(20 - a - b, 20)) for a in range(21) for b in range(21 - a)]
        likelihood = {p: p[0] ** observed[0] * p[1] ** observed[1] * p[2] ** observed[2] for p in grid}
        top = max(likelihood.values())
        best.append([p for p, weight in likelihood.items() if weight == top])
    at_counts = [tuple(Fraction(str(value(t.estimate, N_j=n, N=sum(o)))) for n in o) for o in ((5, 3, 2), (4, 1, 0))]
    exact = all(found == [claimed] for found, claimed in zip(best, at_counts, strict=True))
    lines = "; ".join(
        f"counts {o}: best {[str(p) for p in b[0]]}" for o, b in zip(((5, 3, 2), (4, 1, 0)), best, strict=True)
    )
    return proved(
        sheet.holds and sums and len(multipliers) == 1 and bool(concave) and exact,
        f"{sheet}. The estimate sums to {sympy.simplify(sum(theta))}; N_j/θ_j = {', '.join(map(str, multipliers))} "
        "for every j; the second derivative of N_j log θ is negative, so the stationary point is the maximum. "
        f"{lines} (a word never seen gets 0, at the edge of the simplex).",
    )


@BOOK.claim(
    "12",
    where="Exercise 12.12, lines 414-420",
    says="A general table for p(x_n | x_1..x_{n-1}) has V^(n-1)·(V-1) free parameters and V^n entries: exponential "
    "in n.",
    latex=r"V^{n-1}(V-1)\ \text{parameters},\quad V^n\ \text{entries}",
    how="The table is enumerated for V = 2..4, n = 1..5; free numbers are entries less the rank of the sum-to-one "
    "constraints. The growth from n to n+1 is a factor V, symbolically.",
    free="V**(n-1)*(V-1)",
    entries="V**n",
)
def _histories(t: SimpleNamespace) -> Outcome:
    V, n = sympy.symbols("V n", positive=True)
    bad = []
    for words, place in product((2, 3, 4), range(1, 6)):
        histories = len(list(product(range(words), repeat=place - 1)))
        found = (free_numbers(histories, words, per_history=True), histories * words)
        if found != (value(t.free, V=words, n=place), value(t.entries, V=words, n=place)):
            bad.append((words, place, found))
    growth = [sympy.simplify(value(text, V=V, n=n + 1) / value(text, V=V, n=n)) for text in (t.free, t.entries)]
    return proved(
        not bad and growth == [V, V],
        f"15 tables enumerated, {len(bad)} differ{': ' + str(bad[0]) if bad else ''}; from n to n+1 both grow by "
        f"the factor {growth[0]}. With V = 10,000 and n = 3 that is {int(value(t.entries, V=10_000, n=3)):,} "
        "entries.",
    )


@BOOK.claim(
    "13.a",
    where="Exercise 12.13, line 424",
    says="The conditional is p_L / p_(L-1), and for it to be right the final token must be omitted when evaluating "
    "p_(L-1).",
    latex=r"p(x_n|x_{n-L+1:n-1})=\frac{p_L(x_{n-L+1:n})}{p_{L-1}(x_{n-L+1:n-1})}",
    how="All sequences of 4 to 7 tokens over three letters, L = 2 and 3, in exact fractions: with the last token of "
    "the sequence left out of the (L-1)-gram counts, every conditional must sum to 1.",
    omitted=1,
)
def _final_token(t: SimpleNamespace) -> Outcome:
    wrong, tried, example = 0, 0, ""
    for tokens, length in product(sequences(7), (2, 3)):
        sums = totals(tokens, length, t.omitted)
        tried += 1
        off = {c: s for c, s in sums.items() if s != 1}
        wrong += bool(off)
        if off and not example:
            c, s = next(iter(off.items()))
            example = f" First failure: {''.join(tokens)}, L = {length}, context {''.join(c)} sums to {s}."
    kept = totals("ABA", 2, 0)
    return proved(
        wrong == 0,
        f"{tried - wrong:,} of {tried:,} cases sum to 1 for every context.{example} Keeping the final token breaks "
        f"it: for ABA with L = 2 the context A sums to {kept[('A',)]} and B to {kept[('B',)]}.",
    )


@BOOK.claim(
    "13.b",
    where="Exercise 12.13, lines 436-440",
    says='"The final token must be omitted" only means that the denominator does not contain x_n, the token predicted.',
    latex=r"p(x_n|\cdot)=\frac{\mathrm{Count}(x_{n-L+1:n})}{\mathrm{Count}(x_{n-L+1:n-1})}",
    how="Under that reading the (L-1)-grams are counted over the whole sequence. All sequences of 4 to 7 tokens "
    "over three letters, L = 2 and 3, exact: do the conditionals sum to 1?",
    omitted=0,
)
def _misreading(t: SimpleNamespace) -> Outcome:
    cases = [(tokens, length) for tokens, length in product(sequences(7), (2, 3))]
    wrong = [(tokens, n) for tokens, n in cases if any(s != 1 for s in totals(tokens, n, t.omitted).values())]
    right_when_dropped = all(s == 1 for tokens, n in cases for s in totals(tokens, n, 1).values())
    counts = grams("ABA", 1)
    return refuted(
        holds=not wrong,
        evidence=f"In {len(wrong):,} of {len(cases):,} cases some context does not sum to 1 although the "
        "denominator never contains the predicted token. Smallest: ABA, L = 2: Count(AB)/Count(A) = "
        f"1/{counts[('A',)]} and no other word follows A, so p(·|A) sums to 1/2: the last A has no successor.",
        corrected="The token to omit is the last one of each training sequence: it begins no L-gram, so it must not "
        "be counted as a context.",
        corrected_holds=right_when_dropped,
    )


@BOOK.claim(
    "13.c",
    where="Exercise 12.13, line 428",
    says="Free parameters: V^(L-1)(V-1) for the conditional, V^L - 1 for p_L, V^(L-1) - 1 for p_(L-1).",
    latex=r"V^{L-1}(V-1),\quad V^L-1,\quad V^{L-1}-1",
    how="Entries less the rank of the sum-to-one constraints, for V = 2..4 and L = 1..4.",
    conditional="V**(L-1)*(V-1)",
    joint="V**L - 1",
    context="V**(L-1) - 1",
)
def _free_parameters(t: SimpleNamespace) -> Outcome:
    bad = []
    for words, length in product((2, 3, 4), range(1, 5)):
        histories = words ** (length - 1)
        found = (
            free_numbers(histories, words, per_history=True),
            free_numbers(histories, words, per_history=False),
            free_numbers(histories, 1, per_history=False),
        )
        said = tuple(value(text, V=words, L=length) for text in (t.conditional, t.joint, t.context))
        if found != said:
            bad.append((words, length, found, said))
    together = sympy.simplify(formula(t.conditional) + formula(t.context) - formula(t.joint))
    return proved(
        not bad and together == 0,
        f"12 cases, {len(bad)} differ{': ' + str(bad[0]) if bad else ''}. Conditional and context together are "
        f"exactly the joint (difference {together}): p_(L-1) is a marginal of p_L and adds no freedom of its own.",
    )


@BOOK.claim(
    "13.d",
    where="Exercise 12.13, lines 430-431",
    says="Smoothing is more easily applied to the joint tables p_L and p_(L-1) before dividing.",
    latex=r"\tilde p(x|c)=\frac{\tilde p_L(c,x)}{\tilde p_{L-1}(c)}",
    how="Add-one smoothing of both tables on a short text, exactly: the conditionals must sum to 1 and stay below "
    "1. The correction, smoothing inside each context, is put to the same test.",
    added_to_context="1",
    corrected_context="V",
)
def _smoothing(t: SimpleNamespace) -> Outcome:
    text = "abracadabra"
    letters = sorted(set(text))
    V = len(letters)
    pairs, singles = grams(text, 2), grams(text[:-1], 1)
    n = pairs.total()
    both, inside = {}, {}
    for c in letters:
        count, added = singles[(c,)], int(value(t.added_to_context, V=V))
        mass = Fraction(n + added * V, n + V * V)
        both[c] = sum((Fraction(pairs[(c, x)] + 1, count + added) for x in letters), Fraction(0)) * mass
        room = count + int(value(t.corrected_context, V=V))
        inside[c] = sum((Fraction(pairs[(c, x)] + 1, room) for x in letters), Fraction(0))
    return refuted(
        holds=all(s == 1 for s in both.values()),
        evidence=f"Add-one on both tables of '{text}' ({V} letters): the conditionals sum to "
        f"{', '.join(f'{s} after {c}' for c, s in both.items())}. The two smoothed tables are no longer marginals "
        "of each other.",
        corrected="Smooth the conditional inside each context, (count + 1)/(context count + V), or smooth p_L and "
        "obtain p_(L-1) by summing it: then every conditional sums to 1.",
        corrected_holds=all(s == 1 for s in inside.values()),
    )


@BOOK.claim(
    "13.e",
    where="Exercise 12.13, line 432",
    says="Storing the tables of all orders makes back-off and interpolation easier.",
    latex=r"p(x|c)=\lambda_3p_3(x|c_1c_2)+\lambda_2p_2(x|c_2)+\lambda_1p_1(x)",
    how="A trigram with and without its lower orders on held-out letters, in exact fractions: the interpolated "
    "model must be a distribution in every context and give every held-out letter a positive probability.",
    weights=("1/2", "3/10", "2/10"),
)
def _all_orders(t: SimpleNamespace) -> Outcome:
    train, held = "the cat sat on the mat and the rat ran", "that rat ate the hat"
    letters = sorted(set(train))
    lambdas = [Fraction(w) for w in t.weights]
    tables = {n: grams(train, n) for n in (1, 2, 3)}
    contexts = {n: grams(train[:-1], n - 1) for n in (1, 2, 3)}

    def p(x: str, history: str, order: int) -> Fraction:
        """The relative frequency at one order; an unseen context hands on to the order below."""
        c = tuple(history[len(history) - order + 1 :])
        if order > 1 and contexts[order][c] == 0:
            return p(x, history, order - 1)
        whole = contexts[order][c] if order > 1 else len(train)
        return Fraction(tables[order][(*c, x)], whole)

    def mixed(x: str, history: str) -> Fraction:
        return sum((w * p(x, history, n) for w, n in zip(lambdas, (3, 2, 1), strict=True)), Fraction(0))

    sums = {a + b: sum((mixed(x, a + b) for x in letters), Fraction(0)) for a, b in product(letters, repeat=2)}
    places = range(2, len(held))
    alone = sum(grams(train, 3)[tuple(held[i - 2 : i + 1])] == 0 for i in places)
    together = sum(mixed(held[i], held[i - 2 : i]) == 0 for i in places)
    return supported(
        all(s == 1 for s in sums.values()) and alone > 0 and together == 0,
        f"Held out: '{held}'. With the trigram table alone {alone} of {len(places)} letters have probability 0; "
        f"with all three orders {together}. The mixture sums to 1 in all {len(sums)} contexts.",
    )

"""Exercise 12.15: greedy search against the most probable sequence, on tables of two tokens."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from itertools import product
from types import SimpleNamespace

from lmlab.ledger.bishop12.book import BOOK
from lmlab.ledger.claim import Outcome, proved, refuted
from lmlab.ledger.labmodels import two_token_searches

Table = dict[str, Fraction]  # "AB": weight of y1 = A, y2 = B

PRINTED = {"AA": "0", "AB": "1/10", "BA": "4/10", "BB": "25/100"}


def exact(table: Mapping[str, str]) -> Table:
    """The table in exact fractions."""
    return {pair: Fraction(weight) for pair, weight in table.items()}


def first(table: Table, token: str) -> Fraction:
    """Marginal weight of y1 = token."""
    return table[token + "A"] + table[token + "B"]


def greedy(table: Table) -> list[str]:
    """Every sequence greedy search may return: the likeliest first token, then the likeliest second (ties: all)."""
    best = max(first(table, token) for token in "AB")
    found = []
    for token in (t for t in "AB" if first(table, t) == best):
        top = max(table[token + second] for second in "AB")
        found += [token + second for second in "AB" if table[token + second] == top]
    return found


def likeliest(table: Table) -> list[str]:
    """The most probable sequences, by looking at all four."""
    return [pair for pair, weight in table.items() if weight == max(table.values())]


def shown(pairs: list[str]) -> str:
    """Sequences as they are written: (B,A)."""
    return " or ".join(f"({pair[0]},{pair[1]})" for pair in pairs)


def decoded(table: Table) -> tuple[str, str]:
    """What the lab's own greedy and exhaustive decoding return."""
    return two_token_searches({pair: float(weight) for pair, weight in table.items()})


def agrees(table: Table) -> bool:
    """Whether the lab's decoding returns what the exact searches return."""
    found, best = decoded(table)
    return found in greedy(table) and best in likeliest(table)


def completions(table: Table, steps: int = 20) -> list[Table]:
    """Every way to hand the missing mass to the four cells in equal portions."""
    missing = 1 - sum(table.values(), Fraction(0))
    portion = missing / steps
    return [
        {pair: weight + portion * n for (pair, weight), n in zip(table.items(), shares, strict=True)}
        for shares in product(range(steps + 1), repeat=4)
        if sum(shares) == steps
    ]


@BOOK.claim(
    "15.a",
    where="Exercise 12.15, lines 444-448",
    says="With the table printed in the exercise, greedy search returns another sequence than the most probable one.",
    latex=r"\hat y_1=\arg\max_{y_1}p(y_1),\ \hat y_2=\arg\max_{y_2}p(y_2|\hat y_1)\ \Rightarrow\ "
    r"p(\hat y_1,\hat y_2)<\max_{y_1,y_2}p(y_1,y_2)",
    how="Greedy search and exhaustive search on the printed weights in exact fractions, by the lab's decoding, and "
    "again on every completion of the table that hands the missing mass to the cells in twentieths; the general "
    "case by the bound printed.",
    table=PRINTED,
)
def _printed_table(t: SimpleNamespace) -> Outcome:
    table = exact(t.table)
    filled = completions(table)
    differs = not set(greedy(table)) & set(likeliest(table))
    differing = sum(not set(greedy(full)) & set(likeliest(full)) for full in filled)
    mass = sum(table.values())
    room = first(table, "A") + (1 - mass)
    always = room < first(table, "B") and room < max(table["BA"], table["BB"])
    return refuted(
        holds=differs,
        evidence=f"The weights sum to {mass}, not 1. Greedy search returns {shown(greedy(table))}, exhaustive "
        f"search {shown(likeliest(table))} (the lab's decoding: {shown(list(decoded(table)))}). Of {len(filled)} "
        f"completions to mass 1, greedy search differs in {differing}: even with all the missing mass, p(y1=A) is "
        f"at most {room}, less than p(y1=B) >= {first(table, 'B')} and less than the best sequence that starts with "
        "B.",
        corrected="On the printed table, and however its missing mass is filled in, greedy search returns the most "
        "probable sequence.",
        corrected_holds=differing == 0 and always and agrees(table),
    )


@BOOK.claim(
    "15.b",
    where="Exercise 12.15, line 450",
    says="The table is repaired by reading p(B,B) = 0.5.",
    latex=r"p(B,B)=0.5",
    how="The repaired table must sum to 1 and must show what the exercise asks for, greedy search being beaten. "
    "Exact fractions.",
    table={**PRINTED, "BB": "1/2"},
    repair={"AA": "35/100", "AB": "25/100", "BA": "0", "BB": "4/10"},
)
def _half(t: SimpleNamespace) -> Outcome:
    table, repair = exact(t.table), exact(t.repair)
    beaten = not set(greedy(table)) & set(likeliest(table))
    return refuted(
        holds=sum(table.values()) == 1 and beaten,
        evidence=f"With 0.5 the table sums to {sum(table.values())}, but greedy search returns "
        f"{shown(greedy(table))}, which is the most probable sequence {shown(likeliest(table))}: the exercise still "
        "fails. It also contradicts the exercise's own sentence that (B,B) has probability 0.4.",
        corrected="A table that does what the exercise says keeps p(B,B) = 0.4 as its largest entry: p(A,A) = 0.35, "
        "p(A,B) = 0.25, p(B,A) = 0; greedy search then returns (A,A) with 0.35.",
        corrected_holds=sum(repair.values()) == 1
        and likeliest(repair) == ["BB"]
        and repair["BB"] == Fraction(2, 5)
        and greedy(repair) == ["AA"],
    )


@BOOK.claim(
    "15.c",
    where="Exercise 12.15, line 462",
    says="The exercise's text says that the most probable sequence of the table is (B,B), with probability 0.4.",
    latex=r"\arg\max p=(B,B),\quad p(B,B)=0.4",
    how="All four sequences of the printed table, compared exactly, with and without renormalising.",
    table=PRINTED,
    best="BB",
    probability="4/10",
)
def _text_assertion(t: SimpleNamespace) -> Outcome:
    table, claimed = exact(t.table), Fraction(t.probability)
    mass = sum(table.values())
    weights = ", ".join(f"({pair[0]},{pair[1]}) {weight}" for pair, weight in table.items())
    top = likeliest(table)
    return refuted(
        holds=top == [t.best] and claimed in (table[t.best], table[t.best] / mass),
        evidence=f"Printed weights: {weights}. The largest is {shown(top)} with {table[top[0]]}, or "
        f"{table[top[0]] / mass} after dividing by the total {mass}; ({t.best[0]},{t.best[1]}) has {table[t.best]}, "
        f"renormalised {table[t.best] / mass}.",
        corrected="In the printed table the most probable sequence is (B,A), with weight 0.4 (8/15 after "
        "renormalising).",
        corrected_holds=top == ["BA"] and table["BA"] == Fraction(2, 5) and table["BA"] / mass == Fraction(8, 15),
    )


@BOOK.claim(
    "15.d",
    where="Exercise 12.15, lines 450-458",
    says="For the renormalised table, p(y1=A) = 2/15, p(y1=B) = 13/15, p(y2=A|B) = 8/13 and p(y2=B|B) = 5/13.",
    latex=r"p(A)=\tfrac{2}{15},\ p(B)=\tfrac{13}{15},\ p(A|B)=\tfrac{8}{13},\ p(B|B)=\tfrac{5}{13}",
    how="Exact fractions.",
    table=PRINTED,
    values=("2/15", "13/15", "8/13", "5/13"),
)
def _renormalised(t: SimpleNamespace) -> Outcome:
    raw = exact(t.table)
    table = {pair: weight / sum(raw.values()) for pair, weight in raw.items()}
    b = first(table, "B")
    found = (first(table, "A"), b, table["BA"] / b, table["BB"] / b)
    return proved(
        found == tuple(Fraction(v) for v in t.values),
        f"Computed: {', '.join(map(str, found))}. They do not depend on the renormalisation.",
    )


@BOOK.claim(
    "15.e",
    where="Exercise 12.15, lines 478-494",
    says="With the tables (AA, AB, BA, BB) = (.1,.2,.3,.4), (.1,.4,.3,.2) and (.4,.1,.3,.2), greedy search is optimal "
    "in the first and meets a tie for the first token in the other two, where one way of breaking it is suboptimal.",
    latex=r"(.1,.2,.3,.4):\ (B,B)\ \text{optimal};\quad (.1,.4,.3,.2),\ (.4,.1,.3,.2):\ p(y_1{=}A)=p(y_1{=}B)=\tfrac12",
    how="Greedy search following every tie, and exhaustive search, in exact fractions.",
    tables=("1 2 3 4", "1 4 3 2", "4 1 3 2"),
    claimed=("optimal", "tie", "tie"),
)
def _three_tables(t: SimpleNamespace) -> Outcome:
    seen, lines = [], []
    for text in t.tables:
        table = dict(zip(("AA", "AB", "BA", "BB"), (Fraction(int(w), 10) for w in text.split()), strict=True))
        tie = first(table, "A") == first(table, "B")
        found, best = greedy(table), likeliest(table)
        mixed = tie and set(found) & set(best) and set(found) - set(best)
        seen.append("tie" if mixed else "optimal" if found == best else "beaten")
        lines.append(f"({text.replace(' ', ', ')})/10: greedy {shown(found)}, best {shown(best)}, first tokens "
            f"{first(table, 'A')} and "
                     f"{first(table, 'B')}")  # fmt: skip
    whole = all(sum(map(int, text.split())) == 10 for text in t.tables)
    return proved(whole and tuple(seen) == t.claimed, "; ".join(lines) + ".")


@BOOK.claim(
    "15.f",
    where="Exercise 12.15, lines 496-498",
    says="With (AA, AB, BA, BB) = (.4, .09, .3, .21) greedy search returns (B,A) with 0.3, while (A,A) has 0.4.",
    latex=r"p(A)=0.49<p(B)=0.51,\quad p(B,A)=0.3<p(A,A)=0.4",
    how="Greedy and exhaustive search in exact fractions, and by the lab's decoding on a model that is this table.",
    table={"AA": "40/100", "AB": "9/100", "BA": "30/100", "BB": "21/100"},
    found="BA",
    best="AA",
)
def _table_four(t: SimpleNamespace) -> Outcome:
    table = exact(t.table)
    found, best = greedy(table), likeliest(table)
    right = sum(table.values()) == 1 and found == [t.found] and best == [t.best] and t.found != t.best
    return proved(
        right
        and table[t.found] == Fraction(3, 10)
        and table[t.best] == Fraction(2, 5)
        and decoded(table) == (t.found, t.best),
        f"p(y1=A) = {first(table, 'A')}, p(y1=B) = {first(table, 'B')}; greedy search returns {shown(found)} with "
        f"{table[found[0]]}; the best of all four is {shown(best)} with {table[best[0]]}. The lab's greedy and "
        f"exhaustive decoding: {' and '.join(decoded(table))}.",
    )

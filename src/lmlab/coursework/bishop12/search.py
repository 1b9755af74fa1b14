"""Exercise 12.15: greedy search against the most probable sequence, on tables of two tokens."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from itertools import product
from types import SimpleNamespace

from lmlab.coursework.book import book
from lmlab.coursework.claim import Outcome, exact, judged
from lmlab.coursework.lab import two_token_searches
from lmlab.coursework.shared_tools import row

claim = book("bishop12").claim

Table = dict[str, Fraction]  # "AB": weight of y1 = A, y2 = B

PRINTED = {"AA": "0", "AB": "1/10", "BA": "4/10", "BB": "25/100"}


def fractions(table: Mapping[str, str]) -> Table:
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


def beaten(table: Table) -> bool:
    """Whether greedy search misses the most probable sequence however it breaks ties."""
    return not set(greedy(table)) & set(likeliest(table))


def agrees(table: Table) -> bool:
    """Whether the lab's greedy and exhaustive decoding return what the exact searches return."""
    found, best = two_token_searches(table)
    return found in greedy(table) and best in likeliest(table)


def completions(table: Table, steps: int = 20) -> list[Table]:
    """Every way to hand the missing mass to the four cells in equal portions."""
    portion = (1 - sum(table.values(), Fraction(0))) / steps
    return [
        {pair: weight + portion * n for (pair, weight), n in zip(table.items(), shares, strict=True)}
        for shares in product(range(steps + 1), repeat=4)
        if sum(shares) == steps
    ]


@claim("15.a", table=PRINTED)
def _printed_table(t: SimpleNamespace) -> Outcome:
    table = fractions(t.table)
    filled, mass = completions(table), sum(table.values())
    differing = sum(map(beaten, filled))
    room = first(table, "A") + (1 - mass)
    always = room < first(table, "B") and room < max(table["BA"], table["BB"])
    return judged(
        exact(beaten(table)),
        f"The weights sum to {mass}. Greedy search returns {shown(greedy(table))}, exhaustive search "
        f"{shown(likeliest(table))}, in exact fractions; the lab's decoding {shown([*two_token_searches(table)])}.",
        f"Handing the missing mass to the cells in twentieths, greedy search is beaten in {differing} of {len(filled)} tables.",
        because=f"Even with all the missing mass p(y1=A) is at most {room}, less than p(y1=B) ≥ {first(table, 'B')} and less "
        "than the best sequence that starts with B.",
        corrected="On the printed table, and however its missing mass is filled in, greedy search returns the most "
        "probable sequence.",
        holds=differing == 0 and always and agrees(table),
    )


@claim(
    "15.b",
    table={**PRINTED, "BB": "1/2"},
    repair={"AA": "35/100", "AB": "25/100", "BA": "0", "BB": "4/10"},
    said="4/10",
)
def _half(t: SimpleNamespace) -> Outcome:
    table, repair = fractions(t.table), fractions(t.repair)
    return judged(
        exact(sum(table.values()) == 1 and beaten(table)),
        f"With p(B,B) = {table['BB']} the table sums to {sum(table.values())}; greedy search returns {shown(greedy(table))}, "
        f"and the most probable sequence is {shown(likeliest(table))}.",
        because=f"So the exercise still fails; it also says that (B,B) has probability {t.said}.",
        corrected=f"A table that does what the exercise says keeps p(B,B) = {t.said} as its largest entry: "
        + row(f"p({pair[0]},{pair[1]}) = {weight}" for pair, weight in repair.items())
        + f"; greedy search then returns {shown(greedy(repair))} with {repair[greedy(repair)[0]]}.",
        holds=sum(repair.values()) == 1
        and likeliest(repair) == ["BB"]
        and repair["BB"] == Fraction(t.said)
        and beaten(repair),
    )


@claim("15.c", table=PRINTED, best="BB", probability="4/10")
def _text_assertion(t: SimpleNamespace) -> Outcome:
    table = fractions(t.table)
    mass, top = sum(table.values()), likeliest(table)
    largest = table[top[0]]
    return judged(
        exact(top == [t.best] and Fraction(t.probability) in (table[t.best], table[t.best] / mass)),
        f"Printed weights: {row(f'({pair[0]},{pair[1]}) {weight}' for pair, weight in table.items())}. The largest is "
        f"{shown(top)} with {largest}, or {largest / mass} after dividing by the total {mass}; {shown([t.best])} has "
        f"{table[t.best]}, or {table[t.best] / mass}.",
        corrected=f"In the printed table the most probable sequence is {shown(top)}, with weight {largest} ({largest / mass} "
        "after renormalising).",
        holds=agrees(table),
    )


@claim("15.d", table=PRINTED, values=("2/15", "13/15", "8/13", "5/13"))
def _renormalised(t: SimpleNamespace) -> Outcome:
    table = fractions(t.table)
    mass, b = sum(table.values()), first(table, "B")
    found = (first(table, "A") / mass, b / mass, table["BA"] / b, table["BB"] / b)
    return judged(
        exact(found == tuple(Fraction(v) for v in t.values)), f"Computed: {row(found)}; claimed: {row(t.values)}."
    )


@claim("15.e", tables=("1 2 3 4", "1 4 3 2", "4 1 3 2"), claimed=("optimal", "tie", "tie"))
def _three_tables(t: SimpleNamespace) -> Outcome:
    seen, lines, whole = [], [], True
    for text in t.tables:
        table = dict(zip(("AA", "AB", "BA", "BB"), (Fraction(int(w), 10) for w in text.split()), strict=True))
        whole &= sum(table.values()) == 1
        found, best = greedy(table), likeliest(table)
        tied = first(table, "A") == first(table, "B") and set(found) & set(best) and set(found) - set(best)
        seen.append("tie" if tied else "beaten" if found != best else "optimal")
        lines.append(
            f"({text.replace(' ', ', ')})/10: greedy {shown(found)}, best {shown(best)}, first tokens {first(table, 'A')} and "
            f"{first(table, 'B')}: {seen[-1]}"
        )
    return judged(exact(whole and tuple(seen) == t.claimed), "; ".join(lines) + ".")


@claim(
    "15.f",
    table={"AA": "40/100", "AB": "9/100", "BA": "30/100", "BB": "21/100"},
    found=("BA", "3/10"),
    best=("AA", "4/10"),
)
def _table_four(t: SimpleNamespace) -> Outcome:
    table = fractions(t.table)
    found, best, decoded = greedy(table), likeliest(table), two_token_searches(table)
    right = found == [t.found[0]] and best == [t.best[0]] and decoded == (t.found[0], t.best[0])
    values = table[t.found[0]] == Fraction(t.found[1]) and table[t.best[0]] == Fraction(t.best[1])
    return judged(
        exact(sum(table.values()) == 1 and right and values and beaten(table)),
        f"p(y1=A) = {first(table, 'A')}, p(y1=B) = {first(table, 'B')}; greedy search returns {shown(found)} with "
        f"{table[found[0]]}; the best of all four is {shown(best)} with {table[best[0]]}. The lab's greedy and exhaustive "
        f"decoding: {' and '.join(decoded)}.",
    )

"""The derivation checker: `check(text)` reads claims and derivations, and says which hold and why the others do not.

    from lmlab.checker import check
    report = check('''
        given x: n
        claim sigmoid(-x) == 1 - sigmoid(x)
    ''')
    report.ok                      # True when there is at least one claim and all hold
    report.claims[0].verdict       # "proved", "supported", "refuted", "undecided", "invalid"
    report.to_json()               # {"claims": [{"line", "claim", "verdict", "reason", "counterexample", "hint",
                                   #  "first_wrong_step"}], "ok": true}

Each item of `report.claims` has line, claim, verdict, reason, counterexample (a `Counterexample`, or None; `str` of it
is one line), hint (or None), first_wrong_step (of a derive, counted from 1, or None), wrong_line, and `holds`.
`check` never raises for what a text says: a line that is not understood is an entry with the verdict "invalid".
The language is described in docs/derivations.md. A text passes through these packages, each of which imports only from
those above it:

    tree, sizes, text, to_latex expressions and statements; sizes of axes in symbols; back to text, and to mathematics
    functions/  one record per function: arity, shape, kinks, derivative, how it is computed and written, usual slips
    distributions   one record per distribution: its moments, density, and how its values come from a standard variable
    kinds, limits, small_formulas   the words for kinds of givens; every bound, and `Refusal`; formulas, written out
    read/       text to tree: tokens, cursor, expressions, spellings (NumPy's other forms), scope, statements, sheet
    shapes/     infer: the shape of every expression; setting: what a claim stands on
    numbers/    evaluate: the meaning at a point, in the arithmetic of autograd (torch), doubles (NumPy), decimals (60
                digits) or fractions; size_draws, points; means: exact (moments), by integrals, or by quadrature (torch);
                sides: both, compared. torch is imported for derivatives and for means over many numbers alone
    symbols/    terms, algebra, calculus, derivatives, expectations: index notation; build: expressions in it; signs, proofs
    hints/      slips, throughout, supplies: the usual mistakes; repairs: the search; sentence: what is said
    sheets/     relation, verdict, bound_breakers, counterexample: one relation; claims, check: a claim, a sheet; report:
                the answer; pages: a graded sheet
    grading/    key: questions; forms: what is the same writing; bench, judge, paper: answers; book, pages: a class
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lmlab.checker.sheets.report import Report


def check(text: str, *, seed: int = 0) -> Report:
    """Check every claim and derivation in a text. The same text and seed give the same answer."""
    from lmlab.checker.sheets.check import check_text

    return check_text(text, seed)


__all__ = ["check"]

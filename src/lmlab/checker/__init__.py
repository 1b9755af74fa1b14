"""The derivation checker: `check(text)` reads claims and derivations, and says which hold and why the others do not.

    from lmlab.checker import check
    report = check('''
        given x: n
        claim sigmoid(-x) == 1 - sigmoid(x)
    ''')
    report.ok                      # True when there is at least one claim and all hold
    report.claims[0].verdict       # "proved", "supported", "refuted" or "invalid"
    report.to_json()               # {"claims": [{"line", "claim", "verdict", "reason", "counterexample", "hint",
                                   #  "first_wrong_step"}], "ok": true}

Each item of `report.claims` has line, claim, verdict, reason, counterexample (a `Counterexample`, or None; `str` of it
is one line), hint (or None), first_wrong_step (of a derive, counted from 1, or None), wrong_line, and `holds`.
`check` never raises for what a text says: a line that is not understood is an entry with the verdict "invalid".
The language is described in docs/derivations.md. The modules, in the order in which a text passes through them:

    reading    lexer, reader, sugar, expressions, statements, scope, parser: text to `syntax`, the typed tree
               functions, sizes, shapes, array_shapes (in symbols), render and mathml (back to text, LaTeX and MathML)
    numbers    setting, draw: sizes and points; evaluate: the meaning, with the arithmetic of torch_ops (float64 and
               autograd), array_ops, long_ops (60 digits) or exact (fractions); averages, expect, moments: expectations
    verdicts   compare, decide, extremes, counter: one relation; checker, sheets, report: a claim, a sheet, the answer
    proofs     terms, algebra, calculus, derivatives, isserlis: index notation; build, bounds, prover
    hints      edits, throughout, supplies, repairs, hints: the small change that repairs a claim
    classes    pages, grade: a graded sheet, a graded class
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

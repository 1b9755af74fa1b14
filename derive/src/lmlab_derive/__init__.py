"""The derivation checker: `check(text)` reads claims and derivations, and says which hold and why the others do not.

    from lmlab_derive import check
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
The language is described in docs/derivations.md of the repository, the packages in docs/architecture.md.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lmlab_derive.sheets.report import Report


def check(text: str, *, seed: int = 0) -> Report:
    """Check every claim and derivation in a text. The same text and seed give the same answer."""
    from lmlab_derive.sheets.check import check_text

    return check_text(text, seed)


__all__ = ["check"]

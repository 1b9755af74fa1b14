"""A whole sheet, checked: text in, verdicts out."""

from __future__ import annotations

from lmlab_derive.limits import Refusal
from lmlab_derive.read.sheet import ScopedClaim, parse
from lmlab_derive.shared.mistakes import checked_seed
from lmlab_derive.sheets.headings import headings
from lmlab_derive.sheets.report import INVALID, ClaimReport, Report
from lmlab_derive.tree import NotUnderstood

FAILED = "the claim could not be checked"


def check_text(text: str, seed: int = 0, hints: bool = True) -> Report:
    """Check every claim and derivation of a sheet. The same text and seed give the same answer."""
    seed = checked_seed(seed)
    try:
        sheet = parse(headings(text)[1])  # a key or an answer may name its questions
    except Refusal as refusal:
        return Report(claims=[ClaimReport(line=1, claim="", verdict=INVALID, reason=str(refusal))])
    claims = []
    for entry in sheet.entries:
        if isinstance(entry, NotUnderstood):
            claims.append(ClaimReport(line=entry.line, claim=entry.text, verdict=INVALID, reason=entry.reason))
        else:
            claims.append(checked(entry, seed, hints))
    return Report(claims=claims)


def checked(entry: ScopedClaim, seed: int, hints: bool) -> ClaimReport:
    """The answer to one claim. A mistake of our own spoils that claim alone, and is called what it is."""
    from lmlab_derive.sheets.claims import check_claim

    try:
        return check_claim(entry, seed, hints)
    except Exception as error:
        what = (str(error).splitlines() or [""])[0][:200]
        reason = f"{FAILED} ({type(error).__name__}: {what}); this is a mistake of the checker, please report it"
        return ClaimReport(line=entry.claim.line, claim=entry.claim.text, verdict=INVALID, reason=reason)

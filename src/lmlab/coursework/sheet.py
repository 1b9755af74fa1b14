"""Derivations put to the checker: what it said, in a form a claim's evidence can quote."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

from lmlab.coursework.claim import Finding, Outcome, exact, judged, together


@dataclass(frozen=True)
class Sheet:
    """The checker's answer to a text in the derivation language: the weakest verdict of its claims, and the reasons."""

    finding: Finding  # a line of shapes that do not fit counts as refuted
    summary: str

    @property
    def holds(self) -> bool:
        """Whether every claim of the text holds."""
        return self.finding in ("proved", "supported")

    def __str__(self) -> str:
        return f"{self.summary}."


def put(text: str) -> Sheet:
    """Put a text in the derivation language to the checker."""
    from lmlab_derive import check
    from lmlab_derive.sheets.check import FAILED

    report = check(text)
    assert report.claims, f"the derivation holds no claim: {text!r}"
    findings: list[Any] = []
    lines: list[str] = []
    told: list[str] = []
    for claim in report.claims:
        unread = claim.verdict == "invalid" and FAILED not in claim.reason
        findings.append("refuted" if unread else "undecided" if claim.verdict == "invalid" else claim.verdict)
        reason = f"{claim.reason}; {claim.counterexample}" if claim.counterexample else claim.reason
        lines.append(f"`{claim.claim.removeprefix('claim ')}` is {_once(claim.verdict, reason, told)}")
    return Sheet(together(*findings), "; ".join(lines))


def _once(verdict: str, reason: str, told: list[str]) -> str:
    """The verdict with its reason; what was told of an earlier claim of the same text is not told again."""
    if verdict not in ("proved", "supported"):
        return f"{verdict} ({reason})"
    why, _, points = reason.partition("holds in float64 ")
    why = (why if why.startswith(verdict) else f"{verdict}: {why}").rstrip("; :")
    first = not any(line.startswith(verdict) for line in told)
    again = why in told
    told.append(why)
    if again:
        return f"{verdict} likewise"
    return f"{why} (holds in float64 {points})" if first and points and verdict == "supported" else why


def derived(note: str = "") -> Callable[[SimpleNamespace], Outcome]:
    """The check of a claim that is nothing but a derivation."""

    def judge(t: SimpleNamespace) -> Outcome:
        sheet = put(t.derivation)
        return judged(sheet.finding, str(sheet), note=note)

    return judge


def confirmed(sheet: Sheet, holds: object, *steps: str, **more: str) -> Outcome:
    """A claim that the derivation must carry and that is shown beside it exactly: proved if both say so."""
    finding: Finding = "proved" if sheet.holds and holds else together(sheet.finding, exact(holds))
    return judged(finding, str(sheet), *steps, **more)  # type: ignore[arg-type]


def contradicted(t: SimpleNamespace, corrected: str, because: str) -> Outcome:
    """A claim that is a derivation, with a corrected derivation beside it, which must hold."""
    said, right = put(t.derivation), put(t.corrected)
    return judged(
        said.finding, str(said), corrected=corrected, holds=right.holds, because=f"{because} Correction: {right}"
    )

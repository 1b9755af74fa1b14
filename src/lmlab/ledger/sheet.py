"""Derivations put to the checker: what it said, in a form a claim's evidence can quote."""

from __future__ import annotations

from dataclasses import dataclass

from lmlab.ledger.claim import Outcome, Verdict


@dataclass(frozen=True)
class Sheet:
    """The checker's answer to a text in the derivation language: the weakest verdict of its claims, and the reasons."""

    verdict: Verdict  # proved, supported or refuted (an invalid line counts as refuted)
    summary: str

    @property
    def holds(self) -> bool:
        """Whether every claim of the text holds."""
        return self.verdict in ("proved", "supported")

    def __str__(self) -> str:
        return self.summary


def put(text: str) -> Sheet:
    """Put a text in the derivation language to the checker."""
    from lmlab.checker import check

    report = check(text)
    verdicts = {claim.verdict for claim in report.claims}
    if not verdicts:
        raise AssertionError(f"the derivation holds no claim: {text!r}")
    verdict: Verdict = "proved"
    if verdicts & {"refuted", "invalid"}:
        verdict = "refuted"
    elif "supported" in verdicts:
        verdict = "supported"
    lines: list[str] = []
    told: list[str] = []
    for claim in report.claims:
        reason = f"{claim.reason}; {claim.counterexample}" if claim.counterexample else claim.reason
        lines.append(f"`{claim.claim.removeprefix('claim ')}` is {_once(claim.verdict, reason, told)}")
    return Sheet(verdict, "; ".join(lines))


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
    return f"{why} (holds in float64 {points})" if first and points else why


def read(text: str) -> Outcome:
    """The outcome of a claim that is nothing but a derivation."""
    sheet = put(text)
    return Outcome(verdict=sheet.verdict, evidence=f"{sheet}.")

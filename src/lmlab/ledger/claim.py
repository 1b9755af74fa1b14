"""A claim of the ledger: what a document says, how it is checked, and the verdict that running the check reaches.

The formulas and constants under test are data (`Claim.tested`), never woven into the check: replacing one of them by a
wrong one must change the verdict, and the tests of the ledger do exactly that (`Claim.altered`).
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, Literal

Verdict = Literal["proved", "supported", "refuted", "conditional", "ill-posed", "answered", "failed"]

MEANINGS: dict[Verdict, str] = {
    "proved": "true: shown symbolically, by exact arithmetic, by enumeration or by exhibiting the object claimed",
    "supported": "true as far as measured: it held at every point tried; number, tolerance and confidence are stated",
    "refuted": "false: a counterexample or a computed value contradicts it",
    "conditional": "true under a condition the document does not state: shown to hold with it and to fail without it",
    "ill-posed": "not a statement with a truth value as written: the reason is shown and a repaired statement is "
    "checked",
    "answered": "left open by the document: an answer is given and checked",
    "failed": "the check itself broke: a fault of this ledger, not of the document",
}


class BrokenCheck(AssertionError):
    """Our own mistake: an answer, a correction or a repair offered by the ledger does not hold."""


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What running a check found."""

    verdict: Verdict
    evidence: str  # text a reader can follow: numbers, a counterexample, an interval
    corrected: str | None = None  # the statement that does hold, itself checked


@dataclass(frozen=True, kw_only=True)
class Claim:
    """One statement of a document, executable."""

    id: str
    source: str
    where: str  # section and lines in the document
    statement: str  # in words
    latex: str
    method: str  # how it is checked, in one or two sentences
    judge: Callable[[SimpleNamespace], Outcome]
    tested: Mapping[str, Any] = field(default_factory=dict)  # the formulas and constants under test

    def check(self) -> Outcome:
        """Run the check. A fault of the ledger itself comes back as the verdict "failed", never as an exception."""
        try:
            outcome = self.judge(SimpleNamespace(**self.tested))
            return dataclasses.replace(outcome, evidence=readable(outcome.evidence))
        except Exception as fault:
            return Outcome(verdict="failed", evidence=f"{type(fault).__name__}: {fault}")

    def altered(self, **changes: Any) -> Claim:
        """The same claim with some of the formulas under test replaced: how an error is planted."""
        unknown = sorted(set(changes) - set(self.tested))
        if unknown:
            raise ValueError(f"{self.id} tests {sorted(self.tested)}; there is no {unknown[0]!r} to alter")
        return dataclasses.replace(self, tested={**self.tested, **changes})


@dataclass(frozen=True, kw_only=True)
class Book:
    """A source document and the claims found in it, in order."""

    source: str
    title: str
    about: str
    claims: list[Claim] = field(default_factory=list)

    def claim(
        self, name: str, *, where: str, says: str, latex: str, how: str, **tested: Any
    ) -> Callable[[Callable[[SimpleNamespace], Outcome]], Claim]:
        """Decorator: make a claim of the function that judges it. Further keywords are the formulas under test."""

        def register(judge: Callable[[SimpleNamespace], Outcome]) -> Claim:
            claim = Claim(
                id=f"{self.source}.{name}",
                source=self.source,
                where=where,
                statement=says,
                latex=latex,
                method=how,
                judge=judge,
                tested=tested,
            )
            self.claims.append(claim)
            return claim

        return register


RAISED = str.maketrans("0123456789-", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻")


def readable(text: str) -> str:
    """Numbers and formulas as one writes them, 5·10⁻⁹ and 8·M·k², where the text is not `code`."""
    parts = text.split("`")
    return "`".join(part if i % 2 else _as_written(part) for i, part in enumerate(parts))


def _as_written(text: str) -> str:
    def power_of_ten(match: re.Match[str]) -> str:
        digits, exponent = match[1], int(match[2])
        if float(digits) == 0 or exponent == 0:
            return digits if float(digits) else "0"
        raised = f"10{str(exponent).translate(RAISED)}"
        return raised if digits == "1" else f"{digits}·{raised}"

    text = re.sub(r"(?<![\w.])(\d+(?:\.\d+)?)e([+-]\d+)\b", power_of_ten, text)
    text = re.sub(r"\bsqrt\((\w+)\)", r"√\1", text)
    text = re.sub(r"\*\*(\d+)", lambda match: match[1].translate(RAISED), text)
    return re.sub(r"(?<=[\w)²³⁴])\*(?=[\w(√])", "·", text)


def proved(true: bool, evidence: str, corrected: str | None = None) -> Outcome:
    """Proved if true, else refuted. For checks that are exact."""
    return Outcome(verdict="proved" if true else "refuted", evidence=evidence, corrected=corrected)


def supported(true: bool, evidence: str, corrected: str | None = None) -> Outcome:
    """Supported if true, else refuted. For checks that measure."""
    return Outcome(verdict="supported" if true else "refuted", evidence=evidence, corrected=corrected)


def refuted(holds: bool, evidence: str, corrected: str, corrected_holds: bool) -> Outcome:
    """Refuted unless the statement holds after all; the correction must hold, or the ledger is at fault."""
    if holds:
        return Outcome(verdict="proved", evidence=evidence)
    if not corrected_holds:
        raise BrokenCheck(f"the correction does not hold: {corrected}; {evidence}")
    return Outcome(verdict="refuted", evidence=evidence, corrected=corrected)


def conditional(with_condition: bool, without_condition: bool, evidence: str, corrected: str) -> Outcome:
    """Conditional if it holds with the condition and fails without it; otherwise proved (holds both ways) or refuted."""
    if with_condition and not without_condition:
        return Outcome(verdict="conditional", evidence=evidence, corrected=corrected)
    return Outcome(verdict="proved" if with_condition else "refuted", evidence=evidence)


def ill_posed(flawed: bool, evidence: str, repaired: str, repaired_holds: bool) -> Outcome:
    """Ill-posed if the flaw is there; the repaired statement must hold, or the ledger is at fault."""
    if not repaired_holds:
        raise BrokenCheck(f"the repaired statement does not hold: {repaired}; {evidence}")
    if not flawed:
        return Outcome(verdict="proved", evidence=evidence)
    return Outcome(verdict="ill-posed", evidence=evidence, corrected=repaired)


def answered(holds: bool, evidence: str, answer: str) -> Outcome:
    """Answered if our answer holds, or the ledger is at fault."""
    if not holds:
        raise BrokenCheck(f"the answer does not hold: {answer}; {evidence}")
    return Outcome(verdict="answered", evidence=evidence, corrected=answer)

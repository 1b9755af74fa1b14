"""A claim of the ledger: what a document says, how it is checked, and the verdict that running the check reaches.

The formulas and constants under test are data (`Claim.tested`), never woven into the check: replacing one of them by a
wrong one must change the verdict, and the tests of the ledger do exactly that (`Claim.altered`). What a check shows of a
statement is a `Finding`; the builders below make an outcome of it. Where a check shows nothing, neither that the statement
holds nor that it fails, the ledger is at fault and says so: absence of a counterexample is no proof.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from string import Template
from types import SimpleNamespace
from typing import Any, Literal

from lmlab.config import Mistake
from lmlab.records import NOT_IN_JSON, in_json

Verdict = Literal["proved", "supported", "refuted", "conditional", "ill-posed", "answered", "failed"]
Finding = Literal["proved", "supported", "refuted", "undecided"]  # what a check shows of a statement

MEANINGS: dict[Verdict, str] = {
    "proved": "true: shown symbolically, by exact arithmetic, by enumeration or by exhibiting the object claimed",
    "supported": "true as far as measured: it held at every point tried; number, tolerance and confidence are stated",
    "refuted": "false: a counterexample or a computed value contradicts it",
    "conditional": "true under a condition the document does not state: shown to hold with it and to fail without it",
    "ill-posed": "cannot be judged as written: it has no truth value, or one that hangs on data the document does not "
    "give; the reason is shown and a repaired statement is checked",
    "answered": "left open by the document: an answer is given and checked",
    "failed": "the check itself broke: a fault of this ledger, not of the document",
}


class BrokenCheck(AssertionError):
    """Our own mistake: the check shows nothing, or an answer, a correction or a repair offered here does not hold."""


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What running a check found."""

    verdict: Verdict
    steps: tuple[str, ...]  # evidence a reader can follow: numbers, a counterexample, an interval, one step each
    corrected: str | None = None  # the statement that does hold, itself checked

    @property
    @in_json
    def evidence(self) -> str:
        """The steps as one paragraph."""
        return " ".join(self.steps)


Judge = Callable[[SimpleNamespace], Outcome]


@dataclass(frozen=True, kw_only=True)
class Claim:
    """One statement of a document, executable."""

    id: str
    source: str
    where: str  # section and lines in the document
    quote: str  # the document's own words
    # the statement in words; $name stands for the constant of that name under test
    says: str = field(metadata=NOT_IN_JSON)
    latex: str
    how: str = field(metadata=NOT_IN_JSON)  # how it is checked, in one or two sentences; $name as above
    judge: Judge = field(metadata=NOT_IN_JSON)
    # the formulas and constants under test
    tested: Mapping[str, Any] = field(default_factory=dict, metadata=NOT_IN_JSON)

    @property
    @in_json
    def statement(self) -> str:
        """The statement with the constants under test."""
        return self._filled(self.says)

    @property
    @in_json
    def method(self) -> str:
        """How it is checked, with the constants under test."""
        return self._filled(self.how)

    def _filled(self, text: str) -> str:
        """The text with every $name replaced by the constant of that name under test, as one writes it."""
        return Template(text).substitute({name: readable(shown(value)) for name, value in self.tested.items()})

    def check(self) -> Outcome:
        """Run the check. A fault of the ledger itself comes back as the verdict "failed", never as an exception."""
        try:
            outcome = self.judge(SimpleNamespace(**self.tested))
            steps = tuple(readable(step) for step in outcome.steps if step)
            return dataclasses.replace(
                outcome, steps=steps, corrected=outcome.corrected and readable(outcome.corrected)
            )
        except Exception as fault:
            return Outcome(verdict="failed", steps=(f"{type(fault).__name__}: {fault}",))

    def altered(self, **changes: Any) -> Claim:
        """The same claim with some of the formulas under test replaced: how an error is planted."""
        unknown = sorted(set(changes) - set(self.tested))
        if unknown:
            raise Mistake(
                f"{self.id} tests {sorted(self.tested)}; there is no {unknown[0]!r} to alter", code="nothing-to-alter"
            )
        return dataclasses.replace(self, tested={**self.tested, **changes})


def shown(value: object) -> str:
    """A constant under test as it stands in a statement."""
    if isinstance(value, Mapping):
        return "; ".join(f"{shown(key)}: {shown(item)}" for key, item in value.items())
    if isinstance(value, tuple):
        return ", ".join(map(shown, value))
    return f"{value:,}" if isinstance(value, int) else str(value)


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
    text = re.sub(r"(?<=\w)\*\*(?=[\w(])", "^", text)
    return re.sub(r"(?<=[\w)²³⁴])\*(?=[\w(√])", "·", text)


def exact(holds: object) -> Finding:
    """The finding of a check that is exact, so that it settles the statement either way."""
    return "proved" if holds else "refuted"


def measured(holds: object, fails: object = None) -> Finding:
    """The finding of a check that measures; `fails` says when it shows the contrary (otherwise: whenever it does not hold)."""
    if holds:
        return "supported"
    return "refuted" if fails is None or fails else "undecided"


def together(*findings: Finding) -> Finding:
    """What several findings show of a statement that needs all of them: the weakest."""
    for weakest in ("refuted", "undecided", "supported"):
        if weakest in findings:
            return weakest
    return "proved"


def judged(
    finding: Finding, *steps: str, corrected: str = "", holds: bool = True, because: str = "", note: str = ""
) -> Outcome:
    """The statement as it was found.

    Where it is false: why (`because`), and what is true instead (`corrected`), which must hold (`holds`). `note`: what is
    worth adding either way.
    """
    _shown(finding)
    if finding != "refuted":
        return Outcome(verdict=finding, steps=(*steps, note))  # type: ignore[arg-type]
    if corrected and not holds:
        raise BrokenCheck(f"the correction does not hold: {corrected}; {' '.join(steps)}")
    return Outcome(verdict="refuted", steps=(*steps, because, note), corrected=corrected or None)


def conditional(
    inside: Finding, outside: Finding, *steps: str, precisely: str, because: str = "", note: str = ""
) -> Outcome:
    """Conditional if the statement holds inside the condition and fails outside it.

    Refuted if it fails inside. If it was proved to hold outside as well, it needs no condition; but where no case outside
    was found in which it fails, the check has not done its work: nothing shows that the condition is needed.
    """
    _shown(inside)
    if inside == "refuted":
        return judged("refuted", *steps, note)
    if outside == "proved":
        return judged(inside, *steps, note)
    if outside != "refuted":
        raise BrokenCheck(f"no case outside the condition was found in which the statement fails; {' '.join(steps)}")
    return Outcome(verdict="conditional", steps=(*steps, because, note), corrected=precisely)


def ill_posed(
    flawed: bool,
    *steps: str,
    repaired: str,
    holds: bool,
    otherwise: Finding = "undecided",
    because: str = "",
    note: str = "",
) -> Outcome:
    """Ill-posed if the flaw is there; the repair must hold. `otherwise`: what was found of a statement without the flaw."""
    if not holds:
        raise BrokenCheck(f"the repaired statement does not hold: {repaired}; {' '.join(steps)}")
    if not flawed:
        return judged(otherwise, *steps, note)
    return Outcome(verdict="ill-posed", steps=(*steps, because, note), corrected=repaired)


def answered(holds: bool, *steps: str, answer: str) -> Outcome:
    """Answered if our answer holds, or the ledger is at fault."""
    if not holds:
        raise BrokenCheck(f"the answer does not hold: {answer}; {' '.join(steps)}")
    return Outcome(verdict="answered", steps=steps, corrected=answer)


def _shown(finding: Finding) -> None:
    if finding == "undecided":
        raise BrokenCheck("the check shows neither that the statement holds nor that it fails")

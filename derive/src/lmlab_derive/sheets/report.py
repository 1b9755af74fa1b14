"""What the checker answers: a verdict for every claim, with its reason and evidence. Plain data."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from lmlab_derive.shared.html import escape
from lmlab_derive.shared.mathml import to_mathml

PROVED, SUPPORTED, REFUTED, INVALID = "proved", "supported", "refuted", "invalid"
UNDECIDED = "undecided"  # numbers cannot tell the sides apart, nor show that they agree
HOLDS = (PROVED, SUPPORTED)


@dataclass(frozen=True, kw_only=True)
class Counterexample:
    """A point where a claim fails: sizes, the values of the givens, and both sides there."""

    sizes: dict[str, int]
    values: dict[str, Any]  # name -> number or nested lists of numbers
    left: Any
    right: Any
    where: tuple[int, ...] = ()  # the entry that differs most
    letters: dict[str, int] = field(default_factory=dict)  # the values that indices with names have there

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it."""
        return {
            "sizes": self.sizes,
            "values": self.values,
            "left": self.left,
            "right": self.right,
            "entry": list(self.where),
        } | ({"indices": self.letters} if self.letters else {})

    @property
    def has_values(self) -> bool:
        """Whether both sides have one, where they differ most."""
        return None not in [_entry(side, self.where) for side in (self.left, self.right)]

    def __str__(self) -> str:
        parts = [f"{name} = {value}" for name, value in self.sizes.items()]
        parts += [f"{name} = {compact(value)}" for name, value in self.values.items()]
        named = ", ".join(f"{name} = {value}" for name, value in self.letters.items())
        at = f" at {named}" if named else f" at entry {list(self.where)}" if self.where else ""
        prefix = f"{', '.join(parts)}: " if parts else ""
        left, right = (_entry(side, self.where) for side in (self.left, self.right))
        alike = left != right and compact(left) == compact(right)
        shown = [(repr if alike else compact)(side) if side is not None else "no value" for side in (left, right)]
        return f"{prefix}left {shown[0]}, right {shown[1]}{at}"


def _entry(side: Any, where: tuple[int, ...]) -> Any:
    for i in where:
        side = side[i]
    return side


LONG = 24  # numbers of an array that are shown


def compact(value: Any) -> str:
    """A number or nested list, short."""
    if isinstance(value, list):
        flat, shape = _flat(value)
        if len(flat) > LONG:
            size = " x ".join(map(str, shape))
            if len(set(flat)) == 1:
                return f"({size} numbers, all {compact(flat[0])})"
            return f"({size} numbers: {', '.join(map(compact, flat[:4]))}, ...)"
        return "[" + ", ".join(map(compact, value)) + "]"
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _flat(value: Any) -> tuple[list[Any], list[int]]:
    """The numbers of nested lists, and the lengths of these."""
    shape: list[int] = []
    rows = [value]
    while rows and isinstance(rows[0], list):
        shape.append(len(rows[0]))
        rows = [item for row in rows for item in row]
    return rows, shape


@dataclass(frozen=True, kw_only=True)
class ClaimReport:
    """The answer to one claim or derivation."""

    line: int
    claim: str
    verdict: str
    reason: str
    counterexample: Counterexample | None = None
    hint: str | None = None
    first_wrong_step: int | None = None  # of a derivation, counted from 1: the first `=` line is step 1
    wrong_line: int | None = None  # the line of that step
    latex: str = ""  # the claim as mathematics, where it was understood
    read: str = ""  # how the claim was understood, where it was written in other signs

    @property
    def holds(self) -> bool:
        """Whether the claim is proved or supported."""
        return self.verdict in HOLDS

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it."""
        return {
            "line": self.line,
            "claim": self.claim,
            "verdict": self.verdict,
            "reason": self.reason,
            "counterexample": self.counterexample.to_dict() if self.counterexample else None,
            "hint": self.hint,
            "first_wrong_step": self.first_wrong_step,
        } | ({"read_as": self.read} if self.read else {})


@dataclass(frozen=True, kw_only=True)
class Report:
    """The answers to all claims of a sheet, and to every line that is not understood."""

    claims: list[ClaimReport] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        """Whether there is at least one claim and all of them hold."""
        return bool(self.claims) and all(claim.holds for claim in self.claims)

    def to_dict(self) -> dict[str, Any]:
        """The report as plain data."""
        return {"claims": [claim.to_dict() for claim in self.claims], "ok": self.ok}

    def _repr_html_(self) -> str:
        """The answers in a notebook, each with its formula as mathematics."""
        rows = []
        for claim in self.claims:
            shown = to_mathml(claim.latex) if claim.latex else f"<code>{escape(claim.claim)}</code>"
            notes = [claim.reason, str(claim.counterexample or ""), f"hint: {claim.hint}" if claim.hint else ""]
            more = "<br>".join(escape(note) for note in notes if note)
            rows.append(f"<tr><td><b>{claim.verdict}</b></td><td>{shown}<br><small>{more}</small></td></tr>")
        return f"<table>{''.join(rows)}</table>"

    def to_json(self) -> str:
        """The report as one JSON document."""
        return json.dumps(self.to_dict(), ensure_ascii=False, indent=2)

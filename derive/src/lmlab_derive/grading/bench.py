"""Claims checked for grading: the same answer in the same words gets the same verdict, whoever wrote it, and once."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from dataclasses import replace

from lmlab_derive.limits import Refusal
from lmlab_derive.read.sheet import ScopedClaim, said_again
from lmlab_derive.shapes.scope import Scope
from lmlab_derive.shapes.setting import build
from lmlab_derive.sheets.check import checked
from lmlab_derive.sheets.report import INVALID, REFUTED, ClaimReport
from lmlab_derive.sizes import broadcast
from lmlab_derive.text import to_text
from lmlab_derive.tree import Claim, Given, Node, Step

_WHICH_STEP = re.compile(r"^step \d+ \(line \d+\): ")


class Bench:
    """Checks claims and remembers what came out."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self._known: dict[object, ClaimReport] = {}

    def check(self, claim: Claim, scope: Scope, *, hints: bool = True) -> ClaimReport:
        """The report on a claim. Points and lines do not depend on where in a sheet it stands."""
        steps = tuple(replace(step, line=number) for number, step in enumerate(claim.steps))
        own = tuple(
            (d.name, d.shape, d.kinds) if isinstance(d, Given) else (d.name, d.value)
            for d in scope.definitions.values()
        )
        what = (
            tuple((step.relation, step.value) for step in steps),
            claim.derive,
            own,
            scope.conditions,
            claim.skipped,
            hints,
        )
        if what not in self._known:
            plain = replace(claim, steps=steps, line=0, text=said_again(steps))
            self._known[what] = checked(ScopedClaim(plain, scope), self.seed, hints=hints)
        report = self._known[what]
        wrong = report.wrong_line
        return replace(
            report,
            line=claim.line,
            claim=claim.text,
            reason=_WHICH_STEP.sub("", report.reason),
            wrong_line=None if wrong is None else claim.steps[wrong].line,
        )

    def compare(self, left: Node, sign: str, right: Node, scope: Scope) -> ClaimReport:
        """The report on a claim of our own."""
        text = f"{to_text(left)} {sign} {to_text(right)}"
        steps = (Step(relation="", value=left, line=0), Step(relation=sign, value=right, line=0))
        return self.check(Claim(steps=steps, where_text="", line=0, text=text, derive=False), scope, hints=False)


def is_wrong(report: ClaimReport, steps: Sequence[Step], scope: Scope) -> bool:
    """Whether a report shows that a claim is wrong: refuted, or of shapes that do not fit. Else someone has to look."""
    if report.verdict == REFUTED:
        return True
    if report.verdict != INVALID:
        return False
    setting = build(scope)
    try:
        for before, step in itertools.pairwise(steps):
            broadcast(setting.shape(before.value), setting.shape(step.value))
    except Refusal:
        return True
    return False

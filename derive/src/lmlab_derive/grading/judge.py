"""One answer to one part of a question: does it say what was asked, does it hold, and is it worked out?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from lmlab_derive.grading.bench import Bench, is_wrong
from lmlab_derive.grading.forms import GATHERING, Forms, functions_in
from lmlab_derive.grading.key import FLIPPED, Part, composed
from lmlab_derive.grading.roles import of_whole_arrays
from lmlab_derive.read.sheet import ScopedClaim
from lmlab_derive.shapes.setting import build
from lmlab_derive.sheets.report import ClaimReport
from lmlab_derive.text import to_text
from lmlab_derive.tree import Claim, Node, Step

RIGHT, PARTLY, WRONG, MISSING, LOOK = "right", "partly right", "wrong", "missing", "please look"

OTHER_WORDS = {"std": {"var"}, "var": {"std"}, "diag": {"trace"}}  # std(x)**2 says no more than var(x)


@dataclass(frozen=True)
class Judged:
    """What became of an answer. `credit`: the part of the points that is certain."""

    mark: str
    reason: str
    credit: Fraction = Fraction(0)
    claim: Claim | None = None
    report: ClaimReport | None = None


@dataclass(frozen=True)
class Stated:
    """What a claim says of the target of a part: `target sign value`, by these steps of it."""

    sign: str | None
    value: Node
    steps: tuple[Step, ...]
    forwards: bool  # the steps lead from the target to the value

    def claim(self, whole: Claim) -> Claim:
        """The piece of the claim that says it; all of an equation, for whatever stands in it has to hold."""
        if len(self.steps) == len(whole.steps) or all(step.relation == "==" for step in whole.steps[1:]):
            return whole
        first = replace(self.steps[0], relation="")
        return replace(whole, steps=(first, *self.steps[1:]), derive=False)


def stated(part: Part, claim: Claim, forms: Forms) -> Stated | None:
    """What a claim says of a part's target, or None if it does not speak of it; what is worked out comes first.

    A claim about every entry of the target speaks of the target.
    """
    target = forms.of(part.target)
    said: list[Stated] = []
    for at, step in enumerate(claim.steps):
        steps = claim.steps if forms.of(step.value) == target else of_whole_arrays(claim.steps, at, forms.scope)
        if steps is not None and forms.of(steps[at].value) == target:
            said += [item for item in _from(steps, at) if item is not None]
    fitting = [item for item in said if answers(part, item)]
    finished = [item for item in fitting if not unfinished(part, item, forms)]
    return next(iter([*finished, *fitting, *said]), None)


def answers(part: Part, said: Stated) -> bool:
    """Whether the relation is the one that is asked for; an equation also answers a question about a bound."""
    return said.sign is not None and (said.sign == "==" or said.sign[0] == part.sign[0])


def _from(steps: tuple[Step, ...], at: int) -> list[Stated | None]:
    """What is said of the step at a place: by the steps after it, and by those before it."""
    signs = [step.relation for step in steps]
    after = signs[at + 1 :]
    before = [FLIPPED[sign] for sign in signs[1 : at + 1]]
    return [
        Stated(composed(after), steps[-1].value, steps[at:], True) if after else None,
        Stated(composed(before), steps[0].value, steps[: at + 1], False) if before else None,
    ]


def judge(part: Part, entry: ScopedClaim, said: Stated, forms: Forms, bench: Bench) -> Judged:
    """Judge what a claim says of a part."""
    claim = said.claim(entry.claim)
    problem = _narrower(entry, part, bench) or _other_relation(part, said)
    if problem:
        return Judged(WRONG, problem, claim=claim)
    left = unfinished(part, said, forms)
    if left and not part.between:
        return Judged(WRONG, left, claim=claim)
    report = bench.check(claim, entry.scope)
    undecided = not report.holds and not is_wrong(report, claim.steps, entry.scope)
    holds = report.holds
    if undecided and part.sign == "==" and len(claim.steps) == 2:  # the key's own value may be easier to compare
        holds = bench.compare(part.value, "==", said.value, entry.scope).holds
    if holds and not left:
        return _finished(part, entry, said, forms, bench, claim, report)
    if undecided and not holds:
        return Judged(LOOK, f"the checker cannot decide it: {report.reason}", claim=claim, report=report)
    credit = _credit(part, said, forms, report)
    return Judged(PARTLY if credit else WRONG, left if holds else report.reason, credit, claim, report)


def _finished(
    part: Part, entry: ScopedClaim, said: Stated, forms: Forms, bench: Bench, claim: Claim, report: ClaimReport
) -> Judged:
    """An answer that holds: is it as sharp as the key's, and is it more than the question in other words?"""
    doubt = _blunt(part, entry, said, forms, bench)
    if doubt is not None:
        return replace(doubt, claim=claim)
    if (
        part.sign != "=="
        and _same(bench, part.target, said.value, entry)
        and not _same(bench, part.target, part.value, entry)
    ):
        return Judged(
            LOOK, f"it holds, but {to_text(said.value)} is equal to what is asked about", claim=claim, report=report
        )
    left = forms.averages_and_slopes(forms.of(said.value))
    fresh = [node for number, node in left.items() if number not in forms.inside(forms.of(part.value))]
    if fresh:
        return Judged(LOOK, f"it holds, but {to_text(fresh[0])} is not in the key's answer", claim=claim, report=report)
    words = _roundabout(part, said, forms)
    if words:
        return Judged(LOOK, f"it holds, but {words}", claim=claim, report=report)
    return Judged(RIGHT, report.reason, Fraction(1), claim, report)


def _same(bench: Bench, left: Node, right: Node, entry: ScopedClaim) -> bool:
    return bench.compare(left, "==", right, entry.scope).holds


def _roundabout(part: Part, said: Stated, forms: Forms) -> str:
    """Why an answer that holds may be the question in other words: it uses what the key's answer does without."""
    own, key = forms.written(said.value), forms.written(part.value)
    if kept := (forms.written(part.reworded or part.target) - key) & own - {"@"}:
        return f"still has the {min(kept)}(...) of the question, which the key's answer has not"
    asked = forms.written(part.reworded or part.target) - key
    if same := {word for word in own - key if asked & OTHER_WORDS.get(word, set())}:
        return f"has {min(same)}, which is the question in other words, and the key's answer does without"
    opened = functions_in(build(part.scope).opened(part.value))  # a student may write the lets of the key out
    if (gathering := own & GATHERING - opened) and not key & GATHERING:
        return f"has {min(gathering)}, and nothing is added up or compared in the key's answer"
    if more := forms.givens(said.value) - forms.givens(part.value):
        return f"uses {min(more)}, which the key's answer does not depend on"
    return ""


def _blunt(part: Part, entry: ScopedClaim, said: Stated, forms: Forms, bench: Bench) -> Judged | None:
    """Why a bound that holds is not what was asked for: the key's is sharper."""
    strict = len(part.sign) == 1 and said.sign != "==" and said.sign != part.sign  # the key has <, the answer <=
    if part.sign == "==" or (not strict and forms.of(said.value) == forms.of(part.value)):
        return None
    sign = part.sign if strict else f"{part.sign[0]}="
    if bench.compare(said.value, sign, part.value, entry.scope).holds:
        alike = bench.compare(part.value, f"{part.sign[0]}=", said.value, entry.scope).holds
        if alike and not strict and not _same(bench, said.value, part.value, entry):  # looser by less than doubles tell
            return Judged(LOOK, f"it holds, but {to_text(said.value)} is next to the key's bound and not equal to it")
        return None
    report = bench.compare(said.value, f"{part.sign[0]}=", part.value, entry.scope)
    weaker = bench.compare(part.value, f"{part.sign[0]}=", said.value, entry.scope)
    if weaker.holds and is_wrong(report, (), entry.scope):
        return Judged(WRONG, f"it holds, but a sharper bound than {to_text(said.value)} is asked for")
    if strict and report.holds:
        return Judged(LOOK, f"it holds, but the key has {part.sign} where the answer has {said.sign}")
    return Judged(LOOK, "it holds, but the checker cannot tell whether it is as sharp as the key's")


def _other_relation(part: Part, said: Stated) -> str:
    if answers(part, said):
        return ""
    wanted = {"=": "what it is equal to", "<": "a bound from above", ">": "a bound from below"}
    return f"the question asks of {part.label} {wanted[part.sign[0]]}"


def _narrower(entry: ScopedClaim, part: Part, bench: Bench) -> str:
    """Why an answer says less than was asked: it holds under a condition that the key does not have."""
    free = replace(entry.scope, conditions=part.scope.conditions)
    for condition in entry.scope.conditions:
        if condition in part.scope.conditions:
            continue
        if not bench.compare(condition.left, condition.relation, condition.right, free).holds:
            words = f"{to_text(condition.left)} {condition.relation} {to_text(condition.right)}"
            return f"the answer is for {words} alone; the question has no such condition"
    return ""


def unfinished(part: Part, said: Stated, forms: Forms) -> str:
    """Why an answer is the question said again: it holds what is asked, or a derivative where the key's answer has none."""
    target, key, value = forms.of(part.target), forms.of(part.value), forms.of(said.value)
    if value == target != key or (target in forms.inside(value) and target not in forms.inside(key)):
        return "the answer repeats the question"
    left = forms.averages_and_slopes(value)
    if left and not forms.averages_and_slopes(key):
        return f"the answer still holds {to_text(next(iter(left.values())))}, which is to be worked out"
    primed = forms.primed(said.value) - forms.primed(part.value)
    if primed and not forms.primed(part.value):
        return f"the answer still holds {min(primed)}, which is to be worked out"
    return ""


def _credit(part: Part, said: Stated, forms: Forms, report: ClaimReport) -> Fraction:
    """The share of the points for the right steps of a derivation that goes wrong, or is not finished.

    Each step of the key's derivation has an equal share. A right step earns those of the key's steps in which no less is
    left to be worked out; lines that are the question, or each other, written otherwise are no steps. The last share is
    for a derivation that is right to its end.
    """
    if not part.between or not said.forwards:
        return Fraction(0)
    steps: Sequence[Step] = said.steps[1:]
    if not report.holds:
        steps = steps[: (report.first_wrong_step or 1) - 1]
    target = forms.of(part.target)
    lines = {number for number in (forms.of(step.value) for step in steps) if target not in forms.inside(number)}
    left = [set(forms.averages_and_slopes(number)) for number in lines]
    reached = sum(any(mine <= set(forms.averages_and_slopes(forms.of(step))) for mine in left) for step in part.between)
    return Fraction(min(len(lines), reached), len(part.between) + 1)

"""One claim, checked: each step against the one before it."""

from __future__ import annotations

import zlib
from dataclasses import replace

import numpy as np

from lmlab_derive import limits
from lmlab_derive.hints.sentence import find_hint
from lmlab_derive.limits import Deadline, NoExactValue, OutOfTime, Refusal
from lmlab_derive.read.sheet import ScopedClaim, read_again
from lmlab_derive.shapes.setting import Setting, build
from lmlab_derive.sheets.counterexample import readable
from lmlab_derive.sheets.relation import Relation
from lmlab_derive.sheets.report import HOLDS, INVALID, PROVED, REFUTED, SUPPORTED, UNDECIDED, ClaimReport
from lmlab_derive.sheets.verdict import DIFFER, TOO_LONG, Finding, Judge
from lmlab_derive.sizes import broadcast, shape_text
from lmlab_derive.symbols.proofs import AWAY_FROM_ROOTS, AWAY_FROM_ZERO, divides_by_a_root
from lmlab_derive.text import to_text
from lmlab_derive.to_latex import claim_latex
from lmlab_derive.tree import Call, Claim, Derivative, Node, Step, names_in, walk

LONG_TEXT = 120  # signs of a claim, of which the wrong step is quoted by itself
REPAIR_S = 1.0  # of processor time for looking at a repair


def check_claim(scoped: ScopedClaim, seed: int = 0, hints: bool = True) -> ClaimReport:
    """Check one claim or derivation: each step against the one before it."""
    report = _with_skipped(_check(scoped, seed, hints), scoped.claim)
    return replace(report, latex=claim_latex(scoped.claim), read=scoped.claim.read)


def _with_skipped(report: ClaimReport, claim: Claim) -> ClaimReport:
    """The report on a derivation of which some lines are not understood: what is left may fail, but cannot hold."""
    if not claim.skipped:
        return report
    lines = "; ".join(f"line {step.line} is not understood: {step.reason}" for step in claim.skipped)
    if report.holds:
        return replace(report, verdict=INVALID, reason=f"{lines}; the other lines hold")
    return replace(report, reason=f"{report.reason}; {lines}")


def _check(scoped: ScopedClaim, seed: int, hints: bool) -> ClaimReport:
    claim = scoped.claim
    rng = np.random.default_rng([seed, zlib.crc32(claim.text.encode()), claim.line])
    setting = build(scoped.scope)
    share = min(max(1.0, (len(claim.steps) - 1) / limits.STEPS_PER_CLAIM), limits.MOST_CLAIMS)
    deadline = Deadline(limits.CLAIM_SECONDS * share)
    findings: list[Finding] = []
    for i in range(1, len(claim.steps)):
        within = deadline.part(len(claim.steps) - i)  # a step that is slow leaves the others their time
        finding = _step(setting, claim.steps[i - 1], claim.steps[i], rng, within)
        if finding.verdict not in HOLDS:
            finding.hint = _hint(scoped, setting, i, rng, deadline) if hints and finding.repairable else None
            return _failed(claim, i, finding)
        findings.append(finding)
    return _held(claim, findings)


def _step(setting: Setting, before: Step, step: Step, rng: np.random.Generator, deadline: Deadline) -> Finding:
    """One step against the one before it."""
    left, right = before.value, step.value
    try:
        broadcast(setting.shape(left), setting.shape(right))
    except Refusal as refusal:
        finding = Finding(INVALID, _misfit(setting, left, right, refusal), repairable=True)
    else:
        try:
            relation = Relation(setting, left, step.relation, right, rng, deadline)
            judge = Judge(relation)
            finding = judge.decide()
        except Refusal as refusal:
            return Finding(INVALID, str(refusal))
        except OutOfTime:
            return Finding(UNDECIDED, TOO_LONG)
        if finding.point is not None:
            finding.counterexample = readable(relation, finding.point)
            finding = _with_kind(finding) if finding.lacking else finding
        finding = _noted(_proved(judge, finding), setting, left, right)
    return finding


def _with_kind(finding: Finding) -> Finding:
    """What refutes a claim where a side has no value, and which kind may have been left out."""
    shown = finding.counterexample
    assert shown is not None
    if shown.has_values:  # a plainer point was found, where both sides have one
        return replace(finding, reason=DIFFER, repairable=True)
    at_zero = any((np.array(value, float) == 0).any() for value in shown.values.values())
    kind, condition = ("nonzero", "x != 0") if at_zero else ("positive", "x > 0")
    advice = f"name the kind that is meant (as in `given x: {kind}`) or a condition (`where {condition}`)"
    return replace(finding, reason=f"{finding.reason}; {advice}")


def _hint(scoped: ScopedClaim, setting: Setting, i: int, rng: np.random.Generator, deadline: Deadline) -> str | None:
    """How step `i` may be repaired. A repair is looked at like a claim, as it would be read again."""
    claim, left, right = scoped.claim, scoped.claim.steps[i - 1].value, scoped.claim.steps[i].value
    if claim.steps[i].relation != "==" or any(name in setting.broken for name in names_in(left) | names_in(right)):
        return None  # a let that does not fit is not repaired in the claim
    everything = setting.opened(*(step.value for step in claim.steps))
    derivatives = [node for node in everything if isinstance(node, Derivative)]
    derived = {n.function for d in derivatives for n in setting.opened(d.operand) if isinstance(n, Call)}

    def verify(target: Node, repaired: Node, written: bool) -> bool:
        try:
            if written:
                target, repaired = read_again(scoped.scope, target, repaired)
            again = Relation(setting, target, "==", repaired, rng, deadline.within(REPAIR_S))
            return Judge(again).decide().verdict in HOLDS
        except (Refusal, OutOfTime, KeyError):  # a letter outside of its sum
            return False

    chained = i > 1 or claim.derive
    try:
        return find_hint(setting, left, right, rng, deadline, verify, frozenset(derived), only_right=chained)
    except NoExactValue:  # the slope of a probability, which only long decimals know
        return None


def _noted(finding: Finding, setting: Setting, left: Node, right: Node) -> Finding:
    """The finding with what a reader may have overlooked: broadcasting, and derivatives that are zero by definition."""
    notes = []
    left_shape, right_shape = setting.shape(left), setting.shape(right)
    if left_shape != right_shape and left_shape and right_shape:
        notes.append(f"shapes {shape_text(left_shape)} and {shape_text(right_shape)} are compared after broadcasting")
    for node in [*walk(left), *walk(right)] if finding.verdict == REFUTED else []:
        if isinstance(node, Derivative):
            unused = [name for name in node.by if name not in setting.depends(node.operand)]
            notes += [f"{to_text(node.operand)} does not use {name}, so {to_text(node)} is 0" for name in unused]
    return replace(finding, reason="; ".join([finding.reason, *dict.fromkeys(notes)]))


def _proved(judge: Judge, finding: Finding) -> Finding:
    """A supported relation that can be proved is proved. The evidence in numbers comes first: no proof stands alone."""
    relation = judge.relation
    if finding.verdict != SUPPORTED:
        return finding
    unknown = [name[:-1] for name in relation.sizes.givens if name.endswith("~")]
    if unknown:  # what holds for a family of functions is no proof for all
        which = ", ".join(unknown)
        return replace(
            finding, reason=f"{finding.reason}; {which} was a mixture of a line, tanh and sin with random numbers"
        )
    words = judge.proof()
    found = finding if words is None else Finding(PROVED, f"{words}; {finding.reason}")
    return replace(found, reason=found.reason + _excuse(relation, words or ""))


def _excuse(relation: Relation, words: str) -> str:
    """Where an equation was not held to: at the zeros of roots, or of denominators at sizes of 1, on one side alone."""
    if relation.tally.divided:
        return f"; all this {AWAY_FROM_ZERO}"
    if not relation.tally.excused or AWAY_FROM_ROOTS in words:
        return ""
    divides = divides_by_a_root(relation.setting, relation.left, relation.right)
    return f"; all this {AWAY_FROM_ROOTS}" if divides else "; all this wherever no root in it is 0"


def _misfit(setting: Setting, left: Node, right: Node, refusal: Refusal) -> str:
    """Why shapes do not fit: inside a side, or between the sides."""
    try:
        shapes = setting.shape(left), setting.shape(right)
    except Refusal as inner:
        return str(inner)
    reason = f"the left side is {shape_text(shapes[0])}, the right side is {shape_text(shapes[1])}: {refusal}"
    turned = len(shapes[1]) > 1 and shapes[1][::-1] == shapes[0]
    return reason + "; did you mean the transpose?" * turned


def _failed(claim: Claim, index: int, finding: Finding) -> ClaimReport:
    step = claim.steps[index]
    reason = finding.reason
    number = index + sum(skipped.line < step.line for skipped in claim.skipped)
    if claim.derive or len(claim.steps) > 2:
        quoted = f"; the step is {step.relation} {step.text}" if len(claim.text) > LONG_TEXT and step.text else ""
        reason = f"step {number} (line {step.line}): {reason}{quoted}"
    return ClaimReport(
        line=claim.line,
        claim=claim.text,
        verdict=finding.verdict,
        reason=reason,
        counterexample=finding.counterexample,
        hint=finding.hint,
        first_wrong_step=number if claim.derive else None,
        wrong_line=step.line,
    )


def _held(claim: Claim, findings: list[Finding]) -> ClaimReport:
    weakest = min(findings, key=lambda finding: finding.verdict == PROVED)
    reason = weakest.reason
    if len(findings) > 1:
        reason = f"all {len(findings)} steps hold; the least certain: {reason}"
    return ClaimReport(line=claim.line, claim=claim.text, verdict=weakest.verdict, reason=reason)

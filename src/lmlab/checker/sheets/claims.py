"""One claim, checked: each step against the one before it."""

from __future__ import annotations

import zlib
from dataclasses import dataclass

import numpy as np
import torch

from lmlab.checker.hints.sentence import find_hint
from lmlab.checker.limits import (
    CLAIM_CPU_S,
    CLAIM_WALL_S,
    MOST_CLAIMS,
    STEPS_PER_CLAIM,
    Deadline,
    OutOfTime,
    Refusal,
)  # fmt: skip
from lmlab.checker.numbers.fractions import settle
from lmlab.checker.read.sheet import ScopedClaim
from lmlab.checker.shapes.setting import Setting, build
from lmlab.checker.sheets.counterexample import readable
from lmlab.checker.sheets.relation import Relation
from lmlab.checker.sheets.report import HOLDS, INVALID, PROVED, REFUTED, SUPPORTED, ClaimReport, Counterexample
from lmlab.checker.sheets.verdict import TOO_LONG, Finding, Judge
from lmlab.checker.sizes import broadcast, shape_text
from lmlab.checker.symbols.proofs import prove
from lmlab.checker.text import to_text
from lmlab.checker.tree import Claim, Derivative, Node, Step, names_in, walk


@dataclass
class Link:
    """The answer for one step against the one before it."""

    finding: Finding
    counterexample: Counterexample | None = None
    hint: str | None = None


def check_claim(scoped: ScopedClaim, seed: int = 0, hints: bool = True) -> ClaimReport:
    """Check one claim or derivation: each step against the one before it."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # the arrays are tiny: several threads would mostly wait for each other
    try:
        return _check(scoped, seed, hints)
    finally:
        torch.set_num_threads(threads)


def _check(scoped: ScopedClaim, seed: int, hints: bool) -> ClaimReport:
    claim = scoped.claim
    rng = np.random.default_rng([seed, zlib.crc32(claim.text.encode()), claim.line])
    share = min(max(1.0, (len(claim.steps) - 1) / STEPS_PER_CLAIM), MOST_CLAIMS)
    deadline = Deadline(CLAIM_WALL_S * share, CLAIM_CPU_S * share)
    setting = build(scoped.scope)
    links: list[Link] = []
    for i in range(1, len(claim.steps)):
        link = _link(setting, claim.steps[i - 1], claim.steps[i], rng, deadline, hints)
        links.append(link)
        if link.finding.verdict not in HOLDS:
            return _failed(claim, i, link)
    return _held(claim, links)


def _link(
    setting: Setting, before: Step, step: Step, rng: np.random.Generator, deadline: Deadline, hints: bool
) -> Link:
    left, right = before.value, step.value
    try:
        left_shape, right_shape = setting.shape(left), setting.shape(right)
        broadcast(left_shape, right_shape)
    except Refusal as refusal:
        return _misfit(setting, before, step, refusal, rng, deadline, hints)
    try:
        relation = Relation(setting, left, step.relation, right, rng, deadline)
        finding = Judge(relation).decide()
    except Refusal as refusal:
        return Link(Finding(INVALID, str(refusal)))
    except OutOfTime:
        return Link(Finding(INVALID, TOO_LONG))
    if finding.verdict != REFUTED:
        return Link(_noted(_proved(relation, finding), setting, left, right))
    finding = _noted(finding, setting, left, right)
    assert finding.point is not None
    counterexample = readable(relation, finding.point)
    hint = None
    if hints and step.relation == "==":
        hint = find_hint(setting, left, right, rng, deadline)
    return Link(finding, counterexample, hint)


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
    reason = "; ".join([finding.reason, *dict.fromkeys(notes)])
    return Finding(finding.verdict, reason, finding.point)


def _proved(relation: Relation, finding: Finding) -> Finding:
    """A supported relation that can be proved is proved. The evidence in numbers comes first: no proof stands alone."""
    if finding.verdict != SUPPORTED:
        return finding
    what = (relation.setting, relation.left, relation.sign, relation.right, relation.deadline)
    words = "proved: computed in exact fractions" if settle(*what) else prove(*what)
    return finding if words is None else Finding(PROVED, f"{words}; {finding.reason}")


def _misfit(
    setting: Setting,
    before: Step,
    step: Step,
    refusal: Refusal,
    rng: np.random.Generator,
    deadline: Deadline,
    hints: bool,
) -> Link:
    """Shapes that do not fit: inside a side, or between the sides."""
    broken = any(name in setting.broken for side in (before.value, step.value) for name in names_in(side))
    hint = None
    if hints and step.relation == "==" and not broken:  # a let that does not fit is not repaired in the claim
        hint = find_hint(setting, before.value, step.value, rng, deadline)
    try:
        left, right = setting.shape(before.value), setting.shape(step.value)
    except Refusal as inner:
        return Link(Finding(INVALID, str(inner)), hint=hint)
    reason = f"the left side is {shape_text(left)}, the right side is {shape_text(right)}: {refusal}"
    if len(right) > 1 and right[::-1] == left:
        reason += "; did you mean the transpose?"
    return Link(Finding(INVALID, reason), hint=hint)


def _failed(claim: Claim, index: int, link: Link) -> ClaimReport:
    step = claim.steps[index]
    reason = link.finding.reason
    if claim.derive or len(claim.steps) > 2:
        reason = f"step {index} (line {step.line}): {reason}"
    return ClaimReport(
        line=claim.line,
        claim=claim.text,
        verdict=link.finding.verdict,
        reason=reason,
        counterexample=link.counterexample,
        hint=link.hint,
        first_wrong_step=index if claim.derive else None,
        wrong_line=step.line,
    )


def _held(claim: Claim, links: list[Link]) -> ClaimReport:
    weakest = min(links, key=lambda link: link.finding.verdict == PROVED)
    reason = weakest.finding.reason
    if len(links) > 1:
        reason = f"all {len(links)} steps hold; the least certain: {reason}"
    return ClaimReport(line=claim.line, claim=claim.text, verdict=weakest.finding.verdict, reason=reason)

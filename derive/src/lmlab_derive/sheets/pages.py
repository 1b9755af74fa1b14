"""A graded sheet as one self-contained page: each formula, its verdict, the counterexample, the hint."""

from __future__ import annotations

from lmlab_derive.read.sheet import ScopedClaim, parse
from lmlab_derive.shared import html, mathml
from lmlab_derive.shared.html import Row, escape
from lmlab_derive.sheets.headings import headings
from lmlab_derive.sheets.report import HOLDS, ClaimReport, Counterexample, Report, compact
from lmlab_derive.to_latex import claim_latex, relation_latex, side_latex
from lmlab_derive.tree import Claim

MARKS = {"proved": "✓ proved", "supported": "✓ supported", "refuted": "✗ refuted", "invalid": "! invalid"}
MARKS["undecided"] = "? undecided"


def sheet_page(title: str, text: str, report: Report) -> str:
    """The page for one sheet."""
    claims = {
        entry.claim.line: entry.claim for entry in parse(headings(text)[1]).entries if isinstance(entry, ScopedClaim)
    }
    held = sum(claim.holds for claim in report.claims)
    boxes = [claim_box(claim, claims.get(claim.line), f"line {claim.line}") for claim in report.claims]
    body = [f"<h1>{escape(title)}</h1>", f'<p class="lead">{held} of {len(report.claims)} hold</p>', *boxes]
    body.append(html.folded("the sheet as it was read", f'<pre class="code">{escape(text)}</pre>'))
    return html.document(title, "\n".join(body))


def claim_box(report: ClaimReport, claim: Claim | None, where: str) -> str:
    """One claim with its verdict; `where` is HTML."""
    written = f'<pre class="code">{escape(report.claim)}</pre>'
    parts = [html.formula(formula(claim, report)) if claim is not None else written]
    if claim is not None and claim.where_text:
        parts.append(f"<pre>{escape(claim.where_text)}</pre>")
    parts.append(f'<p class="soft">{escape(report.reason)}</p>')
    if report.counterexample is not None:
        parts.append(counterexample_table(report.counterexample))
    if report.hint and report.verdict not in HOLDS:
        parts.append(f'<p class="hint">Hint: {escape(report.hint)}</p>')
    return judged_box(MARKS[report.verdict], report.verdict, where, "\n".join(parts))


def judged_box(mark: str, verdict: str, where: str, body: str) -> str:
    """A box with a verdict; `where` and `body` are HTML."""
    return html.card(html.badge(mark, verdict), body, beside=where, style=f"judged {verdict}", level=2)


def formula(claim: Claim, report: ClaimReport) -> str:
    """The steps of a claim as mathematics; of a derivation, the wrong one is marked."""
    if not claim.derive:
        return mathml.to_mathml(claim_latex(claim))
    steps = [(relation_latex(step.relation), side_latex(step.value, step.text)) for step in claim.steps]
    lines = [step.line for step in claim.steps]
    wrong = report.first_wrong_step
    if wrong is None and len(lines) == 2 and report.wrong_line == lines[1]:
        wrong = 1
    return mathml.derivation(steps, wrong)


def counterexample_table(example: Counterexample) -> str:
    """Sizes, values and both sides."""
    rows = [(name, str(value)) for name, value in example.sizes.items()]
    rows += [(name, compact(value)) for name, value in example.values.items()]
    rows += [("left side", compact(example.left)), ("right side", compact(example.right))]
    return html.table([], [Row([escape(name), f"<code>{escape(value)}</code>"]) for name, value in rows], words=(0, 1))

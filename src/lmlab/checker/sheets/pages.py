"""A graded sheet as one self-contained page: each formula, its verdict, the counterexample, the hint."""

from __future__ import annotations

import html

from lmlab.checker.mathml import relation_mathml, to_mathml
from lmlab.checker.read.sheet import ScopedClaim, parse
from lmlab.checker.sheets.report import HOLDS, ClaimReport, Counterexample, Report, compact
from lmlab.checker.tree import Claim

STYLE = """
:root { --good: #1a7f37; --bad: #b3261e; --odd: #9a6700; --ink: #1f2328; --soft: #57606a; --line: #d0d7de; }
body { font: 16px/1.5 system-ui, sans-serif; color: var(--ink); max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.5rem; margin-bottom: 0.2rem; }
.score { color: var(--soft); margin-bottom: 1.5rem; }
.claim { border: 1px solid var(--line); border-left-width: 5px; border-radius: 6px; padding: 0.7rem 1rem;
  margin: 0.8rem 0; }
.proved, .supported { border-left-color: var(--good); } .refuted { border-left-color: var(--bad); }
.invalid { border-left-color: var(--odd); } .missing { border-left-color: var(--soft); }
.verdict { font-weight: 600; } .proved .verdict, .supported .verdict { color: var(--good); }
.refuted .verdict { color: var(--bad); } .invalid .verdict { color: var(--odd); }
.where { color: var(--soft); float: right; } .reason { color: var(--soft); }
.hint { background: #ddf4ff; border-radius: 6px; padding: 0.4rem 0.7rem; margin-top: 0.5rem; }
pre, code { font: 0.9rem/1.45 ui-monospace, monospace; } pre { white-space: pre-wrap; margin: 0.4rem 0; }
math { font-size: 1.1rem; } .math { overflow: auto hidden; padding: 0.3rem 0; } .wrong { background: #ffebe9; }
table { border-collapse: collapse; margin: 0.5rem 0; }
td, th { border: 1px solid var(--line); padding: 0.15rem 0.6rem; text-align: left; }
details { margin-top: 1.5rem; } summary { cursor: pointer; color: var(--soft); }
@media (prefers-color-scheme: dark) {
  :root { --good: #3fb950; --bad: #f85149; --odd: #d29922; --ink: #e6edf3; --soft: #9198a1; --line: #3d444d; }
  body { background: #0d1117; } .hint { background: #12283f; } .wrong { background: #3a1d1d; }
}
"""
MARKS = {"proved": "✓ proved", "supported": "✓ supported", "refuted": "✗ refuted", "invalid": "! invalid"}


def page(title: str, body: str) -> str:
    """A whole document around a body."""
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width">'
        f"<title>{html.escape(title)}</title><style>{STYLE}</style></head>\n<body>\n{body}\n</body></html>\n"
    )


def sheet_page(title: str, text: str, report: Report) -> str:
    """The page for one sheet."""
    claims = _claims_by_line(text)
    held = sum(claim.holds for claim in report.claims)
    parts = [f"<h1>{html.escape(title)}</h1>", f'<p class="score">{held} of {len(report.claims)} hold</p>']
    parts += [claim_box(claim, claims.get(claim.line)) for claim in report.claims]
    parts.append(f"<details><summary>the sheet as it was read</summary><pre>{html.escape(text)}</pre></details>")
    return page(title, "\n".join(parts))


def _claims_by_line(text: str) -> dict[int, Claim]:
    return {entry.claim.line: entry.claim for entry in parse(text).entries if isinstance(entry, ScopedClaim)}


def claim_box(report: ClaimReport, claim: Claim | None, heading: str = "") -> str:
    """One claim with its verdict."""
    parts = [f'<div class="claim {report.verdict}">', f'<span class="where">{heading or f"line {report.line}"}</span>']
    parts.append(f'<span class="verdict">{MARKS[report.verdict]}</span>')
    parts.append(formula(claim, report) if claim is not None else f"<pre>{html.escape(report.claim)}</pre>")
    if claim is not None and claim.where_text:
        parts.append(f"<pre>{html.escape(claim.where_text)}</pre>")
    parts.append(f'<div class="reason">{html.escape(report.reason)}</div>')
    if report.counterexample is not None:
        parts.append(counterexample_table(report.counterexample))
    if report.hint and report.verdict not in HOLDS:
        parts.append(f'<div class="hint">Hint: {html.escape(report.hint)}</div>')
    return "\n".join([*parts, "</div>"])


def formula(claim: Claim, report: ClaimReport) -> str:
    """The steps of a claim as mathematics, the wrong one marked."""
    rows = []
    for i, step in enumerate(claim.steps):
        wrong = i > 0 and (report.first_wrong_step == i or (report.wrong_line == step.line and len(claim.steps) == 2))
        relation = relation_mathml(step.relation) if step.relation else ""
        mark = ' class="wrong"' if wrong and claim.derive else ""
        rows.append(f"<mtr{mark}><mtd>{relation}</mtd><mtd>{to_mathml(step.value)}</mtd></mtr>")
    if not claim.derive:
        line = "".join(
            (relation_mathml(step.relation) if step.relation else "") + to_mathml(step.value) for step in claim.steps
        )
        return f'<div class="math"><math display="block"><mrow>{line}</mrow></math></div>'
    table = f'<mtable columnalign="center left">{"".join(rows)}</mtable>'
    return f'<div class="math"><math display="block">{table}</math></div>'


def counterexample_table(example: Counterexample) -> str:
    """Sizes, values and both sides."""
    rows = [(name, str(value)) for name, value in example.sizes.items()]
    rows += [(name, compact(value)) for name, value in example.values.items()]
    rows += [("left side", compact(example.left)), ("right side", compact(example.right))]
    cells = "".join(
        f"<tr><th>{html.escape(name)}</th><td><code>{html.escape(value)}</code></td></tr>" for name, value in rows
    )
    return f"<table>{cells}</table>"

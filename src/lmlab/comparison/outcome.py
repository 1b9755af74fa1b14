"""What a comparison came to."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lmlab.comparison.compared_entry import ComparedEntry
from lmlab.comparison.findings import Findings
from lmlab.comparison.report import chart_of
from lmlab.measure import Spread
from lmlab.page.figures import standalone
from lmlab.page.notebook import panel
from lmlab.records import to_json
from lmlab.text.corpus import Corpus


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """The outcome. measured: which bytes. entries: the models, best first, then those that failed. report: the page.

    stopped: whether somebody stopped it, so that what is there is only a part.
    """

    corpus: Corpus
    measured: Spread
    entries: list[ComparedEntry]
    findings: Findings
    report: Path
    stopped: bool = False

    def __repr__(self) -> str:
        ranked = [e for e in self.entries if e.result is not None]
        shown = ", ".join(f"{e.name} {e.result.bits_per_byte:.4f}" for e in ranked[:3] if e.result is not None)
        more = f", … {len(self.entries)} in all" if len(self.entries) > 3 else ""
        return f"Comparison({self.corpus.name}: {shown}{more}; {self.report})"

    def _repr_html_(self) -> str:
        """The comparison in a notebook: its ranking as the page draws it, and where the page is."""
        measured = f"{self.findings.measured.bytes:,} of {self.findings.measured.of:,} test bytes"
        facts = {"measured": measured, "page": str(self.report)}
        return panel(f"Which model predicts {self.corpus.name} best?", facts, standalone(chart_of(self.findings)))

    def to_json(self) -> dict[str, Any]:
        """Everything that was found, as comparison.json holds it."""
        found: dict[str, Any] = to_json(self.findings)
        return found

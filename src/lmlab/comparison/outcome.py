"""The return value of `compare`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lmlab.comparison.compared_entry import ComparedEntry
from lmlab.comparison.differences import write_differences
from lmlab.comparison.findings import Findings
from lmlab.comparison.report import chart_of
from lmlab.config import Mistake
from lmlab.measure import Spread
from lmlab.page.figures import standalone
from lmlab.page.notebook import panel
from lmlab.records import to_json
from lmlab.text.corpus import Corpus

if TYPE_CHECKING:
    from lmlab.comparison.beside import BesideRun


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """The outcome of a comparison.

    Attributes:
        measured: the scored sample of the test part.
        entries: the models, best first, then those that failed.
        report: the path of the report.
        stopped: whether the user stopped the comparison, so that it is incomplete.
        beside: models trained elsewhere, measured on the same text.
    """

    corpus: Corpus
    measured: Spread
    entries: list[ComparedEntry]
    findings: Findings
    report: Path
    stopped: bool = False
    beside: tuple[BesideRun, ...] = ()

    @property
    def failed_checks(self) -> list[str]:
        """The names of the models whose scores failed a check of their certificates."""
        return [entry.name for entry in self.findings.entries if entry.failed_a_check]

    def __repr__(self) -> str:
        ranked = [e for e in self.entries if e.result is not None]
        shown = ", ".join(f"{e.name} {e.result.bits_per_byte:.4f}" for e in ranked[:3] if e.result is not None)
        more = f", … {len(self.entries)} in all" if len(self.entries) > 3 else ""
        return f"Comparison({self.corpus.name}: {shown}{more}; {self.report})"

    def _repr_html_(self) -> str:
        """Return the ranking chart and the path of the report as HTML, for a notebook."""
        measured = f"{self.findings.measured.bytes:,} of {self.findings.measured.of:,} test bytes"
        facts = {"measured": measured, "page": str(self.report)}
        return panel(f"Which model predicts {self.corpus.name} best?", facts, standalone(chart_of(self.findings)))

    def write_differences(self, path: str | Path) -> Path:
        """Write the paired differences of all ranked models as CSV, and return its path."""
        if self.findings.ranking is None:
            raise Mistake("no model has a rank, so there are no differences to write", code="no-differences")
        return write_differences(self.findings.ranking, path)

    def to_json(self) -> dict[str, Any]:
        """Return the content of comparison.json as a dict, and that of beside.json if there is one."""
        found: dict[str, Any] = to_json(self.findings)
        return found | {"beside": [one.to_json() for one in self.beside]} if self.beside else found

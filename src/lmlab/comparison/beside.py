"""Models trained elsewhere, measured on the text of a comparison: `compare TEXT --with RUN`.

They have no rank. They had other data and other time, and of a downloaded model nobody knows whether it saw the test part. So
each is only held against the best compared model, on the same bytes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from html import escape

from lmlab.comparison.entry_store import write_record
from lmlab.comparison.measure_run import measure_run
from lmlab.comparison.outcome import Comparison
from lmlab.comparison.report import write_report
from lmlab.comparison.score_found import Score
from lmlab.config import in_one_line
from lmlab.learn.run import Run
from lmlab.measure import paired_difference
from lmlab.page import numbers
from lmlab.records import JsonRecord
from lmlab_derive.shared import html
from lmlab_derive.shared.html import Row

FILE = "beside.json"


@dataclass(frozen=True, kw_only=True)
class BesideRun(JsonRecord):
    """A run that was measured beside the compared models.

    Attributes:
        run: its folder.
        model: its kind.
        result: its score; None if measuring failed.
        error: why it failed.
        best: the best compared model; empty if none has a score.
        difference: bits per byte of the run minus those of `best`; None: not finite, or there is no best.
        interval: of the difference, at 95%.
    """

    run: str
    model: str
    result: Score | None = None
    error: str = ""
    best: str = ""
    difference: float | None = None
    interval: tuple[float, float] | None = None

    @property
    def against_best(self) -> str:
        """The difference in words; empty if there is none."""
        if self.difference is None or self.interval is None:
            return ""
        low, high = self.interval
        verdict = "not told apart from" if low <= 0 <= high else "better than" if high < 0 else "worse than"
        return f"{self.difference:+.4f} [{low:+.4f}, {high:+.4f}], {verdict} {self.best}"

    @property
    def sentence(self) -> str:
        """The score and the difference in words."""
        if self.result is None:
            return f"{self.run} could not be measured: {self.error}"
        bits = numbers.bits(self.result.bits_per_byte)
        against = f"; {self.against_best}" if self.against_best else ""
        return f"{self.run} ({self.model}), not ranked: {bits} bits per byte{against}; {self.result.verdict}"


def measured_beside(comparison: Comparison, runs: Sequence[Run], *, seed: int, device: str) -> Comparison:
    """Measure runs on the text of a comparison, and add them to its folder and its report."""
    found = tuple(_measured(comparison, run, seed, device) for run in runs)
    folder = comparison.report.parent
    write_record(folder / FILE, {"beside": [one.to_json() for one in found]})
    write_report(comparison.findings, comparison.report, extra=_section(found))
    return replace(comparison, beside=found)


def _measured(comparison: Comparison, run: Run, seed: int, device: str) -> BesideRun:
    about = BesideRun(run=str(run.folder), model=run.record.model.name)
    try:
        result = measure_run(run, comparison.measured, name=comparison.corpus.name, seed=seed, device=device)
    except Exception as error:  # one that fails must not lose the comparison
        return replace(about, error=in_one_line(error))
    about = replace(about, result=Score(result.to_json()))
    best = next((entry for entry in comparison.entries if entry.seed_results), None)
    if best is None:
        return about
    apart = paired_difference(result.scored, best.scored)
    if apart.low is None or apart.high is None or not math.isfinite(apart.estimate):
        return replace(about, best=best.name)
    return replace(about, best=best.name, difference=apart.estimate, interval=(apart.low, apart.high))


def _section(found: Sequence[BesideRun]) -> str:
    """The section of the report."""
    rows = []
    for one in found:
        bits = "" if one.result is None else numbers.bits(one.result.bits_per_byte)
        verdict = one.error if one.result is None else one.result.verdict
        failed = one.result is None or verdict.startswith("NOT")
        rows.append(
            Row([escape(cell) for cell in (one.run, one.model, bits, one.against_best, verdict)], "failed" * failed)
        )
    columns = ["run", "model", "bits per byte", "against the best, with a 95% interval", "certificate"]
    return (
        '<h2 id="beside">Models trained elsewhere</h2>\n'
        "<p>Measured on the same bytes. They have no rank: they had other data and other time.</p>\n"
        + html.table(columns, rows, label="Models trained elsewhere", words=[0, 1, 3, 4], named=0)
    )

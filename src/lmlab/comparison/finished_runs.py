"""`lmlab.compare_runs`: finished runs, measured on one text and ranked."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lmlab.comparison.differences import write_differences
from lmlab.comparison.findings import RankingFound
from lmlab.comparison.measure_run import measure_run
from lmlab.config import Mistake, checked_seed
from lmlab.hardware.threads import fastest_threads
from lmlab.learn.run import Run, opened
from lmlab.measure import Result
from lmlab.measure.interval import units_of
from lmlab.measure.ranks import ranking
from lmlab.models.registry import language_model
from lmlab.records import from_json, to_json
from lmlab.text.corpus import read
from lmlab.text.files_and_folders import Text
from lmlab.text.parts import Part


@dataclass(frozen=True, kw_only=True)
class RunsCompared:
    """Finished runs on one text.

    Attributes:
        results: the certified results by run, the best first.
        refused: the results that failed a check, by run. They have no rank.
        ranking: ranks, letters and all paired differences; None if no result is certified.
    """

    text: str
    bytes: int
    results: dict[str, Result]
    refused: dict[str, Result]
    ranking: RankingFound | None

    def write_differences(self, path: str | Path) -> Path:
        """Write the paired differences of all ranked runs as CSV, and return its path."""
        if self.ranking is None:
            raise Mistake("no run has a rank, so there are no differences to write", code="no-differences-of-runs")
        return write_differences(self.ranking, path)

    def to_json(self) -> dict[str, Any]:
        """Return the comparison as a dict for JSON."""
        return {
            "text": self.text,
            "bytes": self.bytes,
            "runs": {name: result.to_json() for name, result in (self.results | self.refused).items()},
            "refused": {name: result.certificate.failures for name, result in self.refused.items()},
            "ranking": None if self.ranking is None else to_json(self.ranking),
        }


def compare_runs(
    runs: Sequence[Run | str | Path],
    text: Text | None = None,
    *,
    seed: int = 0,
    device: str = "auto",
    watch: Callable[[str], None] | None = None,
) -> RunsCompared:
    """Measure finished runs on one text and rank them by paired differences. Their tokenizers may differ.

    Args:
        runs: the runs, or their folders.
        text: a text that is scored as a whole; None: the test part of the runs, if they share one.
        seed: seed of the sample that each certificate checks.
        device: the device to score on.
        watch: called with the name of each run before it is measured.

    Raises:
        Mistake: there are fewer than two runs, one is no language model, or they share no test part.
    """
    named = {str(run.folder if isinstance(run, Run) else run): opened(run) for run in runs}
    if len(named) < 2 or len(named) < len(runs):
        raise Mistake("name two different runs or more to compare", code="runs-to-compare")
    for run in named.values():
        language_model(run.record.model.name)
    name, part = _text(list(named.values()), text)
    found: dict[str, Result] = {}
    with fastest_threads():
        for called, run in named.items():
            if watch is not None:
                watch(called)
            found[called] = measure_run(run, part, name=name, seed=checked_seed(seed), device=device)
    good = sorted(
        (called for called, result in found.items() if result.certified), key=lambda c: found[c].bits_per_byte
    )
    ranks = None
    if good:
        units = units_of([found[called].scored for called in good])
        ranks = from_json(RankingFound, ranking(units, seed=seed).to_json(good))
    return RunsCompared(
        text=name,
        bytes=part.bytes,
        results={called: found[called] for called in good},
        refused={called: result for called, result in found.items() if not result.certified},
        ranking=ranks,
    )


def _text(runs: Sequence[Run], text: Text | None) -> tuple[str, Part]:
    """Return the text to measure on, with its name."""
    if text is not None:
        corpus = read(text, split=(100, 0, 0))
        return corpus.name, Part("whole", corpus.train.documents)
    corpus = runs[0].corpus
    if not corpus.test.bytes or any(run.corpus.test.sha256 != corpus.test.sha256 for run in runs[1:]):
        raise Mistake(
            "these runs share no test part; name a text to compare them on, after the runs", code="runs-without-text"
        )
    return corpus.called("test"), corpus.test

"""Paired differences of all models on one text, as rows for a terminal and as a CSV file."""

from __future__ import annotations

import csv
import io
from pathlib import Path

from lmlab.comparison.findings import Compared, RankingFound
from lmlab.disk.files import write_atomically

COLUMNS = ("better", "worse", "bits per byte less", "95% interval", "told apart")
CSV_COLUMNS = ("a", "b", "difference", "low", "high", "apart", "throughout")
MEANING = (
    "Each difference is paired: both models were measured on the same pieces of the text. The intervals hold for all pairs at"
    " once, at 95%."
)


def difference_rows(found: RankingFound) -> list[list[str]]:
    """Return a row for each pair: the better model, the worse one, how much it saves, the interval, and whether it is real."""
    return [_row(pair) for pair in found.pairs]


def write_differences(found: RankingFound, path: str | Path) -> Path:
    """Write all pairs as CSV: bits per byte of `a` minus those of `b`; a cell is empty where a number is not finite."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(CSV_COLUMNS)
    for pair in found.pairs:
        values = [getattr(pair, column) for column in CSV_COLUMNS]
        writer.writerow(
            ["" if value is None else str(value).lower() if isinstance(value, bool) else value for value in values]
        )
    write_atomically(Path(path), text.getvalue().encode())
    return Path(path)


def _row(pair: Compared) -> list[str]:
    swapped = (pair.difference or 0.0) > 0.0 or pair.difference is None
    better, worse = (pair.b, pair.a) if swapped else (pair.a, pair.b)
    known = [end for end in (pair.low, pair.high) if end is not None]
    interval = ""
    if len(known) == 2:
        ends = known if swapped else [-known[1], -known[0]]
        interval = f"{ends[0]:.4f}–{ends[1]:.4f}" if ends[0] >= 0 else f"{ends[0]:.4f} to {ends[1]:.4f}"
    saves = "" if pair.difference is None else f"{abs(pair.difference):.4f}"
    return [better, worse, saves, interval, "yes" if pair.apart else "no"]

"""What a benchmark found, as a row of the one table that `make bench` writes.

A benchmark says its figures as it likes, and calls `add_row` for those that matter. Run by itself, that only prints a
line; under `bench/run_all.py` the row goes into the table too.
"""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path

ROWS = "LMLAB_BENCH_ROWS"  # the file that rows are added to, where there is one


@dataclass(frozen=True, kw_only=True)
class Row:
    """One figure: what was measured, how many times the peer's speed (or in another unit), and what was wanted."""

    what: str
    value: float
    against: str  # the peer, measured in the same run; "" where there is none
    unit: str
    least: float | None
    most: float | None

    @property
    def verdict(self) -> str:
        """Whether it is within what was wanted; nothing where nothing was."""
        if self.least is None and self.most is None:
            return ""
        low = self.least is not None and self.value < self.least
        high = self.most is not None and self.value > self.most
        return "MISSED" if low or high else "reached"

    @property
    def wanted(self) -> str:
        """What was wanted, in words."""
        ends = [("at least", self.least), ("at most", self.most)]
        return ", ".join(f"{word} {end:g}" for word, end in ends if end is not None)


def add_row(
    what: str,
    value: float,
    *,
    against: str = "",
    unit: str = "times as fast",
    least: float | None = None,
    most: float | None = None,
) -> None:
    """Print a figure beside what was wanted of it, and keep it for the table."""
    row = Row(what=what, value=value, against=against, unit=unit, least=least, most=most)
    wanted = f" (wanted {row.wanted}: {row.verdict})" if row.verdict else ""
    print(f"{what}: {value:.3g} {unit}{f' as {against}' if against else ''}{wanted}", flush=True)
    if rows := os.environ.get(ROWS):
        with Path(rows).open("a") as file:
            file.write(json.dumps(asdict(row)) + "\n")

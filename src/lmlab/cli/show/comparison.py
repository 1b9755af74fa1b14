"""Terminal output of a comparison: a live table while it runs, and the ranking at the end."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from typing import Self

from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

from lmlab.comparison import Findings
from lmlab.comparison.display import DONE, EntryProgress, Lines
from lmlab.comparison.ranking_lines import COLUMNS, LETTERS, NAME, UNRANKED, lines, what_ranks_mean
from lmlab.comparison.remarks import FIRST_SEEDS, MOST_REMARKS, remarks, reused
from lmlab.measure.result import BITS_OF_A_BYTE
from lmlab.page.numbers import counted
from lmlab_derive.shared.console import result_console, say
from lmlab_derive.shared.table import Column, print_table

BAR = 16
REFRESH_S = 0.25
EXPENDABLE = {  # columns to leave out on a narrow terminal, the last first
    "95% interval": 1, "seconds": 2, "parameters": 3, "tokens/s": 4, "memory": 5, "FLOPs": 6,
}  # fmt: skip
STYLES = {"yardstick": "dim", "entropy": "cyan"}


class LiveTable:
    """A display with one line per model: a progress bar and the best score so far; plain lines if stderr is no terminal."""

    def __init__(self) -> None:
        self.console = Console(stderr=True)
        self._live: Live | None = None
        self._shown_at = 0.0
        self._lines = Lines()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._live is not None:
            self._live.stop()

    def show(self, entries: Sequence[EntryProgress], left_s: float | None, doing: str) -> None:
        """Redraw the table, or print new results as lines."""
        if not self.console.is_terminal:
            self._lines.show(entries, left_s, doing)
            return
        if time.monotonic() - self._shown_at < REFRESH_S and doing.startswith("training"):
            return
        self._shown_at = time.monotonic()
        if self._live is None:
            self._live = Live(console=self.console, transient=True, auto_refresh=False)
            self._live.start()
        self._live.update(_so_far(entries, left_s, doing), refresh=True)

    def say(self, line: str) -> None:
        """Print a separate line."""
        self.console.print(line, markup=False, highlight=False, soft_wrap=True)  # so that a log has it in one line


def _so_far(entries: Sequence[EntryProgress], left_s: float | None, doing: str) -> Table:
    table = Table.grid(padding=(0, 2))
    best = min((e.bits_per_byte for e in entries if e.bits_per_byte is not None), default=math.inf)
    for entry in entries:
        filled = BAR if entry.status in DONE else round(BAR * entry.fraction)
        number = "" if entry.bits_per_byte is None else f"{entry.bits_per_byte:.4f}"
        if entry.bits_per_byte is None and entry.valid_bits_per_byte is not None:
            number = f"about {entry.valid_bits_per_byte:.2f}"  # of the validation part, in training
        is_best = entry.bits_per_byte == best
        style = {"failed": "red", "unranked": "red", "waiting": "dim"}.get(entry.status, "")
        bar = "━" * filled + "┈" * (BAR - filled)
        table.add_row(
            Text(entry.name, style=style), bar, entry.status, Text(number, style="bold green" if is_best else "")
        )
    left = "" if left_s is None else f"{max(0, left_s):.0f} s left"
    table.add_row(Text(doing, style="dim"), "", left, "")
    return table


def print_comparison(found: Findings, *, verbose: bool = False) -> None:
    """Print the ranking with the baselines among the models, then models without a rank, the mix, and remarks.

    Args:
        found: the findings.
        verbose: print every remark instead of the most important ones.
    """
    console = result_console()
    measured = f"{found.measured.bytes:,} of {found.measured.of:,} test bytes"
    say(console, f"{found.corpus.name}: {measured}, {found.seconds:.0f} s in all")
    rows = lines(found)
    table = []
    for line in rows:
        if line.kind not in UNRANKED:
            cells: list[str | Text] = [*line.cells]
            cells[NAME] = Text(line.name, style=STYLES.get(line.kind, ""))
            table.append(cells)
    columns = [
        Column(title, left=index == NAME, expendable=EXPENDABLE.get(title, 0)) for index, title in enumerate(COLUMNS)
    ]
    print_table(console, columns, table, elsewhere="the report has them")
    for line in rows:
        if line.kind in UNRANKED:
            bits = f" ({line.bits_per_byte:.4f} bits per byte)" if line.kind == "uncertified" else ""
            say(console, f"{line.name}{bits}: {line.detail}", style="red")
    console.print()
    for mix in found.together:
        say(console, mix.sentence)
    if found.ranking is not None:
        say(console, LETTERS)
    said = remarks(found)
    for remark in said if verbose else said[:MOST_REMARKS]:
        say(console, remark)
    more = list(filter(None, [*said[MOST_REMARKS:], *_details(found)]))
    if verbose:
        for detail in filter(None, _details(found)):
            say(console, detail)
    elif more:
        say(console, f"{counted(len(more), 'more remark')}: --verbose shows them, and the report has them.")


def _details(found: Findings) -> list[str]:
    """Return sentences on how to read the ranking and on where the models come from."""
    luck = found.luck.sentence
    return [
        what_ranks_mean(found).removeprefix(LETTERS).strip() if found.ranking is not None else "",
        FIRST_SEEDS if found.together and found.several_seeds else "",
        luck if found.luck.measured or not luck else f"{luck} --seeds 3 measures it.",
        reused(found),
        *(
            f"{entry.name}: {note}."
            for entry in found.trusted_entries
            if entry.result is not None and (entry.bits_per_byte or 0) > BITS_OF_A_BYTE
            for note in entry.result.notes
        ),
    ]

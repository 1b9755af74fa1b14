"""Terminal output of a search: a live table of rungs while it runs, and the best model at the end."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Self

from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

from lmlab.selection.lines import Lines, cells, meaning, sentence, titles
from lmlab.selection.records import Found, FoundCandidate
from lmlab_derive.shared.console import result_console, say
from lmlab_derive.shared.table import Column, print_table

REFRESH_S = 0.25


class LiveRungs:
    """A display with one line per candidate and one column per rung; plain lines if stderr is no terminal."""

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

    def show(self, found: Sequence[FoundCandidate], shares: Sequence[float], left_s: float, doing: str) -> None:
        """Redraw the table, or print a new step as a line."""
        if not self.console.is_terminal:
            self._lines.show(found, shares, left_s, doing)
            return
        if time.monotonic() - self._shown_at < REFRESH_S:
            return
        self._shown_at = time.monotonic()
        if self._live is None:
            self._live = Live(console=self.console, transient=True, auto_refresh=False)
            self._live.start()
        table = Table.grid(padding=(0, 2))
        for row in found:
            table.add_row(*(Text(cell) for cell in cells(row, shares)))
        table.add_row(Text(f"{doing}, {max(0.0, left_s):.0f} s left", style="dim"))
        self._live.update(table, refresh=True)

    def say(self, line: str) -> None:
        """Print a separate line."""
        self.console.print(line, markup=False, highlight=False, soft_wrap=True)


def print_best(found: Found) -> None:
    """Print the table of rungs, what its numbers mean, and the best model with its number."""
    console = result_console()
    say(console, f"{found.text}: {found.seconds:.0f} s of {found.budget_s:.0f} s")
    names = titles(found.shares)
    columns = [
        Column(title, left=index in (0, 1, len(names) - 1), expendable={"parameters": 2, "seconds": 1}.get(title, 0))
        for index, title in enumerate(names)
    ]
    print_table(console, columns, [cells(row, found.shares) for row in found.candidates], elsewhere="the page has them")
    console.print()
    say(console, meaning(found), style="dim")
    if found.choice.why:
        say(console, found.choice.why)
    say(console, sentence(found), style="bold")

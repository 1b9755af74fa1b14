"""The console that results are printed on."""

from __future__ import annotations

from rich.console import Console

WIDTH = 120  # of tables in a file or a pipe, whose width nobody knows


def result_console() -> Console:
    """Standard output: as wide as the terminal, or wide enough for every table."""
    console = Console(highlight=False)
    return console if console.is_terminal else Console(width=WIDTH, highlight=False)

"""The console that results are printed on."""

from __future__ import annotations

import os
from collections.abc import Sequence

from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from lmlab_derive.shared.plain import visible

WIDTH = 120  # of tables in a file or a pipe, whose width nobody knows


def result_console() -> Console:
    """Standard output: as wide as the terminal, as COLUMNS says, or wide enough for every table."""
    console = Console(highlight=False)
    return console if console.is_terminal or "COLUMNS" in os.environ else Console(width=WIDTH, highlight=False)


def say(console: Console, line: str | Text, style: str = "") -> None:
    """A sentence: broken between words on a terminal, in one piece in a file; what would command the terminal is shown.

    Where a sentence that is set in is broken, all of it is set in.
    """
    line = visible(line) if isinstance(line, str) else line
    if isinstance(line, str) and console.is_terminal and (indent := len(line) - len(line.lstrip(" "))):
        console.print(Padding(Text(line.strip(" "), style=style), (0, 0, 0, indent), expand=False), soft_wrap=False)
        return
    console.print(line, style=style, markup=False, highlight=False, soft_wrap=not console.is_terminal)


def say_notes(console: Console, notes: Sequence[str]) -> None:
    """What a reader of a result should know, a line each."""
    for note in notes:
        say(console, f"Note: {note}")

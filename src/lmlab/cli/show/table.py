"""A table that fits: as many columns as the width allows, the least important left out first, and said to be."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple, TypeVar

from rich.box import SIMPLE_HEAD, Box
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from lmlab.cli.show.console import result_console, say
from lmlab.cli.show.plain import plain, visible

T = TypeVar("T")

GAP = 2  # columns of characters between two columns of the table
ASCII_HEAD = Box("    \n    \n -- \n    \n    \n    \n    \n    \n", ascii=True)


class Column(NamedTuple):
    """A column. expendable: 0 is always shown; of the others the highest is left out first."""

    title: str
    left: bool = False
    expendable: int = 0


def print_table(
    console: Console, columns: Sequence[Column], rows: Sequence[Sequence[str | Text]], elsewhere: str = ""
) -> None:
    """Print what fits; nothing is ever cut. A column that must be shown and does not fit is folded.

    elsewhere: where the columns are that did not fit.
    """
    is_ascii = console.options.ascii_only
    cells = [[_cell(cell, is_ascii) for cell in [*row, *[""] * (len(columns) - len(row))]] for row in rows]
    titles = [plain(column.title) if is_ascii else column.title for column in columns]
    widths = [max(map(cell_len, [title, *(row[i].plain for row in cells)])) for i, title in enumerate(titles)]
    shown = _fitting(columns, widths, console.width)
    table = Table(
        box=ASCII_HEAD if is_ascii else SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, GAP - 1, 0, 0)
    )
    fits = _total([widths[index] for index in shown]) <= console.width
    for index in shown:
        left = columns[index].left
        table.add_column(titles[index], justify="left" if left else "right", no_wrap=fits or not left, overflow="fold")
    for row in cells:
        table.add_row(*(row[index] for index in shown))
    console.print(table)
    hidden = [columns[index].title for index in range(len(columns)) if index not in shown]
    if hidden and elsewhere:
        say(console, f"Too narrow for {', '.join(hidden)}: {elsewhere}.", style="dim")


def print_each(
    console: Console, things: Iterable[T], columns: Sequence[tuple[Column, Callable[[T], str]]], elsewhere: str = ""
) -> None:
    """A row for each thing: every column with what it says of one. elsewhere: as of `print_table`."""
    rows = [[cell(thing) for _, cell in columns] for thing in things]
    print_table(console, [column for column, _ in columns], rows, elsewhere)


def print_list(described: Mapping[str, str]) -> None:
    """Names, and what each is, broken between words on the right."""
    grid = Table.grid(padding=(0, GAP, 0, 0))
    grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold")
    for name, description in described.items():
        grid.add_row(Text(name), Text(description))
    result_console().print(grid)


def _cell(cell: str | Text, is_ascii: bool) -> Text:
    text = Text(visible(cell)) if isinstance(cell, str) else cell
    return Text(plain(text.plain), style=text.style) if is_ascii else text


def _total(widths: Sequence[int]) -> int:
    return sum(widths) + GAP * (len(widths) - 1)


def _fitting(columns: Sequence[Column], widths: Sequence[int], width: int) -> list[int]:
    """The places of the columns to show."""
    shown = list(range(len(columns)))
    while _total([widths[index] for index in shown]) > width:
        last = max(shown, key=lambda index: columns[index].expendable)
        if not columns[last].expendable:
            break
        shown.remove(last)
    return shown

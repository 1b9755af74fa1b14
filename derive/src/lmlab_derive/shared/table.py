"""A table that fits: as many columns as the width allows, the least important left out first, and said to be."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Literal, NamedTuple, TypeVar

from rich.box import SIMPLE_HEAD, Box
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from lmlab_derive.shared.console import result_console, say
from lmlab_derive.shared.plain import plain, visible

T = TypeVar("T")

GAP = 2  # columns of characters between two columns of the table
WORD = 8  # characters to which a longer word is broken where nothing else helps
ASCII_HEAD = Box("    \n    \n -- \n    \n    \n    \n    \n    \n", ascii=True)


class Column(NamedTuple):
    """A column. expendable: 0 is always shown; of the others the highest is left out first."""

    title: str
    left: bool = False
    expendable: int = 0


def print_table(
    console: Console, columns: Sequence[Column], rows: Sequence[Sequence[str | Text]], elsewhere: str = ""
) -> None:
    """Print what fits; nothing is ever cut. Where it is narrow titles are folded, then columns left out, then cells folded.

    elsewhere: where the columns are that did not fit.
    """
    is_ascii = console.options.ascii_only
    cells = [[_cell(cell, is_ascii) for cell in [*row, *[""] * (len(columns) - len(row))]] for row in rows]
    titles = [plain(column.title) if is_ascii else column.title for column in columns]
    texts = [[row[i].plain for row in cells] for i in range(len(columns))]
    least = [max(_in_two_lines(title), *map(cell_len, those), 0) for title, those in zip(titles, texts, strict=True)]
    shown = _fitting(columns, least, console.width)
    widths = [max(least[index], cell_len(titles[index])) for index in shown]
    words = [max(cell_len(_longest_word(text)) for text in [titles[index], *texts[index]]) for index in shown]
    lefts = [words[i] if columns[index].left else least[index] for i, index in enumerate(shown)]
    for narrower in ([least[index] for index in shown], lefts, words, [min(WORD, word) for word in words]):
        widths = _shrunk(widths, narrower, console.width)
    table = Table(
        box=ASCII_HEAD if is_ascii else SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, GAP - 1, 0, 0)
    )
    for index, width in zip(shown, widths, strict=True):
        justify: Literal["left", "right"] = "left" if columns[index].left else "right"
        table.add_column(titles[index], justify=justify, width=width, overflow="fold")
    for row in cells:
        table.add_row(*(_stacked(row[index], width) for index, width in zip(shown, widths, strict=True)))
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


def _in_two_lines(title: str) -> int:
    """The least width at which a title takes no more than two lines."""
    words = title.split()
    halves = ((" ".join(words[:i]), " ".join(words[i:])) for i in range(len(words)))
    return min((max(map(cell_len, both)) for both in halves), default=0)


def _longest_word(text: str) -> str:
    """An interval in brackets is one."""
    return max(re.findall(r"\[[^\]]*\]|\S+", text), key=cell_len, default="")


def _stacked(cell: Text, width: int) -> Text:
    """A number with its interval below it, where they do not fit side by side."""
    return cell if cell_len(cell.plain) <= width else Text(cell.plain.replace(" [", "\n["), style=cell.style)


def _shrunk(widths: Sequence[int], least: Sequence[int], room: int) -> list[int]:
    """The widths, made narrower until they fit, those first that can give most: as few columns as possible."""
    found = list(widths)
    for index in sorted(range(len(found)), key=lambda index: least[index] - found[index]):
        found[index] -= min(max(0, found[index] - least[index]), max(0, _total(found) - room))
    return found


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

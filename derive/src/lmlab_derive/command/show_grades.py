"""A graded class in the terminal: the table, what has to be looked at, and which slips are frequent."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.text import Text

from lmlab_derive.shared.console import result_console, say
from lmlab_derive.shared.table import GAP, Column, print_table

if TYPE_CHECKING:
    from lmlab_derive.grading.book import GradeBook

COLOURS = {"right": "green", "partly right": "cyan", "wrong": "red", "missing": "dim", "please look": "yellow"}
SHOWN = 8  # doubts and slips here; the page has all


def print_grades(book: GradeBook, folder: Path | None) -> None:
    """The table of a class: a column a question, or, where these are too many or too long, one column with all marks."""
    from lmlab_derive.grading.book import MARKS, number

    console, names = result_console(), [question.name for question in book.key.questions]
    out_of = number(book.key.points)
    rows: list[list[str | Text]] = []
    wide = len("student") + sum(max(len(name), 4) for name in names) + GAP * (len(names) + 1) + len("points")
    is_narrow = wide + max((len(paper.student) for paper in book.papers), default=0) > console.width
    for paper in book.papers:
        cells = []
        for answer in paper.answers:
            points = "" if is_narrow or answer.mark == "please look" else f" {number(answer.points)}"
            cells.append(Text(f"{MARKS[answer.mark]}{points}", style=COLOURS[answer.mark]))
        marks = [Text("").join(cells)] if is_narrow else cells
        rows.append([paper.student, *marks, f"{number(paper.points)}/{out_of}"])
    columns = [Column("answers", left=True)] if is_narrow else [Column(name) for name in names]
    print_table(console, [Column("student", left=True), *columns, Column("points")], rows)
    if is_narrow:
        say(console, "A mark for each of: " + "; ".join(names))
    say(console, ", ".join(f"{sign} {mark}" for mark, sign in MARKS.items()), style="dim")
    _print_doubts(book, console)
    slips = sorted(book.slips(), key=lambda slip: -len(slip.students))
    for slip in [slip for slip in slips if len(slip.students) > 1][:SHOWN]:
        say(console, f"{len(slip.students)} × {slip.question.name}: {slip.what}")
    where = "nothing was written; --out FOLDER writes a page for each student, the class and grades.csv there"
    say(console, where if folder is None else f"pages and grades.csv are in {folder}")


def _print_doubts(book: GradeBook, console: Console) -> None:
    """What a person has to look at."""
    doubts = [
        (paper.student, answer.question.name, part)
        for paper in book.papers
        for answer in paper.to_look_at
        for part in answer.parts
        if part.judged.mark == "please look"
    ]
    for student, question, part in doubts[:SHOWN]:
        where = ", ".join(f"line {line.line}: {line.reason}" for line in part.unreadable) or part.judged.reason
        say(console, f"please look: {student}, {question}: {where}", style="yellow")
    if len(doubts) > SHOWN:
        say(console, f"please look: {len(doubts) - SHOWN} more", style="yellow")

"""A graded class as pages to hand out: one for each student, and the table of the class for the teacher."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from lmlab_derive.grading.book import MARKS, GradeBook, Slip, number
from lmlab_derive.grading.judge import LOOK, MISSING, PARTLY, RIGHT, WRONG
from lmlab_derive.grading.key import Part
from lmlab_derive.grading.paper import Answer, Line, Paper, PartAnswer
from lmlab_derive.shared import html, mathml
from lmlab_derive.shared.html import Row, escape
from lmlab_derive.sheets.pages import counterexample_table, formula
from lmlab_derive.sheets.report import ClaimReport
from lmlab_derive.to_latex import relation_latex, side_latex

Hints = Literal["none", "where", "what"]
HINTS: dict[Hints, str] = {
    "none": "marks and points alone",
    "where": "also why an answer is wrong: the first wrong step and a counterexample",
    "what": "also the likely slip and the repaired formula",
}
STYLES = {RIGHT: "right", PARTLY: "partly", WRONG: "wrong", MISSING: "missing", LOOK: "look"}

LINES = 20  # of a sheet, shown one below the other; what is no sheet at all has thousands


def student_page(paper: Paper, book: GradeBook, hints: Hints) -> str:
    """A student's page: each question, what was answered, and what became of it."""
    total = f"{number(paper.points)} of {number(book.key.points)} points"
    look = len(paper.to_look_at)
    if look:
        total += f"; {look} {'answer is' if look == 1 else 'answers are'} still to be looked at by a person"
    body = [f"<h1>{escape(paper.student)}</h1>", f'<p class="lead">{escape(total)}</p>']
    body += [_answer_box(answer, hints) for answer in paper.answers]
    body += [f'<p class="soft">{escape(note)}</p>' for note in paper.notes]
    if paper.unasked:
        body.append("<h2>Also on the sheet</h2><p>No question asks for these; they were not checked.</p>")
        body.append(_lines(paper.unasked))
    elsewhere = {line for answer in paper.answers for part in answer.parts for line in part.unreadable}
    rest = [line for line in paper.unreadable if line not in elsewhere]
    if rest:
        body.append(f"<h2>Could not be read</h2>{_lines(rest)}")
    numbered = "\n".join(f"{n:>4}  {line}" for n, line in enumerate(paper.text.splitlines(), start=1))
    body.append(html.folded("the sheet as it was read", f'<pre class="code">{escape(numbered)}</pre>'))
    return html.document(paper.student, "\n".join(body))


def _answer_box(answer: Answer, hints: Hints) -> str:
    mark = answer.mark
    points = f"{number(answer.points)} of {number(answer.question.points)} points"
    if mark == LOOK:
        points = f"{number(answer.question.points)} points, to be looked at"
    parts = [_part(part, hints, alone=len(answer.parts) == 1) for part in answer.parts]
    heading = f"{escape(answer.question.name)}&ensp;{html.badge(f'{MARKS[mark]} {mark}', STYLES[mark])}"
    return html.card(heading, "\n".join(parts), beside=points, style=f"judged {STYLES[mark]}", level=2)


def _part(answer: PartAnswer, hints: Hints, *, alone: bool) -> str:
    judged = answer.judged
    asked = f'<span class="soft">asked for:</span> {mathml.to_mathml(_asked(answer.part))}'
    parts = [f"<p>{asked}{'' if alone else f' {_small_mark(judged.mark)}'}</p>"]
    if judged.claim is not None:
        parts.append(html.formula(formula(judged.claim, judged.report or _silent(answer))))
        if judged.claim.where_text:
            parts.append(f"<pre>{escape(judged.claim.where_text)}</pre>")
    if answer.unreadable:
        parts.append(f"<p>Please look: this could not be read.</p>{_lines(answer.unreadable)}")
    elif judged.mark == LOOK:
        parts.append(f"<p>Please look: {escape(judged.reason)}.</p>")
    elif judged.mark in (WRONG, PARTLY) and hints != "none":
        parts += _why(answer, hints)
    if answer.others:
        parts.append(f'<p class="soft">Also said of it, and not counted:</p>{_lines(answer.others)}')
    return "\n".join(parts)


def _why(answer: PartAnswer, hints: Hints) -> list[str]:
    report = answer.judged.report
    where = ""
    if report is not None and report.first_wrong_step is not None:
        where = f"step {report.first_wrong_step} (line {report.wrong_line}): "
    parts = [f'<p class="soft">{escape(where + answer.judged.reason)}</p>']
    if report is not None and report.counterexample is not None:
        parts.append(counterexample_table(report.counterexample))
    if report is not None and report.hint and not report.holds and hints == "what":
        parts.append(f'<p class="hint">Hint: {escape(report.hint)}</p>')
    return parts


def _silent(answer: PartAnswer) -> ClaimReport:
    return ClaimReport(line=0, claim="", verdict=answer.judged.mark, reason="")


def _asked(part: Part) -> str:
    """What is asked for, with a question mark where the answer goes."""
    return f"{side_latex(part.target, part.text)} {relation_latex(part.sign)} \\; ?"


def _small_mark(mark: str) -> str:
    return f'<span class="mark {STYLES[mark]}">{MARKS[mark]} {escape(mark)}</span>'


def _lines(lines: Sequence[Line]) -> str:
    """Statements of the sheet, with their lines."""
    rows = []
    for line in lines[:LINES]:
        reason = f'<br><span class="soft">{escape(line.reason)}</span>' if line.reason else ""
        rows.append(Row([f"line {line.line}", f"<code>{escape(line.text)}</code>{reason}"]))
    if len(lines) > LINES:
        rows.append(Row(["", f"and {len(lines) - LINES} more"]))
    return html.table([], rows, words=(0, 1))


def class_page(book: GradeBook, links: dict[str, str]) -> str:
    """The table of the class, how each question went, and which slip how often; `links` are the students' pages."""
    rows = []
    for paper in book.papers:
        name = f'<a href="{escape(links[paper.student])}">{escape(paper.student)}</a>'
        marks = [_cell(answer) for answer in paper.answers]
        rows.append(Row([name, *marks, number(paper.points)]))
    columns = ["student", *(escape(question.name) for question in book.key.questions), "points"]
    worth = [number(question.points) for question in book.key.questions]
    rows.append(Row(["to get", *worth, number(book.key.points)], style="yardstick"))
    legend = ", ".join(f"{sign} {mark}" for mark, sign in MARKS.items())
    body = [
        "<h1>Grades</h1>",
        f'<p class="lead">{escape(_overview(book))}</p>',
        html.table(columns, rows, label="Grades of the class"),
        f'<p class="soft">{escape(legend)}</p>',
        "<h2>How the questions went</h2>",
        _questions(book),
    ]
    slips = book.slips()
    if slips:
        body += ["<h2>What went wrong, and how often</h2>", _slips(slips)]
    return html.document("Grades", "\n".join(body))


def _cell(answer: Answer) -> str:
    mark, shown = answer.mark, "?" if answer.mark == LOOK else f"{MARKS[answer.mark]} {number(answer.points)}"
    return f'<span class="mark {STYLES[mark]}" title="{escape(mark)}">{shown}</span>'


def _overview(book: GradeBook) -> str:
    papers = book.papers
    mean = sum(float(paper.points) for paper in papers) / max(1, len(papers))
    sheets = f"{len(papers)} {'sheet' if len(papers) == 1 else 'sheets'}"
    text = f"{sheets}, {mean:.1f} of {number(book.key.points)} points on average"
    look = sum(len(paper.to_look_at) for paper in papers)
    return (
        f"{text}; {look} {'answer has' if look == 1 else 'answers have'} to be looked at by a person" if look else text
    )


def _questions(book: GradeBook) -> str:
    rows = []
    for question, counts in book.counts():
        asked = "<br>".join(mathml.to_mathml(_asked(part)) for part in question.parts)
        rows.append(Row([escape(question.name), asked, *(str(counts[mark] or "") for mark in MARKS)]))
    return html.table(["question", "asks for", *MARKS], rows, label="Marks by question", words=(0, 1))


def _slips(slips: Sequence[Slip]) -> str:
    rows = [
        Row([escape(slip.question.name), str(len(slip.students)), escape(slip.what), escape(", ".join(slip.students))])
        for slip in slips
    ]
    return html.table(["question", "times", "what", "by"], rows, words=(0, 2, 3))


def write_class(book: GradeBook, folder: Path, hints: Hints = "where") -> Path:
    """A page for each student, the table of the class as index.html and as grades.csv; returns the index."""
    links = page_names([paper.student for paper in book.papers])
    for paper in book.papers:
        html.write(folder / links[paper.student], student_page(paper, book, hints))
    html.write(folder / "grades.csv", book.to_csv())
    return html.write(folder / "index.html", class_page(book, links))


def page_names(students: Sequence[str]) -> dict[str, str]:
    """A file name for each student: none is another's, nor the index."""
    taken, names = {"index"}, {}
    for student in students:
        stem = re.sub(r"[^\w.-]+", "_", student).strip(".") or "student"
        name, count = stem, 2
        while name.casefold() in taken:
            name, count = f"{stem}-{count}", count + 1
        taken.add(name.casefold())
        names[student] = f"{name}.html"
    return names

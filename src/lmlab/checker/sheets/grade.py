"""Grading a class: every student's answers against the questions of a key, equivalent forms accepted.

The key lays down the setting (its givens and lets) and asks its questions: each claim or derivation of the key is one,
named by its left side. A student's file is read in that setting; it may define helpers of its own, but where it defines
a name of the key anew the key's definition stays. An answer counts when it holds, and is not the question said again.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from lmlab.checker.limits import Refusal
from lmlab.checker.read.scope import Scope
from lmlab.checker.read.sheet import ScopedClaim, Sheet, parse
from lmlab.checker.sheets.claims import check_claim
from lmlab.checker.sheets.pages import claim_box, judged_box
from lmlab.checker.sheets.report import INVALID, ClaimReport
from lmlab.checker.text import to_text
from lmlab.checker.tree import Claim, Derivative, Expectation, Let, Name, Node, NotUnderstood, walk
from lmlab.page import html
from lmlab.page.html import Row, escape

RIGHT, WRONG, MISSING = "right", "wrong", "missing"
MARKS = {RIGHT: "✓", WRONG: "✗", MISSING: "–"}


@dataclass(frozen=True)
class Question:
    """One claim of the key."""

    number: int
    asked: ScopedClaim

    @property
    def label(self) -> str:
        """The left side: what is asked for."""
        return to_text(self.asked.claim.steps[0].value)


@dataclass(frozen=True)
class Answer:
    """What a student wrote for a question, and what became of it."""

    question: Question
    mark: str
    report: ClaimReport | None = None
    claim: Claim | None = None


@dataclass(frozen=True)
class Paper:
    """One student's answers, in the order of the questions, and the lines that were not understood."""

    student: str
    answers: tuple[Answer, ...]
    mistakes: tuple[NotUnderstood, ...]
    notes: tuple[str, ...]

    @property
    def points(self) -> int:
        """One for each right answer."""
        return sum(answer.mark == RIGHT for answer in self.answers)


@dataclass(frozen=True)
class GradeBook:
    """A graded class."""

    questions: tuple[Question, ...]
    papers: tuple[Paper, ...]

    def to_csv(self) -> str:
        """One row a student: a mark for each question, points, and how many there are to get."""
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(["student", *(q.label for q in self.questions), "points", "out of"])
        for paper in self.papers:
            marks = [answer.mark for answer in paper.answers]
            writer.writerow([paper.student, *marks, paper.points, len(self.questions)])
        return out.getvalue()

    def to_dict(self) -> dict[str, object]:
        """The grade book as plain data."""
        return {
            "questions": [{"number": q.number, "question": q.label} for q in self.questions],
            "students": [
                {
                    "student": paper.student,
                    "points": paper.points,
                    "answers": [
                        {
                            "question": a.question.label,
                            "mark": a.mark,
                            "claim": a.report.to_dict() if a.report else None,
                        }
                        for a in paper.answers
                    ],
                    "mistakes": [{"line": m.line, "text": m.text, "reason": m.reason} for m in paper.mistakes],
                }
                for paper in self.papers
            ],
        }


def read_key(text: str, seed: int = 0) -> tuple[Question, ...]:
    """The questions of a key. A key that does not hold itself is refused."""
    sheet = parse(text)
    questions: list[Question] = []
    for entry in sheet.entries:
        if isinstance(entry, NotUnderstood):
            raise Refusal(f"the key is not understood, line {entry.line}: {entry.reason}")
        report = check_claim(entry, seed, hints=False)
        if not report.holds:
            raise Refusal(f"the key does not hold, line {report.line}: {report.verdict}, {report.reason}")
        questions.append(Question(len(questions) + 1, entry))
    if not questions:
        raise Refusal("the key asks nothing; each claim or derive in it is a question")
    return tuple(questions)


def grade(key: str, answers: dict[str, str], seed: int = 0) -> GradeBook:
    """Grade every student. `answers` holds the text of each, by name."""
    questions = read_key(key, seed)
    papers = tuple(_paper(student, text, questions, seed) for student, text in answers.items())
    return GradeBook(questions, papers)


def _paper(student: str, text: str, questions: tuple[Question, ...], seed: int) -> Paper:
    answers = []
    mistakes: dict[int, NotUnderstood] = {}
    notes: dict[str, None] = {}
    sheets: dict[int, Sheet] = {}
    for question in questions:
        scope = question.asked.scope
        try:
            sheet = sheets.setdefault(id(scope), parse(text, scope, locked=frozenset(scope.definitions) | scope.sizes))
        except Refusal as refusal:
            mistakes[1] = NotUnderstood(line=1, text="", reason=str(refusal))
            answers.append(Answer(question, MISSING))
            continue
        for entry in sheet.entries:
            if isinstance(entry, NotUnderstood):
                mistakes[entry.line] = entry
        notes |= dict.fromkeys(sheet.notes)
        answers.append(_answer(question, sheet, seed))
    return Paper(student, tuple(answers), tuple(mistakes.values()), tuple(notes))


def _answer(question: Question, sheet: Sheet, seed: int) -> Answer:
    """The best of the student's claims about what the question asks."""
    asked = question.asked.claim
    best = Answer(question, MISSING)
    for entry in sheet.entries:
        if isinstance(entry, NotUnderstood) or not _about(entry.claim, asked):
            continue
        refused = _narrower(entry, question) or _echo(entry, question)
        if refused:
            claim = entry.claim
            report = ClaimReport(line=claim.line, claim=claim.text, verdict=INVALID, reason=refused)
        else:
            report = check_claim(entry, seed)
        answer = Answer(question, RIGHT if report.holds else WRONG, report, entry.claim)
        if best.mark != RIGHT:
            best = answer
    return best


def _about(claim: Claim, asked: Claim) -> bool:
    """Whether a claim starts (or, for an equation, ends) with what is asked, under the same relation."""
    if any(step.relation not in ("", asked.steps[-1].relation) for step in claim.steps):
        return False
    target = asked.steps[0].value
    return claim.steps[0].value == target or (asked.steps[-1].relation == "==" and claim.steps[-1].value == target)


def _narrower(entry: ScopedClaim, question: Question) -> str:
    """Why an answer says less than was asked: it holds under a condition that the key does not have."""
    extra = [c for c in entry.scope.conditions if c not in question.asked.scope.conditions]
    if not extra:
        return ""
    condition = f"{to_text(extra[0].left)} {extra[0].relation} {to_text(extra[0].right)}"
    return f"the answer is for {condition} alone; the question has no such condition"


def _echo(entry: ScopedClaim, question: Question) -> str:
    """Why an answer is the question said again: it holds what is asked, or a derivative that the key's does not."""
    asked = question.asked.claim
    target = asked.steps[0].value
    own = {n: d for n, d in entry.scope.definitions.items() if n not in question.asked.scope.definitions}
    last = entry.claim.steps[-1].value if entry.claim.steps[0].value == target else entry.claim.steps[0].value
    allowed = any(isinstance(n, (Derivative, Expectation)) for n in walk(asked.steps[-1].value))
    for node in _opened(last, entry.scope, own):
        if node == target:
            return "the answer repeats the question"
        if isinstance(node, (Derivative, Expectation)) and not allowed:
            return f"the answer still holds {to_text(node)}, which is to be worked out"
    return ""


def _opened(node: Node, scope: Scope, own: Mapping[str, object]) -> list[Node]:
    """Every part of an expression, the student's own lets opened."""
    found: list[Node] = []
    for inner in walk(node):
        found.append(inner)
        if isinstance(inner, Name) and isinstance(let := own.get(inner.name), Let):
            found += _opened(let.value, scope, {n: d for n, d in own.items() if n != inner.name})
    return found


def student_page(paper: Paper, total: int) -> str:
    """A student's page: each question, the answer, the verdict and the hint."""
    body = [f"<h1>{escape(paper.student)}</h1>", f'<p class="lead">{paper.points} of {total} points</p>']
    for answer in paper.answers:
        question = f"question {answer.question.number}: <code>{escape(answer.question.label)}</code>"
        if answer.report is None:
            body.append(judged_box("– no answer", MISSING, question, ""))
        else:
            body.append(claim_box(answer.report, answer.claim, question))
    body += [f'<p class="soft">{escape(note)}</p>' for note in paper.notes]
    for mistake in paper.mistakes:
        line = f'<pre class="code">{escape(mistake.text)}</pre><p class="soft">{escape(mistake.reason)}</p>'
        body.append(judged_box("! not understood", INVALID, f"line {mistake.line}", line))
    return html.document(paper.student, "\n".join(body))


def class_page(book: GradeBook, links: dict[str, str]) -> str:
    """The table of the class; `links` are the students' pages."""
    rows = []
    for paper in book.papers:
        name = f'<a href="{escape(links[paper.student])}">{escape(paper.student)}</a>'
        marks = [f'<span class="mark {a.mark}" title="{a.mark}">{MARKS[a.mark]}</span>' for a in paper.answers]
        rows.append(Row([name, *marks, f"{paper.points} / {len(book.questions)}"]))
    columns = ["student", *(f"<code>{escape(q.label)}</code>" for q in book.questions), "points"]
    return html.document("Grades", f"<h1>Grades</h1>\n{html.table(columns, rows, label='Grades of the class')}")


def write_class(book: GradeBook, folder: Path) -> Path:
    """A page for each student, the table of the class as index.html and as grades.csv; returns the index."""
    links = {paper.student: f"{paper.student}.html" for paper in book.papers}
    for paper in book.papers:
        html.write(folder / links[paper.student], student_page(paper, len(book.questions)))
    html.write(folder / "grades.csv", book.to_csv())
    return html.write(folder / "index.html", class_page(book, links))

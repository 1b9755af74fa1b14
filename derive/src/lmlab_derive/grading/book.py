"""A graded class as data: everybody's points, what went wrong how often, and the table a gradebook takes."""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from lmlab_derive.grading.bench import Bench
from lmlab_derive.grading.judge import LOOK, MISSING, PARTLY, RIGHT, WRONG
from lmlab_derive.grading.key import Key, Question, read_key
from lmlab_derive.grading.paper import Answer, Line, Paper, PartAnswer, mark_paper
from lmlab_derive.shared.mistakes import checked_seed

MARKS = {RIGHT: "✓", PARTLY: "◐", WRONG: "✗", MISSING: "–", LOOK: "?"}


@dataclass(frozen=True)
class Slip:
    """Something that went wrong in answers to a question, and with whom."""

    question: Question
    what: str
    students: tuple[str, ...]


@dataclass(frozen=True)
class GradeBook:
    """A graded class."""

    key: Key
    papers: tuple[Paper, ...]

    def counts(self) -> list[tuple[Question, Counter[str]]]:
        """How often each mark was given, by question."""
        return [
            (question, Counter(paper.answers[number].mark for paper in self.papers))
            for number, question in enumerate(self.key.questions)
        ]

    def slips(self) -> list[Slip]:
        """What went wrong, in the order of the questions and the most frequent first."""
        found: list[Slip] = []
        for number, question in enumerate(self.key.questions):
            who: dict[str, dict[str, None]] = {}
            for paper in self.papers:
                for part in paper.answers[number].parts:
                    if part.judged.mark in (WRONG, PARTLY):
                        who.setdefault(slip(part), {})[paper.student] = None
            ordered = sorted(who.items(), key=lambda pair: -len(pair[1]))
            found += [Slip(question, what, tuple(students)) for what, students in ordered]
        return found

    def to_csv(self) -> str:
        """One row a student: points for each question, empty where a person has to look; their sum; where to look, and
        which questions have several answers that differ."""
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        names = [question.name for question in self.key.questions]
        writer.writerow(["student", *map(_plain, names), "points", "out of", "please look", "several answers"])
        for paper in self.papers:
            cells = ["" if answer.mark == LOOK else number(answer.points) for answer in paper.answers]
            look = "; ".join(answer.question.name for answer in paper.to_look_at)
            several = "; ".join(
                a.question.name for a in paper.answers if any(part.others and part.judged.claim for part in a.parts)
            )
            points = [number(paper.points), number(self.key.points)]
            writer.writerow([_plain(paper.student), *cells, *points, _plain(look), _plain(several)])
        return out.getvalue()

    def to_dict(self) -> dict[str, Any]:
        """The grade book as plain data."""
        return {
            "questions": [
                {
                    "question": question.name,
                    "points": float(question.points),
                    "asks": [part.label for part in question.parts],
                    "marks": dict(counts),
                }
                for question, counts in self.counts()
            ],
            "slips": [
                {"question": slip.question.name, "what": slip.what, "students": list(slip.students)}
                for slip in self.slips()
            ],
            "out_of": float(self.key.points),
            "students": [
                {
                    "student": paper.student,
                    "points": float(paper.points),
                    "please_look": [answer.question.name for answer in paper.to_look_at],
                    "answers": [_answer(answer) for answer in paper.answers],
                    "unreadable": [_line(line) for line in paper.unreadable],
                    "not_asked_for": [_line(line) for line in paper.unasked],
                    "notes": list(paper.notes),
                }
                for paper in self.papers
            ],
        }


def grade(key: str, answers: Mapping[str, str], seed: int = 0) -> GradeBook:
    """Grade every student. `answers` holds the text of each, by name."""
    seed = checked_seed(seed)
    read, bench = read_key(key, seed), Bench(seed)
    return GradeBook(read, tuple(mark_paper(student, text, read, bench) for student, text in answers.items()))


def slip(part: PartAnswer) -> str:
    """What went wrong in an answer, in words that are the same for the same slip."""
    report, judged = part.judged.report, part.judged
    if report is not None and report.hint and not report.holds:
        return report.hint.partition("; the repaired ")[0]
    return judged.reason


def number(value: Fraction) -> str:
    """Points as one writes them: at most two decimals."""
    return f"{float(value):.2f}".rstrip("0").rstrip(".")


def _answer(answer: Answer) -> dict[str, Any]:
    return {
        "question": answer.question.name,
        "mark": answer.mark,
        "points": float(answer.points),
        "parts": [
            {
                "asks": part.part.label,
                "mark": part.judged.mark,
                "reason": part.judged.reason,
                "answer": part.judged.claim.text if part.judged.claim else None,
                "claim": part.judged.report.to_dict() if part.judged.report else None,
                "other_answers": [_line(line) for line in part.others],
                "unreadable": [_line(line) for line in part.unreadable],
            }
            for part in answer.parts
        ],
    }


def _line(line: Line) -> dict[str, Any]:
    return {"line": line.line, "text": line.text} | ({"reason": line.reason} if line.reason else {})


def _plain(name: str) -> str:
    """A name that no spreadsheet takes for a formula."""
    return f"'{name}" if name[:1] in ("=", "+", "-", "@", "\t", "\r") else name

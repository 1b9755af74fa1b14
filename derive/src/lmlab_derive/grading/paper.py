"""One student's sheet against the questions of a key: which claim answers what, and what is left over."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from lmlab_derive.grading.bench import Bench
from lmlab_derive.grading.forms import Forms
from lmlab_derive.grading.judge import (
    LOOK,
    MISSING,
    PARTLY,
    RIGHT,
    WRONG,
    Judged,
    Stated,
    answers,
    judge,
    stated,
    unfinished,
)
from lmlab_derive.grading.key import Key, Part, Question
from lmlab_derive.grading.roles import in_the_keys_names
from lmlab_derive.limits import Refusal
from lmlab_derive.read.sheet import ScopedClaim, Sheet, parse
from lmlab_derive.read.tokens import starts_statement
from lmlab_derive.shapes.scope import Scope
from lmlab_derive.shapes.setting import build
from lmlab_derive.sheets.headings import Heading, headings, same_name, section
from lmlab_derive.small_formulas import minus
from lmlab_derive.text import to_text
from lmlab_derive.tree import Derivative, NotUnderstood, shown

_RELATION = re.compile(r"[=<>≤≥]|\\(?:le|ge)")
TRIED = 6  # claims that answer nothing are held against a question that has no answer, at most so many


@dataclass(frozen=True)
class Line:
    """A statement of a student's sheet, as it is shown; `reason`: why it could not be read."""

    line: int
    text: str
    reason: str = ""


@dataclass(frozen=True)
class PartAnswer:
    """What a student said to one part: the claim that counts, and the others about the same thing."""

    part: Part
    judged: Judged
    others: tuple[Line, ...] = ()
    unreadable: tuple[Line, ...] = ()


@dataclass(frozen=True)
class Answer:
    """What a student said to a question."""

    question: Question
    parts: tuple[PartAnswer, ...]

    @property
    def points(self) -> Fraction:
        """Those that are certain; what a person has to look at counts for nothing yet."""
        return sum((part.judged.credit for part in self.parts), Fraction(0)) * self.question.points / len(self.parts)

    @property
    def mark(self) -> str:
        """The marks of the parts as one."""
        marks = {part.judged.mark for part in self.parts}
        if LOOK in marks:
            return LOOK
        if len(marks) == 1:
            return marks.pop()
        return PARTLY if marks & {RIGHT, PARTLY} else WRONG


@dataclass(frozen=True)
class Paper:
    """One student's answers, in the order of the questions, and everything else that stands on the sheet."""

    student: str
    answers: tuple[Answer, ...]
    unreadable: tuple[Line, ...]
    unasked: tuple[Line, ...]  # claims that no question of the key asks for; they are not checked
    notes: tuple[str, ...]
    text: str

    @property
    def points(self) -> Fraction:
        """The points that are certain."""
        return sum((answer.points for answer in self.answers if answer.mark != LOOK), Fraction(0))

    @property
    def to_look_at(self) -> list[Answer]:
        """The answers that a person has to look at."""
        return [answer for answer in self.answers if answer.mark == LOOK]


@dataclass(frozen=True)
class _Said:
    """A claim that speaks of a part."""

    part: Part  # with the target as the claim has it
    entry: ScopedClaim
    said: Stated
    forms: Forms


def mark_paper(student: str, text: str, key: Key, bench: Bench) -> Paper:
    """Read a sheet and judge what it answers."""
    return _Marker(text, key, bench).paper(student)


class _Marker:
    """Reads one sheet in the setting of every question."""

    def __init__(self, text: str, key: Key, bench: Bench) -> None:
        self.text, self.key, self.bench = text, key, bench
        self.notes: dict[str, None] = {}
        self.named, rest = headings(text)
        self.readings: list[tuple[Scope, Sheet]] = []
        self.refused = ""  # why the sheet as a whole is not read: it is too long
        for part in (part for question in key.questions for part in question.parts):
            if all(scope != part.scope for scope, _ in self.readings):
                self.readings.append((part.scope, self._read(rest, part.scope)))
        self.unreadable = [Line(1, "", self.refused)] if self.refused else self._unreadable()
        for _, sheet in self.readings:
            self.notes |= dict.fromkeys(sheet.notes)
        for heading in self.named:
            if not self._known(heading):
                self.notes[f"line {heading.line}: the key has no question {heading.name}"] = None
        self.forms: dict[int, Forms] = {}
        self.used: set[int] = set()  # lines of claims that speak of a question,
        self.fitting: set[int] = set()  # and of those that answer one

    def _read(self, text: str, scope: Scope) -> Sheet:
        """The sheet in the setting of a part, which stays what it is."""
        try:
            return parse(text, scope, locked=frozenset(scope.definitions) | scope.sizes, prose=True)
        except Refusal as refusal:
            self.refused = str(refusal)
            return Sheet((), scope)

    def _unreadable(self) -> list[Line]:
        """The statements that no question's setting makes sense of."""
        failed = [{e.line: e for e in sheet.entries if isinstance(e, NotUnderstood)} for _, sheet in self.readings]
        always = set(failed[0]).intersection(*failed[1:])
        lines = [Line(e.line, e.text, shown_names(e.reason)) for n, e in sorted(failed[0].items()) if n in always]
        return list(_paragraphs(lines))

    def paper(self, student: str) -> Paper:
        """Every question answered, and what is left over."""
        found = [
            (question, [self._candidates(question, part) for part in question.parts]) for question in self.key.questions
        ]
        for question, parts in found:
            for part, said in zip(question.parts, parts, strict=True):
                self.used |= {item.entry.claim.line for item in said}
                self.fitting |= {item.entry.claim.line for item in said if answers(part, item.said)}
        for question, parts in found:
            for place, part in enumerate(question.parts):
                parts[place] = parts[place] or self._rewritten(question, part)
        loose = self._attributed(found)
        claims = {
            entry.claim.line: entry.claim.text
            for _, sheet in self.readings
            for entry in sheet.entries
            if isinstance(entry, ScopedClaim)
        }
        unasked = tuple(Line(line, text) for line, text in sorted(claims.items()) if line not in self.used)
        given = []
        for (question, parts), lines in zip(found, loose, strict=True):
            judged = [
                self._judged(question, part, said, lines) for part, said in zip(question.parts, parts, strict=True)
            ]
            given.append(Answer(question, tuple(judged)))
        return Paper(student, tuple(given), tuple(self.unreadable), unasked, tuple(self.notes), self.text)

    def _candidates(self, question: Question, part: Part) -> list[_Said]:
        """The claims that speak of a part, in their order; those under the question's name, if there are any."""
        found = []
        for entry in self._claims(part):
            own = in_the_keys_names(entry, part.target, part.scope)
            for wording in (entry, *([own] if own else [])):
                forms = self._forms(wording, part)
                said = stated(part, wording.claim, forms)
                if said is not None:
                    found.append(_Said(part, wording, said, forms))
                    break
        named = [item for item in found if self._under(item.entry.claim.line, question)]
        return named or [item for item in found if self._open_to(question, item.entry.claim.line)]

    def _claims(self, part: Part) -> list[ScopedClaim]:
        """The claims of the sheet as they are read in the setting of a part."""
        (sheet,) = (sheet for scope, sheet in self.readings if scope == part.scope)
        return [entry for entry in sheet.entries if isinstance(entry, ScopedClaim)]

    def _under(self, line: int, question: Question) -> bool:
        above = section(self.named, line)
        return above is not None and same_name(above.name) == same_name(question.name)

    def _open_to(self, question: Question, line: int) -> bool:
        """Whether a line may belong to a question: it stands under its name, or under that of none in the key."""
        above = section(self.named, line)
        return above is None or not self._known(above) or self._under(line, question)

    def _known(self, heading: Heading) -> bool:
        return any(same_name(heading.name) == same_name(question.name) for question in self.key.questions)

    def _attributed(self, found: Sequence[tuple[Question, list[list[_Said]]]]) -> list[list[Line]]:
        """For every question, the unreadable lines that may be its answer.

        A line under a question's name, or one that holds what a question asks for, belongs to it. Any other may be the
        answer to every question that has none.
        """
        claims = [line for line in self.unreadable if not re.match(r"\s*(given|let)\b", line.text)]
        own = [[line for line in claims if self._belongs(line, question)] for question, _ in found]
        placed = {line.line for lines in own for line in lines}
        rest = [line for line in claims if line.line not in placed]
        return [lines or (rest if not all(parts) else []) for lines, (_, parts) in zip(own, found, strict=True)]

    def _belongs(self, line: Line, question: Question) -> bool:
        above = section(self.named, line.line)
        if above is not None and self._known(above):
            return self._under(line.line, question)
        return any(_states(line.text, part.label) for part in question.parts)

    def _judged(self, question: Question, part: Part, said: list[_Said], unreadable: list[Line]) -> PartAnswer:
        """The last claim that answers the part and works it out counts; one that says something else only where none does.

        Everything else that is said of the part is shown beside it: another value, or a bound from the other side.
        """
        fitting = [item for item in said if answers(part, item.said)]
        fitting = fitting or [item for item in said if item.entry.claim.line not in self.fitting]
        finished = [item for item in fitting if not unfinished(item.part, item.said, item.forms)]
        counted = finished or fitting
        last = counted[-1] if counted else None
        later = tuple(line for line in unreadable if last is None or line.line > last.entry.claim.line)
        others = self._others(said, last)
        if later:
            shown_last = () if last is None else (_line(last.entry),)
            return PartAnswer(part, Judged(LOOK, "the answer could not be read"), (*others, *shown_last), later)
        if last is None and (about := self._speaking_of(question, part) or self._meant_for(question, part)):
            words = "there is no answer, but a claim that may be meant as one"
            return PartAnswer(part, Judged(LOOK, words), about)
        if last is None and (unclear := self._unclear(question, part)):
            words = "there is no answer, but lines that could not be read or may be several"
            return PartAnswer(part, Judged(LOOK, words), (), unclear)
        if last is None:
            return PartAnswer(part, Judged(MISSING, "no answer"))
        judged = judge(last.part, last.entry, last.said, last.forms, self.bench)
        return PartAnswer(part, self._for_a_person(judged, last), others)

    def _others(self, said: list[_Said], last: _Said | None) -> tuple[Line, ...]:
        """What else is said of a part: not the same again, nor what answers another part."""

        def what(item: _Said) -> object:
            return item.said.sign, to_text(item.said.value), item.entry.scope.conditions

        found: dict[object, Line] = {}
        for item in said:
            elsewhere = item.entry.claim.line in self.fitting and not answers(item.part, item.said)
            same = last is not None and (what(item) == what(last) or item.entry.claim.line == last.entry.claim.line)
            if not same and not elsewhere:
                found.setdefault(what(item), _line(item.entry))
        return tuple(found.values())

    def _for_a_person(self, judged: Judged, item: _Said) -> Judged:
        """The judgement, left to a person where the answer stands among words, holds a line that is not understood, or
        rests on a derivative that the sheet works out elsewhere."""
        claim = item.entry.claim
        verdict = "holds" if judged.report is not None and judged.report.holds else "does not hold"
        if claim.in_prose:
            words = f"it stands among words; by itself it {verdict}" if judged.report else "it stands among words"
            return replace(judged, mark=LOOK, reason=words, credit=Fraction(0))
        if claim.joined and judged.mark != RIGHT:
            words = f"a row of it starts with a sign and may be an answer of its own; as it was read it {verdict}"
            return replace(judged, mark=LOOK, reason=words, credit=Fraction(0))
        if claim.skipped and judged.mark != WRONG:
            lines = ", ".join(str(skipped.line) for skipped in claim.skipped)
            words = f"the steps that can be read hold; line {lines} cannot be read: {claim.skipped[0].reason}"
            return replace(judged, mark=LOOK, reason=words, credit=Fraction(0))
        if judged.mark in (WRONG, PARTLY) and judged.report is not None and (own := _by_names_of_its_own(item)):
            words = f"it has {own[0]}, by {own[1]}, which the sheet defines and the key's formulas do not use"
            return replace(judged, mark=LOOK, reason=words, credit=Fraction(0))
        left = unfinished(item.part, item.said, item.forms)
        slopes = set(item.forms.averages_and_slopes(item.forms.of(item.said.value)))
        if judged.mark == WRONG and left and slopes and slopes <= self._worked_out(item):
            return replace(judged, mark=LOOK, reason=f"{left}; another line of the sheet does that", credit=Fraction(0))
        return judged

    def _worked_out(self, item: _Said) -> set[int]:
        """The derivatives and means for which the sheet claims a value without any."""
        found: set[int] = set()
        for entry in self._claims(item.part):
            numbers = [item.forms.of(step.value) for step in entry.claim.steps]
            if any(not item.forms.averages_and_slopes(number) for number in numbers):
                for number in numbers:
                    found |= set(item.forms.averages_and_slopes(number))
        return found

    def _unused(self, question: Question, part: Part) -> list[tuple[ScopedClaim, Forms]]:
        """The last claims that speak of no question so far, and stand under the name of no other one."""
        claims = [e for e in self._claims(part) if e.claim.line not in self.used]
        claims = [entry for entry in claims if self._open_to(question, entry.claim.line)]
        return [(entry, self._forms(entry, part)) for entry in claims[-TRIED:]]

    def _rewritten(self, question: Question, part: Part) -> list[_Said]:
        """Claims about the target of a part in other words: log(sum(exp(x))) where logsumexp(x) is asked for.

        The other words must be equal to the target and made of the same givens, with something left to be worked out
        where the target has; what equals it and is worked out already would be an answer without its question.
        """
        found = []
        for entry, forms in self._unused(question, part):
            for step in (entry.claim.steps[0], entry.claim.steps[-1]):
                if forms.same_matter(step.value, part.target) and forms.of(step.value) != forms.of(part.value):
                    free = replace(entry.scope, conditions=part.scope.conditions)
                    asked = replace(part, target=step.value, reworded=part.target)
                    said = stated(asked, entry.claim, forms)
                    if said is not None and self.bench.compare(part.target, "==", step.value, free).holds:
                        found.append(_Said(asked, entry, said, forms))
                        self.used.add(entry.claim.line)
                        break
        return found

    def _speaking_of(self, question: Question, part: Part) -> tuple[Line, ...]:
        """Claims that answer no question, but hold the target of a part inside (2 * dJ/dW == ...), or have its value; of a
        bound also those with the same difference of their sides, as H(p, q) >= H(p) for KL(p, q) >= 0."""
        found = []
        for entry, forms in self._unused(question, part):
            sides = [step.value for step in entry.claim.steps]
            inside = any(forms.of(part.target) in forms.inside(forms.of(side)) for side in sides)
            free = replace(entry.scope, conditions=part.scope.conditions)
            pairs = [(part.target, side) for side in sides]
            if part.sign != "==":
                gap = minus(part.target, part.value)
                pairs += [(gap, minus(sides[0], sides[-1])), (gap, minus(sides[-1], sides[0]))]
            if inside or any(self.bench.compare(mine, "==", other, free).holds for mine, other in pairs):
                found.append(_line(entry))
        return tuple(found)

    def _meant_for(self, question: Question, part: Part) -> tuple[Line, ...]:
        """Lines that answer nothing, and stand under the question's name or hold what a part asks for, as it is written."""
        claims = [e.claim for e in self._claims(part)]
        taken = {step.line for c in claims if c.line in self.used for step in c.steps} | self.used
        label = re.compile(rf"(?<!\w){re.escape(''.join(part.label.split()))}(?!\w)")
        lines = []
        for number, row in enumerate(self.text.splitlines(), start=1):
            text = row.split("#", 1)[0]
            if number in taken or not text.strip() or re.match(r"\s*(given|let)\b", text):
                continue
            claimed = any(claim.line == number for claim in claims) and self._under(number, question)
            if claimed or (_RELATION.search(text) and label.search("".join(text.split()))):
                lines.append(Line(number, row.strip()))
        return tuple(lines)

    def _unclear(self, question: Question, part: Part) -> tuple[Line, ...]:
        """Lines that may hold the answer to a part: not understood in its setting, or joined to the line above."""
        (sheet,) = (sheet for scope, sheet in self.readings if scope == part.scope)
        lines = []
        for entry in sheet.entries:
            if isinstance(entry, NotUnderstood):
                line = Line(entry.line, entry.text, shown_names(entry.reason))
                alone = len(re.split(r"[=<>≤≥]+", line.text)) == 2  # the answer to another question, and no more
                others = [other for other in self.key.questions if other is not question]
                placed = alone and any(self._belongs(line, other) for other in others)
                lines += [] if placed or line.line in self.used else [line]
            elif entry.claim.joined:
                lines.append(_line(entry))
        return tuple(line for line in lines if self._open_to(question, line.line))

    def _forms(self, entry: ScopedClaim, part: Part) -> Forms:
        """The formulas of a claim's scope as numbers; claims that see the same definitions share them."""
        key = id(entry.scope.definitions)
        if key not in self.forms:
            self.forms[key] = Forms(entry.scope, part.scope)
        return self.forms[key]


def _by_names_of_its_own(item: _Said) -> tuple[str, str] | None:
    """A derivative in a claim by a name that the sheet defines, of what does not use it in the key, and that name.

    dL/dZ, with a let of the sheet for the logits, is 0 by the key's definition of L and means something all the same.
    """
    setting = build(item.entry.scope)
    for step in item.entry.claim.steps:
        for node in setting.opened(step.value):
            if not isinstance(node, Derivative):
                continue
            for name in node.by:
                if name not in item.part.scope.definitions and name not in setting.depends(node.operand):
                    return shown_names(to_text(node)), shown_names(name)
    return None


def _paragraphs(lines: Sequence[Line]) -> Iterator[Line]:
    """Lines of words that follow each other as one."""
    pending: list[Line] = []
    for line in lines:
        words = not starts_statement(line.text)
        if pending and not (words and line.line == pending[-1].line + 1):
            yield _paragraph(pending)
            pending = []
        if words:
            pending.append(line)
        else:
            yield line
    if pending:
        yield _paragraph(pending)


def _paragraph(lines: Sequence[Line]) -> Line:
    if len(lines) == 1:
        return lines[0]
    return Line(lines[0].line, " ".join(line.text for line in lines), "no formula in these lines could be read")


def _line(entry: ScopedClaim) -> Line:
    return Line(entry.claim.line, entry.claim.text)


def _states(text: str, label: str) -> bool:
    """Whether a line that could not be read has what is asked for as one of its sides, spaces aside."""
    text, label = ("".join(piece.split()) for piece in (text, label))
    sides = re.split(r"[=<>≤≥]+", re.sub(r"^(claim|derive)", "", text))
    return label in sides


def shown_names(text: str) -> str:
    """A reason with names as the student wrote them."""
    return re.sub(r"[^\W\d]\w*#\d+", lambda match: shown(match[0]), text)
